"""The ledger of a PyTorch job: which scalars flow unasked, and that a job is the same with and without it."""
import collections
import copy
import math
import os
import pickle

import pytest
import torch
import torch.nn.functional as F

from tests.support.hook_support import Telemetry, wire

import tocsin
from tocsin.adapters.torch.ledger import functions


def ledger_of(out):
    """{mode: {step: {"call/field": sum}}}"""
    found = collections.defaultdict(lambda: collections.defaultdict(collections.Counter))
    telemetry = Telemetry(out)
    for frame in telemetry.of_kind(wire.SCALAR):
        for row in frame.rows:
            name = telemetry.names[row["name"]]
            if name.startswith("ledger/"):
                assert math.isfinite(row["value"]), name
                found[frame.header["mode"]][row["step"]][name[len("ledger/"):]] += row["value"]
    return found


def total(steps, call):
    """Sums of one call over steps, by field."""
    out = collections.Counter()
    for rows in steps.values():
        for name, value in rows.items():
            if name.startswith(f"{call}/"):
                out[name[len(call) + 1:]] += value
    return out


TRAIN, EVAL = 1, 2


def train(loss, outputs, targets, *, updates=60, batch=32, watched=True, out=None, seed=3, after=None, rate=1e-2):
    """A small net; (its parameters, the losses)."""
    torch.manual_seed(seed)
    inputs = torch.randn(updates * batch, 8)
    targets = targets(inputs)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, outputs))
    optimizer = torch.optim.Adam(model.parameters(), rate)
    hook = tocsin.watch(model, optimizer, out=out) if watched else None
    losses = []
    for step in range(updates):
        here = slice(step * batch, (step + 1) * batch)
        optimizer.zero_grad()
        value = loss(model(inputs[here]), targets[here])
        value.backward()
        optimizer.step()
        losses.append(value.item())
    if after is not None:
        after(hook, model, inputs, targets)
    if hook is not None:
        assert hook.stats()["hook_errors_total"] == {}
        hook.close()
    return [one.detach().clone() for one in model.parameters()], losses


def classes(inputs):
    return (inputs[:, :4] * 3).argmax(1)


def quantities(inputs):
    return inputs[:, :3] * torch.tensor([1.0, -2.0, 5.0]) + 1


