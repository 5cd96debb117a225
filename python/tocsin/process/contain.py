"""No exception of ours reaches the training script."""

import functools
import warnings
from typing import Any, Callable, Dict


class Errors:
    """What was skipped because it could not be used: counted by place, said once."""

    def __init__(self) -> None:
        self.counts: Dict[str, int] = {}
        self.last = ""

    def add(self, where: str, error: BaseException) -> None:
        first = not self.counts
        self.counts[where] = self.counts.get(where, 0) + 1
        self.last = f"{where}: {type(error).__name__}: {error}"
        if first:
            warnings.warn(f"tocsin skips what it cannot use, first in {self.last} "
                          "(counted in stats())", RuntimeWarning, stacklevel=4)


def contained(default: Any = None, when_closed: bool = False) -> Callable:
    """For a method of an object with ``enabled`` and ``errors``: off when the object is (unless
    ``when_closed``), and an error is counted, not raised."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.enabled and not when_closed:
                return default
            try:
                return function(self, *args, **kwargs)
            except Exception as error:  # noqa: BLE001 - containment is the point
                self.errors.add(function.__name__, error)
                return default

        return wrapper

    return decorate


class Guard:
    """A context manager cheaper than contextlib's: it stands around every step."""

    __slots__ = ("_errors", "_where")

    def __init__(self, errors: Errors, where: str) -> None:
        self._errors, self._where = errors, where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        self._errors.add(self._where, error)
        return True
