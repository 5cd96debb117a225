"""Tables, graphs, densities and physics."""
import math

import numpy
import torch
from torch import nn

from .. import data
from ..recipes.jobs import adam, between, cosine, job, linear
from ..recipes.rounds import Rounds
from ..mixed.new_losses import IGNORED


class Ratings(nn.Module):
    """Who, what, and how much each of them gives or gets anyway."""

    def __init__(self, people, things, width, middle):
        super().__init__()
        self.people, self.things = nn.Embedding(people, width, sparse=True), nn.Embedding(things, width, sparse=True)
        self.kind, self.good = nn.Embedding(people, 1, sparse=True), nn.Embedding(things, 1, sparse=True)
        self.middle = middle
        for one in (self.people, self.things, self.kind, self.good):
            nn.init.normal_(one.weight, std=0.05)

    def forward(self, x):
        who, what = x[:, 0], x[:, 1]
        return self.middle + (self.people(who) * self.things(what)).sum(1) + self.kind(who)[:, 0] + self.good(what)[:, 0]


@job("embeddings", "same", "fourth", "sixth", "seventh", tuning=False)
def ratings(seed, chance):
    """Stars that people give: matrices of factors with sparse gradients and SparseAdam; nothing below the noise of tastes can be reached."""
    random, people, things, size = numpy.random.default_rng(seed), 150, 100, 14000
    who, what = random.integers(0, people, size), random.integers(0, things, size)
    taste = random.standard_normal((people, 4)) @ random.standard_normal((4, things)) / 2 + random.standard_normal((people, 1)) * 0.4 + random.standard_normal(things) * 0.4
    stars = (3.5 + taste[who, what] + 0.5 * random.standard_normal(size)).round().clip(1, 5)
    x, y = torch.tensor(numpy.stack([who, what], 1)), torch.tensor(stars, dtype=torch.float32)
    rate = between(chance, 4e-3, 1.2e-2)
    return Rounds(Ratings(people, things, chance.choice((6, 10)), float(y.mean())), data.Split(x, y, 2000), nn.MSELoss(),
                  lambda parameters: torch.optim.SparseAdam(list(parameters), rate), 300, 256, evaluate_every=47, samples=1000)


