"""Whether what may move moves, and down the loss, as the hook counts it (tocsin.adapters.torch.movement.movement, torch_way, torch_still)."""

import math

import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin
from tocsin.adapters.torch.movement import movement

ROOM = "ledger/movement/"
O = torch.optim


class Net(torch.nn.Module):
    def __init__(self, unused=False, dead=False):
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 32), torch.nn.Linear(32, 5)
        self.unused = torch.nn.Linear(4, 4) if unused else None
        self.dead = torch.nn.Linear(16, 8) if dead else None

    def forward(self, rows):
        out = self.second(self.first(rows).relu())
        if self.dead is not None:
            out = out + 0 * self.dead(rows).relu().sum()
        return out


def train(out, optimizer, net=None, updates=120, accumulate=1, schedule=None, clip=None):
    """{field: [values]} of what was told."""
    torch.manual_seed(0)
    net = net or Net()
    made = optimizer(net.parameters()) if callable(optimizer) else optimizer
    rates = schedule(made) if schedule else None
    rows = torch.randn(256, 16)
    labels = (rows @ torch.randn(16, 5)).argmax(1)
    hook = tocsin.watch(net, made, out=out, job="movement")
    for _ in range(updates):
        made.zero_grad()
        for _ in range(accumulate):
            chosen = torch.randint(0, 256, (32,))
            (torch.nn.functional.cross_entropy(net(rows[chosen]), labels[chosen]) / accumulate).backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(net.parameters(), clip)
        made.step()
        if rates is not None:
            rates.step()
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    told = Telemetry(out)
    return {name[len(ROOM):]: [value for _, _, value in told.scalars(name)] for name in told.names.values() if name.startswith(ROOM)}


def course(told):
    """(mean cosine, the largest sum of products at any look)"""
    cosines, climbed, most = [], 0.0, -math.inf
    for along, gradient, update, number in zip(*(told[name] for name in ("along", "gradient", "update", "stands_for"))):
        cosines.append(along / math.sqrt(gradient * update))
        climbed += along * number
        most = max(most, climbed)
    return sum(cosines) / len(cosines), most


class Warm(torch.nn.Module):
    """An adapter that starts at zero: its first half has no gradient at the first update."""

    def __init__(self):
        super().__init__()
        self.trunk = torch.nn.Linear(16, 5).requires_grad_(False)
        self.down, self.up = torch.nn.Linear(16, 4, bias=False), torch.nn.Linear(4, 5, bias=False)
        torch.nn.init.zeros_(self.up.weight)

    def forward(self, rows):
        return self.trunk(rows) + self.up(self.down(rows))


