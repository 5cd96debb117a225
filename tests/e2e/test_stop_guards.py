"""What holds a stop back: other rules, a rule that flags too much, an issue that recovers, a dry run, a name that too many jobs have."""
import json
import os
import subprocess
import sys
import textwrap
import time

import pytest

from tests.support.program import BUILD, ROOT, run_cli
from tests.support.telemetry import journal_events
from tests.support.patience import patience

CONFIG = """
transport: {{journal: {journal}}}
rules:
  - {{use: exploding_tensor, actions: [stop]}}
  - {{name: high_lr, select: 'metric("lr")', when: 'value > 1', actions: [{second}]}}
receivers:
  stop: {{stop_training: {{armed: true, mode: stop, deadline: {{ack: 60s}}{more}}}}}
  nobody: {{}}
http: {{listen: '127.0.0.1:0'}}
{rest}
"""

# The loss is NaN while the file `nan` is there, and the learning rate is high while `high` is.
SCRIPT = """
import os, sys, time
import tocsin
place, job = sys.argv[1:3]
hook = tocsin.watch(run=job, job=job)
for step in range(6000):
    hook.log(loss=float("nan") if os.path.exists(place + "/nan") else 1.0, lr=9.0 if os.path.exists(place + "/high") else 0.1)
    hook.step()
    if hook.should_stop():
        hook.acknowledge_stop()
        hook.close(outcome="stopped_by_rule")
        sys.exit(tocsin.EXIT_STOPPED)
    time.sleep(0.02)
"""


