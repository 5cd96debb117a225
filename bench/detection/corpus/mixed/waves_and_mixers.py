"""Jobs that no condition was chosen with when they were first judged. They were looked at since, and are tuning jobs."""
import numpy
import sklearn.datasets
import torch
from torch import nn

from .. import data
from ..recipes.jobs import adamw, between, cosine, halving, job, linear, sgd
from .modern import fused, one_cycle, smooth
from ..recipes.training import Recipe


class Mixer(nn.Module):
    """Patches of 2 × 2 through layers over places and over channels by turns, without attention."""

    def __init__(self, width, layers=2, classes=10):
        super().__init__()
        self.patch = nn.Conv2d(1, width, 2, stride=2)
        self.places = nn.ModuleList([self._layers(16, 32) for _ in range(layers)])
        self.channels = nn.ModuleList([self._layers(width, 2 * width) for _ in range(layers)])
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2 * layers)])
        self.dropout, self.head = nn.Dropout(0.1), nn.Linear(width, classes)

    @staticmethod
    def _layers(size, inner):
        return nn.Sequential(nn.Linear(size, inner), nn.GELU(), nn.Linear(inner, size))

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        for i, (place, channel) in enumerate(zip(self.places, self.channels)):
            x = x + self.dropout(place(self.norms[2 * i](x).transpose(1, 2)).transpose(1, 2))
            x = x + self.dropout(channel(self.norms[2 * i + 1](x)))
        return self.head(x.mean(1))


class Transducer(nn.Module):
    """Reads letters with one recurrent network and writes with another that starts from its state."""

    def __init__(self, kinds, width, length):
        super().__init__()
        self.embed, self.place = nn.Embedding(kinds, width), nn.Parameter(torch.randn(length, width) * 0.3)
        self.read, self.write = nn.GRU(width, width, batch_first=True), nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, kinds)

    def forward(self, x):
        _, state = self.read(self.embed(x))
        return self.head(self.write(self.place.expand(len(x), -1, -1).contiguous(), state)[0])


class Gated(nn.Module):
    """A table through residual layers, each with a gate of its own."""

    def __init__(self, inputs, width, layers=3):
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(layers)])
        self.bodies = nn.ModuleList([nn.Linear(width, 2 * width) for _ in range(layers)])
        self.glu, self.leave = nn.GLU(), nn.Linear(width, 1)

    def forward(self, x):
        x = self.enter(x)
        for norm, body in zip(self.norms, self.bodies):
            x = x + self.glu(body(norm(x)))
        return self.leave(x)[:, 0]


def dilated(width, classes=10):
    """Convolutions along a series whose reach doubles with each."""
    layers, size = [], 1
    for reach in (1, 2, 4, 8):
        layers += [nn.Conv1d(size, width, 3, padding=reach, dilation=reach), nn.BatchNorm1d(width), nn.SiLU()]
        size = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(4 * width, classes))


@job("classes", "adam", "modes", tuning=True)
def mixer(seed, chance):
    """Layers over places and channels; warm-up and a cosine to zero, smoothed labels, a loss that is a function."""
    steps = chance.choice((240, 300))
    return Recipe(Mixer(chance.choice((24, 32))), data.images(seed), smooth, adamw(between(chance, 1e-3, 5e-3), weight_decay=0.05), steps,
                  chance.choice((32, 64)), schedule=cosine(steps, 20))


@job("tokens", "recurrent", "adam", tuning=True)
def transduce(seed, chance):
    """From sequence to sequence: writes a word backwards."""
    split, steps = data.text(seed, 6), 300
    split.y, split.held_y = split.x.flip(1), split.held_x.flip(1)

    def loss(output, target):
        return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())
    return Recipe(Transducer(split.classes, chance.choice((48, 64)), 6), split, loss, fused(between(chance, 2e-3, 8e-3)), steps, 32,
                  schedule=chance.choice((None, linear(steps, 15))), clip=1.0)


@job("classes", "norm", "sgd", "images", "modes", tuning=True)
def waves(seed, chance):
    """Images read as one long line; Nesterov's momentum, a rate that halves."""
    return Recipe(dilated(chance.choice((12, 16))), data.digits(seed, (1, 64)), nn.CrossEntropyLoss(),
                  sgd(between(chance, 0.02, 0.1), nesterov=True, weight_decay=5e-4), 240, 32, schedule=halving(80))


@job("binary", "adam", tuning=True)
def gated(seed, chance):
    """Two classes of a table; one cycle, a yes or no per sample through a loss that is a function."""
    steps = 240

    def loss(output, target):
        return nn.functional.binary_cross_entropy_with_logits(output, target.float())
    return Recipe(Gated(30, chance.choice((16, 24))), data.cancer(seed), loss, adamw(between(chance, 1e-3, 5e-3), weight_decay=0.01), steps,
                  chance.choice((16, 32)), schedule=one_cycle(steps))


@job("classes", "images", "norm", "adam", "tuned", "pair", "modes", tuning=True)
def tune_groups(seed, chance):
    """A network that knows half of the classes goes on with all: a small rate for its body, a larger one for the new head."""
    steps = 200
    made = Recipe(dilated(16), data.digits(seed, (1, 64)), nn.CrossEntropyLoss(), None, steps, chance.choice((8, 16)),
                  schedule=linear(steps, 20), autocast=chance.random() < 0.5)
    known = torch.nonzero(made.split.y < 5).flatten()
    optimizer = torch.optim.AdamW(made.model.parameters(), 3e-3)
    for at in range(100):
        part = known[torch.arange(at * 32, at * 32 + 32) % len(known)]
        optimizer.zero_grad()
        made.loss(made.model(made.split.x[part]), made.split.y[part]).backward()
        optimizer.step()
    optimizer.zero_grad()
    body, head = between(chance, 1e-4, 5e-4), between(chance, 1e-3, 3e-3)
    made.model[-1].reset_parameters()
    first, last = made.model[:-1], made.model[-1]
    made.optimizer = lambda parameters: torch.optim.AdamW([{"params": first.parameters(), "lr": body},
                                                           {"params": last.parameters(), "lr": head}])
    return made


@job("regression", "adam", tuning=True)
def counts(seed, chance):
    """How many of something: the logarithm of a mean, from a made-up table."""
    x, y = sklearn.datasets.make_friedman1(1600, 8, noise=0.0, random_state=seed)
    x, rate = (x - x.mean(0)) / x.std(0), numpy.exp((y - y.mean()) / y.std() * 0.8)
    y = numpy.random.default_rng(seed).poisson(rate)
    split = data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32), 300)
    steps = 240
    model = nn.Sequential(nn.Linear(8, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1), nn.Flatten(0))
    return Recipe(model, split, nn.PoissonNLLLoss(), adamw(between(chance, 1e-3, 6e-3)), steps, chance.choice((32, 64)),
                  schedule=chance.choice((None, cosine(steps, 12))))
