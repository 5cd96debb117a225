"""Ten thousand steps each, to see that nothing cries in a run that goes well for long: rates that fall to zero, cosines that start anew, a
plateau of the rate and a late fall, the same order of the samples in every epoch. They are healthy at their end too: their batches are new ones,
or dropout and noise keep them from being learned by heart."""
import math

import torch
from torch import nn

from .. import data
from ..recipes import modern_models
from ..recipes.jobs import adamw, between, cosine, job, sgd
from .modern import smooth
from .triplets_and_actors import polynomial, restarts
from ..recipes.training import Recipe

STEPS, EVALUATE = 10_000, 500


def _noise(seed, size):
    random = torch.Generator().manual_seed(seed + 20_000)
    return lambda step, x, y: (x + size * torch.randn(x.shape, generator=random), y)


@job("long", tuning=False)
def long_cosine(seed, chance):
    """Diffusion, whose loss is noise around its floor for nine tenths of the run; a cosine to zero."""
    split = data.digits(seed)
    random = torch.Generator().manual_seed(seed + 20_000)

    def noised(x):
        time, noise = torch.rand(len(x), 1, generator=random), torch.randn(x.shape, generator=random)
        angle = time * math.pi / 2
        return torch.cat([angle.cos() * x + angle.sin() * noise, time], 1), noise
    split.held_x, split.held_y = noised(split.held_x)
    split.y = split.x
    return Recipe(modern_models.Denoiser(64, 48), split, nn.MSELoss(), adamw(between(chance, 5e-4, 3e-3)), STEPS, 32, evaluate_every=EVALUATE,
                  schedule=cosine(STEPS, 500), on_batch=[lambda step, x, y: noised(x)])


@job("long", "classes", tuning=False)
def long_restarts(seed, chance):
    """Noisy images and dropout; a cosine that starts anew at 1000, 3000 and 7000 steps."""
    model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10))
    return Recipe(model, data.digits(seed), smooth, sgd(between(chance, 0.01, 0.06), weight_decay=5e-4), STEPS, 32, evaluate_every=EVALUATE,
                  schedule=restarts(1000), on_batch=[_noise(seed, 0.5)])


@job("long", tuning=False)
def long_stable(seed, chance):
    """A regression on ever new samples of a teacher: warm-up, the same rate for most of the run, and a straight fall to zero in its last fifth."""
    torch.manual_seed(seed)
    teacher = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1))
    random = torch.Generator().manual_seed(seed + 20_000)
    noise = chance.choice((0.05, 0.3))

    def drawn(count):
        x = torch.randn(count, 16, generator=random)
        with torch.no_grad():
            return x, teacher(x) + noise * torch.randn(count, 1, generator=random)
    x, y = drawn(1024)
    split = data.Split(x, y, 512)

    def rate(at):
        return min(1.0, (at + 1) / 200, max(0.0, (STEPS - at) / (0.2 * STEPS)))
    return Recipe(nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 1)), split, nn.MSELoss(), adamw(between(chance, 5e-4, 3e-3)), STEPS, 32,
                  evaluate_every=EVALUATE, schedule=lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, rate),
                  on_batch=[lambda step, x, y: drawn(32)], clip=1.0)


@job("long", "classes", tuning=False)
def long_epochs(seed, chance):
    """A convolutional network that sees its samples in the same order in each of some hundred epochs, with dropout; down to zero as a power."""
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.3), nn.Flatten(), nn.Linear(64, 10))
    made = Recipe(model, data.images(seed), smooth, sgd(between(chance, 0.005, 0.03), weight_decay=1e-3), STEPS, 32, evaluate_every=EVALUATE,
                  schedule=polynomial(STEPS))
    made.shuffle = False
    return made
