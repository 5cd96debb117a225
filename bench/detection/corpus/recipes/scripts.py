"""A loop: what most scripts do. Batches come from a DataLoader, an evaluation is an epoch's, logged are the names people use
(loss, train_loss, val_loss, val_accuracy), each step, each tenth, or once per epoch, with or without a word that this is an evaluation."""
import contextlib
import dataclasses
import typing

import torch
from torch.optim.swa_utils import AveragedModel
from torch.utils.data import DataLoader, TensorDataset

import tocsin

from .epochs import Epochs
from .training import CAPTURE


@dataclasses.dataclass
class Script(Epochs):
    """A recipe as a script of today has it. Faults change what they change of any recipe."""
    says: str = "before"             # the loss is logged "before" or "after" the update, by the loss "module", each "tenth" step, or of "epochs"
    tells: str = "mean"              # an evaluation: each of its "batches", its "mean" in the mode, or "plain" values (val_loss) after model.train()
    transform: typing.Optional[typing.Callable] = None  # (x, y) → (x, y), of training batches, behind what faults do
    judged: typing.Optional[typing.Callable] = None     # (output, y) → the loss of an evaluation, where it is another one
    scores: typing.Optional[typing.Callable] = None     # (output, y) of the evaluation → {name: value}
    plateau: typing.Optional[typing.Callable] = None    # (optimizer) → scheduler that is told each evaluation
    by_epoch: bool = False           # the scheduler steps after each evaluation
    norms: bool = False              # the norm of the gradients is logged
    frees: bool = False              # modules that are frozen stay in their eval state

    def __post_init__(self):
        if self.says == "tenth":
            self.log_every = 10
        elif self.says == "epochs":
            self.log_every = self.evaluate_every

    def run(self, seed, out, job, name):
        """(uid, step of the best evaluation, [(step, mean loss)] of the evaluations, the first before the training)."""
        return _Training(self, seed, out, job, name).all()


