"""Outputs and targets that a loss compares all against all are told at the first call, with both shapes."""
import pytest
import torch
from torch.nn import functional

from tests.support.hook_support import Telemetry

import tocsin
from tocsin.adapters.torch.ledger.shapes import all_against_all

N = 24


def told(out, loss, steps=3, columns=1):
    """Findings of a training by ``loss(outputs (n, columns), targets (n,))``."""
    model = torch.nn.Linear(5, columns)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    hook = tocsin.watch(model, optimizer, out=out)
    for _ in range(steps):
        optimizer.zero_grad()
        found = loss(model(torch.randn(N, 5)), torch.rand(N))
        found.backward()
        hook.log(loss=found)
        optimizer.step()
    hook.close()
    return [finding for one in Telemetry(out).lifecycles("preflight") for finding in one["findings"]]


BROADCAST = {
    "mse_loss": lambda z, t: functional.mse_loss(z, t),
    "l1_loss": lambda z, t: functional.l1_loss(z, t),
    "smooth_l1_loss": lambda z, t: functional.smooth_l1_loss(z, t),
    "huber_loss": lambda z, t: functional.huber_loss(z, t, reduction="sum"),
    "poisson_nll_loss": lambda z, t: functional.poisson_nll_loss(z, t),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", BROADCAST)
def test_a_column_against_a_row_is_told_once(out, capfd, name):
    assert told(out, BROADCAST[name]) == [
        {"kind": "targets_broadcast", "model": name, "count": 2, "names": [f"({N}, 1)", f"({N},)"]}]
    said = capfd.readouterr().err
    assert said.count(f"{name} compares outputs of shape ({N}, 1) with targets of shape ({N},)") == 1 and "squeeze(-1)" in said


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_a_module_and_targets_that_have_the_column_are_told_too(out):
    assert told(out, lambda z, t: torch.nn.MSELoss()(z[:, 0], t[:, None]))[0]["names"] == [f"({N},)", f"({N}, 1)"]


HEALTHY = {
    "squeezed": (1, lambda z, t: functional.mse_loss(z.squeeze(-1), t)),
    "both with the column": (1, lambda z, t: functional.mse_loss(z, t[:, None])),
    "one target for all": (1, lambda z, t: functional.mse_loss(z, t[:1])),
    "a number": (1, lambda z, t: functional.mse_loss(z, torch.zeros(()).expand(()))),
    "a sample by itself": (1, lambda z, t: functional.mse_loss(z[:1], t[:1])),
    "the same for each column": (4, lambda z, t: functional.mse_loss(z, t[:4])),
    "quantiles in pairs": (3, lambda z, t: functional.smooth_l1_loss(z[:, :, None], t.reshape(-1, 3).repeat(3, 1)[:, None, :])),
    "every pair, kept": (1, lambda z, t: functional.mse_loss(z, t, reduction="none").mean()),
    "classes": (3, lambda z, t: functional.cross_entropy(z, (t * 3).long())),
}


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_meant_is_not_told(out, name):
    columns, loss = HEALTHY[name]
    assert told(out, loss, columns=columns) == []


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_an_evaluation_alone_is_not_told(out):
    """A metric on the side trains nothing."""
    def loss(z, t):
        with torch.no_grad():
            functional.mse_loss(z, t)
        return functional.mse_loss(z[:, 0], t)
    assert told(out, loss) == []


@pytest.mark.parametrize("output, target, wanted", [
    ((8, 1), (8,), True), ((8,), (8, 1), True), ((8, 5, 1), (5,), False), ((5, 5, 1), (5, 5), True), ((8, 1, 1), (8,), True),
    ((1, 8), (8,), False), ((8, 1), (8, 1), False), ((1, 1), (1,), False), ((8, 3), (3,), False), ((8, 3, 1), (8, 1, 3), False)])
def test_shapes(output, target, wanted):
    assert all_against_all(output, target) is wanted
