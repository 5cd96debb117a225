"""Jobs of today: transformers from scratch and fine-tuned, diffusion, contrastive and variational training, forecasts, two optimizers.
Warm-up, cosine to zero, one-cycle, plateaus, mixed precision, label smoothing, clipping, averages of several batches."""
import functools
import inspect
import math

import numpy
import sklearn.datasets
import torch
from torch import nn

from .. import data
from ..recipes import models
from ..recipes import modern_models
from ..recipes.jobs import adam, adamw, between, cosine, halving, job, linear, recipe, sgd
from ..recipes.training import Recipe


def fused(rate, **more):
    """AdamW as it is run today: fused where torch can, betas of language models."""
    if "fused" in inspect.signature(torch.optim.AdamW).parameters and torch.__version__ >= "2":
        more["fused"] = True
    return lambda parameters: torch.optim.AdamW(parameters, rate, betas=(0.9, 0.95), **more)


def one_cycle(steps):
    """Up to the optimizer's rate and down again within the run."""
    return lambda optimizer: torch.optim.lr_scheduler.OneCycleLR(optimizer, [group["lr"] for group in optimizer.param_groups],
                                                                 total_steps=steps + 1)


def smooth(output, target):
    """Cross-entropy against labels that leave a tenth to the others."""
    return nn.functional.cross_entropy(output, target, label_smoothing=0.1)


def next_token(output, target):
    """Cross-entropy at each place."""
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


@job("tokens", "attention", "adam", "modes", tuning=True)
def decoder(seed, chance):
    """A language model from scratch in bfloat16: warm-up, cosine to a tenth or to zero, clipping."""
    steps = chance.choice((240, 320))
    split = data.text(seed)
    return Recipe(modern_models.Decoder(split.classes, chance.choice((32, 48))), split, next_token,
                  fused(between(chance, 1e-3, 4e-3), weight_decay=0.1), steps, 32, schedule=cosine(steps, 20), clip=1.0, autocast=True)


@job("classes", "attention", "adam", "modes", tuning=True)
def vision(seed, chance):
    """A vision transformer with smoothed labels."""
    steps = chance.choice((240, 300))
    return Recipe(modern_models.Vision(32), data.images(seed), smooth, adamw(between(chance, 1e-3, 3e-3), weight_decay=0.05), steps,
                  64, schedule=cosine(steps, 24), autocast=chance.random() < 0.5, clip=1.0)


@job("classes", "images", "norm", "adam", tuning=True)
def convnext(seed, chance):
    """Depthwise convolutions, residual paths that start nearly closed."""
    steps = 240
    return Recipe(modern_models.wide(16), data.images(seed), smooth, adamw(between(chance, 2e-3, 8e-3), weight_decay=0.05), steps, 32,
                  schedule=chance.choice((one_cycle(steps), cosine(steps, 12))))


@job("classes", "attention", "adam", "tuned", "modes", tuning=True)
def lora(seed, chance):
    """A trained vision transformer goes on with low-rank adapters only, on turned images."""
    steps = 240
    made = Recipe(modern_models.Vision(32), data.images(seed), nn.CrossEntropyLoss(), adamw(between(chance, 3e-4, 2e-3)), steps,
                  chance.choice((8, 16)), schedule=chance.choice((linear(steps, 12), cosine(steps, 12))), clip=1.0,
                  parameters=lambda model: [one for one in model.parameters() if one.requires_grad])
    optimizer = torch.optim.AdamW(made.model.parameters(), 2e-3)
    random = torch.Generator().manual_seed(seed + 10_000)
    for _ in range(chance.choice((80, 160))):
        part = torch.randint(0, len(made.split.x), (64,), generator=random)
        optimizer.zero_grad()
        made.loss(made.model(made.split.x[part]), made.split.y[part]).backward()
        optimizer.step()
    optimizer.zero_grad()
    modern_models.adapt(made.model)
    made.split.x, made.split.held_x = made.split.x.flip(2), made.split.held_x.flip(2)
    return made


@job("classes", "attention", "adam", "tuned", "modes", tuning=True)
def full_tune(seed, chance):
    """All weights of a trained vision transformer go on at a small rate, with a new head and small batches."""
    made = recipe("vision", seed)
    steps = 240
    optimizer = torch.optim.AdamW(made.model.parameters(), 2e-3)
    for at in range(100):
        part = torch.arange(at * 32, at * 32 + 32) % len(made.split.x)
        optimizer.zero_grad()
        made.loss(made.model(made.split.x[part]), made.split.y[part]).backward()
        optimizer.step()
    made.model.head.reset_parameters()
    made.steps, made.batch, made.autocast = steps, chance.choice((8, 16)), chance.random() < 0.5
    made.optimizer, made.schedule = fused(between(chance, 5e-5, 3e-4)), linear(steps, 24)
    return made


@job("regression", "same", "fresh", "adam", tuning=True)
def denoiser(seed, chance):
    """Diffusion: guess the noise that was added; the loss falls early and is noise from then on."""
    split, steps = data.digits(seed), 300
    random = torch.Generator().manual_seed(seed + 20_000)

    def noised(x):
        time = torch.rand(len(x), 1, generator=random)
        noise = torch.randn(x.shape, generator=random)
        angle = time * math.pi / 2
        return torch.cat([angle.cos() * x + angle.sin() * noise, time], 1), noise
    split.held_x, split.held_y = noised(split.held_x)
    split.y = split.x
    return Recipe(modern_models.Denoiser(64, 64), split, nn.MSELoss(), fused(between(chance, 5e-4, 3e-3)), steps, chance.choice((32, 64)),
                  schedule=chance.choice((None, linear(steps, 30), cosine(steps, 30))), autocast=chance.random() < 0.5,
                  on_batch=[lambda step, x, y: noised(x)], evaluate_every=30)


