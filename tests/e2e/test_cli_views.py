"""What a person sees while it runs: status, issues, tail, init, the log on a terminal."""
import hashlib
import json
import os
import pty
import random
import re
import select
import signal
import subprocess
import time

import pytest

from tests.e2e.test_recovery import wait_until
from tests.support.program import BINARY, run_cli
from tests.support.telemetry import JournalWriter, kafka_produce, scalar

RULES = ("rules: [exploding_tensor]\nroute: {receiver: board, group_wait: 0s}\nreceivers: {board: {publish_metric: {}}}\n"
         "http: {listen: '127.0.0.1:0'}\n")


def one_issue():
    """A run whose loss becomes NaN at step 3."""
    return [scalar("digits", "loss", "NaN" if step == 3 else 1.0, step, job="digits") for step in range(5)]


@pytest.fixture
def journal(server, tmp_path):
    """The configuration of a journal on which one issue is open; the engine has ended."""
    config = tmp_path / "t.yaml"
    config.write_text(f"transport: {{journal: {tmp_path / 'data'}}}\n{RULES}")
    program = server(config, role="evaluate")
    program.wait_for("ready")
    JournalWriter(tmp_path / "data").append(*one_issue())
    program.wait_for("issue_fired")
    assert program.stop() == 0
    return config


def looks_right(config, judged=None):
    """``judged``: whether an engine reads the journal; None: it is a broker, where that is not seen."""
    code, out, err = run_cli("status", "-c", config)
    assert code == (1 if judged is False else 0), out + err
    assert ("nobody judges: no engine reads this journal" in out) == (judged is False), out
    assert re.search(r"open issues\n +ID +SEVERITY +RULE +JOB +SINCE +WHAT\n +[0-9a-f]{10} +error +exploding_tensor ", out), out
    assert "stops: none" in out and "unhealthy: none" in out
    code, out, _ = run_cli("status", "-c", config, "--output", "json")
    seen = json.loads(out)
    about_engine = set() if judged is None else {"judged", "unknown_runs"}
    assert set(seen) == {"transport", "runs", "issues", "silences", "acknowledgements", "summaries", "stops", "unhealthy"} | about_engine
    assert code == (1 if judged is False else 0) and seen.get("judged") is judged
    assert [issue["rule"] for issue in seen["issues"]] == ["exploding_tensor"]

    code, out, _ = run_cli("issues", "list", "-c", config)
    assert code == 0 and len(out.splitlines()) == 2
    short = out.splitlines()[1].split()[0]
    code, out, _ = run_cli("issues", "show", short, "-c", config)
    assert code == 0 and "loss became NaN at" in out and "→ " in out and "label rule" in out
    code, out, _ = run_cli("issues", "show", short, "-c", config, "-o", "json")
    assert code == 0 and json.loads(out)["labels"]["severity"] == "error"
    code, out, _ = run_cli("issues", "list", "-c", config, "--rule", "overfit")
    assert code == 0 and out == "no open issues\n"
    code, out, _ = run_cli("issues", "list", "-c", config, "-o", "json")
    assert code == 0 and len(json.loads(out)) == 1
    code, _, err = run_cli("issues", "show", "ffffffff", "-c", config)
    assert code == 1 and "no issue with ID ffffffff" in err


def tailed(config, *flags, until="exploding_tensor"):
    """What `tail` prints before it is told to end, and its exit code."""
    tail = subprocess.Popen([BINARY, "tail", "-c", config, *flags], stdout=subprocess.PIPE, text=True)
    line = ""
    while until not in line:
        assert select.select([tail.stdout], [], [], 30)[0], "nothing came"
        line = tail.stdout.readline()
    tail.send_signal(signal.SIGINT)
    return line, tail.wait(10)


def test_a_journal_can_be_looked_at(journal):
    looks_right(journal, judged=False)  # the engine has ended a moment ago, and the run has not
    line, code = tailed(journal, "--all")
    assert code == 0 and re.match(r"\d\d:\d\d:\d\d ISSUE .*exploding_tensor \(error\): loss became NaN .* → ", line), line
    line, code = tailed(journal, "--all", "-o", "json")
    assert code == 0 and json.loads(line)["rule"] == "exploding_tensor"


