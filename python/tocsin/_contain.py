"""No exception of ours reaches the training script."""

import functools
from typing import Any, Callable


def contained(default: Any = None) -> Callable:
    """A method of a hook: off when the hook is, and an error is counted, not raised."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.enabled:
                return default
            try:
                return function(self, *args, **kwargs)
            except Exception as error:  # noqa: BLE001 - containment is the point
                self._failed(function.__name__, error)
                return default

        return wrapper

    return decorate
