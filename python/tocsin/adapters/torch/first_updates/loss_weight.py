"""With which weight the loss of each backward pass enters its update: a trainer that accumulates divides by the number of passes, once is enough.

The weight is the gradient that the loss itself gets. With k passes per update it is 1/k; 1/k² says that the script has divided, too. Only means
over a batch are looked at, with one loss per pass, for k of 3 and more: a factor of ½ belongs to many squared errors.
"""

import weakref
from typing import Any, List

from tocsin.loop.sink import Sink

_LEAST = 3  # passes per update
_NEAR = 1e-4  # float32 divides twice
_INTERVALS = 2
listening: "weakref.WeakSet[LossWeight]" = weakref.WeakSet()


class LossWeight:
    """Of one optimizer, until ``end()``."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._now: List[Any] = []  # gradients of losses since the last update
        self._calls = 0
        self._intervals: List[List[Any]] = []
        self._clean = True
        listening.add(self)

    def called(self, result: Any, reduction: Any) -> None:
        """A loss function of PyTorch was called."""
        if not getattr(result, "requires_grad", False) or result.numel() != 1 or self._sink.clock.mode != "train":
            return
        self._calls += 1
        self._clean = self._clean and reduction == "mean"
        result.register_hook(_Weighs(weakref.ref(self)))

    def weighs(self, gradient: Any) -> None:
        self._now.append(gradient.detach())

    def update(self, first: bool) -> None:
        """At an update, before it is made. What came before the first one may have begun before the hook."""
        if not first:
            self._clean = self._clean and self._calls == len(self._now)
            self._intervals.append(self._now)
        self._now, self._calls = [], 0

    def give_up(self) -> None:
        self._clean = False

    def end(self) -> None:
        listening.discard(self)

    def divided_twice(self, passes: int, planned: int, scale: float) -> bool:
        """``passes`` per update, of which so many are ``planned``. ``scale``: of a gradient scaler, 1 without one."""
        if not self._clean or planned < _LEAST or passes != planned or len(self._intervals) < _INTERVALS:
            return False
        if any(len(one) != passes for one in self._intervals):
            return False
        weights = [float(weight) / scale for one in self._intervals for weight in one]
        return all(abs(weight * passes * passes - 1) < _NEAR for weight in weights)


class _Weighs:
    """A hook on a loss."""

    __slots__ = ("_mine",)
    __torch_unserializable__ = True  # nobody is warned who saves the loss

    def __init__(self, mine: Any) -> None:
        self._mine = mine

    def __call__(self, gradient: Any) -> None:
        mine = self._mine()
        if mine is not None:
            mine.weighs(gradient)


def tell(result: Any, reduction: Any) -> None:
    for one in list(listening):
        try:
            one.called(result, reduction)
        except Exception:  # of a transformed or subclassed tensor: nothing is said of this training
            one.give_up()
