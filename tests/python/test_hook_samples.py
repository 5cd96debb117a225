"""Samples of a generator beside the data, as ``hook.samples()`` tells them."""

import numpy
import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin
from tocsin.hook import generated

ROOM = "ledger/samples/"


def directions(rows):
    """By the eigenvalues of the covariance."""
    values = numpy.linalg.eigvalsh(numpy.cov(numpy.asarray(rows, "float64").reshape(len(rows), -1).T))
    return values.sum() ** 2 / (values ** 2).sum()


@pytest.mark.parametrize("shape", [(12, 30), (30, 12), (20, 3, 4, 4)])
@pytest.mark.parametrize("kind", [torch.tensor, numpy.asarray])
def test_directions_are_those_of_the_covariance(shape, kind):
    drawn = numpy.random.default_rng(1)
    made, data = drawn.standard_normal(shape), drawn.standard_normal(shape) * drawn.uniform(0.1, 2, shape[1:])
    found = generated._directions(kind(made), kind(data))
    assert [float(one) for one in found] == pytest.approx([directions(made), directions(data)], rel=1e-4)


def test_the_same_sample_again_and_again_has_one_direction():
    torch.manual_seed(1)
    data = torch.randn(32, 16)
    same, three = torch.randn(16).expand(32, 16), torch.randn(3, 16)[torch.arange(32) % 3]
    for made, most in ((same, 1.0 + 1e-5), (three, 2.001)):
        for kind in (lambda one: one, lambda one: one.numpy()):
            assert 1 - 1e-5 <= float(generated._directions(kind(made), kind(data))[0]) <= most


def test_of_each_as_many_rows_are_looked_at():
    made, data = generated._chosen(torch.zeros(40, 5), torch.zeros(300, 5))
    assert len(made) == len(data) == 40
    made, data = generated._chosen(numpy.zeros((500, 3, 64, 64)), numpy.zeros((100, 3, 64, 64)))
    assert made.shape == data.shape and made.shape[0] == 64 and made.shape[1] <= 1024
    assert generated._chosen(torch.zeros(7, 5), torch.zeros(30, 5)) is None, "too few"
    assert generated._chosen(torch.zeros(30, 6), torch.zeros(30, 5)) is None, "of another shape"
    assert generated._chosen(torch.zeros(30), torch.zeros(30)) is None


@pytest.mark.parametrize("arrays", [False, True])
def test_words_come_at_first_and_then_32_of_each_doubling(out, arrays):
    torch.manual_seed(2)
    net = torch.nn.Linear(4, 8)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    hook = tocsin.watch(net, optimizer, out=out, job="samples")
    for _ in range(300):
        optimizer.zero_grad()
        made = net(torch.randn(16, 4))
        made.pow(2).mean().backward()
        data = torch.randn(16, 8)
        hook.samples(made.detach().numpy() if arrays else made, data.numpy() if arrays else data, name="g")
        optimizer.step()
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    told = Telemetry(out)
    made, data = ([value for _, _, value in told.scalars(ROOM + "g/" + field)] for field in ("made", "data"))
    assert len(made) == len(data) == 64 + 31 + 32 + 6
    assert all(1 <= one <= 4.01 for one in made), "four inputs: four directions"
    assert all(3 < one < 8 for one in data), "of eight columns and 16 rows: 8 · 16 / (8 + 16), give or take"


def test_without_the_ledger_nothing_is_sent(out):
    net = torch.nn.Linear(4, 8)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    hook = tocsin.watch(net, optimizer, out=out, job="samples", capture={"ledger": False})
    for _ in range(3):
        net(torch.randn(16, 4)).pow(2).mean().backward()
        hook.samples(torch.randn(16, 8), torch.randn(16, 8))
        optimizer.step()
    hook.close()
    assert not any(name.startswith(ROOM) for name in Telemetry(out).names.values())
