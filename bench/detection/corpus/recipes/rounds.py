"""The loop of epochs.py, but an evaluation is one value, the mean of its batches, as most scripts log it; and a rate that falls when it stands still."""
import dataclasses
import typing

import torch

from .epochs import Epochs, _Run


@dataclasses.dataclass
class Rounds(Epochs):
    """A recipe whose evaluations are one step each."""
    plateau: typing.Optional[typing.Callable] = None  # (optimizer) → scheduler that is told each evaluation

    def run(self, seed, out, job, name):
        """As Epochs does."""
        return _Rounds(self, seed, out, job, name).all()


class _Rounds(_Run):
    def __init__(self, made, *rest):
        super().__init__(made, *rest)
        self.plateaus = [made.plateau(one) for one in self.optimizers] if made.plateau else []

    def _evaluate(self):
        model, parts = self._held()
        model.train(not self.made.evaluates)
        with self.hook.mode("eval"), torch.no_grad(), self._context():
            mean = sum(float(self.made.loss(model(x), y)) for x, y in parts) / len(parts)
            self.hook.log(loss=mean)
            self.hook.step()
        self.made.model.train(self.made.trains)
        for plateau in self.plateaus:
            plateau.step(mean)
        return mean
