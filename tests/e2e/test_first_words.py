"""An episode keeps its first words: what is told of a run that was stopped before the first message."""
import json
import os
import random
import subprocess
import sys
import textwrap
import time

import pytest

from tests.support.hook_support import wait_for
from tests.support.journal import append
from tests.support.program import BUILD, ROOT, run_cli
from tests.support.webhook_receiver import WebhookReceiver

RUN = {"uid": "9f1c0000-0000-4000-8000-000000000001", "attempt": 1, "job": "j"}
LABELS = {"rule": "exploding_tensor", "severity": "error", "job": "j", "run_uid": RUN["uid"], "metric": "loss"}
SEEN = {"observed": {"name": "non_finite", "value": 1}, "operator": ">="}
LIMIT = {"threshold": {"name": "limit", "value": 1}}


@pytest.fixture
def people():
    with WebhookReceiver() as receiver:
        yield receiver


def bodies(people):
    return [request["json"] for request in people.accepted()]


def at(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1e6):06d}Z"


def told(journal, status, step, summary, began, resolution=None, **more):
    """An event of a producer that knows nothing of `ending`."""
    data = {"status": status, "labels": LABELS, "annotations": {"summary": summary}, "starts_at": at(began), "expiry": "explicit",
            "run": RUN, "step": step, "evidence": SEEN, "resolution": resolution, **more}
    if status == "resolved":
        data["ends_at"] = at(time.time())
    event = f"iss_{random.randrange(10**12)}"
    heads = {"ce_specversion": "1.0", "ce_type": "dev.tocsin.issue.v1", "ce_source": "/input", "ce_id": event, "ce_time": at(time.time()),
             "content-type": "application/json"}
    append(journal, ("issues", "", json.dumps(data), [(name, value.encode()) for name, value in heads.items()]))
    return event


def router(server, tmp_path, url, route=""):
    config = tmp_path / "tocsin.yaml"
    config.write_text(f"transport: {{journal: {tmp_path / 'journal'}}}\nhttp: {{listen: '127.0.0.1:0'}}\nroute: {{receiver: people{route}}}\n"
                      f"receivers: {{people: {{webhook: {{url: '{url}', format: native, allow_private: [127.0.0.0/8]}}}}}}\n")
    one = server(config, role="route")
    one.wait_for("ready")
    return one, config, tmp_path / "journal"


@pytest.mark.parametrize("wait", ["", ", group_wait: 2s"], ids=["default timers", "group_wait 2s"])
def test_a_run_that_ends_before_the_first_message_is_told_as_it_was_found(server, tmp_path, people, wait):
    _, config, journal = router(server, tmp_path, people.url, wait)
    began = time.time()
    first = told(journal, "firing", 186, "loss became NaN at train step 186.", began, evidence={**SEEN, **LIMIT})
    later = told(journal, "firing", 190, "loss is NaN, still.", began)
    time.sleep(0.1)
    over = told(journal, "resolved", 357, "The job ended while this fired for metric loss.", began, "job_ended")
    assert wait_for(lambda: bodies(people), 10), "within seconds, not after group_wait"
    body = bodies(people)[0]
    (issue,) = body["issues"]
    assert issue["annotations"]["summary"] == "loss became NaN at train step 186." and issue["step"] == 186
    assert issue["evidence"]["threshold"] == LIMIT["threshold"]
    assert (body["status"], issue["status"], issue["resolution"]) == ("resolved", "resolved", "job_ended") and issue["ends_at"]
    assert issue["ending"]["summary"] == "The job ended while this fired for metric loss." and issue["ending"]["step"] == 357
    assert issue["event_id"] == first and issue["ending"]["event_id"] == over
    for event in (first, later, over):  # every id that went out, or stood on the way
        code, out, err = run_cli("issues", "show", event, "-c", config)
        assert code == 0 and out.startswith("loss became NaN at train step 186.") and "The job ended while this fired" in out, out + err
    code, out, _ = run_cli("issues", "list", "--all", "-c", config)
    assert code == 0 and "resolved (job_ended): loss became NaN at train step 186." in out, out


def test_an_episode_before_the_newest_is_shown_by_its_own_ids(server, tmp_path, people):
    _, config, journal = router(server, tmp_path, people.url)
    began = time.time()
    first = told(journal, "firing", 10, "the first time", began)
    told(journal, "resolved", 20, "back to normal", began, "recovered")
    second = told(journal, "firing", 30, "the second time", time.time() + 1)
    for event, words in ((first, "the first time"), (second, "the second time")):
        code, out, err = run_cli("issues", "show", event, "-c", config)
        assert code == 0 and out.startswith(words), out + err


CONFIG = """
transport: {{journal: {journal}}}
rules: [{{use: exploding_tensor, actions: [stop]}}]
route: {{receiver: people}}
receivers:
  people: {{webhook: {{url: '{url}', format: native, allow_private: [127.0.0.0/8]}}}}
  stop: {{stop_training: {{armed: true}}}}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import sys, time
import tocsin
hook = tocsin.watch(run="r", job="llm", labels={"team": "nlp"})
for step in range(600):
    hook.log(loss=float("nan") if step == 50 else 1.0)
    hook.step()
    if hook.should_stop():
        hook.acknowledge_stop(checkpoint="/tmp/ck-5")
        hook.close(outcome="stopped_by_rule")
        sys.exit(tocsin.EXIT_STOPPED)
    time.sleep(0.02)
"""


def train(tmp_path, journal):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    environment = {**os.environ, "TOCSIN_OUT": str(journal), "PYTHONPATH": str(ROOT / "python"), "TOCSIN_QUIET": "1"}
    environment.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
    return subprocess.Popen([sys.executable, script], env=environment)


@pytest.mark.alone
def test_a_stopped_run_is_told_with_stop_and_checkpoint_at_default_timers(server, tmp_path, people):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal, url=people.url))
    one.wait_for("ready")
    assert train(tmp_path, journal).wait(30) == 77
    one.wait_for("job_ended", outcome="stopped_by_rule")
    assert wait_for(lambda: bodies(people), 10)
    body = bodies(people)[0]
    issue = next(one for one in body["issues"] if one["rule"] == "exploding_tensor")
    assert "NaN" in issue["annotations"]["summary"] and issue["step"] == 50 and issue["status"] == "resolved"
    assert issue["evidence"]["threshold"] and issue["annotations"]["recommendation"]
    (run,) = body["runs"]
    assert run["outcome"] == "stopped_by_rule" and run["exit_code"] == 77 and run["hosts"] == [os.uname().nodename]
    stop = run["stop"]
    assert (stop["rule"], stop["requested_by"], stop["state"]) == ("exploding_tensor", "router", "stopped")
    assert stop["command_id"].startswith("cmd_") and stop["answers"]["stopped"] == 1
    assert stop["checkpoint"]["path"] == "/tmp/ck-5" and stop["checkpoint"]["host"] == os.uname().nodename
    code, out, err = run_cli("issues", "show", issue["event_id"], "--out", journal)
    assert code == 0 and "NaN" in out and stop["command_id"] in out and f"{os.uname().nodename}:/tmp/ck-5" in out, out + err
