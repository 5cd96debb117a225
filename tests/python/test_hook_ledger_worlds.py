"""What training and evaluation are given, and whether the engine sees two worlds in it: PyTorch jobs, healthy and faulty."""
import json
import os
import subprocess

import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from tests.python.test_hook_ledger import EVAL, TRAIN, ledger_of
from tests.support.hook_support import Telemetry, wire

import tocsin

BINARY = os.environ.get("TOCSIN_BINARY", "")
ITERATES = DataLoader.__iter__


def rows(out, mode, name):
    """[(step, value)] of one scalar, call by call."""
    telemetry = Telemetry(out)
    return [(row["step"], row["value"]) for frame in telemetry.of_kind(wire.SCALAR) if frame.header["mode"] == mode
            for row in frame.rows if telemetry.names[row["name"]] == f"ledger/world/{name}"]


def trained(out, train, evaluation, loss="mse_loss", outputs=1):
    torch.manual_seed(1)
    width = train[0][0][0].numel()
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(width, outputs))
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    hook = tocsin.watch(model, optimizer, out=out)
    for x, t in train:
        optimizer.zero_grad()
        getattr(F, loss)(model(x), t).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, t in evaluation:
            getattr(F, loss)(model(x), t)
    assert hook.stats()["hook_errors_total"] == {}
    hook.close()


def test_moments_of_inputs_and_targets_less_those_of_the_first_batch(out):
    torch.manual_seed(0)
    train = [(torch.randn(8, 5) + 300, torch.randn(8, 1) * 2) for _ in range(6)]
    evaluation = [(torch.randn(8, 5) + 310, torch.randn(8, 1)) for _ in range(4)]
    trained(out, train, evaluation)
    center = train[0][0].double().mean()
    for name, values in (("mean", lambda x: (x.double() - center).mean()), ("square", lambda x: ((x.double() - center) ** 2).mean())):
        told = [value for _, value in rows(out, TRAIN, f"input/0/{name}")]
        assert told == pytest.approx([float(values(x)) for x, _ in train], rel=1e-4, abs=1e-4)
        mine = [float(values(x)) for x, _ in evaluation]
        assert [value for _, value in rows(out, EVAL, f"input/0/{name}")] == pytest.approx(mine, rel=1e-4)
        assert [value for _, value in rows(out, EVAL, f"input/0/{name}_squared")] == pytest.approx([one ** 2 for one in mine], rel=1e-4)
        assert [value for _, value in rows(out, EVAL, f"input/0/{name}_lagged")] == pytest.approx(
            [a * b for a, b in zip(mine, [mine[0], *mine])], rel=1e-4)
    target = train[0][1].double().mean()
    told = [value for _, value in rows(out, TRAIN, "target/mse_loss/mean")]
    assert told == pytest.approx([float(t.double().mean() - target) for _, t in train], abs=1e-5)
    assert [value for _, value in rows(out, EVAL, "input/0/rows")] == [8] * 4


def test_images_have_channels_and_rows_of_any_size_agree(out):
    torch.manual_seed(0)
    scale = torch.tensor([1.0, 2.0, 5.0])[None, :, None, None]
    trained(out, [(torch.randn(64, 3, 40, 40) * scale, torch.zeros(64, 1)) for _ in range(4)],
            [(torch.randn(3, 3, 40, 40) * scale, torch.zeros(3, 1)) for _ in range(4)])
    for mode, looked_at in ((TRAIN, 32), (EVAL, 3)):
        assert {value for _, value in rows(out, mode, "input/0/rows")} == {looked_at}
        for channel, deviation in enumerate((1, 2, 5)):
            squares = [value for _, value in rows(out, mode, f"input/0/{channel}/square")]
            assert sum(squares) / 4 == pytest.approx(deviation ** 2, rel=0.1)


def test_shares_of_classes_without_what_is_ignored(out):
    labels = torch.tensor([0, 0, 1, 2, 17, -100, -100, -100])
    trained(out, [(torch.randn(8, 4), labels)] * 3, [], loss="cross_entropy", outputs=20)
    shares = {name: rows(out, TRAIN, f"class/cross_entropy/{name}/mean")[0][1] for name in range(4)}
    assert shares == pytest.approx({0: 0.4, 1: 0.4, 2: 0.2, 3: 0}), "17 is 1 of 16 buckets"


def test_batches_are_looked_at_less_often_and_count_as_often_as_they_stand_for(out):
    torch.manual_seed(0)
    trained(out, [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(256)], [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(128)])
    steps = [step for step, _ in rows(out, TRAIN, "input/0/batches")]
    assert steps[:64] == list(range(64)) and 64 < len(steps) <= 128
    counts = [value for _, value in rows(out, EVAL, "input/0/batches")]
    assert len(counts) < 100 and 64 <= sum(counts) <= 128, "whatever the ledger's own share"
    assert [value for _, value in rows(out, EVAL, "input/0/weights")] == [one ** 2 for one in counts]


