"""The demo tells what tocsin's log says: no more, and nothing of other runs."""

import io
import json
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "lib"))

from demo_story import Story, nanoseconds  # noqa: E402
from demo_view import View  # noqa: E402

RUN = "4e3046d4-8c1f-5278-82e3-ea3595bc5999"


def started():
    story = Story("exploding")
    story.training(json.dumps({"event": "start", "run": RUN, "steps": 440, "parameters": 10, "samples": 5}))
    return story


def event(msg, **fields):
    return json.dumps({"ts": "2026-11-20T10:00:00.5Z", "level": "info", "msg": msg, "run": RUN, **fields})


def fired(step, tensor, at="2026-11-20T10:00:00.000000000Z", **fields):
    return event("issue_fired", rule="exploding_tensor", severity="error", step=step, tensor=tensor,
                 summary=f"{tensor} is not finite", measured_at=at, published_at="2026-11-20T10:00:00.002Z",
                 evaluated_at="2026-11-20T10:00:00.003Z", **fields)


@pytest.mark.parametrize("text, expected", [
    ("1970-01-01T00:00:00Z", 0),
    ("1970-01-01T00:00:01.000000001Z", 1_000_000_001),
    ("1970-01-01T01:00:00.5+01:00", 500_000_000),
    ("2026-11-20T10:00:00.123456789Z", 1795168800123456789),
    ("yesterday", None), (None, None), (7, None),
])
def test_times_keep_every_nanosecond(text, expected):
    assert nanoseconds(text) == expected


def test_first_unit_is_told_and_the_others_are_counted():
    story = started()
    assert story.tocsin(fired(181, "gradient/a")) == \
        [("issue", "step 181  exploding_tensor (error)  gradient/a is not finite")]
    assert story.tocsin(fired(181, "gradient/b")) == []
    assert [issue["tensor"] for issue in story.fired()["exploding_tensor"]] == ["gradient/a", "gradient/b"]


def test_another_run_is_another_story():
    story = started()
    assert story.tocsin(json.dumps({"msg": "issue_fired", "rule": "overfit", "run": "someone-else"})) == []
    assert story.fired() == {}


def test_lines_that_are_no_events_are_harmless():
    story = started()
    for line in ("", "Segmentation fault", "[1]", '"text"', "{}", '{"msg": "unheard_of"}', '{"msg": 7}'):
        assert story.tocsin(line) == []
    assert story.training("Traceback (most recent call last):\n") == \
        [("training", "Traceback (most recent call last):")]


def test_failed_attempt_is_shown_and_success_replaces_it():
    story = started()
    story.tocsin(fired(181, "gradient/a"))
    story.tocsin(event("notification_decided", notification_id="n1", type="email", kind="open"))
    told = story.tocsin(event("delivery_finished", notification_id="n1", type="email", state="dead", code="550"))
    assert told == [("bad", "email           dead (550)")]
    told = story.tocsin(event("delivery_finished", notification_id="n1", type="email", state="delivered",
                              attempt=2, latency_ms=12.34))
    assert told == [("good", "email           delivered, attempt 2  12.3 ms")]


def test_end_of_the_alarm_is_not_a_delivery_of_the_alarm():
    story = started()
    story.tocsin(event("notification_decided", notification_id="n2", type="email", kind="close"))
    assert story.tocsin(event("delivery_finished", notification_id="n2", type="email", state="delivered")) == []
    assert story.deliveries == {}


def test_stages_follow_the_first_bad_tensor_to_the_stopped_loop():
    story = started()
    story.tocsin(fired(181, "gradient/a"))
    story.tocsin(event("notification_decided", type="stop_training", kind="open", notification_id="n",
                       ts="2026-11-20T10:00:00.004Z"))
    for phase, at in (("received", "05"), ("accepted", "10"), ("checkpoint_done", "30"), ("stopping", "31")):
        story.tocsin(event("stop_progress", phase=phase, step=182, at=f"2026-11-20T10:00:00.0{at}Z"))
    assert [(round(step, 3), round(total, 3)) for _, step, total in story.stages()] == \
        [(0, 0), (2, 2), (1, 3), (1, 4), (1, 5), (5, 10), (20, 30), (1, 31)]
    assert story.stop_acknowledged()


