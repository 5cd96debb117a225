"""A loop: epochs of a loader that drops what is left, an evaluation per epoch in batches, and what people put around a step: a scaler of
the loss, a second pass at a sharper point, averages of the weights. It also gives its evaluations back, by which is measured what harm a fault did."""
import contextlib
import copy
import dataclasses
import typing

import torch

import tocsin

from .training import CAPTURE, Recipe


@dataclasses.dataclass
class Epochs(Recipe):
    """A recipe that brings its own loop."""
    samples: int = 0                 # of the held-out set per batch of an evaluation; 0: half of it
    half: typing.Optional[torch.dtype] = None  # of autocast
    scaler: typing.Optional[typing.Callable] = None  # () → GradScaler
    divides: bool = True             # unscales before it clips
    sharp: float = 0.0               # radius of the second pass (SAM)
    average: typing.Optional[typing.Callable] = None  # (mean, now, step) → mean, of the weights that are evaluated
    after_update: list = dataclasses.field(default_factory=list)  # f(step, model)
    values: typing.Optional[typing.Callable] = None  # (output, y) → {name: value} that is logged beside the loss
    module: bool = False             # the loss is given to watch()

    def run(self, seed, out, job, name):
        """(uid, step of the best evaluation, [(step, mean loss)] of the evaluations, of which the first nobody sees: before the training)."""
        return _Run(self, seed, out, job, name).all()


def _sharper(parameters, radius):
    """Goes to where the loss is highest nearby; gives the way back."""
    with torch.no_grad():
        grads = [one.grad for one in parameters if one.grad is not None]
        norm = torch.sqrt(sum(one.square().sum() for one in grads)) + 1e-12
        ways = [(one, one.grad * (radius / norm)) for one in parameters if one.grad is not None]
        for one, way in ways:
            one.add_(way)
    return ways


class _Run:
    def __init__(self, made, seed, out, job, name):
        self.made, self.source = made, torch.Generator().manual_seed(seed)
        chosen = (made.parameters or (lambda model: model.parameters()))(made.model)
        optimizers = made.optimizer(chosen)
        self.optimizers = optimizers if isinstance(optimizers, list) else [optimizers]
        made.model.train(made.trains)
        for prepare in made.prepare:
            for optimizer in self.optimizers:
                prepare(made, optimizer)
        self.schedulers = [made.schedule(one) for one in self.optimizers] if made.schedule else []
        self.scaler = made.scaler() if made.scaler else None
        self.mean = copy.deepcopy(made.model) if made.average else None
        self.first = self._quality()
        self.watched = made.module and isinstance(made.loss, torch.nn.Module)
        self.hook = tocsin.watch(made.model, self.optimizers[0], out=out, run=name, job=job, capture=CAPTURE, loss=made.loss if self.watched else None)
        for other in self.optimizers[1:]:
            tocsin.watch(made.model, other)

    def _context(self):
        return torch.autocast("cpu", self.made.half) if self.made.half else contextlib.nullcontext()

    def _held(self):
        """(model, batches of the held-out set)."""
        x, y = self.made.split.held_x, self.made.split.held_y
        size = self.made.samples or max(len(x) // 2, 1)
        return self.mean or self.made.model, [(x[at:at + size], y[at:at + size]) for at in range(0, len(x) - len(x) % size or 1, size)]

    def _quality(self):
        """The loss on the held-out set before the hook watches; leaves no trace in the random numbers."""
        state, (model, parts) = torch.get_rng_state(), self._held()
        model.eval()
        with torch.no_grad(), self._context():
            losses = [float(self.made.loss(model(x), y)) for x, y in parts]
        self.made.model.train(self.made.trains)
        torch.set_rng_state(state)
        return sum(losses) / len(losses)

    def _evaluate(self):
        model, parts = self._held()
        model.train(not self.made.evaluates)
        with self.hook.mode("eval"), torch.no_grad(), self._context():
            losses = []
            for x, y in parts:
                loss = self.made.loss(model(x), y)
                if not (self.watched and model is self.made.model):
                    self.hook.log(loss=loss.float())
                self.hook.step()
                losses.append(float(loss))
        self.made.model.train(self.made.trains)
        return sum(losses) / len(losses)

    def _loss(self, step, x, y):
        with self._context():
            output = self.made.model(x)
            loss = self.made.loss(output, y)
        return output, loss

    def _backward(self, step, loss):
        loss = self.made.derive(step, loss.float() / self.made.gathers)
        (self.scaler.scale(loss) if self.scaler else loss).backward()

    def _update(self, step, batches):
        made = self.made
        if made.zero_grad:
            for optimizer in self.optimizers:
                optimizer.zero_grad()
        total = 0.0
        for x, y in batches:
            output, loss = self._loss(step, x, y)
            self._backward(step, loss)
            total += float(loss) / len(batches)
        ways = _sharper(list(made.model.parameters()), made.sharp) if made.sharp else []
        if ways:
            for optimizer in self.optimizers:
                optimizer.zero_grad()
            self._backward(step, self._loss(step, *batches[-1])[1])
            with torch.no_grad():
                for one, way in ways:
                    one.sub_(way)
        if not self.watched:
            self.hook.log(loss=total)
        if made.values:
            self.hook.log(**made.values(output.detach(), y))
        self._step(step)

    def _step(self, step):
        made = self.made
        if self.scaler and made.divides:
            for optimizer in self.optimizers:
                self.scaler.unscale_(optimizer)
        if made.clip:
            torch.nn.utils.clip_grad_norm_(made.model.parameters(), made.clip)
        for change in made.before_update:
            for optimizer in self.optimizers:
                change(step, made.model, optimizer)
        for optimizer in self.optimizers:
            if self.scaler:
                self.scaler.step(optimizer)
            else:
                optimizer.step()
        if self.scaler:
            self.scaler.update()
        for scheduler in self.schedulers:
            scheduler.step()
        for change in made.after_update:
            change(step, made.model)
        if self.mean is not None:
            self._follow(step)

    @torch.no_grad()
    def _follow(self, step):
        for one, now in zip(self.mean.parameters(), self.made.model.parameters()):
            one.copy_(self.made.average(one, now, step))
        for one, now in zip(self.mean.buffers(), self.made.model.buffers()):
            one.copy_(now)

    def _batches(self):
        made = self.made
        while True:
            x, y = made.split.x, made.split.y
            order = torch.randperm(len(x), generator=self.source) if made.shuffle else torch.arange(len(x))
            size = min(made.batch, len(x))
            for at in range(0, len(x) - size + 1, size):
                yield x[order[at:at + size]], y[order[at:at + size]]

    def all(self):
        """Trains."""
        made, passes, source = self.made, [], self._batches()
        for step in range(made.steps):
            parts = []
            for _ in range(made.gathers):
                x, y = next(source)
                for change in made.on_batch:
                    x, y = change(step, x, y)
                parts.append((x, y))
            self._update(step, parts)
            if (step + 1) % made.evaluate_every == 0:
                passes.append((self._evaluate(), step))
        uid = self.hook.run
        self.hook.close(timeout=20)
        best = min((one for one in passes if one[0] == one[0]), default=(0.0, 0))[1]
        return uid, best, [(0, self.first), *((step, loss) for loss, step in passes)]
