"""The order of a gradient scaler's calls around the first updates: scale, backward pass, step.

PyTorch itself raises where ``unscale_`` comes twice or behind ``step``, where ``step`` comes twice without ``update``, and where ``update`` comes
before ``step``. Two faults pass in silence: the optimizer is called without the scaler, or the backward pass begins at the loss that was not scaled.
Methods of ``GradScaler`` are replaced until enough was seen; they return what they returned before.
"""

import functools
import sys
import weakref
from typing import Any, Callable, Dict, List, Tuple

from tocsin.adapters.torch.optimizers.hooks import unwrapped
from tocsin.adapters.torch.optimizers.scalers import PLACES, listening
from tocsin.loop.sink import Sink

_NAMES = ("scale", "unscale_", "get_scale")
_LEAST = 2  # updates, that must all be so
_watching: "weakref.WeakSet[ScalerOrder]" = weakref.WeakSet()
_undo: List[Tuple[Any, str, Any, Any]] = []
_ours: Dict[str, Any] = {}


class ScalerOrder:
    """Of one optimizer, from ``watch()`` until ``end()``."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._scaled = self._through = self._divided = False  # since the last update
        self._ever_asked = False  # of any optimizer
        self._scaler: Any = lambda: None  # the one that has asked
        self._asked: Any = None  # the optimizer whose update a scaler has asked for
        self._direct: List[bool] = []  # updates that used scaled gradients
        self._unscaled: List[bool] = []  # updates whose gradients were divided, and never multiplied
        _watching.add(self)
        listening.add(self)
        _replace()
        weakref.finalize(self, _put_back).atexit = False

    def update(self, optimizer: Any) -> None:
        """At an update, before it is made."""
        mine = self._asked is not None and self._asked() is optimizer
        self._direct.append(self._through and not self._divided and not mine)
        self._unscaled.append(mine and not self._through)
        self._scaled = self._through = self._divided = False

    def end(self) -> None:
        """Enough was seen."""
        _watching.discard(self)
        listening.discard(self)
        _put_back()

    def left_out(self) -> bool:
        """No scaler is asked for updates, although losses are scaled."""
        return len(self._direct) >= _LEAST and all(self._direct) and not self._ever_asked

    def not_scaled(self) -> bool:
        """A scaler makes the updates, and no backward pass goes through a loss that it has scaled. The first update may belong to a pass of before."""
        return len(self._unscaled) > _LEAST and all(self._unscaled[1:])

    def loss_scale(self) -> float:
        """What losses are multiplied by; 0: nobody knows."""
        if not self._ever_asked:
            return 1.0
        scaler = self._scaler()
        return float(scaler.get_scale()) if scaler is not None else 0.0

    # ---- what is called

    def scale(self, scaler: Any, result: Any) -> None:
        if not _multiplies(scaler):
            return
        self._scaled = True
        for one in result if isinstance(result, (tuple, list)) else (result,):
            if getattr(one, "requires_grad", False) and hasattr(one, "register_hook"):
                one.register_hook(_Passes(weakref.ref(self)))

    def passes(self) -> None:
        self._through, self._divided = True, False

    def divide(self) -> None:
        """Somebody divides by the scale, or has asked for it to do so."""
        self._divided = True

    def ask(self, scaler: Any, optimizer: Any) -> None:
        with self._sink.guard("scaler_order"):
            self._ever_asked, self._scaler = True, weakref.ref(scaler)
            # A subclass that scales by a function of its own is not seen to.
            ours = _multiplies(scaler) and getattr(type(scaler), "scale", None) is _ours.get("scale")
            self._asked = weakref.ref(unwrapped(optimizer)) if ours else None

    def asked(self) -> None:
        self._asked = None


class _Passes:
    """A hook on a scaled loss."""

    __slots__ = ("_order",)
    __torch_unserializable__ = True  # nobody is warned who saves the loss

    def __init__(self, order: Any) -> None:
        self._order = order

    def __call__(self, _: Any) -> None:
        order = self._order()
        if order is not None:
            order.passes()


def _multiplies(scaler: Any) -> bool:
    return bool(getattr(scaler, "_enabled", False)) and getattr(scaler, "_init_scale", 0.0) > 1.0


def _replace() -> None:
    if _undo:
        return
    for module, name in PLACES:
        owner = getattr(sys.modules.get(module), name, None)
        for method in _NAMES:
            inner = getattr(owner, "__dict__", {}).get(method)
            if inner is None or inner is _ours.get(method):
                continue
            ours = _AROUND[method](inner)
            setattr(owner, method, ours)
            _ours[method] = ours
            _undo.append((owner, method, ours, inner))


def _put_back() -> None:
    """Once nobody watches; what somebody else has replaced in the meantime stays his, and ours in it does nothing more."""
    if list(_watching):
        return
    while _undo:
        owner, name, ours, inner = _undo.pop()
        if owner.__dict__.get(name) is ours:
            setattr(owner, name, inner)
    _ours.clear()


def _told(what: Callable[["ScalerOrder"], None]) -> None:
    for one in list(_watching):
        with one._sink.guard("scaler_order"):
            what(one)


def _around_scale(inner: Any) -> Any:
    @functools.wraps(inner)
    def scale(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = inner(self, *args, **kwargs)
        if _watching:
            _told(lambda one: one.scale(self, result))
        return result

    return scale


def _around_division(inner: Any) -> Any:
    @functools.wraps(inner)
    def divide(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _watching and getattr(self, "_enabled", False):
            _told(ScalerOrder.divide)
        return inner(self, *args, **kwargs)

    return divide


_AROUND: Dict[str, Callable[[Any], Any]] = {"scale": _around_scale, "unscale_": _around_division, "get_scale": _around_division}
