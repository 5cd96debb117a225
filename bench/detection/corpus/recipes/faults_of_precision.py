"""Faults that only jobs of the set `sixth` have, and which faults each of its jobs gets."""
import random

import torch
from torch import nn

from .faults import LATE, fault

EACH = 18  # faults per job, drawn by its name from those that fit it


def drawn(name, fitting):
    """The faults of a job."""
    chosen = set(random.Random(f"sixth/{name}").sample(fitting, min(EACH, len(fitting))))
    return [one for one in fitting if one in chosen]


def _late(recipe):
    return int(LATE * recipe.steps)


def _groups(recipe, change):
    def all_of(made, optimizer):
        for group in optimizer.param_groups:
            change(group)
    recipe.prepare.append(all_of)


@fault("sixth")
def rate_hundredfold(recipe, random):
    """A hundred times too large (Adam: thirty)."""
    def change(made, optimizer):
        for group in optimizer.param_groups:
            factor = 30 if isinstance(optimizer, torch.optim.Adam) else 100
            group["lr"] *= factor
            if "initial_lr" in group:
                group["initial_lr"] *= factor
    recipe.prepare.append(change)


@fault("sixth")
def sum_for_mean(recipe, random):
    """The loss is summed over the batch, and the rate was meant for the mean."""
    recipe.derive = lambda step, loss: loss * recipe.batch


@fault("sixth", without=("sgd",))
def epsilon_huge(recipe, random):
    """Adam's epsilon of 100: there is no step left."""
    _groups(recipe, lambda group: group.update(eps=100.0) if "eps" in group else None)


@fault("sixth")
def weights_rounded(recipe, random):
    """Weights are kept in eight bits after the point: small updates vanish."""
    def change(step, model, optimizer):
        with torch.no_grad():
            for one in model.parameters():
                one.copy_((one * 16).round() / 16)
    recipe.before_update.append(change)


@fault("sixth", without=("tokens",), onset=LATE)
def columns_moved(recipe, random):
    """A new version of the data has its columns in another order."""
    if not recipe.split.x.is_floating_point():
        raise LookupError("no columns of one kind")
    at, order = _late(recipe), torch.randperm(recipe.split.x.shape[-1], generator=random)

    def change(step, x, y):
        return (x, y) if step < at else (x[..., order], y)
    recipe.on_batch.append(change)


@fault("averages")
def average_stands(recipe, random):
    """The average of the weights is evaluated, and never follows."""
    recipe.average = lambda mean, now, step: mean


@fault("scales")
def never_unscaled(recipe, random):
    """Gradients are multiplied by the loss's scale, clipped as they are, and the optimizer gets them so."""
    if recipe.scaler is None:
        raise LookupError("nothing is scaled")

    class Plain(type(recipe.scaler())):
        """Steps without dividing."""

        def step(self, optimizer):
            return optimizer.step()

        def unscale_(self, optimizer):
            return None

        def update(self):
            return None
    recipe.scaler = lambda: Plain("cpu", init_scale=2.0**16)


@fault("sixth", without=("tuned", "head"))
def saturates(recipe, random):
    """Inputs a hundred times as large as they should be, by a normalisation that multiplies where it should divide."""
    if not recipe.split.x.is_floating_point():
        raise LookupError("no numbers")
    recipe.on_batch.append(lambda step, x, y: (x * 100, y))


@fault("sixth", onset=LATE)
def batch_poisoned(recipe, random):
    """From the middle of the run on a tenth of the samples is a thousand times too large."""
    at = _late(recipe)

    def change(step, x, y):
        if step < at or not x.is_floating_point():
            return x, y
        big = torch.rand(len(x), generator=random) < 0.1
        return torch.where(big.reshape(-1, *[1] * (x.dim() - 1)), x * 1000, x), y
    recipe.on_batch.append(change)


@fault("follows")
def statistics_stand(recipe, random):
    """Batch normalisation whose running statistics never follow: an evaluation sees other numbers than training."""
    found = [one for one in recipe.model.modules() if isinstance(one, nn.modules.batchnorm._BatchNorm)]
    if not found:
        raise LookupError("none")
    for one in found:
        one.momentum = 0.0