def test_what_has_a_number_that_is_none_is_left_out(out):
    bad = torch.randn(8, 4)
    bad[0, 0] = float("nan")
    good = torch.randn(8, 4)
    torch.manual_seed(1)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    hook = tocsin.watch(model, optimizer, out=out)
    for x in (good, bad, good):
        optimizer.zero_grad()
        F.mse_loss(model(x).nan_to_num(), torch.zeros(8, 1)).backward()
        optimizer.step()
    hook.close()
    assert [step for step, _ in rows(out, TRAIN, "input/0/mean")] == [0, 2]
    assert ledger_of(out)[TRAIN]  # finite, all of it


def test_passes_over_the_training_data_are_counted_and_the_loader_is_put_back(out):
    torch.manual_seed(0)
    train, held = TensorDataset(torch.randn(40, 3), torch.randn(40, 1)), TensorDataset(torch.randn(16, 3), torch.randn(16, 1))
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    hook = tocsin.watch(model, optimizer, out=out)
    assert DataLoader.__iter__ is not ITERATES and DataLoader.__iter__.__name__ == "__iter__"
    for _ in range(3):
        model.train()
        for x, t in DataLoader(train, 8):
            optimizer.zero_grad()
            F.mse_loss(model(x), t).backward()
            optimizer.step()
        model.eval()
        for x, t in DataLoader(held, 8):
            F.mse_loss(model(x), t)
    hook.close()
    assert DataLoader.__iter__ is ITERATES
    told = rows(out, TRAIN, "passes") + rows(out, EVAL, "passes")
    assert sorted(value for _, value in told) == [1, 2, 3]


# --- jobs ------------------------------------------------------------------------------------------

PROTOTYPES = torch.randn(10, 1, 8, 8, generator=torch.Generator().manual_seed(5))


def evenly(labels):
    return WeightedRandomSampler(torch.where(labels < 2, 5.0, 1.0), len(labels))


def job(out, *, epochs=2, batch=32, prepare=lambda x: x, evaluates=lambda x: x, labels=lambda y: y, sampler=None, sort=False, mix=False,
        augment=lambda x: x, norm=False, dropout=0.0):
    torch.manual_seed(0)
    y = torch.randint(0, 10, (4000,))
    if sort:
        y[3200:] = y[3200:].sort().values
    x = PROTOTYPES[y] + torch.randn(4000, 1, 8, 8)
    train = TensorDataset(prepare(x[:3200]), y[:3200])
    held = TensorDataset(evaluates(x[3200:]), labels(y[3200:]))
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 64), *([torch.nn.BatchNorm1d(64, momentum=0.003)] if norm else []),
                                torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    hook = tocsin.watch(model, optimizer, out=out)
    chosen = sampler(y[:3200]) if sampler else None
    for _ in range(epochs):
        model.train()
        for a, b in DataLoader(train, 32, shuffle=chosen is None, sampler=chosen):
            a = augment(a)
            optimizer.zero_grad()
            if mix:
                share, other = float(torch.rand(())), torch.randperm(len(a))
                z = model(share * a + (1 - share) * a[other])
                loss = share * F.cross_entropy(z, b) + (1 - share) * F.cross_entropy(z, b[other])
            else:
                loss = F.cross_entropy(model(a), b)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for a, b in DataLoader(held, batch):
                F.cross_entropy(model(a), b)
    assert hook.stats()["hook_errors_total"] == {}
    hook.close()


def issues(out):
    told = subprocess.run([BINARY, "evaluate", "--from", out, "--rules", "parity", "--format", "json"], capture_output=True, text=True, check=False)
    assert told.returncode in (0, 1), told.stderr
    return {issue["kind"] for issue in json.loads(told.stdout)["issues"]}


HEALTHY = {"plain": {}, "dropout": {"dropout": 0.5}, "mixup": {"mix": True}, "a sorted evaluation": {"sort": True},
           "evaluation in one batch": {"batch": 800}, "flips": {"augment": lambda x: torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x, x.flip(3))},
           "slow batch norm": {"norm": True}, "noise": {"augment": lambda x: x + torch.randn_like(x)}}
FAULTS = {"not normalised": ({"evaluates": lambda x: x * 0.25 + 0.45}, "inputs"),
          "normalised twice": ({"evaluates": lambda x: (x - 0.45) / 0.25}, "inputs"),
          "labels shifted": ({"labels": lambda y: (y + 1) % 10}, "loss"),
          "another set": ({"evaluates": torch.rand_like}, "inputs"),
          "not normalised, one batch": ({"evaluates": lambda x: x * 0.25 + 0.45, "batch": 800}, "inputs"),
          "a sampler for training": ({"sampler": evenly}, "targets")}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_jobs_have_one_world(out, name):
    job(out, **HEALTHY[name])
    assert issues(out) == set()


@pytest.mark.parametrize("name", FAULTS)
def test_other_worlds_are_told(out, name):
    given, expected = FAULTS[name]
    job(out, **given)
    assert issues(out) == {expected}
