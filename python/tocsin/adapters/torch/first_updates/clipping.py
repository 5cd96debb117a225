"""Whether gradients are clipped in time: behind the backward pass and the division by the loss scale, before the update that uses them.

Only the first updates are looked at. ``clip_grad_norm_`` and ``clip_grad_value_`` of ``torch.nn.utils`` are replaced until then; they get and
return what they did before.
"""

import functools
import math
import sys
import weakref
from typing import Any, Iterable, List, Optional, Tuple

from tocsin.adapters.torch.optimizers.kept import _tells
from tocsin.adapters.torch.optimizers.scalers import is_scaled
from tocsin.loop.sink import Sink

_FUNCTIONS = ("clip_grad_norm_", "clip_grad_value_")
_PLACES = ("torch.nn.utils.clip_grad", "torch.nn.utils")
_INTERVALS = 2  # between updates, that must all be so
# A scale begins at 2^16. A limit above may be one that the script has multiplied by the scale itself.
_MOST = 256.0
_watching: "weakref.WeakSet[Clipping]" = weakref.WeakSet()
_undo: List[Tuple[Any, str, Any, Any]] = []


class Clipping:
    """Of the smallest parameter of one optimizer that has a gradient."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._parameter: Optional[Any] = None
        self._used: Tuple[int, int] = (0, 0)  # the gradient of the last update: its id() and version
        self._in_time = self._too_late = self._scaled = 0  # intervals
        self._clips: List[str] = []  # since the last update
        self._limit = math.inf
        _watching.add(self)
        _replace()
        weakref.finalize(self, _put_back).atexit = False

    def clipped(self, parameters: Iterable[Any], limit: float) -> None:
        """A clip function is called."""
        with self._sink.guard("clipping"):
            mine = self._parameter
            if mine is None or mine.grad is None or not limit < math.inf or all(one is not mine for one in parameters):
                return
            self._clips.append("late" if _mark(mine.grad) == self._used else "in time")
            self._limit = limit

    def update(self, optimizer: Any, parameters: Iterable[Any]) -> None:
        """At an update, before it is made."""
        if self._parameter is None:
            fit = sorted((one for one in parameters if _tells(one)), key=lambda one: int(one.numel()))
            self._parameter = fit[0] if fit else None
        else:
            self._too_late += self._clips == ["late"]
            self._in_time += "in time" in self._clips
            self._scaled += self._clips == ["in time"] and is_scaled(optimizer) and self._limit < _MOST
        self._clips = []
        if self._parameter is not None and self._parameter.grad is not None:
            self._used = _mark(self._parameter.grad)

    def end(self) -> None:
        """Enough was seen."""
        self._parameter = None
        _watching.discard(self)
        _put_back()

    def kind(self) -> Optional[str]:
        if self._too_late >= _INTERVALS and self._in_time == 0:
            return "clipped_late"
        return "clipped_scaled" if self._scaled >= _INTERVALS else None


SENTENCES = {
    "clipped_late": "gradients of {} are clipped after the update that used them, clip between backward() and optimizer.step()",
    "clipped_scaled": "gradients of {} are clipped while they are multiplied by the loss scale, call scaler.unscale_(optimizer) before",
}


def _mark(gradient: Any) -> Tuple[int, int]:
    return id(gradient), int(gradient._version)


def _replace() -> None:
    for name in _FUNCTIONS if not _undo else ():
        inner = getattr(sys.modules.get(_PLACES[0]), name, None)
        if inner is None:
            continue
        ours = _around(inner)
        for place in _PLACES:
            owner = sys.modules.get(place)
            if getattr(owner, name, None) is inner:
                setattr(owner, name, ours)
                _undo.append((owner, name, ours, inner))


def _put_back() -> None:
    """Once nobody watches; unless somebody else has replaced it in the meantime: what he calls is ours then, which does nothing more."""
    while _undo and not list(_watching):  # of one that just ended the set still has the reference
        owner, name, ours, inner = _undo.pop()
        if getattr(owner, name, None) is ours:
            setattr(owner, name, inner)


def _around(inner: Any) -> Any:
    compiling = getattr(getattr(sys.modules["torch"], "compiler", None), "is_compiling", None) or _never

    @functools.wraps(inner)
    def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        if compiling() or not _watching:
            return inner(parameters, *args, **kwargs)
        if not hasattr(parameters, "grad") and not isinstance(parameters, (list, tuple)):
            parameters = list(parameters)  # it may be a generator
        limit = args[0] if args else kwargs.get("max_norm", kwargs.get("clip_value"))
        for one in list(_watching):
            one.clipped([parameters] if hasattr(parameters, "grad") else parameters,
                        float(limit) if isinstance(limit, (int, float)) else math.inf)
        return inner(parameters, *args, **kwargs)

    return clip


def _never() -> bool:
    return False
