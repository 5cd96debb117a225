"""How often a gradient scaler was asked for an update, and left it out: it does not call an ordinary optimizer then, so no step of the
hook's tells of it. ``GradScaler.step`` is replaced as long as the hook is open; it returns what it returned before."""

import functools
import sys
import weakref
from typing import Any, Callable, Optional, Tuple

from tocsin.loop.sink import Sink
from tocsin.process.replacing import Replacing

PLACES = (("torch.amp.grad_scaler", "GradScaler"), ("torch.cuda.amp.grad_scaler", "GradScaler"))
_LARGE = 256.0  # a scale that may begin lower tells nothing of a limit
_scaled: "weakref.WeakKeyDictionary[Any, bool]" = weakref.WeakKeyDictionary()  # gradients at the call of step(), by optimizer
# (the step at which a scaler asked for an update of an optimizer, how often it has asked in it): an update that is made ends the step
_in_vain: "weakref.WeakKeyDictionary[Any, Tuple[Any, int]]" = weakref.WeakKeyDictionary()
_scaler: "weakref.WeakKeyDictionary[Any, Any]" = weakref.WeakKeyDictionary()  # weakly, the one that asked last, by optimizer
_asked: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()  # updates since the last that was made, by optimizer
listening: "weakref.WeakSet[Any]" = weakref.WeakSet()  # who is told before and after each call of step()


class Scalers(Replacing):
    """Of one hook."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink = sink
        for module, name in PLACES:
            owner = getattr(sys.modules.get(module), name, None)
            inner = getattr(owner, "__dict__", {}).get("step")
            if inner is not None:
                ours = _counted(weakref.ref(sink), inner)
                self.replace(owner, "step", ours)
                ours.__dict__["_tocsin_keeps"] = self  # the sink holds it weakly
        sink.attach(self)


def asked(optimizer: Any) -> Optional[int]:
    """How often a scaler was asked for an update of it since this was called last; None: never."""
    count = _asked.get(optimizer)
    if count is not None:
        _asked[optimizer] = 0
    return count


def in_vain(optimizer: Any) -> int:
    """How often a scaler has asked for an update of it since an update was made, the newest time left out. For any thread."""
    return _in_vain.get(optimizer, (None, 0))[1]


def was_asked(optimizer: Any) -> bool:
    """A scaler was asked for an update of it."""
    return optimizer in _asked


def is_scaled(optimizer: Any) -> bool:
    """Its gradients were still multiplied by the loss scale when the scaler was asked for this update."""
    return bool(_scaled.get(optimizer))


def scale_of(optimizer: Any) -> Optional[Any]:
    """A tensor with the scale of the loss, of the scaler that asked for its newest update; None: no scaler has."""
    made = _scaler.get(optimizer)
    return getattr(made() if made is not None else None, "_scale", None)


def _counted(sink: Callable[[], Optional[Sink]], inner: Any) -> Any:
    @functools.wraps(inner)
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        watching = sink()
        if watching is not None and watching.active and getattr(self, "_enabled", False):
            with watching.guard("scaler"):
                _asked[optimizer] = _asked.get(optimizer, 0) + 1
                _scaler[optimizer] = weakref.ref(self)
                at, before = watching.clock.position(), _in_vain.get(optimizer)
                _in_vain[optimizer] = (at, before[1] + 1 if before is not None and before[0] == at else 0)
                state = getattr(self, "_per_optimizer_states", {}).get(id(optimizer)) or {}
                _scaled[optimizer] = getattr(state.get("stage"), "value", 0) == 0 and getattr(self, "_init_scale", 0.0) > _LARGE
        if not listening:
            return inner(self, optimizer, *args, **kwargs)
        for one in list(listening):
            one.ask(self, optimizer)
        try:
            return inner(self, optimizer, *args, **kwargs)
        finally:
            for one in list(listening):
                one.asked()

    return step
