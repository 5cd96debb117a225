"""Tables, lists, series, graphs, and what is not sure."""
import math

import numpy
import sklearn.datasets
import torch
from torch import nn

from .. import data
from ..recipes.jobs import adam, adamw, between, cosine, job, sgd
from ..mixed.modern import one_cycle
from ..recipes.rounds import Rounds
from ..mixed.new_losses import encoder, source
from ..recipes.epochs import Epochs


def floats(*arrays):
    """Of NumPy's."""
    return [torch.tensor(one, dtype=torch.float32) for one in arrays]


class Clicks(nn.Module):
    """Numbers and embeddings crossed with themselves thrice, beside a deep part (DCN)."""

    def __init__(self, sizes, numbers, width):
        super().__init__()
        self.numbers, self.embed = numbers, nn.ModuleList([nn.Embedding(size, 6) for size in sizes])
        inner = numbers + 6 * len(sizes)
        self.cross = nn.ModuleList([nn.Linear(inner, inner) for _ in range(2)])
        self.deep, self.head = nn.Sequential(nn.Linear(inner, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()), nn.Linear(inner + width, 1)

    def forward(self, x):
        said = [embed(x[:, self.numbers + at].long()) for at, embed in enumerate(self.embed)]
        first = y = torch.cat([x[:, :self.numbers], *said], 1)
        for layer in self.cross:
            y = first * layer(y) + y
        return self.head(torch.cat([y, self.deep(first)], 1))[:, 0]


@job("embeddings", "same", "relu", "fourth", "sixth", "seventh", "eighth", tuning=False)
def clicks(seed, chance):
    """Clicks on advertisements: each sample is seen once, a fifth is clicked, Adagrad, a loss given to the hook; near log 2 it never is."""
    random, size, sizes = numpy.random.default_rng(seed), 18000, (200, 60, 20, 8)
    ids, numbers = numpy.stack([random.zipf(1.4, size) % one for one in sizes], 1), random.standard_normal((size, 5))
    of_id = [random.normal(0, 1.0, one) for one in sizes]
    score = sum(one[ids[:, at]] for at, one in enumerate(of_id)) + numbers[:, 0] * of_id[3][ids[:, 3]] + 0.7 * numbers[:, 1] - 2
    y = random.random(size) < 1 / (1 + numpy.exp(-1.3 * score))
    x, y = floats(numpy.concatenate([numbers, ids], 1), y)
    return Rounds(Clicks(sizes, 5, chance.choice((24, 32))), data.Split(x, y, 2000), nn.BCEWithLogitsLoss(),
                  lambda parameters: torch.optim.Adagrad(parameters, between(chance, 0.02, 0.06)), 240, 64, evaluate_every=20, samples=1000, module=True)


class Features(nn.Module):
    """Each number of a row as a word of its own, one more for the answer (FT-Transformer)."""

    def __init__(self, inputs, width, classes):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, width) / math.sqrt(width)), nn.Parameter(torch.zeros(inputs, width))
        self.answer, self.body = nn.Parameter(torch.randn(width) / math.sqrt(width)), encoder(width, 2, 0.1, first=True)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        y = torch.cat([self.answer.expand(len(x), 1, -1), x[:, :, None] * self.weight + self.bias], 1)
        return self.head(torch.relu(self.norm(self.body(y)[:, 0])))


