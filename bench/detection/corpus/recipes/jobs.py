"""The jobs. Each draws its settings (width, batch, learning rate, schedule) from the run's seed, so that many seeds are not one
run many times; a faulty run has the settings of its healthy twin."""
import dataclasses
import math
import random
import typing

import torch
from torch import nn

from .. import data
from . import models
from .training import Recipe


@dataclasses.dataclass(frozen=True)
class Job:
    """A family of trainings. ``traits`` say which faults make sense for it."""
    name: str
    make: typing.Callable  # (seed, random) → Recipe
    traits: frozenset
    tuning: bool  # thresholds were chosen with it in view; else only reported


JOBS = {}


def job(*traits, tuning):
    """Registers a function under its name."""
    def add(make):
        JOBS[make.__name__] = Job(make.__name__, make, frozenset(traits), tuning)
        return make
    return add


def recipe(name, seed):
    """The healthy recipe of a job's seed. Seeds torch as well, so that a twin starts from the same weights."""
    torch.manual_seed(seed)
    return JOBS[name].make(seed, random.Random(f"{name}/{seed}"))


def between(chance, low, high):
    """A number whose logarithm is uniform."""
    return math.exp(chance.uniform(math.log(low), math.log(high)))


# --- schedules -----------------------------------------------------------------------------------


def _lambda(function):
    return lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, function)


def cosine(steps, warm=0):
    """Linear warm-up, then a cosine down to zero."""
    return _lambda(lambda at: (at + 1) / (warm + 1) if at < warm
                   else 0.5 * (1 + math.cos(math.pi * min((at - warm) / max(steps - warm, 1), 1))))


def linear(steps, warm=0):
    """Linear warm-up, then a straight line to zero."""
    return _lambda(lambda at: (at + 1) / (warm + 1) if at < warm else max(0.0, 1 - (at - warm) / max(steps - warm, 1)))


def halving(every):
    """Half the rate from time to time."""
    return lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, every, 0.5)


def adam(rate, **more):
    """Made when the parameters are known."""
    return lambda parameters: torch.optim.Adam(parameters, rate, **more)


def adamw(rate, **more):
    """The same with decoupled weight decay."""
    return lambda parameters: torch.optim.AdamW(parameters, rate, **more)


def sgd(rate, momentum=0.9, **more):
    """Stochastic gradient descent."""
    return lambda parameters: torch.optim.SGD(parameters, rate, momentum=momentum, **more)


# --- classification ------------------------------------------------------------------------------


@job("classes", "relu", "adam", "linear", tuning=True)
def mlp_adam(seed, chance):
    """Images as vectors; a constant rate."""
    return Recipe(models.mlp(64, chance.choice((32, 64)), 10, chance.choice((2, 3))), data.digits(seed), nn.CrossEntropyLoss(),
                  adam(between(chance, 7e-4, 4e-3)), chance.choice((200, 300)), chance.choice((32, 64)))


@job("classes", "norm", "sgd", "linear", "modes", tuning=True)
def mlp_cosine(seed, chance):
    """Batch normalisation and dropout; a cosine to zero."""
    steps = chance.choice((200, 300))
    return Recipe(models.mlp(64, 64, 10, norm=True, dropout=chance.choice((0.1, 0.3))), data.digits(seed), nn.CrossEntropyLoss(),
                  sgd(between(chance, 0.01, 0.06), weight_decay=1e-4), steps, chance.choice((32, 64)), schedule=cosine(steps))


@job("classes", "relu", "adam", "images", tuning=True)
def conv_adam(seed, chance):
    """A small convolutional network."""
    return Recipe(models.conv(chance.choice((4, 8))), data.images(seed), nn.CrossEntropyLoss(), adam(between(chance, 1e-3, 5e-3)),
                  200, 32, schedule=chance.choice((None, halving(80))))


@job("classes", "norm", "sgd", "images", "modes", tuning=True)
def resnet_warm(seed, chance):
    """Residual blocks; warm-up and a cosine to zero, in bfloat16 where that pays."""
    steps = 160
    return Recipe(models.resnet(8), data.images(seed), nn.CrossEntropyLoss(), sgd(between(chance, 0.02, 0.1)), steps, 32,
                  schedule=cosine(steps, 16), autocast=chance.random() < 0.5)


@job("classes", "recurrent", "adam", tuning=True)
def lstm_clip(seed, chance):
    """Rows of images through an LSTM, with clipped gradients."""
    return Recipe(models.Recurrent(nn.LSTM, 8, 32, 10), data.rows(seed), nn.CrossEntropyLoss(), adam(between(chance, 2e-3, 8e-3)),
                  200, 32, clip=chance.choice((1.0, 5.0)))


@job("classes", "recurrent", "sgd", tuning=True)
def gru_linear(seed, chance):
    """The same through a GRU; a rate that falls in a straight line to zero."""
    steps = 240
    return Recipe(models.Recurrent(nn.GRU, 8, 32, 10), data.rows(seed), nn.CrossEntropyLoss(), sgd(between(chance, 0.05, 0.2)),
                  steps, 32, schedule=linear(steps), clip=1.0)


