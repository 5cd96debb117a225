"""Times of what a step does outside of its model, that nobody asked for: batches, other ranks, checkpoints, the end."""
import io
import multiprocessing
import pickle
import sys
import threading
import time

import pytest
import torch
from tests.support.hook_support import ROOT, Telemetry, wire
from tests.support.two_ranks import TwoRanks
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch.utils.data import dataloader as torch_dataloader

import tocsin
from tocsin.adapters.torch.surroundings import waits as torch_waits

LOADED, SAVED = torch_dataloader._BaseDataLoaderIter.__next__, torch.save


class Slow(Dataset):
    """Of so many samples, of which each takes its time; `inner` is a loader that is read for each of them."""

    def __init__(self, samples, seconds=0.0, inner=None):
        self._samples, self._seconds, self._inner = samples, seconds, inner

    def __len__(self):
        return self._samples

    def __getitem__(self, index):
        if self._inner is not None:
            next(iter(self._inner))
        time.sleep(self._seconds)
        return torch.full((4,), float(index))


def perceptron():
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def train(model, optimizer, batches):
    for batch in batches:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()


def told(out, name):
    """Seconds of each, in order."""
    telemetry = Telemetry(out)
    return [row["duration"] / 1e9 for frame in telemetry.of_kind(wire.SPAN) for row in frame.rows if telemetry.names[row["name"]] == name]


def quiet(hook):
    hook.close()
    assert hook.stats()["hook_errors_total"] == {}
    assert torch_dataloader._BaseDataLoaderIter.__next__ is LOADED and torch.save is SAVED is torch.serialization.save
    assert "tocsin" not in getattr(torch.distributed.Work.wait, "__module__", "")


@pytest.mark.parametrize("workers", [0, 2])
def test_each_batch_is_waited_for(out, workers):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    loader = DataLoader(Slow(4, 0.02), batch_size=2, num_workers=workers)
    iterator = iter(loader)
    assert type(iterator).__name__ in ("_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter")
    train(model, optimizer, iterator)
    quiet(hook)
    waits = told(out, "data_wait")
    assert len(waits) == 3 and waits[0] >= 0.02, "two batches, and that there are no more"
    assert workers or waits[1] >= 0.04


def test_a_loader_inside_of_a_loader_is_one_wait(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, DataLoader(Slow(2, 0.0, DataLoader(Slow(8)))))
    quiet(hook)
    assert len(told(out, "data_wait")) == 3


def test_other_threads_and_their_loaders_are_nobodys(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    other = threading.Thread(target=lambda: (list(DataLoader(Slow(8))), torch.save(1, io.BytesIO())))
    other.start()
    other.join()
    train(model, optimizer, [torch.ones(2, 4)])
    quiet(hook)
    assert told(out, "data_wait") == told(out, "checkpoint") == []


def test_what_is_raised_there_is_the_scripts_and_the_next_is_timed(out):
    class Broken(Slow):
        def __getitem__(self, index):
            raise KeyError("no such sample")

    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    with pytest.raises(KeyError):
        next(iter(DataLoader(Broken(1))))
    train(model, optimizer, DataLoader(Slow(1)))
    quiet(hook)
    assert len(told(out, "data_wait")) == 3


def test_the_scripts_own_marks_count_alone(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, hook.batches(DataLoader(Slow(2))))
    with hook.phase("checkpoint"):
        torch.save(model.state_dict(), io.BytesIO())
    with hook.phase("finalization"):
        pass
    quiet(hook)
    assert [len(told(out, name)) for name in ("data_wait", "checkpoint", "finalization")] == [3, 1, 1]


@pytest.mark.parametrize("how", ["argument", "names", "configuration", "environment", "names of the environment"])
def test_each_can_be_switched_off(out, how, monkeypatch):
    if how == "environment":
        monkeypatch.setenv("TOCSIN_PHASES", "off")
    elif how == "names of the environment":
        monkeypatch.setenv("TOCSIN_PHASES", "checkpoint, forward")
    arguments = {"argument": {"phases": False}, "names": {"phases": ["checkpoint", "forward"]},
                 "configuration": {"capture": {"phases": ["checkpoint", "forward"]}}}.get(how, {})
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out, **arguments)
    some = how not in ("argument", "environment")
    assert (torch.save is SAVED) != some and torch_dataloader._BaseDataLoaderIter.__next__ is LOADED
    train(model, optimizer, DataLoader(Slow(2), batch_size=2))
    torch.save(model.state_dict(), io.BytesIO())
    quiet(hook)
    names = {name for name in tocsin.loop.phases.PHASES if told(out, name)}
    assert names == ({"checkpoint", "forward"} if some else {"optimizer"} if how == "argument" else set())


def test_a_name_that_is_no_phase_is_said(out):
    with pytest.warns(RuntimeWarning, match="'lunch' is no phase"):
        tocsin.watch(*perceptron(), out=out, phases=["lunch"])