@job("classes", "attention", "adam", "modes", "names", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def features(seed, chance):
    """A transformer over the columns of a table; a constant rate, weight decay, some evaluations per epoch."""
    x, y = sklearn.datasets.make_classification(1800, 10, n_informative=6, n_classes=3, flip_y=0.05, class_sep=1.4, random_state=seed)
    x, = floats((x - x.mean(0)) / x.std(0))
    return Rounds(Features(10, chance.choice((16, 24)), 3), data.Split(x, torch.tensor(y), 360, 3), nn.CrossEntropyLoss(),
                  adamw(between(chance, 7e-4, 3e-3), weight_decay=0.01), 180, chance.choice((32, 64)), evaluate_every=15, samples=180, module=True)


@job("regression", "several", "relu", "adam", "modes", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def lists(seed, chance):
    """Learning to rank: which documents of a list are good; the loss is of the whole list (ListNet), most of it cannot be got rid of."""
    random, width = numpy.random.default_rng(seed), chance.choice((32, 48))
    x = random.standard_normal((1600, 10, 8))
    score = numpy.tanh(x[..., 0] * x[..., 1]) + x[..., 2] + 0.5 * numpy.abs(x[..., 3]) + 0.5 * random.standard_normal((1600, 10))
    x, y = floats(x, numpy.digitize(score, numpy.quantile(score, (0.5, 0.8, 0.95))))
    model = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1), nn.Flatten())

    def gain(output, y):
        def of(order):
            return ((2 ** y.gather(1, order) - 1) / torch.log2(torch.arange(10) + 2.0))[:, :5].sum(1)
        return {"ndcg": float((of(output.argsort(1, descending=True)) / of(y.argsort(1, descending=True)).clamp(min=1e-6)).mean())}
    return Epochs(model, data.Split(x, y, 300), lambda output, target: -((1.5 * target).softmax(1) * output.log_softmax(1)).sum(1).mean(),
                  adam(between(chance, 1e-3, 5e-3)), 260, 32, evaluate_every=40, samples=100, values=gain, schedule=chance.choice((None, cosine(260))))


class Finds(nn.Module):
    """What somebody looked at and what there is, as vectors of one space."""

    def __init__(self, things, width, common):
        super().__init__()
        self.past, self.thing = nn.EmbeddingBag(things, width), nn.Embedding(things, width)
        self.tower = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.register_buffer("common", common)
        for one in (self.past, self.thing):
            nn.init.normal_(one.weight, std=0.3)

    def forward(self, x):
        who, what = self.tower(self.past(x[:, :-1])), self.thing(x[:, -1])
        return nn.functional.normalize(who) @ nn.functional.normalize(what).T / 0.1 - self.common[x[:, -1]].log()


@job("embeddings", "same", "relu", "adam", "fourth", "sixth", "seventh", "eighth", tuning=False)
def finds(seed, chance):
    """Retrieval in two towers: the others of the batch are what somebody did not want, corrected by how common each is."""
    random, things, size = numpy.random.default_rng(seed), 160, 6000
    topic = random.integers(0, 12, things)
    likes = (topic[None] == random.integers(0, 12, size)[:, None]) * 8.0 + 0.3
    likes *= random.zipf(1.6, things).clip(max=8)[None]
    likes /= likes.sum(1, keepdims=True)
    x = torch.tensor((likes.cumsum(1)[:, None] < random.random((size, 6))[..., None]).sum(2).clip(max=things - 1))
    common = torch.bincount(x.flatten(), minlength=things).float().clamp(min=1) / x.numel()
    model = Finds(things, chance.choice((12, 16)), common)

    def loss(output, target):
        twice = target[:, None] == target[None]
        twice.fill_diagonal_(False)
        return nn.functional.cross_entropy(output.masked_fill(twice, -1e4), torch.arange(len(output)))
    return Rounds(model, data.Split(x, x[:, -1], 1024), loss, adam(between(chance, 5e-3, 2e-2)), 240, 128, evaluate_every=40, samples=128, schedule=cosine(240))


class Messages(nn.Module):
    """Atoms tell each other by kinds of bonds what they are, thrice, and add up to a number."""

    def __init__(self, kinds, width):
        super().__init__()
        self.enter, self.cell = nn.Linear(kinds, width), nn.GRUCell(width, width)
        self.bonds = nn.ModuleList([nn.Linear(width, width) for _ in range(2)])
        self.leave = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))
        self.kinds = kinds

    def forward(self, x):
        atoms, near = x[..., :self.kinds], x[..., self.kinds:]
        y = torch.tanh(self.enter(atoms))
        for _ in range(3):
            told = sum((near == at + 1).float() @ bond(y) for at, bond in enumerate(self.bonds))
            y = self.cell(told.flatten(0, 1), y.flatten(0, 1)).reshape(y.shape)
        return (self.leave(y) * atoms.sum(2, keepdim=True)).sum((1, 2))


