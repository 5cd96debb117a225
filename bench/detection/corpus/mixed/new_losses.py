"""Tasks and losses that none before has. Written before a look at what the rules say of them and by somebody who does not
change rules. Whoever looks at what is said of their single runs makes them tuning jobs, and writes others."""
import math

import numpy
import sklearn.datasets
import torch
from torch import nn

from .. import data
from ..recipes.jobs import adam, adamw, between, cosine, job, linear, sgd
from ..recipes.epochs import Epochs

IGNORED = -100  # what cross-entropy leaves out


def source(seed):
    """Of the numbers that a job draws while it trains."""
    return torch.Generator().manual_seed(seed + 30_000)


def noam(warm):
    """Up in a straight line, then down as one over the root of the step."""
    return lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min((at + 1) / warm, math.sqrt(warm / (at + 1))))


def encoder(width, layers, dropout=0.1, first=False):
    """PyTorch's own, normalised afterwards, or first."""
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=dropout, batch_first=True, norm_first=first), layers,
                                 enable_nested_tensor=False)


class Masked(nn.Module):
    """Reads letters from both sides."""

    def __init__(self, kinds, width, length):
        super().__init__()
        self.embed, self.place = nn.Embedding(kinds + 1, width), nn.Embedding(length, width)
        self.norm, self.body = nn.LayerNorm(width), encoder(width, 2, first=True)
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, kinds))

    def forward(self, x):
        return self.head(self.body(self.norm(self.embed(x) + self.place.weight)))


def at_places(output, target):
    """Cross-entropy where something is asked."""
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten(), ignore_index=IGNORED)


@job("tokens", "attention", "adam", "modes", "fourth", "sixth", tuning=False)
def masked(seed, chance):
    """A masked language model: a fifth of the letters hidden, other ones each time; the rate falls as one over a root."""
    split, drawn, width = data.text(seed, 12), source(seed), chance.choice((32, 48))
    kinds = split.classes

    def hide(x):
        hidden = torch.rand(x.shape, generator=drawn) < 0.2
        return torch.where(hidden, torch.full_like(x, kinds), x), torch.where(hidden, x, torch.full_like(x, IGNORED))
    split.held_x, split.held_y = hide(split.held_x)
    return Epochs(Masked(kinds, width, 12), split, at_places, adamw(between(chance, 2e-3, 6e-3), weight_decay=0.01), 360, 32, evaluate_every=60, samples=100,
                  schedule=noam(60), on_batch=[lambda step, x, y: hide(x)], clip=1.0)


class Listens(nn.Module):
    """A signal through a recurrent network of both directions: what is said at each time, or nothing."""

    def __init__(self, width, kinds):
        super().__init__()
        self.enter = nn.Conv1d(1, width, 5, stride=2, padding=2)
        self.cell, self.head = nn.LSTM(width, width, bidirectional=True, batch_first=True), nn.Linear(2 * width, kinds)

    def forward(self, x):
        y = torch.relu(self.enter(x)).transpose(1, 2)
        return self.head(self.cell(y)[0]).log_softmax(2)


@job("regression", "several", "recurrent", "adam", "fourth", "sixth", tuning=False)
def listens(seed, chance):
    """Speech, as it were: tones in a row, of which only the order is known (CTC)."""
    random, size, length = numpy.random.default_rng(seed), 900, 64
    x, y = 0.3 * random.standard_normal((size, 1, length)), numpy.zeros((size, 4), dtype=int)
    for at in range(size):
        y[at] = random.integers(1, 6, 4)
        begin = 0
        for which in y[at]:
            begin += random.integers(1, 4)
            time = numpy.arange(12)
            x[at, 0, begin:begin + 12] += numpy.sin(time * 0.5 * which)
            begin += 12
    frames, each = 32, 4

    def loss(output, target):
        count = len(output)
        return nn.functional.ctc_loss(output.transpose(0, 1), target, torch.full((count,), frames), torch.full((count,), each), zero_infinity=True)
    split = data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), 180)
    return Epochs(Listens(chance.choice((24, 32)), 6), split, loss, adam(between(chance, 3e-3, 1e-2)), 260, 16, evaluate_every=45, samples=60, clip=chance.choice((1.0, 5.0)),
                  schedule=chance.choice((None, cosine(260))))


