"""`tocsin simulate`: recorded events through the real router on a clock of its own; the same every time, and nothing is sent."""
import json
import pathlib

from tests.support.on_call import at, in_state, issue, router
from tests.support.program import run_cli
from tests.support.webhook_receiver import WebhookReceiver

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "simulate"


def test_a_recorded_day_gives_the_timeline_that_is_kept():
    for _ in range(2):
        code, out, err = run_cli("simulate", "-c", DATA / "tocsin.yaml", "--events", DATA / "events.jsonl", "--after", "20m")
        assert code == 0, err
        assert out == (DATA / "timeline.txt").read_text()


def test_decisions_that_tell_nobody_are_shown_on_request():
    words = ("simulate", "-c", DATA / "tocsin.yaml", "--events", DATA / "events.jsonl", "-o", "json")
    told = [json.loads(line) for line in run_cli(*words)[1].splitlines()]
    looked = [json.loads(line) for line in run_cli(*words, "--decisions")[1].splitlines()]
    assert told == [one for one in looked if one["kind"]] and len(looked) > len(told)
    assert all(one["reason"] for one in looked) and told[0]["headline"] == "[error] digits: loss is NaN"


def test_a_journal_is_replayed_and_what_it_told_is_told_again(server, tmp_path):
    with WebhookReceiver() as hook:
        config = router(tmp_path, hook)
        program = server(config)
        program.wait_for("ready", timeout=60)
        began = issue(config, "one")
        in_state(config, "delivered")
        issue(config, "one", "resolved")
        messages = in_state(config, "delivered", 2)
        assert program.stop() == 0
        requests = len(hook.records)
        code, out, err = run_cli("simulate", "-o", "json", "-c", config)
        assert code == 0, err
        entries = [json.loads(line) for line in out.splitlines()]
        assert [(one["kind"], one["reason"]) for one in entries] == [(one["kind"], one["reason"]) for one in messages]
        assert run_cli("simulate", "--since", at(began + 3000), "-c", config)[1] == "no events\n"
        assert len(hook.records) == requests, "nothing is sent"


def test_what_is_no_event_is_said_with_its_line(tmp_path):
    events = tmp_path / "events.jsonl"
    for text, what in (('{"a": 1}\n', "line 1"), ("\n\nno JSON\n", "line 3")):
        events.write_text(text)
        code, _, err = run_cli("simulate", "-c", DATA / "tocsin.yaml", "--events", events)
        assert code == 1 and what in err, err
    assert run_cli("simulate", "-c", DATA / "tocsin.yaml", "--events", tmp_path / "none")[0] == 1
    assert run_cli("simulate", "-c", DATA / "tocsin.yaml", "--events", events, "--since", "soon")[0] == 2