def test_looking_changes_nothing(journal, tmp_path):
    def state():
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (tmp_path / "data").glob("*.db")}
    before = state()
    for command, code in ((["status"], 1), (["status", "digits"], 0), (["issues", "list"], 0), (["issues", "list", "--all"], 0)):
        assert run_cli(*command, "-c", journal)[0] == code
    tailed(journal, "--all")
    assert state() == before


def test_a_view_can_be_opened_as_it_was(server, journal, tmp_path):
    time.sleep(1.1)
    then = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    program = server(journal, role="evaluate")
    program.wait_for("ready")
    JournalWriter(tmp_path / "data").append(*(scalar("digits", "loss", 1.0, step, job="digits") for step in range(5, 12)))
    program.wait_for("issue_resolved")
    assert program.stop() == 0
    assert run_cli("issues", "list", "-c", journal)[1] == "no open issues\n"
    code, out, err = run_cli("issues", "list", "-c", journal, "--at", then)
    assert code == 0 and "exploding_tensor" in out, err
    short = out.splitlines()[1].split()[0]
    assert "resolved" in run_cli("issues", "show", short, "-c", journal)[1]
    assert "resolved" not in run_cli("issues", "show", short, "-c", journal, "--at", then)[1]
    code, out, _ = run_cli("status", "-c", journal, "--at", then)
    assert code == 0 and f"as of {then[:19]}" in out and "exploding_tensor" in out
    code, out, _ = run_cli("status", "-c", journal, "--at", then, "-o", "json")
    assert code == 0 and json.loads(out)["as_of"].startswith(then[:19])
    code, out, _ = run_cli("report", "-c", journal, "--at", then, "-o", "json")
    assert code == 0 and [one["last"]["status"] for one in json.loads(out)["issues"]] == ["firing"]
    assert run_cli("issues", "list", "-c", journal, "--at", "1d")[1].startswith("no open issues as of ")
    for wrong, why in (("yesterday", "expected a time such as"), ("@12", "expected a time such as"), ("2199-01-01", "is yet to come")):
        code, _, err = run_cli("status", "-c", journal, "--at", wrong)
        assert code == 2 and why in err


def test_one_run_is_shown_by_itself(server, tmp_path):
    config = tmp_path / "t.yaml"
    config.write_text(f"transport: {{journal: {tmp_path / 'data'}}}\n{RULES}")
    program = server(config, role="evaluate")
    program.wait_for("ready")
    JournalWriter(tmp_path / "data").append(*one_issue(), *[
        scalar("words", "loss", "NaN" if step == 2 else 1.0, step, job="llm") for step in range(4)])
    wait_until(lambda: len(program.all("issue_fired")) == 2, 30, "both issues")
    code, out, _ = run_cli("status", "-c", config, "-o", "json")
    whole = json.loads(out)
    assert code == 0 and {issue["labels"]["job"] for issue in whole["issues"]} == {"digits", "llm"}
    (uid,) = {issue["run"]["uid"] for issue in whole["issues"] if issue["labels"]["job"] == "llm"}
    for name in ((uid,), (uid[:8],), ("llm",), ("words", "--job", "llm")):
        code, out, err = run_cli("status", *name, "-c", config, "-o", "json")
        assert code == 0, (name, err)
        seen = json.loads(out)
        assert [issue["run"]["uid"] for issue in seen["issues"]] == [uid] and seen["runs"] == [], name  # no process told of itself
    code, out, _ = run_cli("status", "llm", "-c", config)
    assert code == 0 and re.search(r"exploding_tensor +llm ", out) and "digits" not in out, out
    assert "stops: none" in out and "unhealthy: none" in out, out
    code, out, err = run_cli("status", "lm", "-c", config)
    assert (code, out) == (1, "") and 'no run "lm"; did you mean "llm"?' in err, err
    code, out, err = run_cli("status", "--job", "llm", "-c", config)
    assert (code, out) == (2, "") and "--job requires run" in err, err


def test_tail_follows(server, tmp_path):
    config = tmp_path / "t.yaml"
    config.write_text(f"transport: {{journal: {tmp_path / 'data'}}}\n{RULES}")
    server(config, role="evaluate").wait_for("ready")
    tail = subprocess.Popen([BINARY, "tail", "-c", config], stdout=subprocess.PIPE, text=True)
    time.sleep(0.5)
    JournalWriter(tmp_path / "data").append(*one_issue())
    assert select.select([tail.stdout], [], [], 30)[0]
    lines = iter(tail.stdout.readline, "")
    assert any("loss became NaN" in line for line in lines)
    tail.send_signal(signal.SIGTERM)
    assert tail.wait(10) == 0