class Detects(nn.Module):
    """Per cell: whether there is something, where and how large, and what."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.SiLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.SiLU(), nn.MaxPool2d(2),
                                  nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.SiLU())
        self.there, self.box, self.kind = nn.Conv2d(2 * width, 1, 1), nn.Conv2d(2 * width, 3, 1), nn.Conv2d(2 * width, 3, 1)
        nn.init.constant_(self.there.bias, -2.0)

    def forward(self, x):
        x = self.body(x)
        return torch.cat([self.there(x), self.box(x), self.kind(x)], 1)


@job("regression", "several", "norm", "sgd", "modes", "follows", "fourth", "sixth", tuning=False)
def detects(seed, chance):
    """Boxes, crosses and rings in pictures: three losses in a sum, with momentum, warm-up and two falls of the rate."""
    random, size = numpy.random.default_rng(seed), 1000
    x, y = 0.2 * random.standard_normal((size, 1, 16, 16)), numpy.zeros((size, 5, 4, 4))
    for at in range(size):
        for _ in range(random.integers(1, 3)):
            kind, half = random.integers(0, 3), random.integers(1, 3)
            row, column = random.integers(half, 16 - half, 2)
            patch = x[at, 0, row - half:row + half + 1, column - half:column + half + 1]
            if kind == 0:
                patch += 1
            elif kind == 1:
                patch[half], patch[:, half] = patch[half] + 1, patch[:, half] + 1
            else:
                patch -= 1
            y[at, :, row // 4, column // 4] = 1, row % 4 / 4, column % 4 / 4, half / 2, kind

    def loss(output, target):
        there, own = target[:, 0], target[:, 0] > 0
        sure = nn.functional.binary_cross_entropy_with_logits(output[:, 0], there)
        place = nn.functional.smooth_l1_loss(output[:, 1:4].permute(0, 2, 3, 1)[own], target[:, 1:4].permute(0, 2, 3, 1)[own])
        kind = nn.functional.cross_entropy(output[:, 4:].permute(0, 2, 3, 1)[own], target[:, 4][own].long())
        return sure + 2 * place + 0.5 * kind
    steps, rate = 250, between(chance, 0.01, 0.06)

    def falls(optimizer):
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min(1.0, (at + 1) / 15) * 0.1 ** ((at > 160) + (at > 210)))
    split = data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32), 200)
    return Epochs(Detects(chance.choice((8, 12))), split, loss, sgd(rate, weight_decay=5e-4), steps, 16, evaluate_every=50, samples=50, schedule=falls,
                  clip=chance.choice((None, 10.0)))


class Marks(nn.Module):
    """Down and up again, with what was seen on the way."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.InstanceNorm2d(width, affine=True), nn.LeakyReLU(0.01))
        self.low = nn.Sequential(nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.InstanceNorm2d(2 * width, affine=True), nn.LeakyReLU(0.01),
                                 nn.Dropout2d(0.1))
        self.grow = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.last = nn.Sequential(nn.Conv2d(2 * width, width, 3, padding=1), nn.InstanceNorm2d(width, affine=True), nn.LeakyReLU(0.01), nn.Conv2d(width, 1, 1))

    def forward(self, x):
        x = self.first(x)
        return self.last(torch.cat([x, self.grow(self.low(x))], 1))


@job("regression", "same", "sgd", "modes", "fourth", "sixth", tuning=False)
def marks(seed, chance):
    """Small blobs in noise, one point in twenty: Dice's loss and cross-entropy, Nesterov's momentum, a power of what is left."""
    random, size = numpy.random.default_rng(seed), 700
    y = numpy.zeros((size, 1, 16, 16))
    grid = numpy.mgrid[0:16, 0:16]
    for at in range(size):
        centre, radius = random.integers(2, 14, 2), random.uniform(1.2, 2.8)
        y[at, 0] = ((grid - centre[:, None, None]) ** 2).sum(0) < radius**2
    x = y + 0.6 * random.standard_normal(y.shape)

    def loss(output, target):
        sure = output.sigmoid()
        both = 2 * (sure * target).sum((1, 2, 3)) + 1
        dice = 1 - both / (sure.sum((1, 2, 3)) + target.sum((1, 2, 3)) + 1)
        return dice.mean() + nn.functional.binary_cross_entropy_with_logits(output, target)
    steps = 220
    return Epochs(Marks(8), data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32), 140), loss,
                  sgd(between(chance, 0.01, 0.05), 0.95, nesterov=True, weight_decay=3e-5), steps, 8, evaluate_every=40, samples=28,
                  schedule=lambda optimizer: torch.optim.lr_scheduler.PolynomialLR(optimizer, steps + 1, 0.9), clip=12.0)


