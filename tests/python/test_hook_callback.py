"""What the callbacks of trainers share, without a trainer."""
import torch

from tests.support.hook_support import CommandWriter, Telemetry, wait_for

import tocsin
from tocsin.frameworks.callback import Watcher, any_rank, loss_of, scalars


def make():
    model = torch.nn.Linear(3, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def outcomes(out):
    return [end["outcome"] for end in Telemetry(out).lifecycles("end")]


def test_a_hook_that_the_callback_opened_ends_with_the_training(out):
    model, optimizer = make()
    watcher = Watcher({"out": out})
    watcher.open(model, [optimizer])
    watcher.open(model, [optimizer])  # the trainer begins once more
    watcher.log({"loss": 1.0})
    watcher.end()
    assert tocsin.get_hook() is None and outcomes(out) == ["completed"]
    watcher.end()
    watcher.log({"loss": 1.0})
    assert watcher.asked() is None


def test_a_hook_of_the_scripts_own_is_left_open(out):
    model, optimizer = make()
    hook = tocsin.watch(out=out)
    watcher = Watcher({})
    watcher.open(model, [optimizer])
    assert watcher.hook is hook
    watcher.end()
    assert tocsin.get_hook() is hook
    watcher.fail(ValueError("of the trainer's"))
    assert tocsin.get_hook() is hook


def test_what_a_trainer_raises_is_how_the_run_ended(out):
    watcher = Watcher({"out": out})
    watcher.open(None, [])
    watcher.fail(KeyboardInterrupt())
    assert outcomes(out) == ["interrupted"]


def test_a_stop_is_known_and_acknowledged_once(out):
    watcher = Watcher({"out": out, "run": "r"})
    watcher.open(None, [])
    CommandWriter(out).stop(watcher.hook.run, watcher.hook.attempt, args={"mode": "checkpoint_then_stop"})
    assert wait_for(lambda: watcher.asked() is not None)
    assert watcher.wants_checkpoint() and watcher.asked() is watcher.stopped
    watcher.end()
    assert outcomes(out) == ["stopped_by_rule"]


def test_losses_and_numbers_are_taken_from_whatever_a_trainer_gives():
    tensor = torch.tensor(2.0, requires_grad=True)

    class Output:
        loss = tensor

    assert float(loss_of({"loss": tensor})) == float(loss_of(Output())) == float(loss_of(tensor)) == 2.0
    assert not loss_of(tensor).requires_grad
    assert loss_of(None) is loss_of({"logits": tensor}) is loss_of(torch.zeros(3)) is loss_of({"loss": torch.zeros(3)}) is None
    assert scalars({"a": 1, "b": "text", "c": torch.zeros(2), "d": torch.ones(1), "e": 0.5}, ("e",)) == {"a": 1, "d": torch.ones(1)}
    assert any_rank(True, "cpu") and not any_rank(False, "cpu")
