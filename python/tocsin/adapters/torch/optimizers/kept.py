"""Whether gradients are ever cleared: without ``optimizer.zero_grad()`` each update is made of all gradients since the start."""

import sys
from typing import Any, Iterable, Optional

from .zero import is_deepspeed

_LARGEST = 65_536  # elements of the parameter that is watched: looking at it shall cost nothing
_TRIED = 8  # of the smallest, until one has a gradient
_INTERVALS = 2  # between updates, that must all be so: the first may be a script's own preparation


class KeptGradient:
    """Of the smallest parameter of an optimizer that has a gradient. Cleared is a gradient that is none, another tensor, or zeros when a backward pass comes to
    add to it, or another tensor at the next update. Where that cannot be told (compiled, sharded, packed) nothing is said."""

    def __init__(self) -> None:
        self._parameter: Optional[Any] = None
        self._handle: Optional[Any] = None
        self._gradient: Optional[Any] = None  # as it was at the last update
        self._passes = 0  # backward passes since then
        self._cleared = False
        self._intervals = 0

    def update(self, optimizer: Any, parameters: Iterable[Any]) -> None:
        """At an update, before it is made."""
        if self._cleared or self._intervals >= _INTERVALS:
            return
        if self._parameter is None:
            self._begin(optimizer, parameters)
            return
        if self._passes == 0 or self._parameter.grad is not self._gradient:
            self._end()
            return
        self._intervals += 1
        self._passes = 0
        if self._intervals == _INTERVALS:
            self._let_go()

    def kept(self) -> bool:
        """Whether no gradient was cleared in all that was seen."""
        return self._intervals >= _INTERVALS and not self._cleared

    def _begin(self, optimizer: Any, parameters: Iterable[Any]) -> None:
        # A hook on a leaf may make a compiled function compile anew.
        fit = [] if _compiles() or is_deepspeed(optimizer) else [one for one in parameters if _tells(one)]
        # One whose gradient is all zeros tells nothing: the first matrix of LoRA at its first update.
        few = sorted(fit, key=lambda one: one.numel())[:_TRIED]
        self._parameter = next((one for one in few if bool((one.grad != 0).any())), None)
        if self._parameter is None:
            self._cleared = True
            return
        self._gradient = self._parameter.grad
        self._handle = self._parameter.register_hook(self._arrives)

    def _arrives(self, _: Any) -> None:
        """A backward pass has a gradient for it, which is not added yet."""
        try:
            self._passes += 1
            now = self._parameter.grad if self._parameter is not None else None
            if now is None or now is not self._gradient or not bool((now != 0).any()):
                self._end()
        except Exception:  # of a subclass of tensors, perhaps: the job's backward pass goes on
            self._end()

    def _end(self) -> None:
        self._cleared = True
        self._let_go()

    def _let_go(self) -> None:
        if self._handle is not None:
            self._handle.remove()
        self._handle = self._parameter = self._gradient = None


def _compiles() -> bool:
    """Whether anything was compiled in this process. The module alone says nothing: optimizers load it."""
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    return bool(counters and counters.get("frames"))


def _tells(parameter: Any) -> bool:
    gradient = parameter.grad
    return (gradient is not None and parameter.is_leaf and not hasattr(parameter, "to_local") and not gradient.is_sparse
            and type(gradient).__name__ in ("Tensor", "Parameter") and 0 < parameter.numel() <= _LARGEST)