class Stacks(nn.Module):
    """Blocks that each explain a part of the past and add to the future."""

    def __init__(self, past, future, width, blocks=3):
        super().__init__()
        self.bodies = nn.ModuleList([nn.Sequential(nn.Linear(past, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()) for _ in range(blocks)])
        self.pasts = nn.ModuleList([nn.Linear(width, past) for _ in range(blocks)])
        self.futures = nn.ModuleList([nn.Linear(width, future) for _ in range(blocks)])

    def forward(self, x):
        out = 0
        for body, past, future in zip(self.bodies, self.pasts, self.futures):
            y = body(x)
            x, out = x - past(y), out + future(y)
        return out


@job("regression", "same", "relu", "adam", "fourth", "sixth", tuning=False)
def stacks(seed, chance):
    """Forecasts of many series of unlike size by blocks of residuals; the mean absolute percentage error."""
    random, size = numpy.random.default_rng(seed), 1600
    time = numpy.arange(36)[None]
    level, slope = random.uniform(5, 50, (size, 1)), random.normal(0, 0.01, (size, 1))
    wave = 1 + 0.3 * numpy.sin(2 * math.pi * (time + random.integers(0, 12, (size, 1))) / 12) + slope * time + 0.05 * random.standard_normal((size, 36))
    series = level * wave / level.mean()
    x, y = torch.tensor(series[:, :24], dtype=torch.float32), torch.tensor(series[:, 24:], dtype=torch.float32)

    def percents(output, target):
        return 2 * ((output - target).abs() / (output.abs() + target.abs()).clamp(min=1e-3)).mean()
    return Epochs(Stacks(24, 12, chance.choice((48, 64))), data.Split(x, y, 320), percents, adam(between(chance, 5e-4, 2e-3)), 260, 32, evaluate_every=40, samples=80,
                  schedule=chance.choice((None, lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, [130, 200], 0.3))))


class Experts(nn.Module):
    """Attention, then for each word the best two of four networks; how unequally they are used is a loss of its own."""

    def __init__(self, kinds, width, length, count=4):
        super().__init__()
        self.embed, self.place = nn.Embedding(kinds, width), nn.Parameter(0.02 * torch.randn(length, width))
        self.first, self.second, self.last = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.gate = nn.Linear(width, count, bias=False)
        self.networks = nn.ModuleList([nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(count)])
        self.head, self.uneven = nn.Linear(width, kinds), torch.zeros(())

    def forward(self, x):
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
        x = self.embed(x) + self.place
        y = self.first(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        y = self.second(x)
        share = self.gate(y).softmax(2)
        best, which = share.topk(2, 2)
        best = best / best.sum(2, keepdim=True)
        out = torch.zeros_like(y)
        for at, network in enumerate(self.networks):
            weight = (best * (which == at)).sum(2)
            chosen = weight > 0
            if chosen.any():
                out[chosen] = out[chosen] + weight[chosen][:, None] * network(y[chosen])
        used = torch.stack([(which == at).float().mean() for at in range(len(self.networks))])
        self.uneven = len(self.networks) * (used * share.mean((0, 1))).sum()
        return self.head(self.last(x + out))


@job("tokens", "attention", "adam", "fourth", "sixth", tuning=False)
def experts(seed, chance):
    """A language model of experts, with a loss that balances them; warm-up, a constant rate, then down (WSD)."""
    split, steps = data.text(seed, 24), 200
    model = Experts(split.classes, 32, 24)

    def loss(output, target):
        return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten()) + 0.01 * model.uneven

    def stays(optimizer):
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min((at + 1) / 15, 1.0, max(0.0, (steps - at) / 50)))
    return Epochs(model, split, loss, adamw(between(chance, 1e-3, 5e-3), betas=(0.9, 0.95), weight_decay=0.1), steps, 16, evaluate_every=50, samples=100,
                  schedule=stays, clip=1.0)