LOSSES = {
    "cross_entropy": (lambda z, t: F.cross_entropy(z, t), 4, classes),
    "cross_entropy module": (torch.nn.CrossEntropyLoss(label_smoothing=0.1), 4, classes),
    "nll_loss": (lambda z, t: F.nll_loss(F.log_softmax(z, 1), target=t), 4, classes),
    "mse_loss": (lambda z, t: F.mse_loss(z, t), 3, quantities),
    "l1_loss": (torch.nn.L1Loss(), 3, quantities),
    "smooth_l1_loss": (lambda z, t: F.smooth_l1_loss(z, t, beta=0.5), 3, quantities),
    "huber_loss": (torch.nn.HuberLoss(), 3, quantities),
    "binary_cross_entropy_with_logits": (torch.nn.BCEWithLogitsLoss(), 3, lambda x: (quantities(x) > 1).float()),
    "binary_cross_entropy": (lambda z, t: F.binary_cross_entropy(z.sigmoid(), t), 3, lambda x: (quantities(x) > 1).float()),
    "gaussian_nll_loss": (lambda z, t: F.gaussian_nll_loss(z, t, torch.ones(len(z), 1)), 3, quantities),
    "poisson_nll_loss": (lambda z, t: F.poisson_nll_loss(z, t), 3, lambda x: quantities(x).abs().round()),
    "kl_div": (lambda z, t: F.kl_div(F.log_softmax(z, 1), t, reduction="batchmean"), 4,
               lambda x: torch.softmax(3 * x[:, :4], 1)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_each_function_is_told_and_its_task_is_found_to_be_learned(out, name):
    loss, outputs, targets = LOSSES[name]
    train(loss, outputs, targets, out=out)
    ledger = ledger_of(out)
    assert list(ledger) == [TRAIN]
    late = {step: rows for step, rows in ledger[TRAIN].items() if step >= 20}
    sums = total(late, name.split()[0])
    assert sums["samples"] == 32 * sums["calls"] and sums["pairs"] > 100
    assert sums["wins"] > 0.8 * sums["pairs"], sums
    assert sums["straight"] < sums["crossed"]
    assert sums["loss"] < sums["trivial"]


@pytest.mark.parametrize("name", ("cross_entropy", "mse_loss", "binary_cross_entropy_with_logits"))
def test_of_permuted_targets_outputs_know_nothing(out, name):
    loss, outputs, targets = LOSSES[name]
    train(loss, outputs, lambda x: targets(x)[torch.randperm(len(x))], updates=64, batch=128, out=out, rate=1e-3)
    sums = total({step: rows for step, rows in ledger_of(out)[TRAIN].items() if step >= 4}, name)
    share, error = sums["wins"] / sums["pairs"], 0.5 / math.sqrt(sums["pairs"])
    assert abs(share - 0.5) < 4 * error, sums
    assert sums["loss"] == pytest.approx(sums["trivial"], rel=0.15 if name == "mse_loss" else 0.05)


@pytest.mark.parametrize("name", LOSSES)
def test_training_is_bit_for_bit_the_same(out, name):
    loss, outputs, targets = LOSSES[name]
    bare, bare_losses = train(loss, outputs, targets, updates=20, watched=False)
    with_it, losses = train(loss, outputs, targets, updates=20, out=out)
    assert losses == bare_losses
    assert all(torch.equal(one, other) for one, other in zip(bare, with_it))
    assert ledger_of(out)


def test_the_loss_of_a_step_is_that_of_its_call(out):
    _, losses = train(lambda z, t: F.cross_entropy(z, t), 4, classes, updates=10, out=out)
    steps = ledger_of(out)[TRAIN]
    assert [rows["cross_entropy/loss"] / rows["cross_entropy/samples"] for _, rows in sorted(steps.items())] == pytest.approx(
        losses, rel=1e-6)
    assert sorted(steps) == list(range(10))
    assert "cross_entropy/trivial" not in steps[0] and "cross_entropy/trivial" in steps[1]


def test_evaluations_have_the_constant_of_training(out):
    def evaluate(hook, model, inputs, targets):
        model.eval()
        with torch.no_grad():
            for start in range(0, 640, 64):
                F.cross_entropy(model(inputs[start:start + 64]), targets[start:start + 64])
        model.train()

    train(lambda z, t: F.cross_entropy(z, t), 4, classes, out=out, after=evaluate)
    ledger = ledger_of(out)
    sums = total(ledger[EVAL], "cross_entropy")
    assert sums["samples"] == 640 and sums["calls"] == 10
    assert sums["wins"] > 0.8 * sums["pairs"] and sums["loss"] < 0.7 * sums["trivial"]
    assert sums["trivial"] == pytest.approx(640 * math.log(4), rel=0.05)


def test_a_closed_hook_leaves_the_functions_of_torch(out):
    before = [getattr(F, name) for name in functions.NAMES]
    hook = tocsin.watch(torch.nn.Linear(1, 1), out=out)
    during = [getattr(F, name) for name in functions.NAMES]
    assert all(one is not other for one, other in zip(before, during))
    assert all(one.__name__ == other.__name__ and one.__module__ == other.__module__ and one.__doc__ == other.__doc__
               for one, other in zip(before, during))
    assert all(pickle.loads(pickle.dumps(one)) is one and copy.deepcopy(one) is one for one in during)
    hook.close()
    assert [getattr(F, name) for name in functions.NAMES] == before


def test_micro_batches_of_a_step_are_added_up(out):
    torch.manual_seed(1)
    model = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(5):
        for _ in range(3):
            x = torch.randn(16, 8)
            (F.cross_entropy(model(x), classes(x)) / 3).backward()
        optimizer.step()
        optimizer.zero_grad()
    hook.close()
    steps = ledger_of(out)[TRAIN]
    assert [rows["cross_entropy/samples"] for _, rows in sorted(steps.items())] == [48] * 5
    assert all(rows["cross_entropy/calls"] == 3 for rows in steps.values())
    assert "cross_entropy/trivial" not in steps[0]


def test_a_forked_child_tells_nothing_and_trains(out):
    hook = tocsin.watch(torch.nn.Linear(1, 1), out=out)
    child = os.fork()
    if child == 0:
        try:
            torch.set_num_threads(1)  # as workers of a DataLoader do: OpenMP's threads are not forked, and torch waits for them for ever
            z = torch.randn(8, 3, requires_grad=True)
            F.cross_entropy(z, torch.zeros(8, dtype=torch.long)).backward()
            os._exit(0 if z.grad is not None and hook.stats()["hook_errors_total"] == {} else 1)
        except BaseException:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    hook.close()
    assert not ledger_of(out)
