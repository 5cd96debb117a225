"""Alarms answered where people read them: by the API, and in PagerDuty, whose signed webhook comes back; over a real server."""
import datetime
import hashlib
import hmac
import http.client
import json
import time

from tests.fakes.jsm import Jsm
from tests.fakes.pagerduty import PagerDuty
from tests.support.hook_support import wait_for
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, scalar

TOKEN, SIGNING = "0123456789-of-the-shift", "0123456789-signing-secret"
CONFIG = """
transport: {{journal: {folder}/journal}}
rules: [exploding_tensor]
route:
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 2s
  propagate_ack: true
  receivers: [people, desk]
receivers:
  people: {{pagerduty: {{url: '{pager}', routing_key_file: {folder}/key, allow_private: [127.0.0.0/8]}}}}
  desk: {{jsm: {{url: '{desk}', api_key_file: {folder}/genie, allow_private: [127.0.0.0/8]}}}}
http:
  listen: '127.0.0.1:0'
  auth: {{tokens: [{{name: shift, role: operator, token_file: {folder}/shift}}]}}
  inbound:
    - {{name: pd, type: pagerduty, integration: people/pagerduty, secret_file: {folder}/signing}}
"""


def ask(program, method, path, body=None, headers=None):
    host, port = program.wait_for("started")["http"].rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=30)
    text = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
    connection.request(method, path, text, {"Content-Type": "application/json", **(headers or {"Authorization": f"Bearer {TOKEN}"})})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, json.loads(text) if text.startswith(("{", "[")) else text


def hook(program, kind, group, event, secret=SIGNING):
    body = json.dumps({"event": {"id": event, "event_type": f"incident.{kind}", "resource_type": "incident",
                                 "occurred_at": datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z"),
                                 "agent": {"type": "user_reference", "summary": "Ada Lovelace"},
                                 "data": {"type": "incident", "incident_key": group, "status": kind}}}).encode()
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return ask(program, "POST", "/hooks/pd", body, {"X-PagerDuty-Signature": f"v1={'0' * 64},v1={signature}"})


def triggers(pager):
    return [event["event_action"] for incident in pager.messages for event in incident["events"]].count("trigger")


def test_a_click_in_pagerduty_ends_the_repeats_reaches_jsm_and_begins_no_loop(server, tmp_path):
    with PagerDuty() as pager, Jsm() as desk:
        for name, text in (("key", pager.routing_key), ("genie", desk.api_key), ("shift", TOKEN), ("signing", SIGNING)):
            (tmp_path / name).write_text(text + "\n")
            (tmp_path / name).chmod(0o600)
        config = tmp_path / "t.yaml"
        config.write_text(CONFIG.format(folder=tmp_path, pager=pager.url, desk=desk.url))
        program = server(config)
        program.wait_for("ready")
        JournalWriter(tmp_path / "journal").append(*[scalar("digits", "loss", "NaN" if step >= 3 else 1.0, step, job="digits") for step in range(5)])
        assert wait_for(lambda: triggers(pager) >= 2 and desk.messages, 60), "it is repeated"
        group = pager.messages[0]["dedup_key"]

        status, answer = hook(program, "acknowledged", group, "e-1", secret="0123456789-of-nobody")
        assert status == 401 and "Ada" not in json.dumps(program.events), answer
        assert 'tocsin_router_signature_failures_total{hook="pd"} 1' in program.get("/metrics")[1]
        assert ask(program, "GET", "/api/v1/acks")[1]["items"] == []

        status, answer = hook(program, "acknowledged", group, "e-2")
        assert status == 200 and "acknowledged" in answer, answer
        [ack] = ask(program, "GET", "/api/v1/acks")[1]["items"]
        assert (ack["by"], ack["origin"], ack["group"], ack["holds"]) == ("Ada Lovelace", "people/pagerduty", group, True), ack
        assert wait_for(lambda: desk.messages[0]["acknowledged"], 30), "it is passed on to the other tool"
        assert "Acknowledged by Ada Lovelace" in "\n".join(desk.messages[0]["notes"])
        assert "acknowledged by Ada Lovelace" in run_cli("issues", "list", "-c", config)[1]
        sent = triggers(pager)
        time.sleep(5)  # several repeat intervals
        assert triggers(pager) == sent and pager.messages[0]["status"] == "triggered", "the one it came from is told nothing"
        assert not desk.refused and not pager.refused, (desk.refused, pager.refused)

        assert hook(program, "unacknowledged", group, "e-3")[0] == 200
        assert ask(program, "GET", "/api/v1/acks")[1]["items"] == []
        assert wait_for(lambda: triggers(pager) > sent, 30), "repeats go on"

        status, made = ask(program, "POST", "/api/v1/acks", {"what": "digits", "note": "mine", "duration": "2h"})
        assert status == 202 and made["ack"]["by"] == "shift" and made["matching"], made
        assert wait_for(lambda: pager.messages[0]["status"] == "acknowledged", 30), "by the API it is passed on to PagerDuty"
        assert "already" in hook(program, "acknowledged", group, "e-4")[1], "whose word on it changes nothing"
        assert len(ask(program, "GET", "/api/v1/acks")[1]["items"]) == 1
        assert ask(program, "DELETE", f"/api/v1/acks/{made['ack']['id']}")[0] == 204
        whats = [one["what"] for one in ask(program, "GET", "/api/v1/audit")[1]["items"]]
        assert whats == ["ack.ended", "ack.set", "ack.ended", "ack.set"], whats


def test_check_names_the_nearest_integration(tmp_path):
    config = tmp_path / "t.yaml"
    config.write_text("""
transport: {journal: data}
rules: [exploding_tensor]
route: {receiver: people}
receivers:
  people: {pagerduty: {routing_key: 0123456789abcdef0123456789abcdef}}
http:
  inbound: [{name: pd, type: pagerduty, integration: peple/pagerduty, secret: 0123456789-signing}]
""")
    code, out, err = run_cli("check", config)
    assert code == 3 and "did you mean \"people/pagerduty\"?" in out + err and ":8:" in out + err, out + err

