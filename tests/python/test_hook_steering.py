"""What a script takes back: a model, or all of them, are not watched any more."""
from tests.support.hook_support import Telemetry
from tests.support.small_model import backward, make

import tocsin


def update(hook, model, optimizer):
    hook.log(loss=backward(model, optimizer))
    optimizer.step()


def test_one_model_of_two_is_let_go(out):
    (one, first), (two, second) = make(), make()
    hook = tocsin.watch(one, first, out=out, name="one", capture="{every: 1 steps}")
    tocsin.watch(two, second, name="two")
    backward(one, first)
    first.step()
    update(hook, two, second)
    tocsin.unwatch(two)
    assert "step" not in second.__dict__ and "step" in first.__dict__
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
