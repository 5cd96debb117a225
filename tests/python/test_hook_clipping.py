"""Gradients that are clipped too late, or while they are scaled: of the order of calls alone, and only where it is so at each update."""
import gc

import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin

clips = torch.nn.utils


def kinds(out):
    return [one["kind"] for record in Telemetry(out).lifecycles("preflight") for one in record["findings"]]


def train(out, order, clip=lambda parameters: clips.clip_grad_norm_(parameters, 1.0), steps=6, make=torch.optim.SGD):
    """``order``: of backward (b), clip (c), step (s), clearing (z) in each iteration."""
    torch.manual_seed(0)
    before = clips.clip_grad_norm_, clips.clip_grad_value_
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = make(net.parameters(), 0.01)
    hook = tocsin.watch(net, optimizer, out=out, job="clipping")
    calls = {"b": lambda: net(torch.randn(8, 4)).pow(2).mean().backward(), "c": lambda: clip(net.parameters()), "s": optimizer.step,
             "z": optimizer.zero_grad}
    for _ in range(steps):
        for one in order:
            calls[one]()
    assert (clips.clip_grad_norm_, clips.clip_grad_value_) == before, "put back behind the third update"
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    return kinds(out)


@pytest.mark.parametrize("order", ["zbsc", "bscz"])
@pytest.mark.parametrize("clip", [lambda parameters: clips.clip_grad_norm_(parameters, 1.0),
                                  lambda parameters: clips.clip_grad.clip_grad_value_(list(parameters), clip_value=0.5)])
def test_clipping_behind_the_update_is_told(out, order, clip):
    assert train(out, order, clip) == ["clipped_late"]


@pytest.mark.parametrize("order", ["zbcs", "bcsz", "zbbcs", "zbcbcs", "zbs", "zbcsc"])
def test_clipping_before_it_is_healthy(out, order):
    assert train(out, order) == []


def test_a_norm_that_is_only_measured_is_healthy(out):
    assert train(out, "zbsc", lambda parameters: clips.clip_grad_norm_(parameters, float("inf"))) == []


def test_clipping_in_a_closure_is_healthy(out):
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.1, max_iter=3)
    rows = torch.randn(16, 4)
    hook = tocsin.watch(net, optimizer, out=out, job="clipping")

    def closure():
        optimizer.zero_grad()
        loss = (net(rows) - 1).pow(2).mean()
        loss.backward()
        clips.clip_grad_norm_(net.parameters(), 1.0)
        return loss

    for _ in range(5):
        optimizer.step(closure)
    hook.close()
    assert kinds(out) == []


def test_two_optimizers_that_take_turns_are_healthy(out):
    one, two = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
    optimizers = [torch.optim.Adam(net.parameters(), 1e-3) for net in (one, two)]
    for net, optimizer in zip((one, two), optimizers):
        hook = tocsin.watch(net, optimizer, out=out, job="clipping")
    for _ in range(6):
        for net, optimizer in zip((one, two), optimizers):
            optimizer.zero_grad()
            two(one(torch.randn(8, 4))).pow(2).mean().backward()
            clips.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
    hook.close()
    assert kinds(out) == []


def test_what_is_returned_is_what_torch_returns(out):
    net = torch.nn.Linear(4, 1)
    net(torch.ones(1, 4)).sum().backward()
    expected = float(clips.clip_grad_norm_(net.parameters(), 1e9))
    hook = tocsin.watch(net, torch.optim.SGD(net.parameters(), 0.1), out=out, job="clipping")
    assert float(clips.clip_grad_norm_(net.parameters(), 1e9)) == expected > 0
    assert float(clips.clip_grad_norm_(net.weight, 1e9)) < expected
    hook.close()


def test_a_run_that_ends_early_leaves_the_functions_as_they_were(out):
    before = clips.clip_grad_norm_
    nets = [torch.nn.Linear(4, 1) for _ in range(2)]
    optimizers = [torch.optim.SGD(net.parameters(), 0.1) for net in nets]
    for net, optimizer in zip(nets, optimizers):
        hook = tocsin.watch(net, optimizer, out=out, job="clipping")
    assert clips.clip_grad_norm_ is not before
    hook.close()
    del net, nets, optimizer, optimizers, hook
    gc.collect()
    assert clips.clip_grad_norm_ is before and clips.clip_grad.clip_grad_norm_ is before
