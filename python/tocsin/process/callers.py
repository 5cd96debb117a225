"""What a trainer that calls a callback has in its hands and does not hand over: how many rounds, which other callbacks."""

import sys
from typing import Any, Collection, Dict

_DEPTH = 24  # frames above the callback


def locals_of(module: str, functions: Collection[str]) -> Dict[str, Any]:
    """Local variables of the nearest caller of this module (``xgboost.``: or one inside of that package) and function, read once;
    {}: there is none."""
    frame = sys._getframe(1)
    for _ in range(_DEPTH):
        if frame is None:
            break
        name = str(frame.f_globals.get("__name__", ""))
        if frame.f_code.co_name in functions and (name == module or (module.endswith(".") and name.startswith(module))):
            return dict(frame.f_locals)
        frame = frame.f_back  # type: ignore[assignment]
    return {}


def any_named(objects: Any, *names: str) -> bool:
    """Whether one of the objects is of a class of such a name, or of one that inherits from it."""
    try:
        return any(kind.__name__ in names for one in objects or () for kind in type(one).__mro__)
    except TypeError:  # nothing to go through
        return False
