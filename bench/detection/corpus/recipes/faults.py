"""The faults: each changes one thing of a healthy recipe, and says from which step on it can be seen."""
import dataclasses
import math
import typing

import torch
from torch import nn


@dataclasses.dataclass(frozen=True)
class Fault:
    """``change(recipe, random)``; ``needs``: traits of the job, of which one suffices; ``onset``: share of the run before it."""
    name: str
    change: typing.Callable
    needs: frozenset
    excludes: frozenset
    onset: float
    slow: bool  # shows itself over a good part of the run

    def fits(self, job):
        if "long" in job.traits and self.name not in LONG:
            return False
        return not (self.needs and not self.needs & job.traits) and not self.excludes & job.traits


FAULTS = {}
LATE = 0.4  # where a fault strikes in the middle
LONG = {"rate_jumps", "weights_lost", "labels_break"}  # what the jobs of ten thousand steps are there to show, beside that they are quiet


def fault(*needs, without=(), onset=0.0, slow=False):
    """Registers a function under its name."""
    def add(change):
        FAULTS[change.__name__] = Fault(change.__name__, change, frozenset(needs), frozenset(without), onset, slow)
        return change
    return add


def _late(recipe):
    return int(LATE * recipe.steps)


def _one_label_each(recipe):
    if recipe.split.y.dim() > 1:
        raise LookupError("a label at each place")


def _weights(recipe):
    return [one for one in recipe.model.parameters() if one.requires_grad and one.dim() > 1]


def _scale_rates(optimizer, factor):
    for group in optimizer.param_groups:
        group["lr"] *= factor
        if "initial_lr" in group:
            group["initial_lr"] *= factor


# --- learning rate and optimizer -----------------------------------------------------------------


@fault()
def rate_too_large(recipe, random):
    """A thousand times too large (Adam: three hundred)."""
    recipe.prepare.append(lambda made, optimizer: _scale_rates(
        optimizer, 300 if isinstance(optimizer, torch.optim.Adam) else 1000))


@fault()
def rate_zero(recipe, random):
    """Nothing is learned."""
    recipe.prepare.append(lambda made, optimizer: _scale_rates(optimizer, 0))


@fault(without=("tuned",))
def rate_tiny(recipe, random):
    """A hundred thousand times too small."""
    recipe.prepare.append(lambda made, optimizer: _scale_rates(optimizer, 1e-5))


@fault(onset=LATE)
def rate_jumps(recipe, random):
    """A schedule that goes wrong in the middle of the run."""
    at = _late(recipe)

    def change(step, model, optimizer):
        if step < at:
            return
        factor = 300 if isinstance(optimizer, torch.optim.Adam) else 1000
        for group in optimizer.param_groups:
            if group["lr"] < group.get("jumped_to", math.inf) / 50:  # some schedules set it anew before each step
                group["lr"] *= factor
                group["jumped_to"] = group["lr"]
    recipe.before_update.append(change)


@fault("sgd")
def momentum_above_one(recipe, random):
    """Every update is larger than the one before."""
    def change(made, optimizer):
        for group in optimizer.param_groups:
            group["momentum"] = 1.1
    recipe.prepare.append(change)


@fault()
def decay_huge(recipe, random):
    """Weight decay that takes the weights away as fast as they grow."""
    def change(made, optimizer):
        for group in optimizer.param_groups:
            rate = max(group["lr"], 1e-12)
            group["weight_decay"] = 0.3 / rate if isinstance(optimizer, torch.optim.AdamW) else 30.0
    recipe.prepare.append(change)


@fault()
def gradient_dropped(recipe, random):
    """zero_grad() stands between backward() and step()."""
    recipe.before_update.append(lambda step, model, optimizer: [
        one.grad.zero_() for one in model.parameters() if one.grad is not None])


@fault("sgd")
def zero_grad_forgotten(recipe, random):
    """Gradients are added up over all steps."""
    recipe.zero_grad = False
    recipe.clip = None


@fault(without=("head", "pair", "single"))
def half_in_optimizer(recipe, random):
    """Only the last layer was given to the optimizer."""
    recipe.parameters = lambda model: list(model.parameters())[-2:]


