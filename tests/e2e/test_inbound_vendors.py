"""Acknowledgements that come and go between tools: whole webhooks of PagerDuty v3 and of Jira Service Management, as their pages have them,
to a real server, and what ServiceNow then shows."""
import json
import urllib.request

import pytest

from tests.fakes.jsm_webhooks import JsmWebhooks
from tests.fakes.pagerduty_webhooks import PagerDutyWebhooks
from tests.fakes.servicenow import ServiceNow
from tests.support.hook_support import wait_for
from tests.support.telemetry import JournalWriter, scalar

CONFIG = """
transport: {{journal: {folder}/journal}}
rules: [exploding_tensor]
route:
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 10m
  propagate_ack: true
  receivers: [people, desk, records]
receivers:
  people: {{pagerduty: {{url: '{pager}', routing_key_file: {folder}/key, allow_private: [127.0.0.0/8]}}}}
  desk: {{jsm: {{url: '{desk}', api_key_file: {folder}/genie, allow_private: [127.0.0.0/8]}}}}
  records: {{servicenow: {{url: '{records}', mode: incident, basic_auth: {{username: tocsin, password_file: {folder}/snow}}, allow_private: [127.0.0.0/8]}}}}
http:
  listen: '127.0.0.1:0'
  inbound:
    - {{name: pd, type: pagerduty, integration: people/pagerduty, secret_file: {folder}/signing}}
    - {{name: ops, type: jsm, integration: desk/jsm, secret_file: {folder}/webhook}}
"""


@pytest.fixture
def tools(server, tmp_path):
    """PagerDuty, JSM and ServiceNow that know of an incident, the place of the server, and its list of acknowledgements."""
    with PagerDutyWebhooks() as pager, JsmWebhooks() as desk, ServiceNow() as records:
        for name, text in (("key", pager.routing_key), ("genie", desk.api_key), ("snow", records.password), ("signing", pager.signing_secret),
                           ("webhook", desk.webhook_token)):
            (tmp_path / name).write_text(text + "\n")
            (tmp_path / name).chmod(0o600)
        config = tmp_path / "t.yaml"
        config.write_text(CONFIG.format(folder=tmp_path, pager=pager.url, desk=desk.url, records=records.url))
        program = server(config)
        program.wait_for("ready")
        place = "http://" + program.wait_for("started")["http"]
        JournalWriter(tmp_path / "journal").append(*[scalar("digits", "loss", "NaN" if step >= 3 else 1.0, step, job="digits") for step in range(5)])
        assert wait_for(lambda: pager.messages and desk.messages and records.messages, 60), program.events[-5:]

        def acks():
            with urllib.request.urlopen(place + "/api/v1/acks", timeout=30) as answer:
                return [(one["by"], one["origin"]) for one in json.load(answer)["items"] if one["holds"]]
        yield pager, desk, records, place, acks
        assert not pager.refused and not desk.refused and not records.refused, (pager.refused, desk.refused, records.refused)


def test_a_whole_webhook_of_pagerduty_reaches_servicenow_and_jsm(tools):
    pager, desk, records, place, acks = tools
    hook, [incident], [record] = place + "/hooks/pd", pager.messages, records.messages
    assert pager.post(hook, pager.ping()) == (200, "nothing to do\n")
    for kind in ("incident.annotated", "incident.priority_updated", "incident.delegated"):
        assert pager.post(hook, pager.envelope(kind, incident)) == (200, "nothing to do\n")
    assert acks() == [] and record["state"] == "1"

    taken = pager.envelope("incident.acknowledged", incident)
    assert pager.post(hook, taken, secret="0123456789-of-nobody!")[0] == 401
    assert pager.post(hook, taken, also=f"v1={'0' * 64},") == (200, "acknowledged\n"), "one of two signatures while secrets change"
    assert acks() == [("Ada Lovelace", "people/pagerduty")]
    assert pager.post(hook, taken) == (200, "known already\n"), "PagerDuty tries again when an answer is late"
    assert wait_for(lambda: record["state"] == "2", 30), "ServiceNow: in progress"
    assert any("Ada Lovelace" in note for note in record["work_notes_all"]), record["work_notes_all"]
    assert wait_for(lambda: desk.messages[0]["acknowledged"], 30)
    assert pager.messages == [incident] and incident["status"] == "acknowledged" and record.get("close_code") is None

    assert pager.post(hook, pager.envelope("incident.unacknowledged", incident, agent=None)) == (200, "taken back\n"), "a timeout, by nobody"
    assert acks() == []
    # By a rule: no agent is named.
    assert pager.post(hook, pager.envelope("incident.acknowledged", incident, agent=None)) == (200, "acknowledged\n")
    assert acks() == [("PagerDuty", "people/pagerduty")]
    other = pager.envelope("incident.acknowledged", {"dedup_key": "of another program", "status": "triggered"})
    assert pager.post(hook, other) == (200, "no incident of ours\n")


def test_whole_action_data_of_jsm_acknowledges_and_takes_back(tools):
    pager, desk, records, place, acks = tools
    hook, [alert], [record] = place + "/hooks/ops", desk.messages, records.messages
    for action in ("Create", "AddNote", "Escalate", "AssignOwnership", "Close"):
        assert desk.post(hook, desk.action_data(action, alert, note="a note")) == (200, "nothing to do\n"), action
    assert desk.post(hook, desk.action_data("Acknowledge", alert), token="0123456789-of-nobody!")[0] == 401
    assert acks() == []
    assert desk.post(hook, desk.action_data("Acknowledge", alert)) == (200, "acknowledged\n")
    assert acks() == [("bob@example.org", "desk/jsm")]
    assert wait_for(lambda: record["state"] == "2" and pager.messages[0]["status"] == "acknowledged", 30), "passed on to both"
    assert any("bob@example.org" in note for note in record["work_notes_all"]), record["work_notes_all"]
    assert desk.post(hook, desk.action_data("Acknowledge", alert, username="eve@example.org")) == (200, "acknowledged already\n")
    assert desk.post(hook, desk.action_data("UnAcknowledge", alert)) == (200, "taken back\n")
    assert acks() == []
