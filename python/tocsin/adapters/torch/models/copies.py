"""Hooks on modules that a copy of the model, or a pickled one, has none of."""

import sys
from collections import OrderedDict
from contextlib import nullcontext
from typing import Any, Callable, Iterable


class Hook:
    """In a copy it is a function of the standard library that does nothing."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return getattr, (nullcontext(), "__exit__")


class Calls(Hook):
    """``function``, while the module is the one that was hooked."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function

    def __call__(self, *given: Any) -> None:
        self._function(*given)


def is_ours(hook: Any) -> bool:
    """Also of a copy."""
    return isinstance(hook, Hook) or isinstance(getattr(hook, "__self__", None), nullcontext)


class Uncounted(OrderedDict):  # type: ignore[type-arg]
    """A module's hooks, of which ours are not counted: ``nn.TransformerEncoderLayer`` leaves its fast path, which gives other
    numbers, where a module in it has any. All of them are called. A copy, or a pickled one, holds the others only."""

    def __len__(self) -> int:
        return sum(1 for hook in self.values() if not is_ours(hook))

    def __bool__(self) -> bool:
        return any(True for _ in self)

    def __reduce__(self) -> Any:
        return OrderedDict, ([(key, hook) for key, hook in self.items() if not is_ours(hook)],)

    def __reduce_ex__(self, protocol: Any) -> Any:
        del protocol
        return self.__reduce__()


def uncount(model: Any, hooked: Iterable[Any]) -> None:
    """Before hooks are added to the modules ``hooked``: has ours not counted in those that lie in an encoder layer of ``model``
    or are one. What has hooks of others has no fast path, and keeps them as they are: their handles know the dictionary."""
    layer = getattr(sys.modules["torch"].nn, "TransformerEncoderLayer", None)
    if layer is None or not hasattr(model, "modules"):
        return
    inside = {id(part) for one in model.modules() if isinstance(one, layer) for part in one.modules()}
    for module in hooked:
        for kind in ("_forward_pre_hooks", "_forward_hooks") if id(module) in inside else ():
            hooks = getattr(module, kind)
            if type(hooks) is OrderedDict and not hooks:
                setattr(module, kind, Uncounted())