class Lion(O.Optimizer):
    """The sign of a mean, with decay of its own."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 1e-3, "weight_decay": 0.5})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                mean = self.state[parameter].setdefault("mean", torch.zeros_like(parameter))
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.sub_((0.9 * mean + 0.1 * parameter.grad).sign(), alpha=group["lr"])
                mean.mul_(0.99).add_(parameter.grad, alpha=0.01)


HEALTHY = {
    "sgd": lambda p: O.SGD(p, 0.1),
    "momentum of 0.99": lambda p: O.SGD(p, 0.01, momentum=0.99),
    "nesterov": lambda p: O.SGD(p, 0.01, momentum=0.9, nesterov=True),
    "adam": lambda p: O.Adam(p, 1e-3),
    "adam with beta 0.99": lambda p: O.Adam(p, 1e-2, betas=(0.99, 0.999)),
    "heavy decay that is added": lambda p: O.SGD(p, 0.1, weight_decay=0.3),
    "heavy decay of adam": lambda p: O.Adam(p, 1e-3, weight_decay=1.0),
    "heavy decay apart": lambda p: O.AdamW(p, 1e-2, weight_decay=5.0),
    "sign": Lion,
    "rprop": lambda p: O.Rprop(p, 1e-2),
    "rmsprop": lambda p: O.RMSprop(p, 1e-3, momentum=0.9),
    "maximize": lambda p: O.SGD(p, 1e-3, maximize=True),
    "two rates": lambda p: O.SGD([{"params": list(p)[:2], "lr": 1e-3}, {"params": [torch.nn.Parameter(torch.zeros(3))]}], 0.1),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_whatever_the_optimizer_its_updates_go_down(out, name):
    cosine, most = course(train(out, HEALTHY[name]))
    assert cosine < -0.05 and most <= 0


@pytest.mark.parametrize("further", [{"accumulate": 4}, {"clip": 1e-3}, {"net": Warm()}, {"schedule": lambda o: O.lr_scheduler.LambdaLR(
    o, lambda step: min(1, step / 50))}], ids=["accumulation", "clipping", "adapter", "warm-up from 0"])
def test_whatever_the_loop_its_updates_go_down(out, further):
    told = train(out, lambda p: O.Adam([one for one in p if one.requires_grad], 1e-3), **further)
    cosine, most = course(told)
    assert cosine < -0.05 and most <= 0
    assert told["zero"] == [0.0] and told["without"] == [0.0]


class Up(O.SGD):
    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.add_(parameter.grad, alpha=group["lr"])


class UpAdam(O.Optimizer):
    """Adam, but for a sign."""

    def __init__(self, parameters, lr, beta=0.9):
        super().__init__(parameters, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                mean, square = self.state[parameter].setdefault("moments", (torch.zeros_like(parameter), torch.zeros_like(parameter)))
                mean.lerp_(parameter.grad, 1 - group["beta"])
                square.lerp_(parameter.grad ** 2, 0.001)
                parameter.add_(mean / (square.sqrt() + 1e-8), alpha=group["lr"])


@pytest.mark.parametrize("optimizer", [lambda p: Up(p, 0.01), lambda p: UpAdam(p, 1e-3), lambda p: UpAdam(p, 1e-3, 0.99)],
                         ids=["sgd", "adam", "adam with beta 0.99"])
def test_a_wrong_sign_goes_up(out, optimizer):
    cosine, most = course(train(out, optimizer))
    assert cosine > 0.2 and most > 0


def test_a_rate_that_falls_below_zero_goes_up(out):
    told = train(out, lambda p: O.SGD(p, 0.1), schedule=lambda o: O.lr_scheduler.LambdaLR(o, lambda step: 1 - step / 20), updates=40)
    assert all(along < 0 for along in told["along"][:20]) and all(along > 0 for along in told["along"][21:])


def test_successive_gradients_turn_round_where_the_rate_is_too_high(out):
    """Of x² / 2 a rate of 1.9 leads to -0.9 x."""
    point = torch.nn.Linear(8, 1, bias=False)
    made = O.SGD(point.parameters(), 1.9)
    hook = tocsin.watch(point, made, out=out, job="movement")
    for _ in range(40):
        made.zero_grad()
        (point.weight.pow(2).sum() / 2).backward()
        made.step()
    hook.close()
    told = Telemetry(out)
    turned = [value for _, _, value in told.scalars(ROOM + "turned")]
    assert len(turned) == 39 and all(value == pytest.approx(-1, abs=1e-5) for value in turned)


def test_a_gradient_of_zero_is_named_after_200_updates(out):
    net = Net(dead=True)
    told = train(out, lambda p: O.Adam(p, 1e-3), net=net, updates=199)
    assert "zero" not in told, "too early"
    told = train(out + "2", lambda p: O.Adam(p, 1e-3), net=Net(dead=True), updates=202)
    assert told["zero"] == [2.0] and told["without"] == [0.0] and told["trainable"] == [6.0]
    assert told["never/dead.weight"] == [128.0] and told["never/dead.bias"] == [8.0]
    assert told["zero_elements"] == [136.0]


@pytest.mark.parametrize("at", [150, 199, 250])
def test_what_thaws_late_is_no_news(out, at):
    net = Net()
    net.first.requires_grad_(False)
    for one in net.first.parameters():
        one.grad = torch.zeros_like(one)

    class Thaws(list):
        def step(self):
            self.append(1)
            if len(self) == at:
                net.first.requires_grad_(True)

    told = train(out, lambda p: O.Adam(p, 1e-3), net=net, updates=420, schedule=lambda made: Thaws())
    assert set(told["zero"]) == {0.0}
    assert told["trainable"][0] == (4.0 if at < 200 else 2.0)


def test_a_bias_that_the_loss_does_not_depend_on_is_no_news(out):
    """A critic's: what it says of real and made samples is subtracted."""
    critic = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    made = O.RMSprop(critic.parameters(), 1e-4)
    hook = tocsin.watch(critic, made, out=out, job="movement")
    for _ in range(210):
        made.zero_grad()
        real, fake = critic(torch.randn(8, 4) + 1), critic(torch.randn(8, 4))
        (fake.mean() - real.mean()).backward()
        assert critic[2].bias.grad.item() == 0
        made.step()
    hook.close()
    told = Telemetry(out)
    last = {name: told.scalars(ROOM + name)[-1][2] for name in ("trainable", "zero", "without")}
    assert last == {"trainable": 4, "zero": 0, "without": 1}


