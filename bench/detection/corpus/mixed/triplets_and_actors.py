"""Jobs that no condition was chosen with when they were first judged, the third set. They were looked at since, and are tuning jobs."""
import math

import numpy
import torch
from torch import nn

from .. import data
from .waves_and_mixers import Mixer
from ..recipes.jobs import adam, adamw, between, cosine, job, sgd
from .modern import fused, next_token
from ..recipes.training import Recipe


def restarts(first, factor=2):
    """A cosine that starts anew, each time for `factor` times as long."""
    return lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, first, factor)


def decaying(share):
    """The same share of the rate less at each step."""
    return lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, share)


def polynomial(steps, power=0.9):
    """Down to zero, as segmentation networks are trained."""
    return lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: max(0.0, 1 - at / steps) ** power)


class Noise(nn.Module):
    """A U of convolutions that says which noise was added to an image; the time of diffusion is the second channel."""

    def __init__(self, width):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(8, 2 * width), nn.SiLU(), nn.Linear(2 * width, 2 * width))
        self.enter, self.first = nn.Conv2d(1, width, 3, padding=1), self._block(width, width)
        self.shrink, self.middle = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), self._block(2 * width, 2 * width)
        self.grow, self.second = nn.Upsample(scale_factor=2), self._block(3 * width, width)
        self.leave = nn.Conv2d(width, 1, 3, padding=1)

    @staticmethod
    def _block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(4, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1))

    def forward(self, x):
        angle = x[:, 1, :1, 0] * torch.exp(torch.linspace(0, 4, 4))
        time = self.time(torch.cat([angle.sin(), angle.cos()], 1))[:, :, None, None]
        first = self.enter(x[:, :1])
        first = first + self.first(first)
        low = self.shrink(first) + time
        low = low + self.middle(low)
        return self.leave(self.second(torch.cat([first, self.grow(low)], 1)))


class Words(nn.Module):
    """A language model of two LSTM layers, with dropout between them."""

    def __init__(self, kinds, width):
        super().__init__()
        self.embed, self.cell = nn.Embedding(kinds, width), nn.LSTM(width, width, 2, batch_first=True, dropout=0.2)
        self.dropout, self.head = nn.Dropout(0.2), nn.Linear(width, kinds)

    def forward(self, x):
        return self.head(self.dropout(self.cell(self.embed(x))[0]))


class Actor(nn.Module):
    """What to do, and how much that is worth; the last column is the worth."""

    def __init__(self, width):
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 10))
        self.worth = nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x):
        return torch.cat([self.policy(x), self.worth(x)], 1)


@job("regression", "same", "fresh", "adam", "third", tuning=True)
def unet(seed, chance):
    """Diffusion on images: warm-up and a constant rate, in bfloat16 at times; the loss falls early and is noise from then on."""
    split, steps = data.images(seed), 240
    random = torch.Generator().manual_seed(seed + 20_000)

    def noised(x):
        time = torch.rand(len(x), 1, 1, 1, generator=random)
        noise, angle = torch.randn(x.shape, generator=random), time * math.pi / 2
        return torch.cat([angle.cos() * x + angle.sin() * noise, time.expand_as(x)], 1), noise
    split.held_x, split.held_y = noised(split.held_x)
    split.y = split.x

    def warm(optimizer):
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min(1.0, (at + 1) / 20))
    return Recipe(Noise(chance.choice((8, 16))), split, nn.MSELoss(), fused(between(chance, 5e-4, 3e-3)), steps, chance.choice((16, 32)), schedule=warm,
                  autocast=chance.random() < 0.5, clip=chance.choice((None, 1.0)), on_batch=[lambda step, x, y: noised(x)])


@job("tokens", "recurrent", "sgd", "modes", "third", tuning=True)
def words(seed, chance):
    """An LSTM over letters with momentum, clipped gradients and a rate that decays at each step."""
    split = data.text(seed)
    return Recipe(Words(split.classes, chance.choice((32, 48))), split, next_token, sgd(between(chance, 0.3, 1.5)), 240, 32,
                  schedule=chance.choice((None, decaying(0.99))), clip=chance.choice((0.25, 1.0)))


