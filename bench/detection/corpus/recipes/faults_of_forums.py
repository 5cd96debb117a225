"""Faults that only jobs of the set `ninth` have, mistakes that people make and find in forums, and which faults each of its jobs gets."""
import random

import torch
from torch import nn

from .faults import fault

OWN, OTHERS = 4, 4  # faults per job, drawn by its name from those that fit it: of these here, and of those of the sets before
# What cannot be made there or changes nothing: letters and identities are no numbers, targets are not asked for.
_NUMBERS = {"inputs_noisy", "batch_poisoned", "saturates", "units_change", "columns_moved", "input_nan", "input_unscaled", "augmented_too_much"}
_UNASKED = {"target_lost", "targets_raw"}
UNFIT = {**dict.fromkeys(("gpt_small", "lstm_pages", "lora_words", "bert_tuned", "two_towers", "table_embeds"), _NUMBERS),
         **dict.fromkeys(("ddpm_ema", "simclr_pairs", "clip_pairs", "vae_annealed"), _UNASKED),
         **dict.fromkeys(("anchors", "two_tasks"), {"targets_raw"}),
         "lstm_pages": _NUMBERS | {"overfits", "batch_tiny", "loader_stuck", "samples_repeated"}}


def drawn(name, fitting):
    """The faults of a job."""
    fitting = [one for one in fitting if one not in UNFIT.get(name, ())]
    source, own = random.Random(f"ninth/{name}"), [one for one in fitting if one in MINE]
    others = [one for one in fitting if one not in MINE]
    chosen = {*source.sample(own, min(OWN, len(own))), *source.sample(others, min(OTHERS, len(others)))}
    return [one for one in fitting if one in chosen]


MINE = set()


def mine(*needs, **more):
    """Registers a function here and in the table."""
    def add(change):
        MINE.add(change.__name__)
        return fault(*needs, **more)(change)
    return add


def _groups(recipe, change):
    def all_of(made, optimizer):
        for group in optimizer.param_groups:
            change(group)
    recipe.prepare.append(all_of)


# --- the loop ------------------------------------------------------------------------------------


@mine("ninth")
def zero_grad_missing(recipe, random):
    """optimizer.zero_grad() was forgotten, whatever the optimizer."""
    recipe.zero_grad = False


@mine("groups")
def group_unstepped(recipe, random):
    """Of two groups of parameters one never gets its step."""
    def change(step, model, optimizer):
        for one in optimizer.param_groups[0]["params"]:
            one.grad = None
    recipe.before_update.append(change)


@mine("ninth", without=("head", "single"))
def backbone_frozen(recipe, random):
    """requires_grad is False for all but the last layer, left over from an experiment."""
    chosen = list(recipe.model.parameters())
    for one in chosen[:-2]:
        one.requires_grad_(False)


@mine("ninth", without=("tuned",))
def scheduled_per_batch(recipe, random):
    """A scheduler with the gamma of an epoch (0.5) steps at each tenth batch."""
    recipe.plateau, recipe.by_epoch = None, False
    recipe.schedule = lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.5)


@mine("ninth")
def decay_thousandfold(recipe, random):
    """Weight decay a thousand times what was meant (0.01 where there is none)."""
    _groups(recipe, lambda group: group.update(weight_decay=1000 * (group.get("weight_decay", 0) or 0.01)))


@mine("scales")
def clipped_scaled(recipe, random):
    """Mixed precision: clipped before the gradients are unscaled."""
    recipe.divides = False


@mine("dropout")
def dropout_left(recipe, random):
    """A dropout of 0.9, kept where 0.1 was meant."""
    found = [one for one in recipe.model.modules() if isinstance(one, nn.Dropout)]
    if not found:
        raise LookupError("no dropout")
    for one in found:
        one.p = 0.9
    for one in recipe.model.modules():
        if isinstance(one, nn.MultiheadAttention):
            one.dropout = 0.9


@mine("ninth")
def rate_copied(recipe, random):
    """The rate of another recipe: SGD's for Adam (0.1), or Adam's for SGD with momentum, a thousandth."""
    def change(group):
        rate = 0.1 if "betas" in group else group["lr"] / 1000
        group.update(lr=rate, **({"initial_lr": rate} if "initial_lr" in group else {}))
    _groups(recipe, change)


# --- data and labels -----------------------------------------------------------------------------


@mine("classes", "binary")
def held_shuffled(recipe, random):
    """The labels that it is evaluated with were shuffled, their inputs were not."""
    recipe.split.held_y = recipe.split.held_y[torch.randperm(len(recipe.split.held_y), generator=random)]


@mine("held")
def held_divided(recipe, random):
    """What is evaluated on is divided by 255 once more than what is trained on."""
    if not recipe.split.held_x.is_floating_point():
        raise LookupError("no numbers")
    recipe.split.held_x = recipe.split.held_x / 255


@mine("classes")
def labels_one_off(recipe, random):
    """In training the classes are counted from one, in the evaluation from zero."""
    recipe.on_batch.append(lambda step, x, y: (x, (y + 1) % recipe.split.classes))


@mine("classes", "binary", without=("tuned",))
def sorted_unshuffled(recipe, random):
    """A folder per class, and a loader without shuffle=True."""
    if recipe.split.y.dim() > 1:
        raise LookupError("a label at each place")
    order = torch.argsort(recipe.split.y, stable=True)
    recipe.split.x, recipe.split.y, recipe.shuffle = recipe.split.x[order], recipe.split.y[order], False


@mine("regression", without=("same",))
def targets_raw(recipe, random):
    """Targets are scaled for the evaluation, and raw in training."""
    recipe.on_batch.append(lambda step, x, y: (x, 20 * y + 50))


@mine("shifts")
def shifted_twice(recipe, random):
    """The text is shifted in the data set, and once more in the loss: each place is asked for the letter after the next."""
    recipe.on_batch.append(lambda step, x, y: (x, torch.cat([y[:, 1:], y[:, :1]], 1)))


@mine("padded")
def padding_unmasked(recipe, random):
    """What fills the sequences up is attended to and learned from."""
    recipe.masks(recipe)


@mine("mixes")
def mixed_inputs_only(recipe, random):
    """Images are mixed half and half, and keep the label of the first."""
    recipe.on_batch.append(lambda step, x, y: (0.5 * x + 0.5 * x[torch.randperm(len(x), generator=random)], y))


@mine("ninth", without=("tokens",))
def augmented_too_much(recipe, random):
    """Noise that was meant for values of 0 to 255."""
    if not recipe.split.x.is_floating_point():
        raise LookupError("no numbers")
    recipe.on_batch.append(lambda step, x, y: (x + 10 * torch.randn(x.shape, generator=random), y))