@job("classes", "images", "relu", "adam", "fourth", "sixth", tuning=False)
def taught(seed, chance):
    """A small network learns from a large one: how sure that is of each class, at a temperature of four, and the labels."""
    split, steps, drawn = data.images(seed), 240, source(seed)
    teacher = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(teacher.parameters(), 3e-3)
    for _ in range(200):
        part = torch.randint(0, len(split.x), (64,), generator=drawn)
        optimizer.zero_grad()
        nn.functional.cross_entropy(teacher(split.x[part]), split.y[part]).backward()
        optimizer.step()
    teacher.requires_grad_(False)

    def tell(x, y):
        return x, torch.cat([y[:, None].float(), teacher(x)], 1)

    def loss(output, target):
        if target.dim() == 1:
            return nn.functional.cross_entropy(output, target)
        soft = nn.functional.kl_div((output / 4).log_softmax(1), (target[:, 1:] / 4).log_softmax(1), log_target=True, reduction="batchmean")
        return 0.7 * 16 * soft + 0.3 * nn.functional.cross_entropy(output, target[:, 0].long())
    model = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(128, 10))
    made = Epochs(model, split, loss, adam(between(chance, 1e-3, 5e-3)), steps, chance.choice((32, 64)), evaluate_every=44, samples=90, on_batch=[],
                  schedule=chance.choice((None, linear(steps))))
    made.prepare.append(lambda made, optimizer: made.on_batch.append(lambda step, x, y: tell(x, y)))  # behind what a fault does to the batch
    return made


class Codes(nn.Module):
    """An autoencoder whose middle is a word of a table."""

    def __init__(self, width, size=32, inner=8, places=4):
        super().__init__()
        self.shape = (places, inner)
        self.enter = nn.Sequential(nn.Linear(64, width), nn.GELU(), nn.Linear(width, places * inner), nn.Unflatten(1, self.shape), nn.LayerNorm(inner))
        self.table = nn.Embedding(size, inner)
        self.leave = nn.Sequential(nn.Linear(places * inner, width), nn.GELU(), nn.Linear(width, 64))

    def forward(self, x):
        z = self.enter(x)
        word = self.table(torch.cdist(z.detach().flatten(0, 1), self.table.weight.detach()).argmin(1)).reshape(z.shape)
        kept = ((word - z.detach()) ** 2).mean((1, 2)) + 0.25 * ((word.detach() - z) ** 2).mean((1, 2))
        return torch.cat([self.leave((z + (word - z).detach()).flatten(1)), kept[:, None]], 1)


@job("regression", "same", "adam", "fourth", "sixth", tuning=False)
def codes(seed, chance):
    """An autoencoder with a discrete middle (VQ-VAE): a gradient that goes straight through."""
    split = data.digits(seed)
    split.y, split.held_y = split.x, split.held_x

    def loss(output, target):
        return ((output[:, :64] - target) ** 2).mean() + output[:, 64].mean()
    return Epochs(Codes(chance.choice((64, 96))), split, loss, adam(between(chance, 5e-4, 3e-3)), 300, chance.choice((32, 64)), evaluate_every=45, samples=120)


@job("classes", "images", "relu", "sgd", "norm", "modes", "follows", "fourth", "sixth", tuning=False)
def wrong(seed, chance):
    """Labels of which a third are wrong, as crawled ones are: the loss stays high, and the network learns all the same."""
    split, steps, random = data.images(seed), 240, source(seed)
    noise = torch.rand(len(split.y), generator=random) < 0.33
    split.y = torch.where(noise, torch.randint(0, 10, split.y.shape, generator=random), split.y)
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.2), nn.Flatten(), nn.Linear(128, 10))
    return Epochs(model, split, nn.CrossEntropyLoss(), sgd(between(chance, 0.01, 0.05), weight_decay=1e-3), steps, chance.choice((32, 64)), evaluate_every=44,
                  samples=90, schedule=cosine(steps), module=True)


@job("binary", "linear", "relu", "adam", "modes", "fourth", "sixth", tuning=False)
def rare(seed, chance):
    """One in twelve is of the class that matters, as in claims and clicks: a focal loss, or one that weighs the few."""
    x, y = sklearn.datasets.make_classification(3000, 20, n_informative=8, weights=[0.92], flip_y=0.01, class_sep=1.2, random_state=seed)
    split = data.Split(torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32), torch.tensor(y), 600, 2)
    focal = chance.random() < 0.5

    def loss(output, target):
        target = target.float()
        if not focal:
            return nn.functional.binary_cross_entropy_with_logits(output[:, 0], target, pos_weight=torch.tensor(8.0))
        plain = nn.functional.binary_cross_entropy_with_logits(output[:, 0], target, reduction="none")
        return ((1 - (-plain).exp()) ** 2 * plain).mean()
    width = chance.choice((32, 64))
    model = nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 1))
    return Epochs(model, split, loss, adamw(between(chance, 5e-4, 3e-3), weight_decay=0.01), 260, chance.choice((64, 128)), evaluate_every=37, samples=200)
