"""`tocsin ack`, escalation and backups: nobody is paged for what somebody has taken on, and somebody is for what nobody takes on."""
import json
import time

import pytest

from tests.fakes.far_side import FarSide
from tests.fakes.pagerduty import PagerDuty
from tests.support.hook_support import wait_for
from tests.support.on_call import changes
from tests.support.program import run_cli
from tests.support.telemetry import JournalWriter, scalar

CONFIG = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
route:
  receiver: people
  group_wait: 0s
  group_interval: 1s
  repeat_interval: 2s
  propagate_ack: true
  escalation: [{{after: {after}, receiver: second}}]
receivers:
  people: {{pagerduty: {{url: '{pager}', routing_key_file: {key}, allow_private: [127.0.0.0/8]}}}}
  second: {{webhook: {{url: '{second}', allow_private: [127.0.0.0/8], secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='}}}}
http: {{listen: '127.0.0.1:0'}}
"""


class Webhook(FarSide):
    """Takes everything; `status` may say otherwise."""

    status = 204

    def answer(self, method, path, query, headers, body):
        if self.status == 204:
            self.messages.append(json.loads(body)["data"])
        return self.status, {}


@pytest.fixture
def sides():
    with PagerDuty() as pager, Webhook() as second:
        yield pager, second


def broken(job, folder):
    """A run without a hook, whose loss is NaN from step 3 on: nothing ends it."""
    JournalWriter(folder / "journal").append(*[scalar(job, "loss", "NaN" if step >= 3 else 1.0, step, job=job) for step in range(5)])


def write_config(folder, pager, second, after):
    key = folder / "key"
    key.write_text(pager.routing_key + "\n")
    config = folder / "t.yaml"
    config.write_text(CONFIG.format(journal=folder / "journal", pager=pager.url, key=key, second=second.url, after=after))
    return config


def actions_of(pager):
    return [event["event_action"] for incident in pager.messages for event in incident["events"]]


def reasons(second):
    return [message["reason"] for message in second.messages]


def test_what_somebody_has_taken_on_is_neither_repeated_nor_escalated_also_after_a_kill(server, tmp_path, sides):
    pager, second = sides
    config = write_config(tmp_path, pager, second, "8s")
    program = server(config)
    program.wait_for("ready")
    broken("digits", tmp_path)
    assert wait_for(lambda: actions_of(pager).count("trigger") >= 2, 30), "it is repeated"
    code, out, err = run_cli("ack", "digits", "--note", "looking at it", "--author", "ada", "-c", config)
    assert code == 0 and "acknowledges 1 open issue" in out and "loss" in out, out + err
    assert wait_for(lambda: [one["status"] for one in pager.messages] == ["acknowledged"], 20), "it is passed on"
    assert wait_for(lambda: '\ntocsin_router_issues{state="acked"} 1\n' in program.get("/metrics")[1], 10)
    assert 'tocsin_router_acks_total{origin="cli"} 1' in program.get("/metrics")[1]
    sent = len(actions_of(pager))
    program.kill()
    program = server(config)
    program.wait_for("ready")
    time.sleep(9)  # longer than the ladder waits, and several repeat intervals
    assert len(actions_of(pager)) == sent and not second.messages, (actions_of(pager), second.messages)

    code, out, _ = run_cli("issues", "list", "-c", config)
    assert code == 0 and "acknowledged by ada: " in out, out
    identity = out.splitlines()[1].split()[0]
    code, out, _ = run_cli("issues", "show", identity, "-c", config)
    assert code == 0 and "looking at it" in out and "acknowledged" in out, out
    assert "acknowledged by ada: " in run_cli("status", "-c", config)[1]
    [ack] = json.loads(run_cli("status", "-c", config, "-o", "json")[1])["acknowledgements"]
    assert ack["by"] == "ada" and ack["note"] == "looking at it" and ack["origin"] == "cli"

    code, out, err = run_cli("ack", identity, "--take-back", "-c", config)
    assert code == 0 and out == f"{ack['id']} taken back\n", out + err
    assert [change[1:] for change in changes(tmp_path / "journal")] == [("ack.set", ack["id"]), ("ack.ended", ack["id"])]
    assert wait_for(lambda: len(actions_of(pager)) > sent, 20), "repeats go on"
    assert wait_for(lambda: reasons(second) == ["escalation"], 30), second.messages
    [message] = second.messages
    assert message["why"].startswith("Escalated to second: neither acknowledged nor resolved "), message["why"]
    assert 'tocsin_router_escalations_total{route="{}",step="1"} 1' in program.get("/metrics")[1]


def test_one_issue_is_acknowledged_by_its_id_and_by_that_of_its_message(server, tmp_path, sides):
    pager, second = sides
    config = write_config(tmp_path, pager, second, "1h")
    program = server(config)
    program.wait_for("ready")
    broken("one", tmp_path)
    broken("two", tmp_path)
    assert wait_for(lambda: len(pager.messages) == 2, 30)
    out = run_cli("issues", "list", "--job", "one", "-c", config)[1]
    identity = out.splitlines()[1].split()[0]
    code, out, err = run_cli("ack", identity, "--note", "mine", "--dry-run", "-c", config)
    assert code == 0 and out.startswith("would acknowledge"), out + err
    code, out, err = run_cli("ack", identity, "--note", "mine", "--for", "2h", "-c", config, "-o", "json")
    ack = json.loads(out)
    assert code == 0 and len(ack["issues"]) == 1 and ack["until"] and ack["id"].startswith("ack_"), out + err
    told = program.wait_for("notification_decided", reason="first")
    code, out, err = run_cli("ack", told["notification_id"], "--note", "ours", "-c", config)
    assert code == 0 and "acknowledges 1 open issue" in out, out + err
    out = run_cli("issues", "list", "-c", config)[1]
    assert out.count("acknowledged by ") >= 1, out


def test_what_is_refused(server, tmp_path, sides):
    config = write_config(tmp_path, *sides, "1h")
    server(config).wait_for("ready")
    broken("digits", tmp_path)
    assert wait_for(lambda: "digits" in run_cli("issues", "list", "-c", config)[1], 30)
    for words in (["digits"], ["digits", "--note", "x", "--for", "soon"], ["digits", "--note", "x", "--for", "0s"],
                  ["digits", "--note", "x", "--until", "2001-01-01T00:00:00Z"], ["--note", "x"]):
        code, _, err = run_cli("ack", *words, "-c", config)
        assert code == 2 and err, (words, err)
    code, _, err = run_cli("ack", "digitz", "--note", "x", "-c", config)
    assert code == 1 and "digits" in err, err
    code, _, err = run_cli("ack", "ntf_nothing", "--note", "x", "-c", config)
    assert code == 1 and "nothing open has ID ntf_nothing" in err, err
    code, _, err = run_cli("ack", "digits", "--take-back", "-c", config)
    assert code == 1 and "nobody has acknowledged digits" in err, err


def test_a_message_that_is_refused_for_good_goes_to_the_backup(server, tmp_path):
    with Webhook() as people, Webhook() as backup:
        people.status = 410
        config = tmp_path / "t.yaml"
        config.write_text(f"""
transport: {{journal: {tmp_path / 'journal'}}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 0s, group_interval: 1s}}
receivers:
  people: {{webhook: {{url: '{people.url}', fallback: backup, allow_private: [127.0.0.0/8], secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='}}}}
  backup: {{webhook: {{url: '{backup.url}', allow_private: [127.0.0.0/8], secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='}}}}
http: {{listen: '127.0.0.1:0'}}
""")
        program = server(config)
        program.wait_for("ready")
        broken("digits", tmp_path)
        assert wait_for(lambda: "fallback" in reasons(backup), 30), backup.messages
        message = next(one for one in backup.messages if one["reason"] == "fallback")
        assert message["why"].startswith("Sent to backup because people/webhook did not take this message (410"), message["why"]
        metrics = program.get("/metrics")[1]
        assert 'tocsin_router_fallbacks_total{integration="people/webhook",receiver="backup"}' in metrics


def test_check_refuses_unknown_and_circular_backups(tmp_path):
    config = tmp_path / "t.yaml"
    config.write_text("""
transport: {journal: data}
rules: [exploding_tensor]
route:
  receiver: people
  escalation: [{after: 10m, receiver: secnd}, {after: 5m, receiver: second}]
  on_delivery_failure: {receiver: people}
receivers:
  people: {webhook: {url: 'https://one.example.org/', fallback: secondd}}
  second: {webhook: {url: 'https://two.example.org/', fallback: third}}
  third: {webhook: {url: 'https://three.example.org/', fallback: second}}
""")
    code, out, err = run_cli("check", config)
    said = out + err
    assert code == 3, said
    assert "no receiver is called 'secnd'; did you mean 'second'?" in said, said
    assert "must be later than that of the step before" in said, said
    assert "'people' is a receiver of this route" in said, said
    assert "no receiver is called 'secondd'; did you mean 'second'?" in said, said
    assert "in a circle: second → third → second" in said, said
    assert ":9:" in said and ":10:" in said and ":11:" in said, said
