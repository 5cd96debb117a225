"""`tocsin endpoint` and `tocsin breaker reset`: how integrations stand, and switches that survive a restart."""
import time

from tests.support.on_call import ask, changes, in_state, issue, router
from tests.support.program import run_cli
from tests.support.receiver import wait_for
from tests.support.webhook_receiver import WebhookReceiver


def stands(config):
    code, [one, *others] = ask("endpoint", "list", config=config)
    assert others == [] and one["integration"] == "hook"
    return code, one


def order(config, *words):
    code, out, err = run_cli(*words, "-c", config)
    assert code == 0, out + err
    return out


def test_what_is_off_waits_and_stays_off_after_a_restart(server, tmp_path):
    with WebhookReceiver() as hook:
        config = router(tmp_path, hook)
        program = server(config)
        program.wait_for("ready", timeout=60)
        issue(config, "before")
        hook.wait(1)
        in_state(config, "delivered")
        code, one = stands(config)
        assert code == 0 and one["state"] == "ready" and one["waiting"] == 0 and one["last_success"] and one["type"] == "webhook", one
        order(config, "endpoint", "disable", "hook", "--comment", "it moves")
        program.wait_for("endpoint_ordered", do="disable")
        issue(config, "held")
        in_state(config, "pending")
        code, one = stands(config)
        assert code == 1 and one["state"] == "off" and "it moves" in one["why"] and one["waiting"] == 1 and one["oldest_waiting"], one
        code, out, _ = run_cli("endpoint", "probe", "hook", "-c", config)
        assert code == 1 and "endpoint enable" in out, out

        program.kill()
        program = server(config)
        program.wait_for("ready", timeout=60)
        issue(config, "still held")
        in_state(config, "pending", 2)
        time.sleep(1)
        assert len(hook.accepted()) == 1
        order(config, "endpoint", "enable", "hook")
        hook.wait(3)
        wait_for(lambda: stands(config)[0] == 0, 20, "ready")
        assert [change[1:] for change in changes(tmp_path / "data")] == [("endpoint.disable", "hook"), ("endpoint.enable", "hook")]


def test_a_probe_does_not_wait_and_a_reset_closes_the_breaker(server, tmp_path):
    with WebhookReceiver() as hook:
        hook.answer(429, 1, retry_after=600)
        config = router(tmp_path, hook)
        server(config).wait_for("ready", timeout=60)
        code, out, _ = run_cli("endpoint", "probe", "hook", "-c", config)
        assert code == 1 and "nothing to send" in out and "send-test hook" in out, out
        issue(config, "throttled")
        wait_for(lambda: stands(config)[1]["state"] == "paused", 20, "paused")
        assert stands(config)[1]["paused_until"] and "429" in stands(config)[1]["failure"]
        hook.answer(503, 1, retry_after=600)  # without it the message might be tried again, and arrive, before the next probe
        code, answer = ask("endpoint", "probe", "hook", config=config)
        assert code == 1 and answer["answer"]["class"] == "throttled" and answer["answer"]["code"] == "503", answer
        code, answer = ask("endpoint", "probe", "hook", config=config)
        assert code == 0 and answer["answer"]["class"] == "delivered", answer
        hook.wait(1)

        hook.answer(503, 1000)
        for number in range(6):
            issue(config, f"down {number}")
        wait_for(lambda: stands(config)[1]["breaker"] == "open", 30, "open breaker")
        hook.script.clear()
        order(config, "breaker", "reset", "hook")
        wait_for(lambda: stands(config)[1]["waiting"] == 0, 20, "all sent")


def test_what_is_refused(tmp_path):
    with WebhookReceiver() as hook:
        config = router(tmp_path, hook)
        (tmp_path / "data").mkdir()
        code, _, err = run_cli("endpoint", "disable", "hok", "--comment", "why", "-c", config)
        assert code == 2 and 'did you mean "hook"?' in err, err
        assert run_cli("endpoint", "disable", "hook", "-c", config)[0] == 2, "without a comment"
        assert run_cli("endpoint", "list", "-c", config)[0] == 4, "there is no journal"
