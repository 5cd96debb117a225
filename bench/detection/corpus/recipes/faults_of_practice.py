"""Faults that only the third and the fourth set of jobs have: what the others do not show."""
import copy

import torch
from torch import nn

from .faults import LATE, fault


def _late(recipe):
    return int(LATE * recipe.steps)


@fault("third", "fourth", onset=0.05)
def rate_dies(recipe, random):
    """The scheduler that was meant for epochs steps at each batch: the rate is gone before anything was learned."""
    recipe.schedule = lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)


@fault("third", "fourth", onset=0.1)
def warmup_overshoots(recipe, random):
    """The rate grows from step to step up to two hundred times what it should be."""
    top = 0.1 * recipe.steps
    recipe.schedule = lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: 200 ** min(1.0, at / top))


@fault("third", "fourth", onset=LATE)
def weight_flips(recipe, random):
    """One bit of one weight, as a bad memory cell flips it."""
    at = _late(recipe)

    def change(step, model, optimizer):
        if step == at and not getattr(model, "flipped", False):
            model.flipped = True
            one = next(p for p in model.parameters() if p.dim() > 1 and p.requires_grad)
            with torch.no_grad():
                one.view(-1)[0] = 2.0 ** 40
    recipe.before_update.append(change)


@fault("third", "fourth")
def gradients_noise(recipe, random):
    """Gradients that tell nothing of the loss: of their size, and of no direction."""
    def change(step, model, optimizer):
        for group in optimizer.param_groups:
            for one in group["params"]:
                if one.grad is not None:
                    spread = one.grad.square().mean().sqrt()
                    one.grad = torch.randn(one.grad.shape, generator=random) * spread
    recipe.before_update.append(change)


@fault("third", "fourth", onset=LATE)
def loader_stuck(recipe, random):
    """From the middle of the run on the loader gives the same eight samples again and again."""
    at, kept = _late(recipe), []

    def change(step, x, y):
        if step < at:
            return x, y
        if not kept:
            kept.append((x[:8].clone(), y[:8].clone()))
        return kept[0]
    recipe.on_batch.append(change)


@fault("third", "fourth", onset=LATE)
def target_lost(recipe, random):
    """The targets of later batches are those of others."""
    at = _late(recipe)

    def change(step, x, y):
        return (x, y) if step < at else (x, y[torch.randperm(len(y), generator=random)])
    recipe.on_batch.append(change)


@fault("tokens")
def targets_of_others(recipe, random):
    """Each sequence is compared with what belongs to another one."""
    recipe.on_batch.append(lambda step, x, y: (x, y[torch.randperm(len(y), generator=random)]))


@fault("third", "fourth", without=("pair",))
def optimizer_of_a_copy(recipe, random):
    """The optimizer was made before the model was copied to where it is trained."""
    recipe.prepare.append(lambda made, optimizer: setattr(made, "model", copy.deepcopy(made.model)))


@fault("third", "modes")
def drops_nearly_all(recipe, random):
    """A dropout of 0.98 where 0.02 was meant."""
    dropouts = [one for one in recipe.model.modules() if isinstance(one, nn.Dropout)]
    if not dropouts:
        raise LookupError("no dropout")
    for one in dropouts:
        one.p = 0.98


@fault("third", "fourth", without=("pair", "tuned"), onset=LATE)
def resumed_small(recipe, random):
    """Resumed from a checkpoint that was stored in eight bits and never scaled back: all weights a hundredth of what they were."""
    at = _late(recipe)

    def change(step, model, optimizer):
        if step == at:
            with torch.no_grad():
                for one in model.parameters():
                    one.mul_(0.01)
    recipe.before_update.append(change)