@job("regression", "same", "recurrent", "adam", "fourth", "sixth", "seventh", "eighth", tuning=False)
def molecules(seed, chance):
    """A property of molecules from atoms and bonds (message passing): the mean absolute error, a rate that falls when the evaluation stands still."""
    random, size, atoms, kinds = numpy.random.default_rng(seed), 1500, 8, 3
    count, kind = random.integers(4, atoms + 1, size), random.integers(0, kinds, (size, atoms))
    there = numpy.arange(atoms)[None] < count[:, None]
    near = numpy.triu((random.random((size, atoms, atoms)) < 0.35) * random.integers(1, 3, (size, atoms, atoms)), 1)
    near = (near + near.transpose(0, 2, 1)) * there[:, None] * there[:, :, None]
    first = numpy.eye(kinds)[kind] * there[..., None]
    charge = random.normal(0, 1, kinds)[kind] * there
    y = (charge[:, None] * charge[:, :, None] * near).sum((1, 2)) / 4 + 0.5 * charge.sum(1) + 0.05 * random.standard_normal(size)
    x, y = floats(numpy.concatenate([first, near], 2), (y - y.mean()) / y.std())
    return Rounds(Messages(kinds, chance.choice((24, 32))), data.Split(x, y, 300), nn.L1Loss(), adam(between(chance, 2e-3, 6e-3)), 240, 32, evaluate_every=20,
                  samples=150, module=True, plateau=lambda optimizer: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2))


class Sets(nn.Module):
    """Points ask each other by way of a few that are learned, then two questions are asked of all (a set transformer)."""

    def __init__(self, width):
        super().__init__()
        self.enter, self.few, self.ask = nn.Linear(2, width), nn.Parameter(torch.randn(4, width)), nn.Parameter(torch.randn(2, width))
        self.parts = nn.ModuleList([nn.MultiheadAttention(width, 4, batch_first=True) for _ in range(3)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)])
        self.inner, self.leave = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)), nn.Linear(width, 1)

    def _turn(self, at, ask, seen):
        y = self.norms[at](ask + self.parts[at](ask, seen, seen, need_weights=False)[0])
        return y + self.inner(y)

    def forward(self, x):
        x = self.enter(x)
        few = self._turn(0, self.few.expand(len(x), -1, -1), x)
        return self.leave(self._turn(2, self.ask.expand(len(x), -1, -1), self._turn(1, x, few)))[..., 0]


