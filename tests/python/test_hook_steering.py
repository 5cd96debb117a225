"""What a script tells of its own course: promises, and what is not to be watched any more."""
import warnings

import pytest
from tests.support.hook_support import Telemetry
from tests.support.small_model import backward, make

import tocsin


def update(hook, model, optimizer):
    hook.log(loss=backward(model, optimizer))
    optimizer.step()


def test_a_promise_is_a_heartbeat_of_the_loop(out):
    hook = tocsin.watch(out=out)
    hook.report_progress(expect_next_in=3600)
    hook.report_progress()
    hook.close()
    said = [beat["expect_next_in"] for beat in Telemetry(out).lifecycles("heartbeat") if "expect_next_in" in beat]
    assert said == [3600, 0]


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), "soon"])
def test_what_is_no_time_is_no_promise(out, wrong):
    hook = tocsin.watch(out=out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hook.report_progress(expect_next_in=wrong)
    assert hook.stats()["hook_errors_total"] == {"report_progress": 1}
    hook.close()
    assert not [beat for beat in Telemetry(out).lifecycles("heartbeat") if "expect_next_in" in beat]


def is_watched(optimizer):
    """Either by the hooks of torch 2, or by a ``step`` of its own."""
    return "step" in optimizer.__dict__ or bool(getattr(optimizer, "_optimizer_step_post_hooks", None))


def test_one_model_of_two_is_let_go(out):
    (one, first), (two, second) = make(), make()
    hook = tocsin.watch(one, first, out=out, name="one", capture="{every: 1 steps}")
    tocsin.watch(two, second, name="two")
    backward(one, first)
    first.step()
    update(hook, two, second)
    tocsin.unwatch(two)
    assert is_watched(first) and not is_watched(second)
    for _ in range(2):  # of which the other one knows nothing
        update(hook, one, first)
        backward(two, second)
        second.step()
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1, 2]
    assert any(name.startswith("gradient/two.") for name in telemetry.summaries(0))
    names = telemetry.summaries(2)
    assert any(name.startswith("gradient/one.") for name in names) and not any("two." in name for name in names)


def test_all_are_let_go_and_watched_again(out):
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out)
    update(hook, model, optimizer)
    hook.unwatch()
    assert "step" not in optimizer.__dict__ and hook.sink.adapters() == []
    update(hook, model, optimizer)  # values are the script's own now, and so are steps
    hook.step()
    tocsin.watch(model, optimizer)
    update(hook, model, optimizer)
    hook.close()
    assert Telemetry(out).steps() == [0, 1, 2]


def test_without_a_hook_nothing_is_let_go():
    assert tocsin.get_hook() is None
    tocsin.unwatch()


def test_wrong_calls_are_said_at_the_end(out, capfd, monkeypatch):
    monkeypatch.delenv("TOCSIN_QUIET", raising=False)
    hook = tocsin.watch(out=out)
    assert hook.stats()["wrong_calls"] == ""
    hook.say_wrong_calls({"wrong_calls": "no_step_end"})
    hook.close()
    assert "in one step that nobody ended" in capfd.readouterr().err