@fault("linear", "images", without=("head", "tuned"))
def graph_cut(recipe, random):
    """A detach() in the middle: the layers before it get no gradient."""
    layers = [one for one in recipe.model if any(True for _ in one.parameters())] if isinstance(recipe.model, nn.Sequential) else []
    if len(layers) < 2:
        raise LookupError("one layer only")
    layers[-1].register_forward_pre_hook(lambda module, inputs: (inputs[0].detach(),))


@fault()
def sign_wrong(recipe, random):
    """The loss is made larger."""
    recipe.derive = lambda step, loss: -loss


@fault()
def loss_scaled_away(recipe, random):
    """The loss is divided by its scale once more than it was multiplied."""
    recipe.derive = lambda step, loss: loss * 1e-9


@fault("sgd")
def clipped_to_nothing(recipe, random):
    """Gradients are clipped to a norm of a millionth."""
    recipe.clip = 1e-6


# --- initial weights -----------------------------------------------------------------------------


@fault(without=("tuned", "single"))
def start_zero(recipe, random):
    """All weights and biases are zero."""
    for one in recipe.model.parameters():
        nn.init.zeros_(one)


@fault(without=("tuned", "head", "single"))
def start_constant(recipe, random):
    """All weights are equal: nothing breaks the symmetry."""
    for one in _weights(recipe):
        nn.init.constant_(one, 0.05)


@fault(without=("tuned", "head"))
def start_large(recipe, random):
    """Thirty times as large as they should be."""
    with torch.no_grad():
        for one in _weights(recipe):
            one.mul_(30)


@fault("relu", without=("head", "tuned"))
def units_dead(recipe, random):
    """Biases far below zero: no ReLU ever opens."""
    hidden = [one for one in recipe.model.modules() if isinstance(one, (nn.Linear, nn.Conv2d)) and one.bias is not None][:-1]
    for one in hidden:
        nn.init.constant_(one.bias, -20)


@fault("linear", without=("tuned", "same", "norm", "head"))
def sigmoids_deep(recipe, random):
    """Twelve sigmoid layers: no gradient reaches the first."""
    first = next(one for one in recipe.model.modules() if isinstance(one, nn.Linear))
    last = [one for one in recipe.model.modules() if isinstance(one, nn.Linear)][-1]
    layers, size = [], first.in_features
    for _ in range(12):
        layers += [nn.Linear(size, 32), nn.Sigmoid()]
        size = 32
    recipe.model = nn.Sequential(*layers, nn.Linear(size, last.out_features))


# --- data ----------------------------------------------------------------------------------------


@fault("classes", "binary", without=("tuned",))
def labels_random(recipe, random):
    """Inputs and labels do not belong together."""
    def change(step, x, y):
        return x, y[torch.randperm(len(y), generator=random)]
    recipe.on_batch.append(change)


@fault("classes", "binary", onset=LATE)
def labels_break(recipe, random):
    """The same from the middle of the run on: a shard with shifted labels."""
    at, classes = _late(recipe), recipe.split.classes

    def change(step, x, y):
        return (x, y) if step < at else (x, (y + 1) % classes)
    recipe.on_batch.append(change)


@fault("classes", "binary", "regression", onset=LATE)
def input_nan(recipe, random):
    """One value of one batch is not a number."""
    at = _late(recipe)

    def change(step, x, y):
        if step == at:
            x = x.clone()
            x.view(-1)[0] = float("nan")
        return x, y
    recipe.on_batch.append(change)


@fault("classes", "binary", "regression")
def input_unscaled(recipe, random):
    """Raw values: points of 0 to 255, features in their own units."""
    recipe.on_batch.append(lambda step, x, y: (x * 128 + 128, y))


@fault("classes", "binary", "regression")
def input_constant(recipe, random):
    """The loader gives the same empty sample each time."""
    recipe.on_batch.append(lambda step, x, y: (torch.zeros_like(x), y))


@fault("classes", "binary", "regression", onset=LATE)
def input_lost(recipe, random):
    """The same from the middle of the run on."""
    at = _late(recipe)
    recipe.on_batch.append(lambda step, x, y: (x, y) if step < at else (torch.zeros_like(x), y))


