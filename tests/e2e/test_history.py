"""`tocsin history`: every attempt of every notification, and the proof that none is lost."""
import json
import random
import sqlite3
import subprocess

from tests.support import journal
from tests.support.on_call import ask, history, in_state, issue, issue_event, router
from tests.support.program import run_cli
from tests.support.receiver import wait_for
from tests.support.webhook_receiver import WebhookReceiver


def produce(bootstrap, topic, name):
    """One issue of that name to Kafka."""
    heads, data = issue_event(name)
    words = [word for pair in heads.items() for word in ("-H", "=".join(pair))]
    subprocess.run(["kcat", "-b", bootstrap, "-P", "-t", topic, "-k", "run", *words, "-X", "message.timeout.ms=60000"],
                   input=json.dumps(data), text=True, check=True, timeout=90)


def test_each_attempt_and_the_end(server, tmp_path):
    with WebhookReceiver() as hook:
        hook.answer(503, 1)
        config = router(tmp_path, hook, retry={"initial": "200ms"})
        program = server(config)
        program.wait_for("ready", timeout=60)
        issue(config, "flaky")
        [one] = in_state(config, "delivered")
        attempts = one["attempts"]
        assert [step["class"] for step in attempts] == ["transient", "delivered"] and [step["attempt"] for step in attempts] == [1, 2]
        assert attempts[0]["code"] == "503" and "next_attempt_at" in attempts[0] and attempts[1]["latency_ms"] > 0
        assert one["headline"] == "[error] flaky is wrong" and one["reason"] == "first" and one["config_version"]
        assert hook.accepted()[0]["json"]["notification_id"] == one["notification_id"]

        code, out, _ = run_cli("history", "-c", config)
        assert code == 0 and "attempt 1: transient, 503" in out and "attempt 2: delivered, 200" in out and "flaky is wrong" in out, out
        assert history(config, "--integration", "hook") == history(config, "--integration", "r") == [one]
        assert history(config, "--integration", "other") == history(config, "--state", "dead") == []
        event = one["issues"][0]["event_id"]
        assert history(config, "--issue", event[:14]) == [one] and history(config, "--issue", "evt_other") == []
        assert history(config, "--since", "1h") == [one] and history(config, "--since", "now") == []
        assert run_cli("history", "--run", "nobody", "-c", config)[0] == 1
        assert run_cli("history", "--since", "soon", "-c", config)[0] == 2


def test_the_audit_finds_what_is_lost(server, tmp_path):
    with WebhookReceiver() as hook:
        config = router(tmp_path, hook)
        program = server(config)
        program.wait_for("ready", timeout=60)
        issue(config, "one")
        in_state(config, "delivered", 1)  # the log begins with it: of what was decided before nothing can be said
        for name in ("two", "three"):
            issue(config, name)
        messages = sorted(in_state(config, "delivered", 3), key=lambda one: one["attempts"][0]["at"])
        code, verdict = ask("history", "--audit", config=config)
        assert code == 0 and verdict["notifications"] == 3 and verdict["states"] == {"delivered": 3} and verdict["position_known"], verdict
        assert program.stop() == 0

        # What would be there if a bug had lost one, and told of another twice.
        control = sqlite3.connect(tmp_path / "data" / "control.db")
        control.execute("DELETE FROM router_deliveries WHERE key = ?", (messages[1]["notification_id"].encode(),))
        control.commit()
        control.close()
        [twice] = [one for one in journal.records(tmp_path / "data", "router-deliveries")
                   if one["key"].decode() == messages[2]["notification_id"]]
        journal.append(tmp_path / "data", ("router-deliveries", twice["key"].decode(), twice["value"], twice["headers"]))
        code, verdict = ask("history", "--audit", config=config)
        assert code == 1 and {one["notification_id"]: one["what"].split(":")[0] for one in verdict["offenders"]} == {
            messages[1]["notification_id"]: "lost", messages[2]["notification_id"]: "ended 2 times"}, verdict
        code, out, _ = run_cli("history", "--audit", "-c", config)
        assert code == 1 and "2 offend:" in out and "the deliverer has passed it" in out, out


def test_what_waits_is_pending_and_no_offender(server, tmp_path):
    with WebhookReceiver() as hook:
        hook.answer(503, 1000)
        config = router(tmp_path, hook)
        server(config).wait_for("ready", timeout=60)
        issue(config, "waits")
        in_state(config, "pending")
        code, verdict = ask("history", "--audit", config=config)
        assert code == 0 and verdict["pending"] == 1 and verdict["oldest_pending"], verdict
        assert json.loads(run_cli("history", "-o", "json", "-c", config)[1])[0]["state"] == "pending"


def test_over_kafka_the_position_of_the_deliverer_is_known_and_a_switch_survives(server, kafka, tmp_path):
    prefix = f"told{random.randrange(10**9)}"
    with WebhookReceiver() as hook:
        config = router(tmp_path, hook)
        config.write_text(json.dumps({**json.loads(config.read_text()), "transport": {"kafka": {"bootstrap.servers": kafka}},
                                      "topics": {"prefix": prefix, "partitions": 3}}))
        program = server(config)
        program.wait_for("ready", timeout=120)
        produce(kafka, f"{prefix}.issues.v1", "one")
        in_state(config, "delivered", timeout=60)
        wait_for(lambda: ask("history", "--audit", config=config)[1]["states"] == {"delivered": 1}, 30, "one delivered")
        code, verdict = ask("history", "--audit", config=config)
        assert code == 0 and verdict["position_known"] and verdict["pending"] == 0, verdict
        assert run_cli("endpoint", "disable", "hook", "--comment", "it moves", "-c", config)[0] == 0
        program.wait_for("endpoint_ordered", do="disable", timeout=60)
        program.kill()
        program = server(config)
        program.wait_for("ready", timeout=120)
        produce(kafka, f"{prefix}.issues.v1", "two")
        in_state(config, "pending", timeout=60)
        assert ask("endpoint", "list", config=config)[1][0]["state"] == "off" and len(hook.accepted()) == 1
        assert run_cli("endpoint", "enable", "hook", "-c", config)[0] == 0
        hook.wait(2, timeout=60)
