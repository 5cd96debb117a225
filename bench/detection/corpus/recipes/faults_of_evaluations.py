"""Faults that only jobs of the set `eighth` have, and which faults each of its jobs gets."""
import random

import torch

from .faults import fault

EACH = 10  # faults per job, drawn by its name from those that fit it
# What cannot be made there or changes nothing: letters and identities are no numbers, targets are not asked for, a loss asks the layers of the first model,
# a scaler wants gradients.
_NUMBERS = {"inputs_noisy", "batch_poisoned", "saturates", "units_change", "columns_moved", "input_nan", "input_unscaled"}
_UNASKED = {"target_lost"}
UNFIT = {**dict.fromkeys(("clicks", "rotates", "recurs", "lowbits", "thaws"), _NUMBERS), **dict.fromkeys(("rates", "finds"), _NUMBERS | _UNASKED),
         **dict.fromkeys(("selves", "velocity", "slopes"), _UNASKED), **dict.fromkeys(("beliefs", "surfaces", "compiled", "lopsided"), {"optimizer_of_a_copy"}),
         "unscheduled": {"drops_nearly_all"}, "halved": {"steps_skipped"}}


def drawn(name, fitting):
    """The faults of a job."""
    fitting = [one for one in fitting if one not in UNFIT.get(name, ())]
    chosen = set(random.Random(f"eighth/{name}").sample(fitting, min(EACH, len(fitting))))
    return [one for one in fitting if one in chosen]


@fault("eighth")
def decay_negative(recipe, random):
    """Weight decay with the wrong sign: the weights are pushed away from zero."""
    def change(made, optimizer):
        for group in optimizer.param_groups:
            if isinstance(optimizer, torch.optim.Adam) and not isinstance(optimizer, torch.optim.AdamW):
                group["weight_decay"] = -1.0
            else:
                group["weight_decay"] = -0.03 * (1 - group.get("momentum", 0)) / max(group["lr"], 1e-12)
    recipe.prepare.append(change)


@fault("eighth", without=("tuned",))
def warmup_endless(recipe, random):
    """A warm-up that was meant for a hundred times as many steps: the run ends before the rate is there."""
    last = 100 * recipe.steps
    recipe.schedule = lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: (at + 1) / last)


@fault("eighth")
def gradients_late(recipe, random):
    """A slow worker: each update is made of the gradients of twenty steps before."""
    kept = {}

    def change(step, model, optimizer):
        for group in optimizer.param_groups:
            for one in group["params"]:
                if one.grad is None:
                    continue
                queue = kept.setdefault(one, [])
                queue.append(one.grad.clone())
                one.grad.copy_(queue.pop(0) if len(queue) > 20 else queue[0])
    recipe.before_update.append(change)


@fault("eighth")
def batch_tiny(recipe, random):
    """Two samples per batch, at the rate that was found for many."""
    if recipe.batch < 16:
        raise LookupError("a small one as it is")
    recipe.batch = 2


@fault("held")
def held_raw(recipe, random):
    """What is evaluated on does not go through the scaling that training has."""
    if not recipe.split.held_x.is_floating_point():
        raise LookupError("no numbers")
    recipe.split.held_x = recipe.split.held_x * 8 + 8


@fault("names")
def held_permuted(recipe, random):
    """The names of the classes come in another order where it is evaluated."""
    order = torch.randperm(recipe.split.classes, generator=random)
    recipe.split.held_y = order[recipe.split.held_y]


@fault("shifts")
def unshifted(recipe, random):
    """In training each place is asked for the letter that it shows, not for the one behind it."""
    recipe.on_batch.append(lambda step, x, y: (x, x))
