"""Hooks on modules that a copy of the model, or a pickled one, has none of."""

from contextlib import nullcontext
from typing import Any, Callable


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
