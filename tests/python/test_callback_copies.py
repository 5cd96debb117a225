"""A callback that has trained can be copied and pickled, as estimators and models are with their callbacks (tocsin.frameworks.copies)."""

import copy
import importlib
import pickle
import sys
import types

import pytest
import torch

from tests.support.hook_support import CommandWriter, Telemetry, wait_for

from tocsin.frameworks.callback import Watcher
from tocsin.frameworks.copies import Copyable


class Base:
    def __init__(self):
        self.of_base = True


class Trained(Copyable, Base):
    _carried = ("place",)

    def __init__(self, every=5, *, data=None, **options):
        super().__init__()
        self.every, self.data, self.place = every, data, "script"
        self._watcher = Watcher(options)
        self.handle = None


class Own(Trained):
    """A user's subclass, with arguments of its own."""

    def __init__(self, out):
        super().__init__(7, out=out)


def train(callback, stop=False):
    """Holds what no pickle takes while it trains, and afterwards: an open hook, a handle, a function of the script's."""
    model = torch.nn.Linear(3, 1)
    callback._watcher.open(model, [torch.optim.SGD(model.parameters(), lr=0.1)])
    callback.handle = lambda: model
    if stop:
        hook = callback._watcher.hook
        CommandWriter(callback._watcher._options["out"]).stop(hook.run, hook.attempt)
        assert wait_for(lambda: callback._watcher.asked() is not None)
    return callback


def ways():
    return [copy.copy, copy.deepcopy] + [lambda one, version=version: pickle.loads(pickle.dumps(one, version))
                                         for version in range(2, pickle.HIGHEST_PROTOCOL + 1)]


@pytest.mark.parametrize("again", ways())
@pytest.mark.parametrize("ended", [False, True])
def test_a_copy_is_a_new_callback_with_the_same_arguments(out, again, ended):
    one = train(Trained(3, out=out))
    one.place = "environment"
    if ended:
        one._watcher.end()
    other = again(one)
    assert type(other) is Trained and other.every == 3 and other.of_base and other.place == "environment"
    assert other.handle is None and other._watcher is not one._watcher and other._watcher.hook is None
    assert one._watcher.active is not ended
    one._watcher.end()
    train(other)._watcher.end()
    assert [end["outcome"] for end in Telemetry(out).lifecycles("end")] == ["completed", "completed"]


@pytest.mark.parametrize("again", ways())
def test_a_copy_remembers_what_ended_the_training(out, again):
    one = train(Trained(out=out, run="r"), stop=True)
    one._watcher.end()
    assert again(one)._watcher.stopped.command_id == one._watcher.stopped.command_id


@pytest.mark.parametrize("again", ways())
def test_a_subclass_with_arguments_of_its_own(out, again):
    one = train(Own(out))
    one._watcher.end()
    other = again(one)
    assert type(other) is Own and other.every == 7 and other._watcher._options == {"out": out}


@pytest.fixture
def xgboost(monkeypatch):
    fake = types.ModuleType("xgboost")
    fake.callback = types.ModuleType("xgboost.callback")
    fake.callback.TrainingCallback = type("TrainingCallback", (), {})
    fake.callback.EarlyStopping = type("EarlyStopping", (), {})
    fake.collective = types.SimpleNamespace(get_world_size=lambda: 1)
    monkeypatch.setitem(sys.modules, "xgboost", fake)
    monkeypatch.setitem(sys.modules, "xgboost.callback", fake.callback)
    monkeypatch.delitem(sys.modules, "tocsin.xgboost", raising=False)
    yield importlib.import_module("tocsin.xgboost")
    sys.modules.pop("tocsin.xgboost", None)


def test_data_goes_into_copies_and_into_no_pickle(xgboost, out):
    class Matrix:
        def __reduce__(self):
            raise TypeError("ctypes objects containing pointers cannot be pickled")

    matrix = Matrix()
    one = xgboost.TocsinCallback(("gain",), validation=matrix, out=out)
    assert copy.deepcopy(one)._validation is matrix
    other = pickle.loads(pickle.dumps(one))
    assert other._validation is None and other._importance == ("gain",)