@job("regression", "same", "relu", "adam", "third", "labelled", tuning=True)
def triplets(seed, chance):
    """Embeddings of images: the same digit near, others farther by a margin; a cosine with warm restarts."""
    split, steps = data.images(seed), 280

    def loss(output, target):
        z = nn.functional.normalize(output, dim=1)
        apart = 2 - 2 * z @ z.T
        same = target[:, None] == target[None]
        far, near = (apart - 9 * ~same).amax(1), (apart + 9 * same).amin(1)
        return (far - near + 0.3).relu().mean()
    split.held_x, split.held_y = split.held_x[:128], split.held_y[:128]
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 16))
    return Recipe(model, split, loss, adamw(between(chance, 5e-4, 3e-3)), steps, chance.choice((32, 64)), evaluate_every=40, schedule=restarts(40))


@job("regression", "sgd", "linear", "third", tuning=True)
def outliers(seed, chance):
    """A regression whose targets have outliers, most of them early; Huber's loss, and a rate that falls as a power of what is left."""
    random, steps = numpy.random.default_rng(seed), 300
    x = random.standard_normal((1600, 12))
    y = numpy.tanh(x[:, 0] + x[:, 1] * x[:, 2]) + 0.5 * x[:, 3] + 0.2 * random.standard_t(2, 1600)
    split = data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)[:, None], 300)
    drawn = torch.Generator().manual_seed(seed + 20_000)

    def early(step, x, y):
        return x, y + torch.randn(y.shape, generator=drawn) * max(0.0, 1 - step / 60)
    width = chance.choice((24, 48))
    model = nn.Sequential(nn.Linear(12, width), nn.ELU(), nn.Linear(width, width), nn.ELU(), nn.Linear(width, 1))
    return Recipe(model, split, nn.HuberLoss(), sgd(between(chance, 0.003, 0.03), nesterov=True), steps, chance.choice((8, 16, 32)),
                  schedule=chance.choice((restarts(60), polynomial(steps))), on_batch=[early])


@job("classes", "adam", "tuned", "modes", "third", "pair", tuning=True)
def biases(seed, chance):
    """A trained network goes on with its biases, norms and head only, on images that are turned by a quarter."""
    steps = 200
    made = Recipe(Mixer(24), data.images(seed), nn.CrossEntropyLoss(), adamw(between(chance, 1e-3, 5e-3)), steps, chance.choice((8, 16)),
                  schedule=cosine(steps, 10), parameters=lambda model: [one for one in model.parameters() if one.requires_grad])
    optimizer = torch.optim.AdamW(made.model.parameters(), 3e-3)
    for at in range(150):
        part = torch.arange(at * 64, at * 64 + 64) % len(made.split.x)
        optimizer.zero_grad()
        made.loss(made.model(made.split.x[part]), made.split.y[part]).backward()
        optimizer.step()
    optimizer.zero_grad()
    for name, one in made.model.named_parameters():
        one.requires_grad_(one.dim() == 1 or name.startswith("head"))
    made.split.x, made.split.held_x = (one.rot90(1, (2, 3)).contiguous() for one in (made.split.x, made.split.held_x))
    return made


@job("pair", "third", "labelled", tuning=True)
def actor(seed, chance):
    """One step of reinforcement: say the digit, be paid for it. An optimizer for what is done and one for what it is worth."""
    width, steps = chance.choice((48, 64)), 300
    drawn = torch.Generator().manual_seed(seed + 20_000)

    def loss(output, target):
        chances, worth = output[:, :10].log_softmax(1), output[:, 10]
        done = torch.multinomial(chances.exp().detach().nan_to_num(0.1, 0.1, 0.1) + 1e-6, 1, generator=drawn)[:, 0]
        paid = (done == target).float()
        gain = paid - worth.detach()
        said = chances.gather(1, done[:, None])[:, 0]
        return -(gain * said).mean() + 0.5 * ((worth - paid) ** 2).mean() + 0.01 * (chances.exp() * chances).sum(1).mean()
    made = Recipe(Actor(width), data.digits(seed), loss, None, steps, 64, clip=1.0, schedule=cosine(steps, 10))
    first, second = between(chance, 2e-3, 1e-2), between(chance, 1e-3, 5e-3)
    policy, worth = made.model.policy, made.model.worth
    made.optimizer = lambda parameters: [torch.optim.Adam(policy.parameters(), first), torch.optim.RMSprop(worth.parameters(), second)]
    return made


@job("classes", "adam", "linear", "third", "whole", tuning=True)
def whole(seed, chance):
    """The whole data set at each step, as small tables are trained; a constant rate."""
    split = data.wine(seed)
    width = chance.choice((16, 32))
    model = nn.Sequential(nn.Linear(13, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 3))
    return Recipe(model, split, nn.CrossEntropyLoss(), adam(between(chance, 5e-4, 3e-3)), 200, len(split.x))
