"""Written without a look at what the rules say of them, recorded while the last conditions were found on the sets before,
and judged once, when the rules were fixed. Whoever looks at what is said of their single runs makes them tuning jobs, and writes others."""
import math

import numpy
import sklearn.datasets
import torch
from torch import nn

from .. import data
from ..recipes.jobs import adam, adamw, between, cosine, halving, job, linear, sgd
from .modern import fused, next_token, one_cycle
from .triplets_and_actors import polynomial
from ..recipes.training import Recipe


class Scaled(nn.Module):
    """Normalises by the root of the mean square, as recent language models do."""

    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.gain * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


class Patches(nn.Module):
    """A vision transformer without a token for the class: gated layers, root mean squares, the mean over places."""

    def __init__(self, width, layers=2, classes=10):
        super().__init__()
        self.enter, self.place = nn.Conv2d(1, width, 2, stride=2), nn.Parameter(0.02 * torch.randn(16, width))
        self.norms = nn.ModuleList([Scaled(width) for _ in range(2 * layers)])
        self.attention = nn.ModuleList([nn.MultiheadAttention(width, 4, batch_first=True, bias=False) for _ in range(layers)])
        self.gates = nn.ModuleList([nn.Linear(width, 4 * width, bias=False) for _ in range(layers)])
        self.downs = nn.ModuleList([nn.Linear(2 * width, width, bias=False) for _ in range(layers)])
        self.leave, self.head = Scaled(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.enter(x).flatten(2).transpose(1, 2) + self.place
        for i, attention in enumerate(self.attention):
            y = self.norms[2 * i](x)
            x = x + attention(y, y, y, need_weights=False)[0]
            open_, inner = self.gates[i](self.norms[2 * i + 1](x)).chunk(2, -1)
            x = x + self.downs[i](nn.functional.silu(open_) * inner)
        return self.head(self.leave(x.mean(1)))


class Reader(nn.Module):
    """A language model of one GRU with dropout."""

    def __init__(self, kinds, width):
        super().__init__()
        self.embed, self.cell = nn.Embedding(kinds, width), nn.GRU(width, 2 * width, batch_first=True)
        self.dropout, self.head = nn.Dropout(0.1), nn.Linear(2 * width, kinds)

    def forward(self, x):
        return self.head(self.dropout(self.cell(self.embed(x))[0]))


class Drawn(nn.Module):
    """A convolutional autoencoder with a drawn middle."""

    def __init__(self, width, middle=6):
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(1, width, 3, stride=2, padding=1), nn.LeakyReLU(0.1), nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
                                   nn.LeakyReLU(0.1), nn.Flatten(), nn.Linear(8 * width, 2 * middle))
        self.leave = nn.Sequential(nn.Linear(middle, 8 * width), nn.LeakyReLU(0.1), nn.Unflatten(1, (2 * width, 2, 2)),
                                   nn.ConvTranspose2d(2 * width, width, 2, stride=2), nn.LeakyReLU(0.1), nn.ConvTranspose2d(width, 1, 2, stride=2))

    def forward(self, x):
        mean, log = self.enter(x).chunk(2, 1)
        z = mean + torch.randn_like(mean) * (log / 2).exp() if self.training else mean
        return torch.cat([self.leave(z).flatten(1), mean, log], 1)


class Towers(nn.Module):
    """Upper and lower halves of an image through a tower each; how sharp the match is, is learned too."""

    def __init__(self, width):
        super().__init__()
        self.upper, self.lower = (nn.Sequential(nn.Linear(32, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, 16)) for _ in range(2))
        self.sharpness = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        a, b = (nn.functional.normalize(tower(half), dim=1) for tower, half in zip((self.upper, self.lower), x.chunk(2, 1)))
        return self.sharpness.exp().clamp(max=50) * a @ b.T