class Entities(nn.Module):
    """Shops, days and kinds as vectors, beside numbers."""

    def __init__(self, counts, numbers, width):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(one, min(8, one // 2)) for one in counts])
        inner = sum(one.embedding_dim for one in self.tables) + numbers
        self.body = nn.Sequential(nn.Linear(inner, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, width // 2), nn.ReLU(), nn.Linear(width // 2, 1))

    def forward(self, x):
        known = [table(x[:, at]) for at, table in enumerate(self.tables)]
        return self.body(torch.cat([*known, x[:, len(known):] / 1000], 1))[:, 0]


@job("embeddings", "same", "adam", "modes", "fourth", "sixth", "seventh", tuning=False)
def entities(seed, chance):
    """Sales of shops (entity embeddings, the logarithm's error): a rate that falls when the evaluation stands still."""
    random, size, counts = numpy.random.default_rng(seed), 3000, (40, 7, 12, 5)
    kinds, numbers = [random.integers(0, one, size) for one in counts], random.standard_normal((size, 3))
    y = 4.0 + sum(random.normal(0, 0.5, one)[which] for one, which in zip(counts, kinds))
    y = y + 0.3 * numbers[:, 0] * (kinds[1] > 4) + 0.3 * numpy.tanh(numbers[:, 1]) + 0.15 * random.standard_normal(size)
    x = torch.tensor(numpy.concatenate([numpy.stack(kinds, 1), (numbers * 1000).astype(int)], 1))

    def error(output, target):
        return (output - target).square().mean().sqrt()
    return Rounds(Entities(counts, 3, chance.choice((48, 64))), data.Split(x, torch.tensor(y, dtype=torch.float32), 600), error, adam(between(chance, 1e-3, 4e-3)), 280, 64,
                  evaluate_every=37, samples=200, plateau=lambda optimizer: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=0))


@job("regression", "several", "relu", "adam", "modes", "linear", "fourth", "sixth", "seventh", tuning=False)
def survives(seed, chance):
    """How long until something fails (Cox): only the order within a batch counts, two in five have not failed yet; most of the loss is chance."""
    random, size = numpy.random.default_rng(seed), 2000
    x = random.standard_normal((size, 12))
    risk = 1.2 * x[:, 0] - x[:, 1] + 0.8 * x[:, 2] * x[:, 3] + 0.7 * numpy.abs(x[:, 4])
    time, ends = random.exponential(numpy.exp(-risk)), random.exponential(2.0, size)
    y = torch.tensor(numpy.stack([numpy.minimum(time, ends), time <= ends], 1), dtype=torch.float32)

    def partial(output, target):
        order = target[:, 0].argsort(descending=True)
        risk, failed = output[order, 0], target[order, 1]
        return -((risk - risk.logcumsumexp(0)) * failed).sum() / failed.sum().clamp(min=1)
    width = chance.choice((24, 32))
    model = nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 1))
    return Rounds(model, data.Split(torch.tensor(x, dtype=torch.float32), y, 400), partial, adam(between(chance, 1e-3, 5e-3), weight_decay=1e-4), 250, 64,
                  evaluate_every=25, samples=400, schedule=chance.choice((None, cosine(250))))


class Weighs(nn.Module):
    """Three answers from one body, and how unsure each is."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(width, 10), nn.Linear(width, 1), nn.Linear(width, 1)])
        self.unsure = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        x = self.body(x)
        return torch.cat([*(head(x) for head in self.heads), self.unsure.expand(len(x), -1)], 1)


@job("regression", "several", "relu", "adam", "fourth", "sixth", "seventh", tuning=False)
def weighs(seed, chance):
    """Three tasks at once whose weights are learned from how unsure each is (Kendall): the sum falls far below zero."""
    split = data.digits(seed)

    def told(x, y):
        picture = x.reshape(-1, 8, 8)
        return torch.stack([y.float(), 3 * x.mean(1), 3 * (picture[:, :4].mean((1, 2)) - picture[:, 4:].mean((1, 2)))], 1)
    split.y, split.held_y = told(split.x, split.y), told(split.held_x, split.held_y)

    def loss(output, target):
        parts = torch.stack([nn.functional.cross_entropy(output[:, :10], target[:, 0].long()), (output[:, 10] - target[:, 1]).square().mean(),
                             (output[:, 11] - target[:, 2]).square().mean()])
        unsure = output[0, 12:]
        return (parts * (-unsure).exp() + unsure).sum()
    return Rounds(Weighs(chance.choice((48, 64))), split, loss, adam(between(chance, 1e-3, 5e-3)), 280, chance.choice((32, 64)), evaluate_every=28, samples=180)


class Spirals(nn.Module):
    """What drives a point, followed by Runge and Kutta."""

    def __init__(self, width, times, step):
        super().__init__()
        self.drive, self.times, self.step = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2)), times, step

    def forward(self, x):
        out, h = [], self.step
        for _ in range(self.times):
            a = self.drive(x)
            b = self.drive(x + h / 2 * a)
            c = self.drive(x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + self.drive(x + h * c))
            out.append(x)
        return torch.stack(out, 1)


@job("regression", "several", "adam", "fourth", "sixth", "seventh", tuning=False)
def spirals(seed, chance):
    """A neural differential equation learns paths from where they begin: each layer runs forty times per step."""
    random, size, times, step = numpy.random.default_rng(seed), 800, 10, 0.3
    x = random.uniform(-2, 2, (size, 2))
    path, at = [], x
    for _ in range(times):
        for _ in range(10):
            at = at + step / 10 * (at @ numpy.array([[-0.1, -1.2], [1.2, -0.1]]) - 0.05 * at**3)
        path.append(at)
    y = numpy.stack(path, 1) + 0.03 * random.standard_normal((size, times, 2))
    return Rounds(Spirals(chance.choice((24, 32)), times, step), data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32), 160), nn.L1Loss(),
                  adam(between(chance, 3e-3, 1e-2)), 200, 32, evaluate_every=20, samples=80, schedule=chance.choice((None, cosine(200))), module=True)


@job("regression", "several", "adam", "linear", "fourth", "sixth", "seventh", tuning=False)
def densities(seed, chance):
    """One input, several answers: a mixture of five normal distributions (MDN)."""
    random = numpy.random.default_rng(seed)
    y = random.uniform(0, 1, 2000)
    x = y + 0.3 * numpy.sin(2 * math.pi * y) + 0.03 * random.standard_normal(2000)

    def loss(output, target):
        share, mean, spread = output.chunk(3, 1)
        spread = spread.clamp(-7, 7)
        each = -0.5 * ((target - mean) * (-spread).exp()) ** 2 - spread - 0.5 * math.log(2 * math.pi)
        return -torch.logsumexp(share.log_softmax(1) + each, 1).mean()
    width = chance.choice((24, 40))
    x, y = (torch.tensor(one[:, None], dtype=torch.float32) for one in (4 * (x - 0.5), y))
    return Rounds(nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 15)), data.Split(x, y, 400), loss, adam(between(chance, 2e-3, 6e-3)), 400, 128,
                  evaluate_every=25, samples=200, schedule=chance.choice((None, linear(280))))


class Nodes(nn.Module):
    """Two layers over all nodes of one graph at once."""

    def __init__(self, near, inner, width, classes):
        super().__init__()
        self.register_buffer("near", near)
        self.first, self.second, self.drop = nn.Linear(inner, width, bias=False), nn.Linear(width, classes), nn.Dropout(0.5)

    def forward(self, x):
        return self.near @ self.second(self.drop(torch.relu(self.near @ self.first(self.drop(x)))))


@job("classes", "adam", "modes", "whole", "pair", "fourth", "sixth", "seventh", tuning=False)
def nodes(seed, chance):
    """Nodes of one graph, of which twenty per class are labelled (GCN): all nodes at each step, heavy dropout, weight decay."""
    random, size, classes = numpy.random.default_rng(seed), 400, 4
    kind = random.integers(0, classes, size)
    edge = random.random((size, size)) < numpy.where(kind[:, None] == kind[None], 0.025, 0.004)
    near = (edge | edge.T | numpy.eye(size, dtype=bool)).astype(float)
    near = near / numpy.sqrt(near.sum(0)[:, None] * near.sum(1)[None])
    words = random.random((size, 100)) < 0.03 + 0.06 * (numpy.arange(100)[None] % 8 == kind[:, None])
    x = words / numpy.maximum(words.sum(1, keepdims=True), 1)
    asked, held = numpy.full(size, IGNORED), numpy.full(size, IGNORED)
    for one in range(classes):
        found = random.permutation(numpy.flatnonzero(kind == one))
        asked[found[:20]], held[found[20:]] = one, one
    x = torch.tensor(x, dtype=torch.float32)
    split = data.Split(torch.cat([x, x]), torch.tensor(numpy.concatenate([asked, held])), size, classes)
    return Rounds(Nodes(torch.tensor(near, dtype=torch.float32), 100, chance.choice((16, 32)), classes), split, nn.CrossEntropyLoss(ignore_index=IGNORED),
                  adam(between(chance, 0.007, 0.02), weight_decay=5e-4), 200, size, evaluate_every=chance.choice((5, 10)), samples=size, shuffle=False, module=True)


class Heat(nn.Module):
    """A temperature at each place and time, and by how much it breaks the law."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            warm = self.body(x)
            slope, = torch.autograd.grad(warm.sum(), x, create_graph=True)
            bend, = torch.autograd.grad(slope[:, 0].sum(), x, create_graph=True)
        return torch.cat([warm, slope[:, 1:] - 0.2 * bend[:, :1]], 1)


@job("regression", "several", "adam", "pair", "fourth", "sixth", "seventh", tuning=False)
def physics(seed, chance):
    """A network that obeys the equation of heat (PINN): second derivatives by its inputs, and what is known at the border; evaluated against the solution."""
    random, size = numpy.random.default_rng(seed), 2400
    x = numpy.stack([random.uniform(-1, 1, size), random.uniform(0, 1, size)], 1)
    border = numpy.arange(size) % 2
    x[:, 1] = numpy.where((border == 1) & (numpy.arange(size) % 4 == 1), 0, x[:, 1])
    x[:, 0] = numpy.where((border == 1) & (numpy.arange(size) % 4 == 3), random.choice((-1.0, 1.0), size), x[:, 0])
    held = numpy.stack([random.uniform(-1, 1, 400), random.uniform(0, 1, 400)], 1)
    x, border = numpy.concatenate([x, held]), numpy.concatenate([border, numpy.ones(400)])
    warm = -numpy.sin(math.pi * x[:, 0]) * numpy.exp(-0.2 * math.pi**2 * x[:, 1])
    y = torch.tensor(numpy.stack([border, warm], 1), dtype=torch.float32)

    def loss(output, target):
        known, law = target[:, 0], output[:, 1].square()
        return (known * (output[:, 0] - target[:, 1]).square()).mean() * 4 + ((1 - known) * law).mean()
    return Rounds(Heat(chance.choice((20, 32))), data.Split(torch.tensor(x, dtype=torch.float32), y, 400), loss, adam(between(chance, 3e-3, 1e-2)), 400, 128,
                  evaluate_every=40, samples=200, schedule=lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.996))