@fault("classes", "binary", without=("tuned", "whole"))
def unshuffled(recipe, random):
    """Sorted by class: one class after the other."""
    _one_label_each(recipe)
    order = torch.argsort(recipe.split.y, stable=True)
    recipe.split.x, recipe.split.y = recipe.split.x[order], recipe.split.y[order]
    recipe.shuffle = False


@fault("classes", "binary", "tokens", without=("tuned", "whole"))
def batch_repeated(recipe, random):
    """The loader gives one batch again and again."""
    kept = []

    def change(step, x, y):
        if not kept:
            kept.append((x, y))
        return kept[0]
    recipe.on_batch.append(change)


@fault("classes", "binary", without=("tuned", "head"))
def classes_unequal(recipe, random):
    """Of one class fifty times as much as of the others."""
    _one_label_each(recipe)
    y = recipe.split.y
    kept = torch.nonzero((y == 0) | (torch.rand(len(y), generator=random) < 0.02)).flatten()
    recipe.split.x, recipe.split.y = recipe.split.x[kept], y[kept]


@fault("classes", "binary")
def one_class(recipe, random):
    """All labels are of one class."""
    recipe.on_batch.append(lambda step, x, y: (x, torch.zeros_like(y)))


@fault("classes", "regression", without=("tuned", "head", "fresh"), slow=True)
def overfits(recipe, random):
    """Thirty-two samples, learned by heart, with a rate that allows it."""
    recipe.split.x, recipe.split.y = recipe.split.x[:32], recipe.split.y[:32]
    recipe.batch = min(recipe.batch, 16)
    recipe.schedule = None
    recipe.steps = 400
    recipe.prepare.append(lambda made, optimizer: _scale_rates(optimizer, 3))


@fault("classes", without=("tuned", "head"), slow=True)
def memorizes_noise(recipe, random):
    """Half of the labels are wrong, and the model has time to learn them."""
    y = recipe.split.y[:200].clone()
    wrong = torch.rand(len(y), generator=random) < 0.5
    y[wrong] = torch.randint(0, recipe.split.classes, y[wrong].shape, generator=random)
    recipe.split.x, recipe.split.y = recipe.split.x[:200], y
    recipe.schedule = None
    recipe.steps = 400
    recipe.prepare.append(lambda made, optimizer: _scale_rates(optimizer, 3))


# --- model and loss ------------------------------------------------------------------------------


@fault("classes", without=("tokens", "head"))
def softmax_twice(recipe, random):
    """Probabilities are given to a loss that expects logits."""
    recipe.model = nn.Sequential(recipe.model, nn.Softmax(1))


@fault("modes", without=("tuned",))
def left_in_eval(recipe, random):
    """model.train() was never called."""
    recipe.trains = False


@fault("modes")
def evaluated_in_training(recipe, random):
    """model.eval() is not called before evaluating."""
    recipe.evaluates = False


@fault(onset=LATE)
def weights_lost(recipe, random):
    """A checkpoint that cannot be read: training goes on from new weights."""
    at = _late(recipe)

    def change(step, model, optimizer):
        if step == at:
            for module in model.modules():
                if hasattr(module, "reset_parameters"):
                    module.reset_parameters()
    recipe.before_update.append(change)


@fault(onset=LATE)
def overflow(recipe, random):
    """One gradient is infinite, as half precision makes them, and nobody looks."""
    at = _late(recipe)

    def change(step, model, optimizer):
        if step == at:
            one = next(p for p in model.parameters() if p.grad is not None)
            one.grad.view(-1)[0] = float("inf")
    recipe.before_update.append(change)


@fault("recurrent", "attention")
def unclipped(recipe, random):
    """No clipping, recurrent or attention weights that are too large, and a rate to match."""
    recipe.clip = None
    with torch.no_grad():
        for one in _weights(recipe):
            one.mul_(4)
    recipe.prepare.append(lambda made, optimizer: _scale_rates(optimizer, 50))


@fault("regression", without=("same", "several"))
def target_unrelated(recipe, random):
    """The loss compares with a broadcast target: [n] with [n, 1]."""
    recipe.loss = lambda output, target: ((output - target.reshape(1, -1)) ** 2).mean()
