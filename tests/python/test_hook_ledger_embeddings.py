"""Embeddings in the ledger: sums against brute force, which calls are looked at, and that a job is the same with and without."""
import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from tests.python.test_hook_ledger import TRAIN, ledger_of

import tocsin
from tocsin.adapters.torch.ledger.embeddings import MAX_CALLS, Embedding, Embeddings, embedding_of, sums_of_embedding


def told(rows):
    return {name: float(value) / len(rows) for name, value in sums_of_embedding(torch, Embedding(rows)).items()}


def cosine(a, b):
    return float(a @ b / a.norm() / b.norm())


@pytest.mark.parametrize("shape", ((12, 30), (30, 12), (8, 8)))
def test_sums_are_those_of_all_pairs(shape):
    torch.manual_seed(1)
    rows = torch.randn(*shape, dtype=torch.float64) + 0.5
    found = told(rows)
    assert found["rows"] == 1
    pairs = [cosine(a, b) for a, b in itertools.combinations(rows, 2)]
    assert found["alike"] == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)
    middle = sum(row / row.norm() for row in rows)
    assert found["farthest"] == pytest.approx(min(cosine(row, middle) for row in rows), abs=1e-12)
    values = torch.linalg.eigvalsh(torch.cov(rows.t()))
    assert found["directions"] == pytest.approx(float(values.sum() ** 2 / (values ** 2).sum()), rel=1e-9)


def test_rows_of_one_point_and_rows_of_a_line():
    torch.manual_seed(2)
    point = told(torch.randn(16).expand(20, 16))
    assert point["alike"] == pytest.approx(1, abs=1e-6) and point["farthest"] == pytest.approx(1, abs=1e-6)
    line = told(torch.randn(20, 1) * torch.randn(16))
    assert line["directions"] == pytest.approx(1, abs=1e-5) and line["alike"] < 0.5
    assert all(math.isfinite(value) for value in told(torch.zeros(20, 16)).values())


def test_of_many_rows_128_are_looked_at():
    rows = torch.randn(1000, 16)
    assert sums_of_embedding(torch, Embedding(rows))["rows"] == 125


def test_what_is_no_embedding():
    rows = (torch.randn(16, 16, requires_grad=True) * 1)
    assert embedding_of("normalize", (rows,), {}) is not None and embedding_of("normalize", (), {"input": rows, "dim": -1}) is not None
    assert embedding_of("cosine_embedding_loss", (rows, rows, None), {}) is not None
    weight = torch.nn.Parameter(torch.randn(16, 16))
    cases = ((rows, 1.0), (rows, 2.0, 0), (rows.detach(),), (weight,), (rows[:7],), (rows[:, :7],), (rows.reshape(4, 4, 16),))
    for case in cases:
        assert embedding_of("normalize", case, {}) is None, [getattr(one, "shape", one) for one in case]


def test_the_first_16_steps_and_8_of_each_doubling_after():
    looked = [step for step in range(1024) if Embeddings().call("normalize", step)]
    assert looked[:16] == list(range(16))
    assert [sum(2 ** k <= step < 2 ** (k + 1) for step in looked) for k in range(4, 10)] == [8] * 6


def test_calls_of_a_step_are_told_apart_by_their_order():
    embeddings = Embeddings()
    names = [getattr(embeddings.call("normalize", step), "name", None) for step in (0, 0, 0, 0, 0, 1)]
    assert names[:3] == ["embedding/normalize", "embedding/normalize.2", "embedding/normalize.3"]
    assert names[MAX_CALLS:] == [None, "embedding/normalize"]


def contrast(net, x):
    z = F.normalize(torch.cat((net(x + 0.1 * torch.randn_like(x)), net(x + 0.1 * torch.randn_like(x)))), dim=1)
    scores = z @ z.t() / 0.2 - 1e9 * torch.eye(len(z))
    return F.cross_entropy(scores, torch.arange(len(z)).roll(len(x)))


def attract(net, x):
    return F.mse_loss(F.normalize(net(x + 0.1 * torch.randn_like(x)), dim=-1), F.normalize(net(x + 0.1 * torch.randn_like(x)), dim=-1))


def two_classes(net, x):
    """Supervised: all that is asked for are two clusters."""
    labels, z = x[:, 0] > 0, F.normalize(net(x), dim=1)
    logs = F.log_softmax(z @ z.t() / 0.2 - 1e9 * torch.eye(len(z)), 1)
    same = (labels[:, None] == labels[None]).float() * (1 - torch.eye(len(z)))
    return -(logs * same).sum() / same.sum()


def triplet(net, x):
    return F.triplet_margin_loss(net(x), net(x + 0.1 * torch.randn_like(x)), net(x.roll(1, 0)))


def train(loss_of, out=None, updates=150, rules=None):
    torch.manual_seed(4)
    net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32))
    optimizer = torch.optim.Adam(net.parameters(), 1e-2)
    hook = tocsin.watch(net, optimizer, out=out, rules=rules) if out is not None else None
    losses = []
    for _ in range(updates):
        optimizer.zero_grad()
        loss = loss_of(net, torch.randn(64, 16))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found = []
    if hook is not None:
        found = [one["text"] for one in hook.issues()]
        hook.close()
    return losses, found


@pytest.mark.parametrize("loss_of", (contrast, attract, triplet))
def test_a_training_is_the_same_with_and_without(out, loss_of):
    assert train(loss_of, updates=40)[0] == train(loss_of, out, updates=40)[0]
    name = "triplet_margin_loss" if loss_of is triplet else "normalize"
    steps = ledger_of(out)[TRAIN]
    assert [step for step in sorted(steps) if steps[step][f"embedding/{name}/rows"]] == [*range(16), *range(16, 32, 2), 32, 36]


@pytest.mark.parametrize("loss_of,collapses", ((contrast, False), (two_classes, False), (triplet, False), (attract, True)))
def test_what_attracts_alone_collapses_and_is_told(out, loss_of, collapses):
    losses, found = train(loss_of, out, rules=["collapse"])
    assert losses[-1] < losses[0]
    assert bool(found) == collapses, found
    assert all("point in one direction" in text for text in found)