@job("tokens", "attention", "adam", "modes", tuning=True)
def letters(seed, chance):
    """A causal transformer on text; warm-up and a cosine to zero."""
    steps = 200
    split = data.text(seed)

    def loss(output, target):
        return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())
    return Recipe(models.Letters(split.classes, 32), split, loss, adamw(between(chance, 1e-3, 5e-3)), steps, 32,
                  schedule=cosine(steps, 20), clip=1.0)


@job("classes", "attention", "adam", tuning=True)
def attends(seed, chance):
    """A transformer encoder over rows; the loss is an average over five steps."""
    steps = 240
    return Recipe(models.Attends(32), data.rows(seed), nn.CrossEntropyLoss(), adamw(between(chance, 1e-3, 4e-3)), steps, 32,
                  schedule=chance.choice((None, linear(steps, 20))), log_every=5)


@job("binary", "tanh", "sgd", "linear", tuning=True)
def cancer_tanh(seed, chance):
    """Two classes, tanh layers."""
    def loss(output, target):
        return nn.functional.binary_cross_entropy_with_logits(output[:, 0], target.float())
    return Recipe(models.mlp(30, 32, 1, 2, nn.Tanh), data.cancer(seed), loss, sgd(between(chance, 0.01, 0.1)), 200, 16)


@job("classes", "relu", "sgd", "linear", tuning=True)
def wine_small(seed, chance):
    """Few samples: 138 to train on, 40 to evaluate with."""
    return Recipe(models.mlp(13, 32, 3), data.wine(seed), nn.CrossEntropyLoss(), sgd(between(chance, 0.005, 0.03)), 200, 16,
                  evaluate_every=10, schedule=chance.choice((None, cosine(200))))


@job("classes", "linear", "sgd", "single", tuning=True)
def logistic(seed, chance):
    """A linear model, one log per epoch."""
    steps = 400
    return Recipe(nn.Linear(64, 10), data.digits(seed), nn.CrossEntropyLoss(), sgd(between(chance, 0.003, 0.03), 0), steps, 64,
                  evaluate_every=22, log_every=22)


@job("classes", "relu", "adam", "linear", "tuned", tuning=True)
def finetune(seed, chance):
    """A trained network goes on with a small rate and small, noisy gains."""
    made = Recipe(models.mlp(64, 64, 10), data.digits(seed), nn.CrossEntropyLoss(), adamw(between(chance, 2e-5, 2e-4)),
                  240, chance.choice((8, 16)), schedule=chance.choice((None, linear(240, 20), cosine(240))))
    _pretrain(made, seed, chance.choice((60, 150)))
    return made


@job("classes", "images", "adam", "head", "tuned", tuning=True)
def finetune_head(seed, chance):
    """Only a new head is trained, on frozen features."""
    made = Recipe(models.conv(8, norm=True), data.images(seed), nn.CrossEntropyLoss(), adam(between(chance, 1e-3, 4e-3)), 200, 16,
                  parameters=lambda model: model[-1].parameters())
    _pretrain(made, seed, 120)
    made.model[:-1].requires_grad_(False)
    made.model[-1].reset_parameters()
    return made


def _pretrain(made, seed, steps):
    random = torch.Generator().manual_seed(seed + 10_000)
    optimizer = torch.optim.Adam(made.model.parameters(), 2e-3)
    for _ in range(steps):
        part = torch.randint(0, len(made.split.x), (64,), generator=random)
        optimizer.zero_grad()
        made.loss(made.model(made.split.x[part]), made.split.y[part]).backward()
        optimizer.step()
    optimizer.zero_grad()  # what is frozen next keeps no gradient


# --- regression, reconstruction ------------------------------------------------------------------


@job("regression", "relu", "adam", "linear", tuning=True)
def diabetes(seed, chance):
    """Most of the target is noise, and batches are small."""
    return Recipe(models.mlp(10, 16, 1, chance.choice((1, 2))), data.diabetes(seed), nn.MSELoss(), adam(between(chance, 5e-4, 3e-3)),
                  200, chance.choice((8, 16, 32)), schedule=chance.choice((None, cosine(200))))


@job("regression", "linear", "sgd", "single", tuning=True)
def ridge(seed, chance):
    """A linear regression with decay."""
    return Recipe(nn.Linear(10, 1), data.diabetes(seed), nn.MSELoss(), sgd(between(chance, 0.003, 0.02), 0, weight_decay=0.01), 200,
                  chance.choice((8, 16)), schedule=chance.choice((None, linear(200))))


@job("regression", "relu", "adam", "linear", "same", tuning=True)
def autoencoder(seed, chance):
    """Images through a narrow middle."""
    made = Recipe(models.autoencoder(64, chance.choice((8, 16))), data.digits(seed), nn.MSELoss(), adam(between(chance, 1e-3, 4e-3)),
                  240, 32, schedule=chance.choice((None, cosine(240))))
    made.split.y, made.split.held_y = made.split.x, made.split.held_x
    return made
