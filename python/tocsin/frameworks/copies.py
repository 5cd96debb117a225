"""Copies and pickles of a trainer's callback, which holds an open hook, handles and data that neither survive."""

from typing import Any, Dict, Tuple


class Copyable:
    """A copy of such a callback, or what a pickle gives back, is a new one with the same arguments: estimators are cloned with
    their callbacks, and models are saved with them. What it remembers of a training is ``stopped``."""

    _left_out: Tuple[str, ...] = ()  # arguments by keyword that go into no pickle: data, which is no part of a model
    _carried: Tuple[str, ...] = ()  # attributes that say what the callback is for

    _made_with: Tuple[Tuple[Any, ...], Dict[str, Any]] = ((), {})
    _watcher: Any = None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        return super().__new__(cls)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "__init__" in cls.__dict__:
            cls.__init__ = _remembering(cls.__init__)  # type: ignore[method-assign]

    def __copy__(self) -> Any:
        args, kwargs = self._made_with
        return _made(type(self), args, kwargs, self._state())

    def __deepcopy__(self, memo: Dict[int, Any]) -> Any:
        out = memo[id(self)] = self.__copy__()
        return out

    def __reduce_ex__(self, protocol: Any) -> Any:
        args, kwargs = self._made_with
        kept = {name: value for name, value in kwargs.items() if name not in self._left_out}
        return _made, (type(self), args, kept, self._state())

    def _state(self) -> Dict[str, Any]:
        own = {name: self.__dict__[name] for name in self._carried if name in self.__dict__}
        return {"stopped": getattr(self._watcher, "stopped", None), "own": own}


def _remembering(init: Any) -> Any:
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> None:
        if "_made_with" not in self.__dict__:  # the outermost class's own arguments
            self._made_with = (args, dict(kwargs))
        init(self, *args, **kwargs)

    wrapped.__wrapped__ = init  # type: ignore[attr-defined]  # help() and inspect show the arguments of the class itself
    wrapped.__doc__, wrapped.__name__, wrapped.__qualname__ = init.__doc__, init.__name__, init.__qualname__
    return wrapped


def _made(cls: Any, args: Tuple[Any, ...], kwargs: Dict[str, Any], state: Dict[str, Any]) -> Any:
    out = cls(*args, **kwargs)
    if getattr(out, "_watcher", None) is not None:
        out._watcher.stopped = state["stopped"]
    out.__dict__.update(state["own"])
    return out