@job("regression", "same", "fresh", "relu", "adam", "linear", tuning=True)
def contrastive(seed, chance):
    """Two views of each image, which must find each other among the batch."""
    split, steps = data.digits(seed), 240
    random = torch.Generator().manual_seed(seed + 20_000)

    def views(x):
        pair = x.repeat_interleave(2, 0)
        pair = pair + 0.3 * torch.randn(pair.shape, generator=random)
        return pair * (torch.rand(pair.shape, generator=random) > 0.2), pair

    def loss(output, target):
        z = nn.functional.normalize(output, dim=1)
        a, b = z[0::2], z[1::2]
        return nn.functional.cross_entropy(a @ b.T / 0.2, torch.arange(len(a)))
    split.held_x, split.held_y = views(split.held_x[:128])
    split.y = split.x
    return Recipe(models.mlp(64, 64, 32), split, loss, adamw(between(chance, 5e-4, 3e-3)), steps, 64, schedule=cosine(steps, 12),
                  on_batch=[lambda step, x, y: views(x)])


@job("regression", "same", "relu", "adam", tuning=True)
def variational(seed, chance):
    """An autoencoder with a drawn middle: two parts of a loss against each other."""
    split, steps = data.digits(seed), 300
    split.y, split.held_y = split.x, split.held_x

    def loss(output, target):
        made, mean, log = output[:, :64], output[:, 64:72], output[:, 72:]
        kept = -0.5 * (1 + log - mean**2 - log.exp()).sum(1).mean()
        return ((made - target)**2).sum(1).mean() + 0.5 * kept
    return Recipe(modern_models.Variational(64, 8), split, loss, adam(between(chance, 1e-3, 3e-3)), steps, 64,
                  schedule=chance.choice((None, halving(100))))


@functools.lru_cache(maxsize=8)
def _series(seed):
    random = numpy.random.default_rng(seed)
    at = numpy.arange(3000)
    wave = sum(random.uniform(0.3, 1) * numpy.sin(2 * numpy.pi * at / period + random.uniform(0, 6)) for period in (24, 50, 168))
    return wave + 0.3 * random.standard_normal(len(at))


@job("regression", "same", "recurrent", "adam", tuning=True)
def forecast(seed, chance):
    """The next values of a noisy series through a GRU; one cycle, clipped, a loss that forgives outliers."""
    wave, steps = _series(seed), 240
    windows = numpy.lib.stride_tricks.sliding_window_view(wave, 28)
    x, y = torch.tensor(windows[:, :24, None], dtype=torch.float32), torch.tensor(windows[:, 24:], dtype=torch.float32)
    return Recipe(modern_models.Forecast(32, 4), data.Split(x.clone(), y.clone(), 400), nn.SmoothL1Loss(),
                  adamw(between(chance, 2e-3, 1e-2)), steps, 32, schedule=one_cycle(steps), clip=1.0)


@job("regression", "relu", "norm", "adam", "linear", "modes", tuning=True)
def tabular(seed, chance):
    """A made-up table with a tenth of noise; normalisation, dropout, a rate that halves."""
    x, y = sklearn.datasets.make_friedman1(2000, 10, noise=chance.choice((0.5, 2.0)), random_state=seed)
    x, y = (x - x.mean(0)) / x.std(0), (y - y.mean()) / y.std()
    split = data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32)[:, None], 400)
    steps = 300
    return Recipe(models.mlp(10, 64, 1, 2, norm=True, dropout=0.1), split, nn.HuberLoss(), adamw(between(chance, 1e-3, 6e-3)), steps,
                  chance.choice((32, 64)), schedule=chance.choice((halving(100), cosine(steps))))


@job("regression", "images", "same", "relu", "sgd", tuning=True)
def segments(seed, chance):
    """Which points of a noisy image are ink: one yes or no per point, with Nesterov's momentum."""
    split, steps = data.images(seed), 200
    random = torch.Generator().manual_seed(seed + 20_000)
    split.y, split.held_y = (split.x > 0).float(), (split.held_x > 0).float()
    split.x = split.x + 0.5 * torch.randn(split.x.shape, generator=random)
    split.held_x = split.held_x + 0.5 * torch.randn(split.held_x.shape, generator=random)
    return Recipe(modern_models.Segments(8), split, nn.BCEWithLogitsLoss(), sgd(between(chance, 0.03, 0.2), nesterov=True), steps, 16,
                  schedule=cosine(steps, 10), autocast=chance.random() < 0.3)


@job("classes", "recurrent", "pair", tuning=True)
def two_parts(seed, chance):
    """One model, two optimizers: momentum for the recurrent body, AdamW for the head."""
    steps = 240
    made = Recipe(models.Recurrent(nn.GRU, 8, 48, 10), data.rows(seed), nn.CrossEntropyLoss(), None, steps, 32, clip=1.0,
                  schedule=linear(steps, 12), log_every=chance.choice((1, 1, 10)))
    body, head = between(chance, 0.03, 0.15), between(chance, 1e-3, 5e-3)
    cell, last = made.model.cell, made.model.head
    made.optimizer = lambda parameters: [torch.optim.SGD(cell.parameters(), body, momentum=0.9, nesterov=True),
                                         torch.optim.AdamW(last.parameters(), head)]
    return made


@job("classes", "attention", "adam", tuning=True)
def gathers(seed, chance):
    """An encoder whose updates gather four batches, as memory demands."""
    steps = 160
    made = Recipe(models.Attends(32), data.rows(seed), nn.CrossEntropyLoss(), fused(between(chance, 2e-3, 6e-3)), steps, 16,
                  schedule=cosine(steps, 16), clip=1.0)
    made.gathers = 4
    return made