def test_an_effect_that_is_logged_first_waits_for_its_cause():
    story = started()
    delivered = event("delivery_finished", notification_id="n", type="stop_training", state="delivered")
    assert story.tocsin(event("stop_progress", phase="received", step=5)) == []
    assert story.tocsin(delivered) == []
    assert story.tocsin(event("notification_decided", notification_id="n", type="stop_training", kind="open")) == []
    told = [text for _, text in story.tocsin(fired(181, "gradient/a"))]
    assert told[0].startswith("step 181") and told[1].startswith("stop_training   delivered")
    assert told[2] == "stop_training   request has reached the training process at step 5"
    assert story.rest() == []


def test_however_the_threads_interleave_no_effect_is_told_before_its_cause():
    """Each thread logs in its own order; between them any order may come out."""
    kinds = ("stop_training", "email", "mqtt")
    threads = [
        [fired(181, "gradient/a"), fired(181, "gradient/b")],
        [event("notification_decided", notification_id=kind, type=kind, kind="open") for kind in kinds],
        [event("delivery_finished", notification_id=kind, type=kind, state="delivered") for kind in kinds],
        [event("stop_progress", phase=phase, step=182) for phase in ("received", "accepted", "stopping")],
    ]
    for seed in range(300):
        chance, story, told = random.Random(seed), started(), []
        left = [list(thread) for thread in threads]
        while any(left):
            told += story.tocsin(chance.choice([thread for thread in left if thread]).pop(0))
        told = [text.split("  ")[0] + (" …" if kind == "stop" else "") for kind, text in told + story.rest()]
        assert told[0] == "step 181", seed
        assert [text for text in told if text.startswith("stop_training")] == \
            ["stop_training", *["stop_training …"] * 3], seed
        assert sorted(set(told[1:])) == ["email", "mqtt", "stop_training", "stop_training …"], seed


def test_deliveries_and_news_of_the_act_before_are_not_this_act():
    story = Story("healthy")
    other = {"run": "someone-else"}
    for line in (event("stop_progress", phase="stopped", **other), event("issue_fired", rule="overfit", **other),
                 event("notification_decided", notification_id="n", type="email", kind="open", **other)):
        assert story.tocsin(line) == []  # before this act's script has said which run it is
    story.training(json.dumps({"event": "start", "run": RUN, "steps": 440}))
    assert story.tocsin(json.dumps({"msg": "delivery_finished", "notification_id": "n", "type": "email",
                                    "state": "delivered"})) == []
    assert story.rest() == [] and story.deliveries == {} and story.stop == {}


def test_no_stage_is_shown_before_the_one_that_caused_it():
    story = started()
    story.tocsin(fired(181, "gradient/a"))
    story.tocsin(event("notification_decided", type="stop_training", kind="open", notification_id="n"))
    story.tocsin(event("delivery_finished", type="stop_training", notification_id="n", state="delivered",
                       ts="2026-11-20T10:00:00.9Z", decided_at="2026-11-20T10:00:00.004Z",
                       sent_at="2026-11-20T10:00:00.006Z"))
    story.tocsin(event("stop_progress", phase="received", at="2026-11-20T10:00:00.005900Z"))  # another clock
    names = [name for name, _, _ in story.stages()]
    assert names == ["tensor measured in the training process", "frame published", "rule evaluated, issue fired",
                     "routed: stop decided", "stop command sent", "command received by the hook"]
    assert [total for _, _, total in story.stages()] == [0, 2, 3, 4, 6, 6]


def test_stages_of_nothing_are_none():
    assert started().stages() == []


def test_view_without_a_terminal_is_plain_and_moves_once_a_second():
    out = io.StringIO()
    view = View(out)
    view.step("!", "text", "red")
    for step in range(5):
        view.status(f"step {step}")
    view.table(("a", "b"), [("x", 1), ("long", 22)], right=(1,))
    assert out.getvalue() == "  ! text\nstep 0\n  a      b\n  x      1\n  long  22\n"


def test_course_of_the_loss_marks_values_that_are_none():
    view = View(io.StringIO())
    view.unicode = True
    assert view.sparkline([]) == ""
    assert view.sparkline([1.0, float("nan"), 100.0, float("inf")]) == "▁×█×"
    assert len(view.sparkline([float(i) for i in range(1, 1000)])) == 24
