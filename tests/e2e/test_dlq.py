"""`tocsin dlq`: what was given up is listed, sent again under its id, or discarded; a record that could not be read goes back to its topic."""
from tests.support.on_call import ask, changes, history, issue, router
from tests.support.program import run_cli
from tests.support.receiver import wait_for
from tests.support.webhook_receiver import WebhookReceiver


def letters(config, *words):
    return ask("dlq", "list", *words, config=config)[1]


def stand(config, identity):
    return next(one["stand"] for one in letters(config, "--all") if one["id"] == identity)


def dead(config, hook, name):
    """A notification that was given up: the far side refused it twice."""
    hook.answer(400, 2)
    issue(config, name)
    return wait_for(lambda: [one for one in letters(config) if f"{name} is wrong" in str(one)], 30, f"dead letter {name}")[0]


def test_a_dead_notification_is_sent_again_under_its_id(server, tmp_path):
    with WebhookReceiver() as hook:
        config = router(tmp_path, hook)
        server(config).wait_for("ready", timeout=60)
        letter = dead(config, hook, "broken")
        assert letter["stand"] == "dead" and letter["integration"] == "hook" and "400" in letter["events"][0]["detail"], letter
        identity = letter["id"]
        code, out, _ = run_cli("dlq", "list", "-c", config)
        assert code == 0 and identity[:18] in out and "hook" in out, out
        code, out, _ = run_cli("dlq", "replay", identity, "--dry-run", "-c", config)
        assert code == 0 and "would be sent again" in out and stand(config, identity) == "dead"
        code, out, err = run_cli("dlq", "replay", identity[:16], "--note", "it is back", "-c", config)
        assert code == 0, out + err
        [arrived] = hook.wait(1)
        assert arrived["json"]["notification_id"] == identity and arrived["json"]["reason"] == "replayed"
        wait_for(lambda: stand(config, identity) == "delivered", 20, "delivered")
        assert letters(config) == []
        code, out, _ = run_cli("dlq", "show", identity, "-c", config)
        assert "replay by" in out and "it is back" in out and "broken is wrong" in out, out
        code, verdict = ask("history", "--audit", config=config)
        assert code == 0 and verdict["replays"] == 1, verdict
        assert [change[1:] for change in changes(tmp_path / "data")] == [("dead_letter.replayed", identity)], "a dry run changes nothing"
        [one] = history(config)
        assert [step["state"] for step in one["attempts"]] == ["pending", "dead", "delivered"], one

        # The incident that the replay opened is closed when its issue is over.
        issue(config, "broken", "resolved")
        hook.wait(2, timeout=30)
        assert hook.accepted()[1]["json"]["kind"] == "close"


def test_what_is_over_is_refused_unless_forced(server, tmp_path):
    with WebhookReceiver() as hook:
        config = router(tmp_path, hook)
        server(config).wait_for("ready", timeout=60)
        letter = dead(config, hook, "gone")
        issue(config, "gone", "resolved")
        wait_for(lambda: "gone" not in run_cli("issues", "list", "-c", config)[1], 20, "resolved")
        code, _, err = run_cli("dlq", "replay", letter["id"], "-c", config)
        assert code == 1 and "its issues are over" in err, err
        assert hook.accepted() == []
        code, out, err = run_cli("dlq", "replay", letter["id"], "--force", "-c", config)
        assert code == 0, out + err
        assert hook.wait(1)[0]["json"]["notification_id"] == letter["id"]


def test_all_of_an_integration_and_what_is_discarded(server, tmp_path):
    with WebhookReceiver() as hook:
        config = router(tmp_path, hook)
        program = server(config)
        program.wait_for("ready", timeout=60)
        identities = {dead(config, hook, name)["id"] for name in ("a", "b")}
        code, said = ask("dlq", "discard", min(identities), "--note", "told by phone", config=config)
        assert code == 0 and said[0]["id"] == min(identities)
        assert stand(config, min(identities)) == "discarded" and [one["id"] for one in letters(config)] == [max(identities)]
        assert run_cli("dlq", "replay", "-c", config)[0] == 2, "of which?"
        assert run_cli("dlq", "replay", "--integration", "hook", "-c", config)[0] == 0
        assert [one["json"]["notification_id"] for one in hook.wait(1)] == [max(identities)], "what was discarded stays"
        assert run_cli("dlq", "show", "ntf_none", "-c", config)[0] == 1

        # A replay that is under way, or ended, survives the end of the process.
        program.kill()
        server(config).wait_for("ready", timeout=60)
        issue(config, "later")
        hook.wait(2)
        assert [one["json"]["notification_id"] for one in hook.accepted()].count(max(identities)) == 1


def test_a_record_that_could_not_be_read_goes_back_to_its_topic(server, tmp_path):
    with WebhookReceiver() as hook:
        config = router(tmp_path, hook)
        server(config).wait_for("ready", timeout=60)
        issue(config, "bad", value=b'{"status": "firing"')
        [record] = wait_for(lambda: [one for one in letters(config) if one["what"] == "record"], 20, "refused record")
        identity = record["id"]
        assert identity.startswith("issues/0@") and record["code"] == "bad_event" and record["headers"]["ce_source"] == "/test"
        assert run_cli("status", "-c", config)[0] == 1
        code, out, err = run_cli("dlq", "replay", identity, "-c", config)
        assert code == 0 and "published again to issues" in out, out + err
        wait_for(lambda: stand(config, identity) == "replay", 20, "replayed")
        [again] = wait_for(lambda: letters(config), 20, "refused once more")
        assert again["id"] != identity and again["bytes"] == record["bytes"] and again["headers"] == record["headers"]
        assert run_cli("dlq", "discard", again["id"], "--note", "a test", "-c", config)[0] == 0
        assert letters(config) == [] and run_cli("status", "-c", config)[0] == 0, "nobody has to look any more"
        code, _, err = run_cli("dlq", "discard", again["id"], "-c", config)
        assert code == 1 and "seen to before" in err
