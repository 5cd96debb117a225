"""Faults that only jobs of the set `fourth` have."""
import torch

from .faults import LATE, fault


def _late(recipe):
    return int(LATE * recipe.steps)


def _without_gradients(chosen):
    def change(step, model, optimizer):
        for one in chosen(step, model):
            one.grad = None
    return change


@fault("fourth", onset=LATE)
def steps_skipped(recipe, random):
    """A loss scale that never comes down again: every gradient overflows, and every update is left out."""
    at = _late(recipe)
    recipe.before_update.append(_without_gradients(lambda step, model: model.parameters() if step >= at else ()))


@fault("fourth", without=("head",), onset=LATE)
def body_frozen(recipe, random):
    """From the middle of the run on only the last layer is trained, as a callback that unfreezes does the wrong way round."""
    at = _late(recipe)
    recipe.before_update.append(_without_gradients(lambda step, model: list(model.parameters())[:-2] if step >= at else ()))


@fault("fourth")
def rate_tenfold(recipe, random):
    """Ten times too large."""
    def change(made, optimizer):
        for group in optimizer.param_groups:
            group["lr"] *= 10
            if "initial_lr" in group:
                group["initial_lr"] *= 10
    recipe.prepare.append(change)


@fault("fourth", onset=LATE)
def inputs_noisy(recipe, random):
    """From the middle of the run on inputs that have nothing of the samples but their size."""
    at = _late(recipe)

    def change(step, x, y):
        if step < at or not x.is_floating_point():
            return x, y
        return torch.randn(x.shape, generator=random) * x.std() + x.mean(), y
    recipe.on_batch.append(change)