class _Training:
    def __init__(self, made, seed, out, job, name):
        self.made, self.generator = made, torch.Generator().manual_seed(seed)
        optimizers = made.optimizer((made.parameters or (lambda model: model.parameters()))(made.model))
        self.optimizers = optimizers if isinstance(optimizers, list) else [optimizers]
        made.model.train(made.trains)
        for prepare in made.prepare:
            for optimizer in self.optimizers:
                prepare(made, optimizer)
        self.schedulers = [made.schedule(one) for one in self.optimizers] if made.schedule else []
        self.plateaus = [made.plateau(one) for one in self.optimizers] if made.plateau else []
        self.scaler = made.scaler() if made.scaler else None
        self.mean = AveragedModel(made.model, avg_fn=made.average) if made.average else None
        self.watched = made.says == "module" and isinstance(made.loss, torch.nn.Module)
        self.seen, self.logged = [], []
        state = torch.get_rng_state()
        self.first = self._passed()[0]
        torch.set_rng_state(state)
        self.hook = tocsin.watch(made.model, self.optimizers[0], out=out, run=name, job=job, capture=CAPTURE,
                                 **({"loss": made.loss} if self.watched else {}))
        for other in self.optimizers[1:]:
            tocsin.watch(made.model, other)

    def _context(self):
        return torch.autocast("cpu", self.made.half) if self.made.half else contextlib.nullcontext()

    def _train_mode(self):
        self.made.model.train(self.made.trains)
        if self.made.frees:
            for one in self.made.model.modules():
                own = list(one.parameters(recurse=True))
                if own and not any(p.requires_grad for p in own):
                    one.eval()

    def _passed(self, batch=lambda loss: None):
        """One pass over the held-out set: (mean loss, scores)."""
        made, model = self.made, self.mean or self.made.model
        model.train(not made.evaluates)
        outputs, labels, losses = [], [], []
        with torch.no_grad():
            for x, y in DataLoader(TensorDataset(made.split.held_x, made.split.held_y), made.samples or max(len(made.split.held_x) // 2, 1)):
                with self._context():
                    output = model(x)
                    loss = (made.judged or made.loss)(output, y)
                outputs.append(output)
                labels.append(y)
                losses.append(float(loss))
                batch(losses[-1])
            scores = made.scores(torch.cat(outputs).float(), torch.cat(labels)) if made.scores else {}
        self._train_mode()
        return sum(losses) / len(losses), scores

    def _evaluate(self):
        made, hook = self.made, self.hook
        if made.tells == "batches":
            def batch(loss):
                if not self.watched or self.mean is not None or made.judged:
                    hook.log(loss=loss)
                hook.step()
            with hook.mode("eval"):
                mean, _ = self._passed(batch)
        elif made.tells == "mean":
            with hook.mode("eval"):
                mean, scores = self._passed()
                hook.log(loss=mean, **scores)
                hook.step()
        else:
            mean, scores = self._passed()
            more = {"train_loss": sum(self.seen) / max(len(self.seen), 1)} if made.says == "epochs" else {}
            hook.log(**more, val_loss=mean, **{f"val_{name}": value for name, value in scores.items()})
        if made.says == "epochs" and made.tells != "plain":
            hook.log(train_loss=sum(self.seen) / max(len(self.seen), 1))
        self.seen = []
        for plateau in self.plateaus:
            plateau.step(mean)
        return mean

    def loss(self, x, y):
        """The output and the loss of a batch."""
        with self._context():
            output = self.made.model(x)
            return output, self.made.loss(output, y)

    def batches(self):
        """Without end, epoch after epoch."""
        made = self.made
        while True:
            data = TensorDataset(made.split.x, made.split.y)
            yield from DataLoader(data, min(made.batch, len(data)), shuffle=made.shuffle, drop_last=True,
                                  generator=self.generator if made.shuffle else None)

    def _log(self, loss):
        self.seen.append(loss)
        self.logged.append(loss)
        if self.made.says in ("before", "after"):
            self.hook.log(loss=loss)
        elif self.made.says == "tenth" and len(self.logged) == 10:
            self.hook.log(loss=sum(self.logged) / 10)
        self.logged = self.logged[-9:] if len(self.logged) < 10 else []

    def _update(self, step, source):
        made, total = self.made, 0.0
        if made.zero_grad:
            for optimizer in self.optimizers:
                optimizer.zero_grad()
        for _ in range(made.gathers):
            x, y = next(source)
            for change in made.on_batch:
                x, y = change(step, x, y)
            if made.transform:
                x, y = made.transform(x, y)
            output, loss = self.loss(x, y)
            derived = made.derive(step, loss.float() / made.gathers)
            (self.scaler.scale(derived) if self.scaler else derived).backward()
            total += loss.item() / made.gathers
        if self.scaler and made.divides:
            for optimizer in self.optimizers:
                self.scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(made.model.parameters(), made.clip) if made.clip else None
        for change in made.before_update:
            for optimizer in self.optimizers:
                change(step, made.model, optimizer)
        if made.norms and norm is not None:
            self.hook.log(grad_norm=norm)
        if made.values:
            self.hook.log(**made.values(output.detach(), y))
        if made.says != "after":
            self._log(total)
        for optimizer in self.optimizers:
            if self.scaler:
                self.scaler.step(optimizer)
            else:
                optimizer.step()
        if self.scaler:
            self.scaler.update()
        if made.says == "after":
            self._log(total)
        if self.mean is not None:
            self.mean.update_parameters(made.model)
        for change in made.after_update:
            change(step, made.model)

    def all(self):
        """Trains."""
        made, passes, source = self.made, [], self.batches()
        self._train_mode()
        for step in range(made.steps):
            self._update(step, source)
            ends = (step + 1) % made.evaluate_every == 0
            if ends:
                passes.append((self._evaluate(), step))
            for scheduler in self.schedulers if ends or not made.by_epoch else ():
                scheduler.step()
        uid = self.hook.run
        self.hook.close(timeout=20)
        best = min((one for one in passes if one[0] == one[0]), default=(0.0, 0))[1]
        return uid, best, [(0, self.first), *((step, loss) for loss, step in passes)]