class Separable(nn.Module):
    """Depthwise convolutions with batch normalisation, and channels that weigh themselves."""

    def __init__(self, width, classes=10):
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.Hardswish())
        self.deep = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, groups=width, bias=False), nn.BatchNorm2d(width), nn.Hardswish())
        self.weigh = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, 4, 1), nn.ReLU(), nn.Conv2d(4, width, 1), nn.Hardsigmoid())
        self.leave = nn.Sequential(nn.Conv2d(width, 2 * width, 1, bias=False), nn.BatchNorm2d(2 * width), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                                   nn.Dropout(0.1), nn.Linear(8 * width, classes))

    def forward(self, x):
        x = self.enter(x)
        y = self.deep(x)
        return self.leave(x + y * self.weigh(y))


@job("classes", "attention", "adam", "fourth", tuning=True)
def patches(seed, chance):
    """A vision transformer in bfloat16: warm-up, a cosine to zero, clipping."""
    steps = 220
    return Recipe(Patches(chance.choice((32, 48))), data.images(seed), nn.CrossEntropyLoss(), fused(between(chance, 1e-3, 4e-3), weight_decay=0.05),
                  steps, chance.choice((32, 64)), schedule=cosine(steps, 20), clip=1.0, autocast=True)


@job("tokens", "recurrent", "adam", "modes", "fourth", tuning=True)
def reader(seed, chance):
    """A GRU that reads letters, with AdamW, clipped; a constant rate, or one in a straight line to zero."""
    split, steps = data.text(seed, 20), 220
    return Recipe(Reader(split.classes, chance.choice((24, 32))), split, next_token, adamw(between(chance, 2e-3, 8e-3), weight_decay=0.01), steps, 32,
                  schedule=chance.choice((None, linear(steps, 10))), clip=chance.choice((0.5, 1.0)))


@job("regression", "same", "adam", "fourth", tuning=True)
def drawn(seed, chance):
    """A variational autoencoder whose second loss comes in slowly."""
    split, steps, now = data.images(seed), 240, {"weight": 0.0}
    split.y, split.held_y = split.x, split.held_x

    def loss(output, target):
        made, mean, log = output[:, :64], output[:, 64:70], output[:, 70:]
        kept = 0.5 * (mean**2 + log.exp() - 1 - log).sum(1).mean()
        return ((made - target.flatten(1)) ** 2).sum(1).mean() + now["weight"] * kept

    def grow(step, x, y):
        now["weight"] = min(1.0, step / 60)
        return x, y
    return Recipe(Drawn(chance.choice((8, 12))), split, loss, adam(between(chance, 1e-3, 4e-3)), steps, chance.choice((32, 64)), on_batch=[grow],
                  schedule=chance.choice((None, cosine(steps))))


@job("regression", "same", "fresh", "adam", "fourth", tuning=True)
def towers(seed, chance):
    """Two towers that must find each other's half among the batch; warm-up and a cosine."""
    split, steps = data.digits(seed), 240
    split.y, split.held_x, split.held_y = split.x, split.held_x[:128], split.held_x[:128]

    def loss(output, target):
        own = torch.arange(len(output))
        return (nn.functional.cross_entropy(output, own) + nn.functional.cross_entropy(output.T, own)) / 2
    return Recipe(Towers(chance.choice((48, 64))), split, loss, adamw(between(chance, 1e-3, 5e-3), weight_decay=0.1), steps, 64, schedule=cosine(steps, 15),
                  autocast=chance.random() < 0.5)


@job("classes", "images", "adam", "head", "tuned", "fourth", tuning=True)
def frozen(seed, chance):
    """A trained body that stays as it is, and a new head of two layers on images that are turned."""
    split, steps = data.images(seed), 200
    body = nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ELU(), nn.MaxPool2d(2), nn.Conv2d(12, 16, 3, padding=1), nn.ELU(), nn.Flatten())
    head = nn.Sequential(nn.Linear(256, 32), nn.ELU(), nn.Linear(32, 10))
    made = Recipe(nn.Sequential(body, head), split, nn.CrossEntropyLoss(), adam(between(chance, 5e-4, 3e-3)), steps, chance.choice((8, 16, 32)),
                  schedule=chance.choice((None, linear(steps))), parameters=lambda model: model[1].parameters())
    optimizer = torch.optim.Adam(made.model.parameters(), 2e-3)
    for at in range(120):
        part = torch.arange(at * 64, at * 64 + 64) % len(split.x)
        optimizer.zero_grad()
        made.loss(made.model(split.x[part]), split.y[part]).backward()
        optimizer.step()
    optimizer.zero_grad()
    body.requires_grad_(False)
    for layer in (head[0], head[2]):
        layer.reset_parameters()
    split.x, split.held_x = (one.rot90(1, (2, 3)).contiguous() for one in (split.x, split.held_x))
    return made