def test_kafka_can_be_looked_at(server, kafka, tmp_path):
    prefix = f"look{random.randrange(10**9)}"
    config = tmp_path / "t.yaml"
    config.write_text(f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\ntopics: {{prefix: {prefix}, partitions: 3}}\n{RULES}")
    program = server(config, role="evaluate")
    program.wait_for("ready", timeout=90)
    kafka_produce(kafka, f"{prefix}.telemetry.v1", one_issue())
    program.wait_for("issue_fired", timeout=60)
    looks_right(config)
    line, code = tailed(config, "--all")
    assert code == 0 and "loss became NaN" in line


def test_where_nothing_is_nothing_is_made(tmp_path):
    for command in (["status"], ["tail"], ["issues", "list"]):
        code, _, err = run_cli(*command, "--out", tmp_path / "nowhere")
        assert code == 4 and "there is no journal" in err
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "another").mkdir()  # a folder of something else gets no files of ours
    code, _, err = run_cli("status", "--out", tmp_path / "another")
    assert code == 4 and "there is no journal" in err and list((tmp_path / "another").iterdir()) == []


def test_init_writes_what_check_accepts_and_overwrites_nothing(tmp_path):
    path = tmp_path / "mine.yaml"
    code, out, _ = run_cli("init", path)
    assert code == 0 and str(path) in out
    code, out, _ = run_cli("check", "--strict", path)
    assert code == 0 and out.endswith(f"\n{path}: ok\n") and "warning" not in out
    code, _, err = run_cli("init", path)
    assert code == 1 and "left as it is" in err


def test_version_and_what_is_mistyped():
    code, out, _ = run_cli("--version")
    assert code == 0 and out == run_cli("version")[1]
    for words, near in ((["stauts"], '"status"'), (["up", "--log.levle", "info"], '"--log.level"'),
                        (["rules", "descibe", "overfit"], '"describe"')):
        code, _, err = run_cli(*words)
        assert code == 2 and f"did you mean {near}?" in err, err
    code, _, err = run_cli("rules", "describe", "overfitt")
    assert code == 1 and 'did you mean "overfit"?' in err


def test_a_rule_is_described_with_the_meaning_of_each_parameter():
    code, out, _ = run_cli("rules", "describe", "vanishing_gradient")
    assert code == 0
    assert re.search(r"^threshold +1e-07  number, > 0: a gradient has vanished below this mean magnitude$", out, re.M), out
    code, out, _ = run_cli("rules", "describe", "all_zero")
    assert code == 0 and "percentage of zeros from which it fires" in out


def on_a_terminal(config, **environment):
    """What `evaluate` writes to a terminal until it has ended."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", **environment}
    program = subprocess.Popen([BINARY, "evaluate", "-c", config], stderr=theirs, stdout=theirs, env=env)
    os.close(theirs)
    text = ""
    while "stopped" not in text:
        assert select.select([ours], [], [], 30)[0], text
        try:
            text += os.read(ours, 65536).decode()
        except OSError:
            break
        if "ready" in text and "stopping" not in text:
            program.send_signal(signal.SIGTERM)
            time.sleep(0.05)
    program.wait(20)
    os.close(ours)
    return text


def test_the_log_is_for_people_on_a_terminal_and_for_machines_elsewhere(tmp_path):
    config = tmp_path / "t.yaml"
    config.write_text(f"transport: {{journal: {tmp_path / 'data'}}}\n{RULES}")
    env = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    os.environ.pop("NO_COLOR", None)
    text = on_a_terminal(config)
    assert re.search(r"\d\d:\d\d:\d\d\S* \x1b\[32mINFO \x1b\[0m ready: journal ", text), text
    text = on_a_terminal(config, NO_COLOR="1")
    assert "\x1b" not in text and re.search(r"\d\d:\d\d:\d\d INFO  ready: journal ", text), text
    program = subprocess.Popen([BINARY, "evaluate", "-c", config], stderr=subprocess.PIPE, text=True, env=env)
    lines = []
    wait_until(lambda: lines.append(program.stderr.readline()) or "msg=ready" in lines[-1], 30, "logfmt")
    program.terminate()
    assert program.wait(20) == 0 and all(line.startswith("ts=") for line in lines), lines
