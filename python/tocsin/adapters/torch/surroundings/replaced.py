"""Parameters that were replaced after their optimizer was made (a new head, weights that were loaded as new tensors, tying): it goes on with
the old ones, and those of the model do not change any more. What the first updates show, Preflight tells; this looks again later.

Looked at from the thread that says where the process stands, after 1, 2, 4, … seconds: never in the loop.
"""

import time
from typing import Any, Dict, List, Optional, Set, Tuple

from tocsin.adapters.torch.first_updates.fresh import mark
from tocsin.adapters.torch.first_updates.preflight import trainable
from tocsin.adapters.torch.optimizers.zero import is_deepspeed
from tocsin.tensors.torch_names import is_sharded

_MAX_NAMES = 20


class Replaced:
    """Of one hook."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._next, self._wait = 0.0, 1.0
        self._updates = -1
        self._first = True
        self._before: Dict[str, Any] = {}  # at the look before: the replaced ones, as they were
        self._told = False

    def look(self, counters: Dict[str, Any], now: Optional[float] = None) -> Optional[Dict[str, Any]]:
        """A finding (docs/wire.md, ``preflight``), once; else None. ``counters``: of the library."""
        now = time.monotonic() if now is None else now
        updates = int(counters.get("global_step", 0))
        if self._told or now < self._next or updates < 4 or updates == self._updates or counters.get("mode") != "train":
            return None
        self._next, self._wait, self._updates = now + self._wait, 2 * self._wait, updates
        try:
            model, found = self._replaced()
        except (RuntimeError, ReferenceError):  # the loop changes the model at this moment
            return None
        before, self._before = self._before, found
        stays = [name for name, state in found.items() if before.get(name, ()) == state]
        if self._first:  # as it was in the first updates: that was told, or meant
            self._first, self._told = False, bool(found)
            return None
        if not stays:
            return None
        self._told = True
        return {"kind": "no_optimizer", "model": model, "count": len(stays), "names": stays[:_MAX_NAMES]}

    def _replaced(self) -> Tuple[str, Dict[str, Any]]:
        """(class of the model, {name: state}) of trainable parameters in no optimizer, where an optimizer holds others of their shape
        that no model has."""
        parts = [(adapter, *adapter.parts()) for adapter in self._sink.adapters() if hasattr(adapter, "named_parameters")]
        optimizers = [optimizer for _, _, optimizer in parts if optimizer is not None]
        if any(is_deepspeed(one) for one in optimizers):
            return "", {}
        held: Set[int] = {id(one) for optimizer in optimizers for one in trainable(optimizer)}
        known: Set[int] = {id(one) for _, model, _ in parts if model is not None for one in model.parameters()}
        for _, model, optimizer in parts:
            if model is None or optimizer is None or not model.training:
                continue
            old: List[Any] = [one for one in trainable(optimizer) if id(one) not in known]
            if not old or is_sharded(model, old):
                continue
            shapes = {tuple(one.shape) for one in old}
            found = {name: (id(one), mark(one)) for name, one in model.named_parameters()
                     if one.requires_grad and id(one) not in held and tuple(one.shape) in shapes}
            if found:
                return type(model).__name__, found
        return "", {}


def sentence(finding: Dict[str, Any]) -> str:
    """For the person at the terminal."""
    shown = ", ".join(finding["names"][:5]) + (", …" if finding["count"] > 5 else "")
    return (f"{finding['count']} trainable parameters of {finding['model']} were replaced: its optimizer still holds the old ones, and these do "
            f"not change: {shown}")
