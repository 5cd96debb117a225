"""How far tensors move beside others of their role, whether gradients have a direction, and what the loss must fall by, as the hook counts it
(tocsin.adapters.torch.movement.peers, torch_movement)."""

import math

import pytest
import torch

from tests.support.hook_support import Telemetry

import tocsin
from tocsin.adapters.torch.movement.peers import Peers

ROOM = "ledger/movement/"


class Layers(torch.nn.Module):
    """Layers that are alike; ``scale``: what one of them is multiplied by."""

    def __init__(self, number=6, scale=1.0, at=3):
        super().__init__()
        self.first = torch.nn.Linear(8, 16)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(number))
        self.head = torch.nn.Linear(16, 4)
        self.scale, self.at = scale, at

    def forward(self, rows):
        rows = self.first(rows).tanh()
        for number, layer in enumerate(self.layers):
            rows = rows + (self.scale if number == self.at else 1.0) * layer(rows).tanh()
        return self.head(rows)


def rows_of(out, fields):
    told = Telemetry(out)
    return {name[len(ROOM):]: told.scalars(name) for name in told.names.values() if name.startswith(ROOM)
            and name[len(ROOM):].startswith(fields)}


def train(out, net, optimizer, updates=70, each=None, data=None):
    torch.manual_seed(1)
    inputs, labels = data or (torch.randn(128, 8), torch.randint(0, 4, (128,)))
    hook = tocsin.watch(net, optimizer, out=out, job="peers")
    for step in range(updates):
        optimizer.zero_grad()
        chosen = torch.randint(0, len(inputs), (32,))
        torch.nn.functional.cross_entropy(net(inputs[chosen]), labels[chosen]).backward()
        if each:
            each(step)
        optimizer.step()
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    return rows_of(out, ("slow/", "compared", "directed", "pays", "turned"))


def slow(told):
    return {name[len("slow/"):]: [value for _, _, value in rows] for name, rows in told.items() if name.startswith("slow/")}


class Told:
    """What Peers tells."""

    def tell_found(self, values, read):
        self.found = read(values)


def test_an_update_with_an_overflow_counts_as_none():
    """A scaler leaves it out."""
    parameters, sizes, marks = [torch.nn.Parameter(torch.ones(8, 8)) for _ in range(4)], [16] * 4, [Told(), Told()]
    clean, mixed = (Peers(one, torch, [(parameter, 0) for parameter in parameters], sizes, torch.device("cpu")) for one in marks)
    torch.manual_seed(3)
    for step in range(16):
        gradient = torch.randn(64) + 1
        for peers in (clean, mixed):
            peers.add(torch, gradient, 0.1 * gradient, 0.1 * gradient)
        if step in (0, 7):
            gradient[5] = math.inf
            mixed.add(torch, gradient, 0.1 * gradient, torch.zeros(64))
    for peers in (clean, mixed):
        peers.tell(torch, torch.full((64,), 9.0), 0.1, lambda: [(str(number), one) for number, one in enumerate(parameters)])
    assert marks[0].found["directed"] == pytest.approx(marks[1].found["directed"]) and math.isfinite(marks[0].found["directed"])


def test_a_layer_that_stands_still_beside_its_like_is_named(out):
    torch.manual_seed(0)
    net = Layers(scale=1e-5)
    told = train(out, net, torch.optim.SGD(net.parameters(), 0.05))
    found = slow(told)
    assert list(found) == ["layers.3.weight"] and len(found["layers.3.weight"]) == 3  # at 16, 32 and 64 looks
    assert all(share < 1e-3 for share in found["layers.3.weight"])
    assert [value for _, _, value in told["compared"]] == [8.0] * 3  # the other two are compared with all


class Adapters(torch.nn.Module):
    """Adapters that start at zero, beside a frozen trunk."""

    def __init__(self, number):
        super().__init__()
        self.trunk = torch.nn.ModuleList(torch.nn.Linear(8, 8).requires_grad_(False) for _ in range(number))
        self.down = torch.nn.ModuleList(torch.nn.Linear(8, 4, bias=False) for _ in range(number))
        self.up = torch.nn.ModuleList(torch.nn.Linear(4, 8, bias=False) for _ in range(number))
        for one in self.up:
            torch.nn.init.zeros_(one.weight)

    def forward(self, rows):
        for trunk, down, up in zip(self.trunk, self.down, self.up):
            rows = rows + trunk(rows).tanh() + up(down(rows))
        return rows[:, :4]


class Positions(torch.nn.Module):
    """A table of positions, of which texts reach the first few, and one of words, most of which are rare."""

    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(500, 16), torch.nn.Embedding(256, 16)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(5))
        self.head = torch.nn.Linear(16, 4)

    def forward(self, rows):
        words = (rows.abs() * 20).long().clamp(max=499)
        rows = (self.words(words) + self.places(torch.arange(rows.shape[1]))).mean(1)
        for layer in self.layers:
            rows = rows + layer(rows).relu()
        return self.head(rows)


