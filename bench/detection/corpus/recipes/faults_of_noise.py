"""Faults that only jobs of the set `seventh` have, and which faults each of its jobs gets."""
import random

import torch

from .faults import LATE, fault

EACH = 12  # faults per job, drawn by its name from those that fit it
# What cannot be made there: letters and words are no numbers, sparse gradients have no norm, one graph has no samples.
_LETTERS = {"input_nan", "input_unscaled"}
_GRAPH = {"overfits", "memorizes_noise", "classes_unequal", "loader_stuck", "samples_repeated", "half_in_optimizer"}
UNFIT = {"sentences": _LETTERS, "ratings": {"overflow", "gradients_noise", "decay_huge", "body_frozen"}, "nodes": _GRAPH, "translates": {"epsilon_huge"},
         "pseudo": {"unshuffled", "classes_unequal"}}


def drawn(name, fitting):
    """The faults of a job."""
    fitting = [one for one in fitting if one not in UNFIT.get(name, ())]
    chosen = set(random.Random(f"seventh/{name}").sample(fitting, min(EACH, len(fitting))))
    return [one for one in fitting if one in chosen]


def _late(recipe):
    return int(LATE * recipe.steps)


@fault("seventh")
def samples_repeated(recipe, random):
    """A sampler whose seed is set anew in each worker: a batch is one sample many times."""
    recipe.on_batch.append(lambda step, x, y: (x[:1].expand_as(x).clone(), y[:1].expand_as(y).clone()))


@fault("seventh", onset=0.2)
def rate_grows(recipe, random):
    """A factor above one where one below it was meant: three hundredfold by the middle of the run."""
    factor = 300 ** (2 / recipe.steps)
    recipe.schedule = lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, factor)


@fault("seventh", without=("sgd",))
def betas_swapped(recipe, random):
    """Adam's two rates of forgetting in the wrong order."""
    def change(made, optimizer):
        for group in optimizer.param_groups:
            if "betas" in group:
                group["betas"] = group["betas"][::-1]
    recipe.prepare.append(change)


@fault("seventh", onset=LATE)
def weights_noisy(recipe, random):
    """From the middle of the run on each update comes with noise of a tenth of the weights' size, as a bad link or cell adds it."""
    at = _late(recipe)

    def change(step, model, optimizer):
        if step >= at:
            with torch.no_grad():
                for one in model.parameters():
                    if one.requires_grad and one.is_floating_point():
                        one.add_(torch.randn(one.shape, generator=random) * (0.1 * one.square().mean().sqrt()))
    recipe.before_update.append(change)


@fault("seventh", onset=LATE)
def units_change(recipe, random):
    """From the middle of the run on the source sends the same numbers in another unit, a thousandth of them."""
    if not recipe.split.x.is_floating_point():
        raise LookupError("no numbers")
    at = _late(recipe)
    recipe.on_batch.append(lambda step, x, y: (x, y) if step < at else (x * 1000, y))
