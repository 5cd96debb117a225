"""Whether updates survive the precision of the weights, as the hook counts it (tocsin.adapters.torch.movement.precision) and the rule judges it."""

import time

import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin

ROOM = "ledger/precision/"


def model(size=0.02, dtype=torch.bfloat16):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)).to(dtype)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape).sign() * size * (1 + torch.rand(parameter.shape)))
    return net


def train(out, net, optimizer, updates=200, schedule=None, step=None, before=None, dtype=torch.bfloat16):
    """What was counted of all updates: {field: sum}, and {field: number of steps}."""
    hook = tocsin.watch(net, optimizer, out=out, job="precision")
    for number in range(updates):
        if before:
            before(number)
        optimizer.zero_grad()
        net(torch.randn(16, 64, dtype=dtype)).float().sub(1).pow(2).mean().backward()
        (step or optimizer.step)()
        if schedule:
            schedule.step()
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    told = Telemetry(out)
    values = {name[len(ROOM):]: [value for _, _, value in told.scalars(name)] for name in told.names.values() if name.startswith(ROOM)}
    return {name: sum(them) for name, them in values.items()}, {name: len(them) for name, them in values.items()}


def share(sums):
    return sums["swallowed"] / sums["elements"], sums["unmoved"] / sums["window"]


def test_adam_at_a_small_rate_is_swallowed(out):
    net = model()  # |Δ| / |θ| is 2.5e-4 to 5e-4, half a unit in the last place 2e-3 to 4e-3
    sums, counts = train(out, net, torch.optim.Adam(net.parameters(), 1e-5))
    assert counts["elements"] >= 64 and counts["window"] >= 1
    assert all(one > 0.99 for one in share(sums)), sums


def test_adam_at_the_usual_rate_is_not(out):
    net = model()
    sums, _ = train(out, net, torch.optim.Adam(net.parameters(), 1e-3))
    assert share(sums)[0] < 0.3 and share(sums)[1] < 0.1, sums


def test_float32_weights_are_not_looked_at(out):
    net = model(dtype=torch.float32)
    assert train(out, net, torch.optim.Adam(net.parameters(), 1e-5), dtype=torch.float32) == ({}, {})


def test_a_frozen_body_is_not_looked_at(out):
    net = torch.nn.Sequential(model()[0].requires_grad_(False), torch.nn.Linear(64, 4).float())
    head = net[1]
    net.forward = lambda rows: head(net[0](rows).float())
    assert train(out, net, torch.optim.Adam(head.parameters(), 1e-5)) == ({}, {})


class Stochastic(torch.optim.SGD):
    """Rounds each element up or down by chance, so that its mean is exact."""

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                exact = parameter.float() - group["lr"] * parameter.grad.float().sign()
                bits = exact.view(torch.int32) + torch.randint(0, 1 << 16, exact.shape, dtype=torch.int32)
                parameter.copy_((bits & -65536).view(torch.float32))


def test_stochastic_rounding_moves_elements_now_and_then(out):
    net = model()
    sums, _ = train(out, net, Stochastic(net.parameters(), 5e-6))
    every, window = share(sums)
    assert every > 0.9 > window, "each update leaves most as they are, and no element stays for long"


class Master(torch.optim.Optimizer):
    """A float32 copy in its state."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                exact = self.state[parameter].setdefault("exact", parameter.detach().float().clone())
                exact -= group["lr"] * parameter.grad.float().sign() * torch.rand(())
                parameter.copy_(exact)


def test_a_float32_copy_loses_nothing(out):
    net = model()
    sums, counts = train(out, net, Master(net.parameters(), 1e-9))
    assert counts["window"] >= 1 and sums["window"] == 0, "the rule is told of no element: nothing is judged"


@pytest.mark.parametrize("rates", [lambda step: step / 1000, lambda step: 0.0, lambda step: 1.0 if step < 3 else 0.1])
def test_rates_that_rise_or_are_low_are_not_looked_at(out, rates):
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), 1e-5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rates)
    _, counts = train(out, net, optimizer, schedule=schedule)
    assert counts.get("elements", 0) <= 4, counts


def test_a_rate_that_decays_is_looked_at_until_half_of_it(out):
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), 1e-5)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / 200)
    sums, counts = train(out, net, optimizer, schedule=schedule)
    assert counts["elements"] >= 64 and share(sums)[1] > 0.99


def test_the_cost_is_bounded_behind_the_first_window(out):
    net = model()
    began = time.perf_counter()
    _, counts = train(out, net, torch.optim.Adam(net.parameters(), 1e-5), updates=1500)
    seconds = time.perf_counter() - began
    assert 64 <= counts["elements"] <= 64 + seconds / 0.02, "each costs some 0.1 ms: 0.2 % of 50 ms"


@pytest.mark.parametrize("rate, rules", [(1e-5, {"precision"}), (1e-3, set())])
def test_the_rule_tells_of_it_and_not_of_the_twin(out, rate, rules):
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), rate)
    hook = tocsin.watch(net, optimizer, out=out, rules=["precision"])
    for _ in range(150):
        optimizer.zero_grad()
        net(torch.randn(16, 64, dtype=torch.bfloat16)).float().sub(1).pow(2).mean().backward()
        optimizer.step()
    hook.close()
    assert {issue["rule"] for issue in hook.issues()} == rules
