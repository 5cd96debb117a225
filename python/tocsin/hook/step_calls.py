"""``hook.log()`` and ``hook.should_stop()`` as functions of the library (collectors/hook/abi/abi_steps.cc)."""

import weakref
from typing import Any, Callable, Dict, Mapping

from tocsin.library.abi import Client


def calls_of(hook: Any, client: Client, scalars: Mapping[str, int]) -> Dict[str, Callable[..., Any]]:
    """By name; {}: the library has none. They do what is to be done while the clock is lent, and call the hook's own methods
    at all other times. They know the hook weakly: it keeps them."""
    mine, kind = weakref.ref(hook), type(hook)

    def own(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            one = mine()
            return None if one is None else method(one, *args, **kwargs)

        return call

    return client.calls(own(kind.log), own(kind.should_stop), scalars) or {}