@pytest.fixture
def train(tmp_path):
    running = []
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))  # once: a job that starts reads it

    def start(job="bert"):
        everything = {**os.environ, "TOCSIN_OUT": str(tmp_path / "journal"), "PYTHONPATH": str(ROOT / "python"), "TOCSIN_QUIET": "1",
                      "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
        running.append(subprocess.Popen([sys.executable, path, tmp_path, job], env=everything))
        return running[-1]

    yield start
    for one in running:
        one.kill()
        one.wait(10)


def config_of(tmp_path, more="", rest="", second="stop"):
    return CONFIG.format(journal=tmp_path / "journal", more=more, rest=rest, second=second)


def stops(tmp_path, state):
    code, out, err = run_cli("stops", "list", "--all", "--from", tmp_path / "journal", "-o", "json")
    assert code == 0, err
    return [one for one in json.loads(out) if one["state"] == state]


def issues_of(tmp_path, rule):
    code, out, _ = run_cli("issues", "list", "--all", "--from", tmp_path / "journal", "-o", "json")
    assert code == 0, out
    return [one for one in json.loads(out) if one.get("rule", one.get("labels", {}).get("rule")) == rule]


def wait_until(found, timeout=40):
    end = time.monotonic() + patience(timeout)
    while time.monotonic() < end:
        if result := found():
            return result
        time.sleep(0.3)
    raise AssertionError("it did not come")


# `nobody`: the second rule is not routed to the stop, and counts all the same.
@pytest.mark.parametrize("second", ["stop", "nobody"])
def test_a_quorum_across_kill_9(server, tmp_path, train, second):
    config = config_of(tmp_path, ", quorum: {count: 2}", second=second)
    first = server(config)
    first.wait_for("ready")
    process = train()
    (tmp_path / "nan").touch()
    [waits] = wait_until(lambda: stops(tmp_path, "awaiting_quorum"))
    first.kill()
    server(config).wait_for("ready")
    time.sleep(2)
    assert process.poll() is None and issues_of(tmp_path, "stop_waits") == [], "one rule alone stops nothing and bothers nobody"
    (tmp_path / "high").touch()
    assert process.wait(40) == 77
    code, out, _ = run_cli("stops", "show", waits["command_id"], "--from", tmp_path / "journal", "-o", "json")
    assert code == 0 and json.loads(out)["approval"]["state"] == "approved", out


@pytest.mark.parametrize("more", [", approval: always", ", quorum: {count: 2}"])
def test_a_stop_that_waits_is_cancelled_when_its_issue_recovers(server, tmp_path, train, more):
    one = server(config_of(tmp_path, more))
    one.wait_for("ready")
    process = train()
    (tmp_path / "nan").touch()
    state = "awaiting_approval" if "approval" in more else "awaiting_quorum"
    wait_until(lambda: stops(tmp_path, state))
    (tmp_path / "nan").unlink()
    wait_until(lambda: stops(tmp_path, "recovered"))
    assert stops(tmp_path, state) == []
    wait_until(lambda: all(told["status"] == "resolved" for told in issues_of(tmp_path, "stop_waits")))
    (tmp_path / "high").touch()
    wait_until(lambda: stops(tmp_path, state))  # another issue asks anew: what had recovered does not count for its quorum
    time.sleep(1)
    assert process.poll() is None and not one.all("stop_asked")
    assert not issues_of(tmp_path, "stop_failed"), "nothing has failed"


def test_a_rule_that_flags_most_jobs_is_suspected_once(server, tmp_path, train):
    config = config_of(tmp_path, ", max_stops: {count: 50}")
    first = server(config)
    first.wait_for("ready")
    jobs = [train(f"job{number}") for number in range(6)]
    wait_until(lambda: len(json.loads(run_cli("status", "--from", tmp_path / "journal", "-o", "json")[1])["runs"]) == 6)
    (tmp_path / "nan").touch()
    wait_until(lambda: len(stops(tmp_path, "awaiting_approval")) >= 3)
    first.kill()
    second = server(config)
    second.wait_for("ready")
    time.sleep(3)
    asked = {one["command_id"] for one in stops(tmp_path, "awaiting_approval")}
    running = [job for job in jobs if job.poll() is None]
    assert len(running) == len(asked) == 3, "half of six may be stopped"
    told = [headers["ce_id"] for _, data, headers in journal_events(tmp_path / "journal", "issues") if data.get("labels", {}).get("rule") == "stop_suspect"]
    assert len(set(told)) == 1 and issues_of(tmp_path, "stop_waits") == [], "one notice for all"
    for command in asked:
        assert run_cli("stops", "approve", command, "--from", tmp_path / "journal")[0] == 0
    assert [job.wait(40) for job in running] == [77] * 3
    wait_until(lambda: all(one["status"] == "resolved" for one in issues_of(tmp_path, "stop_suspect")))


def test_all_jobs_of_a_prefix_and_no_more_than_allowed(server, tmp_path, train):
    one = server(config_of(tmp_path, ", prefix: bert-, max_jobs: 2"))
    one.wait_for("ready")
    jobs = [train(name) for name in ("bert-1", "bert-2", "gpt-1")]
    wait_until(lambda: len(json.loads(run_cli("status", "--from", tmp_path / "journal", "-o", "json")[1])["runs"]) == 3)
    (tmp_path / "nan").touch()
    assert [job.wait(40) for job in jobs[:2]] == [77, 77]
    time.sleep(1)
    assert jobs[2].poll() is None


def test_more_jobs_of_a_prefix_than_allowed_stop_none(server, tmp_path, train):
    one = server(config_of(tmp_path, ", prefix: bert-"))
    one.wait_for("ready")
    jobs = [train(name) for name in ("bert-1", "bert-2")]
    wait_until(lambda: len(json.loads(run_cli("status", "--from", tmp_path / "journal", "-o", "json")[1])["runs"]) == 2)
    (tmp_path / "nan").touch()
    failed = wait_until(lambda: issues_of(tmp_path, "stop_failed"))
    assert "matches 2 running jobs (bert-1, bert-2), max_jobs is 1" in json.dumps(failed)
    assert [job.poll() for job in jobs] == [None, None]


def test_a_dry_run_of_all_stops(server, tmp_path, train):
    one = server(config_of(tmp_path, rest="stops: {dry_run: true}"))
    one.wait_for("ready")
    process = train()
    (tmp_path / "nan").touch()
    ended = one.wait_for("delivery_finished", type="stop_training")
    assert "dry run, stops.dry_run: would ask bert" in json.dumps(ended), ended
    time.sleep(1)
    assert process.poll() is None and stops(tmp_path, "requested") == []


def test_check_says_which_stops_are_armed(tmp_path):
    config = tmp_path / "tocsin.yaml"
    config.write_text(config_of(tmp_path, ", max_stops: {count: 2, per: 5m}, dry_run: [team=research]"))
    code, out, err = run_cli("check", config)
    assert code == 0, out + err
    said = " ".join(out.split())
    assert "what would be done to runs" in said
    assert "armed: asks the run to stop, SIGTERM after 1m without an answer, no SIGKILL; at most 2 in 5m; asks nobody; dry run where team=research" in said
    config.write_text(config_of(tmp_path).replace("armed: true", "armed: false"))
    assert "not armed: would ask the run to stop" in " ".join(run_cli("check", config)[1].split())
    config.write_text(config_of(tmp_path, rest="stops: {dry_run: true}"))
    out = " ".join(run_cli("check", config)[1].split())
    assert "were stops.dry_run not true" in out and "no job is stopped, whatever is armed" in out