def test_what_nobody_uses_is_counted_apart(out):
    told = train(out, lambda p: O.Adam(p, 1e-3), net=Net(unused=True), updates=210)
    assert told["zero"] == [0.0] and told["without"] == [2.0]
    assert not [name for name in told if name.startswith("never/")]


def test_gradients_that_are_kept_elsewhere_are_no_data(out):
    net = Net()
    made = O.SGD(net.parameters(), 0.1)
    hook = tocsin.watch(net, made, out=out, job="movement")
    for _ in range(210):
        made.step()
    hook.close()
    assert not [name for name in Telemetry(out).names.values() if name in (ROOM + "zero", ROOM + "without")]


def test_sparse_tables_move(out):
    class Bag(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = torch.nn.Embedding(100, 8, sparse=True), torch.nn.Linear(8, 5)

        def forward(self, rows):
            return self.head(self.table((rows[:, 0].abs() * 10).long()))

    net = Bag()
    told = train(out, lambda p: O.SGD(p, 0.1), net=net)
    assert told["zero"] == [0.0] and course(told)[0] < -0.9


def test_a_loop_that_loads_its_optimizer_goes_on(out):
    net = Net()
    made = O.AdamW(net.parameters(), 1e-3)
    kept = made.state_dict()

    class Loads(list):
        def step(self):
            if len(self) == 20:
                made.load_state_dict(kept)
                made.param_groups[0]["lr"] = 1e-2
            self.append(1)

    cosine, most = course(train(out, made, net=net, schedule=lambda o: Loads()))
    assert cosine < -0.1 and most <= 0


def test_it_does_not_change_the_training(out):
    def weights(watched):
        torch.manual_seed(1)
        net = Net()
        made = O.Adam(net.parameters(), 1e-2, weight_decay=0.1)
        hook = tocsin.watch(net, made, out=out, job="movement") if watched else None
        for _ in range(100):
            made.zero_grad()
            net(torch.randn(8, 16)).pow(2).mean().backward()
            made.step()
        if hook:
            hook.close()
        return torch.cat([one.detach().reshape(-1) for one in net.parameters()])

    assert torch.equal(weights(True), weights(False))


@pytest.mark.parametrize("share", [0.001, math.inf], ids=["as much as it may", "without a limit"])
def test_behind_its_first_updates_the_library_carries_the_steps(out, monkeypatch, share):
    monkeypatch.setattr(movement, "SHARE", share)
    net = torch.nn.Linear(4, 3)
    made = O.SGD(net.parameters(), 0.1)
    hook = tocsin.watch(net, made, out=out, job="movement", capture={"every": "7 steps", "overhead": "100%"})
    lent = []
    for _ in range(200):
        made.zero_grad()
        net(torch.ones(2, 4)).square().mean().backward()
        made.step()
        lent.append(hook.sink.clock._lent)
    hook.close()
    looks = len(Telemetry(out).scalars(ROOM + "along"))
    assert not any(lent[:64])
    assert (sum(lent[64:]) > 40 and looks < 160) if share < 1 else (not any(lent) and looks == 200)


def test_without_the_ledger_nothing_is_looked_at(out):
    net = torch.nn.Linear(4, 3)
    made = O.SGD(net.parameters(), 0.1)
    hook = tocsin.watch(net, made, out=out, job="movement", capture={"ledger": False})
    for _ in range(3):
        net(torch.ones(2, 4)).square().mean().backward()
        made.step()
    hook.close()
    assert not [name for name in Telemetry(out).names.values() if name.startswith(ROOM)]