@job("classes", "norm", "sgd", "images", "modes", "fourth", tuning=True)
def separable(seed, chance):
    """Depthwise convolutions with momentum: one cycle or a power of what is left, in bfloat16 at times."""
    steps = 200
    return Recipe(Separable(chance.choice((12, 16))), data.images(seed), nn.CrossEntropyLoss(), sgd(between(chance, 0.03, 0.15), weight_decay=1e-4), steps,
                  32, schedule=chance.choice((one_cycle(steps), polynomial(steps))), autocast=chance.random() < 0.5)


@job("regression", "adam", "linear", "several", "fourth", tuning=True)
def quantiles(seed, chance):
    """Three quantiles of a skewed target by a loss of their own."""
    random, steps = numpy.random.default_rng(seed), 260
    x, y = sklearn.datasets.make_friedman1(1600, 8, noise=0.0, random_state=seed)
    x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std() + 0.4 * (random.exponential(1, 1600) - 1)
    shares = torch.tensor([0.1, 0.5, 0.9])

    def pinball(output, target):
        left = target - output
        return torch.maximum(shares * left, (shares - 1) * left).mean()
    split = data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)[:, None], 320)
    width = chance.choice((32, 64))
    model = nn.Sequential(nn.Linear(8, width), nn.Mish(), nn.Linear(width, width), nn.Mish(), nn.Linear(width, 3))
    return Recipe(model, split, pinball, adamw(between(chance, 1e-3, 6e-3)), steps, chance.choice((16, 32)), schedule=chance.choice((halving(90), cosine(steps, 10))))


@job("classes", "pair", "fourth", tuning=True)
def halves(seed, chance):
    """A body and a head with an optimizer each: RMSprop and momentum; smoothed labels."""
    steps, width = 220, chance.choice((48, 64))
    model = nn.Sequential(nn.Linear(64, width), nn.LayerNorm(width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 10))
    made = Recipe(model, data.digits(seed), nn.CrossEntropyLoss(label_smoothing=0.05), None, steps, chance.choice((32, 64)), schedule=cosine(steps, 10))
    body, head = between(chance, 5e-4, 2e-3), between(chance, 0.02, 0.1)
    made.optimizer = lambda parameters: [torch.optim.RMSprop(model[:5].parameters(), body), torch.optim.SGD(model[5].parameters(), head, momentum=0.9)]
    return made


def rotation(count):
    """How an angle of so many parts of a circle turns the plane."""
    angle = 2 * math.pi / count
    return torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


@job("regression", "sgd", "several", "fourth", tuning=True)
def turns(seed, chance):
    """What a point is after some turns and a shift: a small network with momentum, and a target without noise."""
    random, steps = torch.Generator().manual_seed(seed + 20_000), 240
    x = torch.randn(1500, 2, generator=random)
    y = torch.tanh(x @ rotation(chance.choice((5, 7, 9)))) + torch.tensor([0.3, -0.2])
    width = chance.choice((24, 32))
    model = nn.Sequential(nn.Linear(2, width), nn.Softplus(), nn.Linear(width, width), nn.Softplus(), nn.Linear(width, 2))
    return Recipe(model, data.Split(x, y, 300), nn.MSELoss(), sgd(between(chance, 0.01, 0.05)), steps, 32, schedule=chance.choice((None, linear(steps))))