def test_the_end_lasts_from_the_last_update_to_the_close(out):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    train(model, optimizer, [torch.ones(2, 4)] * 2)
    time.sleep(0.1)
    quiet(hook)
    (seconds,) = told(out, "finalization")
    assert 0.1 <= seconds < 30
    assert told(out, "initialization")


def test_a_loop_without_an_optimizer_has_an_end_too(out):
    hook = tocsin.watch(out=out)
    hook.emit("loss", 0.5, step=0)
    hook.emit("loss", 0.4, step=1)
    time.sleep(0.1)
    hook.close()
    assert 0.1 <= told(out, "finalization")[0] < 30


def test_nothing_was_trained_and_nothing_ends(out):
    tocsin.watch(*perceptron(), out=out).close()
    assert told(out, "finalization") == []


def test_checkpoints_are_timed_and_what_is_saved_is_the_same(out, tmp_path):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    torch.save(model.state_dict(), tmp_path / "with")
    torch.serialization.save(optimizer.state_dict(), tmp_path / "other")
    pickled = pickle.dumps(torch.save)
    quiet(hook)
    assert len(told(out, "checkpoint")) == 2
    torch.save(model.state_dict(), tmp_path / "without")
    one, other = (torch.load(tmp_path / name) for name in ("with", "without"))
    assert list(one) == list(other) and all(torch.equal(one[name], other[name]) for name in one)
    assert pickle.loads(pickled) is SAVED and b"tocsin" not in pickled


def test_another_who_replaces_the_same_later_stays(out):
    hook = tocsin.watch(*perceptron(), out=out)
    ours, calls = torch.save, []
    try:
        torch.save = lambda *args: (calls.append(args), ours(*args))
        hook.close()
        torch.save(1, io.BytesIO())
        assert len(calls) == 1 and torch.serialization.save is SAVED and told(out, "checkpoint") == []
    finally:
        torch.save = SAVED


def test_a_hook_after_the_other_times_once(out):
    for run in ("one", "two"):
        model, optimizer = perceptron()
        hook = tocsin.watch(model, optimizer, out=out, run=run)
        train(model, optimizer, DataLoader(Slow(1)))
        tocsin.watch(*perceptron(), name="more")
        hook.unwatch()
        assert torch_dataloader._BaseDataLoaderIter.__next__ is LOADED
        tocsin.watch(model, optimizer)
        train(model, optimizer, DataLoader(Slow(1)))
    quiet(hook)
    assert len(told(out, "data_wait")) == 8


def child(connection):
    list(DataLoader(Slow(3)))
    torch.save(1, io.BytesIO())
    connection.send("tocsin" in sys.modules and tocsin.get_hook() is not None)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_the_scripts_are_left_alone(out, method):
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    context = multiprocessing.get_context(method)
    here, there = context.Pipe()
    process = context.Process(target=child, args=(there,))
    process.start()
    assert here.recv() is False
    process.join()
    assert process.exitcode == 0
    train(model, optimizer, DataLoader(TensorDataset(torch.ones(2, 4)), collate_fn=lambda rows: torch.stack([row[0] for row in rows])))
    quiet(hook)
    assert len(told(out, "data_wait")) == 3


def test_other_ranks_are_waited_for(tmp_path):
    """Rank 1 is late three times: in a backward pass that both average, at a barrier, in an operation that is waited for."""
    ranks = TwoRanks(ROOT / "tests" / "support" / "waiting_job.py", tmp_path, cwd=tmp_path)
    assert ranks.wait(120) == 0
    telemetry = Telemetry(str(tmp_path / "0"))
    waits = [(row["step"], row["duration"] >= 5e8) for frame in telemetry.of_kind(wire.SPAN) for row in frame.rows
             if telemetry.names[row["name"]] == "communication"]
    assert (1, True) in waits and waits.count((2, True)) >= 2, waits
    assert {step for step, _ in waits} == {0, 1, 2}, "nothing in the step without an average"


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="torch 2")
def test_a_compiler_finds_nothing_in_them(out):
    torch._dynamo.reset()
    model, optimizer = perceptron()
    hook = tocsin.watch(model, optimizer, out=out)
    loader = iter(DataLoader(Slow(3)))

    @torch.compile(backend="aot_eager")
    def step(x):
        batch = next(loader)
        return (batch + x).sum()

    for _ in range(3):
        assert torch.isfinite(step(torch.ones(4)))
    train(model, optimizer, [torch.ones(2, 4)])
    quiet(hook)


def test_what_is_replaced_is_there(out):
    """A PyTorch that has moved one of these places is to be noticed here, not by somebody who misses a phase."""
    for module, name, function in (place for places in torch_waits.PLACES.values() for place in places):
        owner = getattr(sys.modules[module], name) if name else sys.modules[module]
        assert function in owner.__dict__, (module, name, function)
