"""A script tells people itself: its alerts arrive where every issue does, once per title while it waits."""
import json

import pytest

from tests.support.hook_support import run_script, wait_for
from tests.support.telemetry import journal_events
from tests.support.webhook_receiver import WebhookReceiver

CONFIG = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
route: {{receiver: people, group_by: [job, rule], group_wait: 100ms, group_interval: 100ms}}
receivers: {{people: {{webhook: {{format: alertmanager_v4, url: '{url}', allow_private: [127.0.0.0/8]}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import time
import tocsin
hook = tocsin.watch(run="r", job="talks")
for step in range(20):
    hook.log(loss=1.0)
    hook.step()
    if step in (5, 10):
        hook.alert("Low {{accuracy}}", f"It is 0.31 at step {step}.", level="ERROR", wait_duration=300)
time.sleep(2)
{MORE}
hook.close()
print(hook.stats()["alerts"])
"""


@pytest.fixture
def people():
    with WebhookReceiver() as receiver:
        yield receiver


def firing(people):
    return [alert for request in people.accepted() for alert in (request["json"] or {}).get("alerts", [])
            if alert["labels"].get("rule") == "script_alert" and alert["status"] == "firing"]


def issues(journal):
    return [data for _, data, _ in journal_events(journal, "issues") if data.get("rule") == "script_alert"]


def test_two_calls_within_the_wait_are_one_message(server, tmp_path, people):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal, url=people.url))
    one.wait_for("ready")
    done = run_script(SCRIPT.replace("{MORE}", ""), tmp_path, TOCSIN_OUT=str(journal))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "{'told': 1, 'waiting': 1}"
    one.wait_for("job_ended")
    assert wait_for(lambda: firing(people), 15)
    assert [data["status"] for data in issues(journal)] == ["firing", "resolved"]
    (said,) = firing(people)
    assert said["labels"]["title"] == "Low {{accuracy}}", "no template of ours looks into it"
    assert said["labels"]["severity"] == "error"
    assert said["annotations"]["summary"] == "Low {{accuracy}}"
    assert "It is 0.31 at step 5." in json.dumps(said["annotations"])


def test_said_again_when_the_wait_is_over_people_hear_of_it_again(server, tmp_path, people):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal, url=people.url))
    one.wait_for("ready")
    again = 'hook.alert("again", "first", wait_duration=0); time.sleep(2); hook.alert("again", "second", wait_duration=0); time.sleep(2)'
    done = run_script(SCRIPT.replace("{MORE}", again), tmp_path, TOCSIN_OUT=str(journal))
    assert done.returncode == 0, done.stderr
    one.wait_for("job_ended")
    texts = wait_for(lambda: {"first", "second"} <= {one["annotations"].get("description") for one in firing(people)}, 15)
    assert texts, firing(people)