@job("regression", "several", "fresh", "attention", "adam", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def sets(seed, chance):
    """What is true of a set: the largest of its numbers, and how they lie; new ones at each step, so nothing is seen twice. One cycle."""
    drawn = source(seed)

    def made(count):
        x = torch.randn(count, 10, 2, generator=drawn)
        return x, torch.stack([x[..., 0].amax(1), (x[..., 0] * x[..., 1]).mean(1) * 2], 1)
    x, y = made(1024)
    return Rounds(Sets(chance.choice((16, 24))), data.Split(x, y, 400), nn.SmoothL1Loss(), adam(between(chance, 2e-3, 6e-3)), 240, 64, evaluate_every=20,
                  samples=200, on_batch=[lambda step, x, y: made(len(x))], schedule=one_cycle(240), module=True)


class Beliefs(nn.Module):
    """A layer that is not sure of its weights: each has a mean and a spread, and each batch draws its own."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.mean = nn.Parameter(torch.randn(outputs, inputs) / math.sqrt(inputs))
        self.spread, self.bias = nn.Parameter(torch.full((outputs, inputs), -4.0)), nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        y = nn.functional.linear(x, self.mean, self.bias)
        if not self.training:
            return y
        spread = nn.functional.softplus(self.spread)
        return y + nn.functional.linear(x.square(), spread.square()).add(1e-8).sqrt() * torch.randn_like(y)

    def apart(self):
        """How far what it believes is from what it believed at first."""
        spread = nn.functional.softplus(self.spread)
        return (0.5 * (spread.square() + self.mean.square()) / 0.09 - spread.log() + math.log(0.3) - 0.5).sum()


@job("classes", "adam", "modes", "names", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def beliefs(seed, chance):
    """Bayes by backpropagation: weights are distributions, and the loss has a large second part, which is logged beside it; evaluated with their means."""
    split, width = data.digits(seed), chance.choice((32, 48))
    layers = [Beliefs(64, width), Beliefs(width, width), Beliefs(width, 10)]
    model = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])

    def apart():
        return sum(one.apart() for one in layers) / len(split.x)

    def loss(output, target):
        said = nn.functional.cross_entropy(output, target)
        return said + 0.1 * apart() if layers[0].training else said
    return Rounds(model, split, loss, adam(between(chance, 3e-3, 8e-3)), 260, 64, evaluate_every=22, samples=180,
                  values=lambda output, y: {"nll": float(nn.functional.cross_entropy(output, y)), "kl": float(apart())})


class Inducing(nn.Module):
    """A Gaussian process by a few points that stand for all: mean and variance at each place."""

    def __init__(self, points):
        super().__init__()
        self.points, self.mean = nn.Parameter(points.clone()), nn.Parameter(torch.zeros(len(points)))
        self.root = nn.Parameter(0.1 * torch.eye(len(points)))
        self.reach, self.height, self.noise = nn.Parameter(torch.zeros(points.shape[1])), nn.Parameter(torch.zeros(())), nn.Parameter(torch.tensor(-1.0))

    def near(self, a, b):
        """How alike two places are."""
        return self.height.exp() * (-0.5 * ((a[:, None] - b[None]) * (-self.reach).exp()).square().sum(2)).exp()

    def forward(self, x):
        root = torch.linalg.cholesky_ex(self.near(self.points, self.points) + 1e-4 * torch.eye(len(self.points)))[0]
        ask = torch.linalg.solve_triangular(root, self.near(self.points, x), upper=False)
        own = self.root.tril()
        variance = self.height.exp() - ask.square().sum(0) + (own.T @ ask).square().sum(0)
        apart = 0.5 * (own.square().sum() + self.mean.square().sum() - len(own)) - own.diagonal().abs().clamp(min=1e-6).log().sum()
        return torch.stack([self.mean @ ask, variance.clamp(min=1e-6), self.noise.exp().expand(len(x)), apart.expand(len(x))], 1)


@job("regression", "several", "adam", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def inducing(seed, chance):
    """A sparse Gaussian process by the bound of its likelihood: no layers at all, a dozen kinds of numbers, a large constant rate."""
    x, y = sklearn.datasets.make_friedman2(1000, noise=60.0, random_state=seed)
    x, y = floats((x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std())

    def loss(output, target):
        mean, variance, noise, apart = output.unbind(1)
        off = ((target - mean).square() + variance) / noise
        return 0.5 * (off + noise.log() + math.log(2 * math.pi)).mean() + apart[0] / 800
    return Rounds(Inducing(x[:chance.choice((24, 32))]), data.Split(x, y, 200), loss, adam(between(chance, 0.01, 0.03)), 240, 64, evaluate_every=24,
                  samples=100)


@job("regression", "several", "relu", "sgd", "norm", "modes", "follows", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def hazards(seed, chance):
    """How long something lasts, in ten intervals: the chance to fail in each (a hazard), and nothing is known of it after one was lost from sight."""
    random, width = numpy.random.default_rng(seed), chance.choice((24, 32))
    x = random.standard_normal((1600, 10))
    time = random.exponential(numpy.exp(1.2 - numpy.tanh(x[:, 0]) - 0.7 * x[:, 1] * (x[:, 2] > 0)))
    lost = random.exponential(8, 1600)
    until = numpy.minimum(numpy.digitize(numpy.minimum(time, lost), numpy.arange(1, 10) * 0.7), 9)
    x, y = floats(x, numpy.stack([until, time < lost], 1))

    def loss(output, target):
        until, failed = target[:, :1], target[:, 1:]
        asked, event = torch.arange(10) <= until - (1 - failed), (torch.arange(10) == until) * failed
        each = nn.functional.binary_cross_entropy_with_logits(output, event, reduction="none")
        return (each * asked).sum(1).mean()
    model = nn.Sequential(nn.Linear(10, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
    return Rounds(model, data.Split(x, y, 300), loss, sgd(between(chance, 0.02, 0.08), nesterov=True, weight_decay=1e-4), 220, 64, evaluate_every=20,
                  samples=150, schedule=cosine(220))