class Pictures(torch.nn.Module):
    """Convolutions with norms, whose scale is nothing."""

    def __init__(self):
        super().__init__()
        self.stages = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Conv1d(1 if at == 0 else 8, 8, 3, padding=1), torch.nn.BatchNorm1d(8),
                                                              torch.nn.ReLU()) for at in range(5))
        self.head = torch.nn.Linear(8, 4)
        torch.nn.init.zeros_(self.head.weight)

    def forward(self, rows):
        rows = rows[:, None]
        for stage in self.stages:
            rows = stage(rows)
        return self.head(rows.mean(2))


HEALTHY = {
    "layers": lambda: Layers(), "two adapters": lambda: Adapters(2), "six adapters": lambda: Adapters(6), "tables": Positions,
    "a head that starts at zero": Pictures, "one layer is a tenth": lambda: Layers(scale=0.1)}
OPTIMIZERS = {"sgd": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9), "adam with decay": lambda p: torch.optim.Adam(p, 1e-3, weight_decay=0.1),
              "adamw": lambda p: torch.optim.AdamW(p, 1e-3, weight_decay=0.5)}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("net", HEALTHY)
def test_healthy_models_have_no_tensor_that_stands_still(out, net, optimizer):
    torch.manual_seed(0)
    model = HEALTHY[net]()
    made = OPTIMIZERS[optimizer]([one for one in model.parameters() if one.requires_grad])
    rise = torch.optim.lr_scheduler.LambdaLR(made, lambda step: min(1.0, step / 20))  # a warm-up from 0
    found = slow(train(out, model, made, each=lambda step: rise.step() if step else None))
    assert not [name for name, shares in found.items() if len(shares) >= 3 and max(shares) < 1e-3], found


def test_groups_with_rates_of_their_own_are_no_peers(out):
    torch.manual_seed(0)
    net = Layers()
    groups = [{"params": list(net.layers.parameters()), "lr": 1e-5}, {"params": [*net.first.parameters(), *net.head.parameters()]}]
    told = train(out, net, torch.optim.SGD(groups, 0.1))
    assert not slow(told) and [value for _, _, value in told["compared"]] == [6.0] * 3


@pytest.mark.parametrize("noise", [True, False])
def test_the_direction_of_gradients_is_that_of_all_of_them(out, noise):
    """Against the gradients themselves: all elements of so small a model are looked at."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8, bias=False), torch.nn.Tanh(), torch.nn.Linear(8, 4, bias=False))
    kept, drawn = [], torch.Generator().manual_seed(5)

    def each(step):
        for one in net.parameters():
            one.grad = torch.randn(one.shape, generator=drawn) if noise else torch.full_like(one, 0.5)
        kept.append(torch.cat([one.grad.reshape(-1) for one in net.parameters()]).double())

    told = train(out, net, torch.optim.SGD(net.parameters(), 1e-3), each=each)
    steps = [step for step, _, _ in told["directed"]] if isinstance(told["directed"][0][0], int) else None
    values, updates = ([row[-1] for row in told[name]] for name in ("directed", "directed_updates"))
    begin = 0
    for value, number in zip(values, updates):
        window = torch.stack(kept[begin:begin + int(number)])
        begin += int(number)
        assert math.isclose(value, float((window.sum(0) ** 2).sum() / (window ** 2).sum()), rel_tol=1e-4)
        assert value < 2 if noise else math.isclose(value, number, rel_tol=1e-4)
    assert updates == [16.0, 16.0, 32.0] and (steps is None or len(steps) == 3)


@pytest.mark.parametrize("optimizer", [lambda p: torch.optim.SGD(p, 0.1, momentum=0.5, weight_decay=0.1), lambda p: torch.optim.AdamW(p, 1e-2)])
def test_what_the_next_gradient_says_of_a_change_is_its_product(out, optimizer):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8, bias=False), torch.nn.Tanh(), torch.nn.Linear(8, 4, bias=False))
    weights, gradients = [], []

    def each(step):
        weights.append(torch.cat([one.detach().reshape(-1) for one in net.parameters()]).double().clone())
        gradients.append(torch.cat([one.grad.reshape(-1) for one in net.parameters()]).double())

    told = [row[-1] for row in train(out, net, optimizer(net.parameters()), updates=40, each=each)["pays"]]
    expected = [float(gradients[at] @ (weights[at] - weights[at - 1])) for at in range(1, len(weights))]
    assert len(told) == len(expected)
    assert all(math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-7) for one, other in zip(told, expected))


def test_elements_that_are_looked_at_stand_for_all(out):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 256), torch.nn.Tanh(), torch.nn.Linear(256, 4))
    weights, gradients = [], []

    def each(step):
        weights.append(torch.cat([one.detach().reshape(-1) for one in net.parameters() if one.dim() > 1]).clone())
        gradients.append(torch.cat([one.grad.reshape(-1) for one in net.parameters() if one.dim() > 1]))

    told = [row[-1] for row in train(out, net, torch.optim.SGD(net.parameters(), 0.1), updates=60, each=each)["pays"]]
    expected = sum(float(gradients[at] @ (weights[at] - weights[at - 1])) for at in range(1, len(weights)))
    assert 0.4 < sum(told) / expected < 2.5
