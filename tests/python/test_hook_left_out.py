"""Updates that a gradient scaler leaves out from some step on: the loop goes on, and nothing trains (tocsin.adapters.torch.surroundings.left_out).

tests/frameworks/test_mixed_precision.py has PyTorch's own scaler; here is what any of them does.
"""

import time

import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin
from tocsin.adapters.torch.surroundings.left_out import LeftOut


def train(out, bad_from, steps=120, losses_per_update=1, clear="before", pause=0.0, bad=float("nan")):
    """``clear``: where the loop clears its gradients, before the backward pass or right behind the update."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    hook = tocsin.watch(net, optimizer, out=out, job="left-out")
    for step in range(steps):
        if clear == "before":
            optimizer.zero_grad()
        for _ in range(losses_per_update):
            loss = net(torch.randn(8, 4)).pow(2).mean()
            loss.backward()
            if step >= bad_from:
                net[2].weight.grad[0, 3] = bad
            hook.log(loss=loss)
            time.sleep(pause)
        if all(bool(parameter.grad.isfinite().all()) for parameter in net.parameters()):
            optimizer.step()
        if clear == "behind" and step < steps - 1:
            optimizer.zero_grad()
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    return [one for record in Telemetry(out).lifecycles("preflight") for one in record["findings"]]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("bad_from", [0, 60])
def test_a_loop_whose_updates_are_left_out_is_told(out, capfd, bad_from, bad):
    [finding] = train(out, bad_from, bad=bad)
    assert finding["kind"] == "updates_left_out" and finding["model"] == "Sequential"
    assert finding["names"] == ["2.weight"] and finding["count"] >= 16
    assert capfd.readouterr().err.count("has made no update while") == 1


def test_it_is_told_while_the_loop_goes_on(out):
    [finding] = train(out, 20, steps=150, pause=0.03)
    assert finding["count"] < 100  # not at the end


def test_gradients_that_are_cleared_at_once_are_seen_too(out):
    assert [one["kind"] for one in train(out, 20, steps=150, clear="behind", pause=0.01)] == ["updates_left_out"]


@pytest.mark.parametrize("more", [{"bad_from": 1000}, {"bad_from": 110}, {"bad_from": 117, "losses_per_update": 30, "steps": 118},
                                  {"bad_from": 1000, "losses_per_update": 64, "steps": 6}],
                         ids=["healthy", "ten overflows", "an overflow of many micro-batches", "micro-batches"])
def test_a_few_overflows_and_many_micro_batches_are_no_finding(out, more):
    assert train(out, **more) == []


class Watched:
    """An adapter whose gradients an overflow has left as they are."""

    def __init__(self):
        self.net = torch.nn.Linear(2, 1)
        self.net.weight.grad = torch.full((1, 2), float("inf"))
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1)

    def parts(self):
        return self.net, self.optimizer

    def named_parameters(self):
        return list(self.net.named_parameters())

    def adapters(self):
        return [self]


@pytest.mark.parametrize("mode, count, told", [("train", 40, True), ("train", 15, False), ("eval", 400, False), ("predict", 400, False)])
def test_values_of_an_evaluation_are_no_updates_that_were_left_out(mode, count, told):
    counters = {"mode": mode, "global_step": 50, "scalars_total": 50 + count, "scalars_since_step": count}
    looks = LeftOut(Watched())
    found = looks.look(counters)
    assert (found is not None) is told
    assert looks.look(counters) is None or not told  # once
    if told:
        assert found["names"] == ["weight"] and found["count"] == count
