"""One training loop for all jobs, as users write it; a fault is a change of its recipe."""
import contextlib
import dataclasses
import typing

import torch

import tocsin

# What the rules ask for, from the first step on: in life the engine's command brings it a moment later.
CAPTURE = {"every": "10 steps", "overhead": "100%", "collections": {
    "gradients": {}, "biases": {}, "losses": {}, "weights": {"statistics": ["delta", "digest"]},
    "layers": {"statistics": ["units(1)", "at_least(3)"]}, "inputs": {"statistics": ["channels", "values(0)"]},
    "labels": {"statistics": ["classes"]}, "predictions": {"statistics": ["classes"]}}}


def as_it_is(step, loss):
    """The loss itself."""
    return loss


@dataclasses.dataclass
class Recipe:
    """What one run does. Faults replace fields or add to the lists; nothing else differs from the healthy twin."""
    model: torch.nn.Module
    split: typing.Any
    loss: typing.Callable  # (output, target) → scalar
    optimizer: typing.Callable  # (parameters) → optimizer, or several in a list
    steps: int
    batch: int = 32
    evaluate_every: int = 20
    schedule: typing.Optional[typing.Callable] = None  # (optimizer) → scheduler
    clip: typing.Optional[float] = None
    autocast: bool = False
    shuffle: bool = True
    parameters: typing.Optional[typing.Callable] = None  # (model) → what the optimizer gets
    prepare: list = dataclasses.field(default_factory=list)  # f(recipe, optimizer), before the first step
    on_batch: list = dataclasses.field(default_factory=list)  # f(step, x, y) → x, y
    before_update: list = dataclasses.field(default_factory=list)  # f(step, model, optimizer)
    derive: typing.Callable = as_it_is  # (step, loss) → what backward() is called on
    zero_grad: bool = True
    trains: bool = True  # model.train() before training
    evaluates: bool = True  # model.eval() before evaluating
    log_every: int = 1
    gathers: int = 1  # batches per update


def batches(recipe, random):
    """(x, y) without end, epoch after epoch."""
    x, y = recipe.split.x, recipe.split.y
    while True:
        order = torch.randperm(len(x), generator=random) if recipe.shuffle else torch.arange(len(x))
        for at in range(0, max(len(x) - recipe.batch + 1, 1), recipe.batch):
            part = order[at:at + recipe.batch]
            yield x[part], y[part]


def _context(recipe):
    # On CPUs PyTorch 1 has normalisation layers that refuse mixed types.
    mixes = recipe.autocast and torch.__version__ >= "2"
    return torch.autocast("cpu", torch.bfloat16) if mixes else contextlib.nullcontext()


def evaluate(recipe, hook, watched):
    """One pass over the held-out set, in two batches, each a step of its own; gives their mean loss back."""
    if recipe.evaluates:
        recipe.model.eval()
    x, y = recipe.split.held_x, recipe.split.held_y
    half, losses = max(len(x) // 2, 1), []
    with hook.mode("eval"), torch.no_grad(), _context(recipe):
        for at in range(0, len(x), half):
            loss = recipe.loss(recipe.model(x[at:at + half]), y[at:at + half])
            if not watched:
                hook.log(loss=loss.float())
            hook.step()
            losses.append(float(loss))
    recipe.model.train(recipe.trains)
    return sum(losses) / len(losses)


def _watch(recipe, optimizers, out, job, name, watched):
    hook = tocsin.watch(recipe.model, optimizers[0], out=out, run=name, job=job, capture=CAPTURE, loss=recipe.loss if watched else None)
    for other in optimizers[1:]:
        tocsin.watch(recipe.model, other)
    return hook


def _backward(recipe, step, source):
    """Gradients of one update; gives the mean loss of its batches back."""
    total = 0.0
    for _ in range(recipe.gathers):
        x, y = next(source)
        for change in recipe.on_batch:
            x, y = change(step, x, y)
        with _context(recipe):
            loss = recipe.loss(recipe.model(x), y)
        recipe.derive(step, loss.float() / recipe.gathers).backward()
        total += float(loss) / recipe.gathers
    return total


def run(recipe, seed, out, job, name):
    """Trains and records; returns the run's uid and the step of its best evaluation."""
    random = torch.Generator().manual_seed(seed)
    chosen = (recipe.parameters or (lambda model: model.parameters()))(recipe.model)
    made = recipe.optimizer(chosen)
    optimizers = made if isinstance(made, list) else [made]
    recipe.model.train(recipe.trains)
    for prepare in recipe.prepare:
        for optimizer in optimizers:
            prepare(recipe, optimizer)
    schedulers = [recipe.schedule(optimizer) for optimizer in optimizers] if recipe.schedule else []
    watched = isinstance(recipe.loss, torch.nn.Module) and recipe.log_every == 1 and recipe.gathers == 1
    hook = _watch(recipe, optimizers, out, job, name, watched)
    source = batches(recipe, random)
    total, counted, passes = 0.0, 0, []
    for step in range(recipe.steps):
        if recipe.zero_grad:
            for optimizer in optimizers:
                optimizer.zero_grad()
        total, counted = total + _backward(recipe, step, source), counted + 1
        if recipe.clip:
            norm = torch.nn.utils.clip_grad_norm_(recipe.model.parameters(), recipe.clip)
            hook.log(grad_norm=norm, clip_norm=recipe.clip)
        for change in recipe.before_update:
            for optimizer in optimizers:
                change(step, recipe.model, optimizer)
        if counted == recipe.log_every:
            if not watched:
                hook.log(loss=total / counted)
            total, counted = 0.0, 0
        for optimizer in optimizers:
            optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
        if recipe.evaluate_every and (step + 1) % recipe.evaluate_every == 0:
            passes.append((evaluate(recipe, hook, watched), step))
    uid = hook.run
    hook.close(timeout=20)
    return uid, min(passes, default=(0.0, 0))[1]
