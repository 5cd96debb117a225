"""Gradients that float16 cannot hold, as the hook counts them (tocsin.adapters.torch.movement.underflow)."""

import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin

ROOM = "ledger/precision/"


class Scaler:
    """Stands in for GradScaler, which needs a device: the hook replaces its ``step``."""

    def __init__(self, scale):
        self._enabled, self._scale, self._per_optimizer_states = True, torch.tensor([float(scale)]), {}

    def step(self, optimizer):
        return optimizer.step()

    def scale(self, loss):
        return loss * self.get_scale()

    def unscale_(self, optimizer):
        for group in optimizer.param_groups:
            for one in group["params"]:
                one.grad /= self.get_scale()

    def get_scale(self):
        return float(self._scale)


def through_half(net, scale, size):
    """What a backward pass in float16 leaves of gradients that are ``size`` times as large, after it was divided by the scale."""
    for one in net.parameters():
        one.grad = (one.grad * size * scale).half().float() / scale


def train(out, size, scale=None, kind=through_half, updates=66, dead=False):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    if dead:
        with torch.no_grad():
            net[0].bias[:24] = -100.0
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    scaler = None if scale is None else Scaler(scale)
    hook = tocsin.watch(net, optimizer, out=out, job="underflow")
    for _ in range(updates):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(torch.randn(32, 16)), torch.randint(0, 4, (32,))).backward()
        kind(net, scale or 1.0, size)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    told = Telemetry(out)
    return {name[len(ROOM):]: [value for _, _, value in told.scalars(name)] for name in told.names.values() if name.startswith(ROOM)}


@pytest.fixture(autouse=True)
def a_scaler_without_a_device(monkeypatch):
    monkeypatch.setattr(torch.cuda.amp.grad_scaler, "GradScaler", Scaler)


def ill(told):
    return sorted(name for name, shares in told.items() if name.startswith("underflow/") and min(shares) > 0.5 and len(shares) >= 3)


def test_gradients_that_a_scale_of_one_cannot_lift_are_told(out):
    told = train(out, 5e-6, scale=1.0)
    assert ill(told) and told["scale"] == [1.0] * 3, told


def test_the_same_gradients_under_a_scale_are_fine(out):
    told = train(out, 5e-6, scale=65536.0)
    assert not ill(told) and told["scale"] == [65536.0] * 3


@pytest.mark.parametrize("case", [{"size": 1.0, "dead": True}, {"size": 1e-2}, {"size": 5e-6, "kind": lambda net, scale, size: None, "dead": True}],
                         ids=["dead units have zeros beside normal numbers", "small gradients", "gradients of float32"])
def test_zeros_that_are_no_underflow_are_quiet(out, case):
    told = train(out, scale=1.0, **case)
    assert not ill(told) and told["scale_tensors"] == [3.0] * 3


def test_without_float16_nothing_is_told(out):
    assert not any(name.startswith(("scale", "underflow")) for name in train(out, 5e-6, kind=lambda net, scale, size: None))
