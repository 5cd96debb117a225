"""Opening the hook of a process: the one that is there, or a new one, with what it is to watch."""

import warnings
from typing import Any, Mapping, Optional, Type

from tocsin.adapters.attach import attach
from tocsin.loop.phases import Wanted
from tocsin.process import lifetime

# What belongs to a run, and is said with the first watch() of it.
SETTINGS = ("run", "job", "labels", "out", "capture", "config", "rules", "stop")


def opened(kind: Type[Any], given: Mapping[str, Any], model: Any = None, optimizer: Any = None, loss: Any = None,
           name: Optional[str] = None, phases: Wanted = True) -> Any:
    """What :func:`tocsin.watch` does. ``kind``: the class of a new hook; ``given``: its SETTINGS, as far as they were given.
    Warnings name the line that called the caller of this function."""
    said = {key: given.get(key) for key in SETTINGS}
    hook = lifetime.hook_of(said["run"], said["job"])
    if hook is not None and (model is not None or optimizer is not None) and hook.sink.deserted():
        said = {key: value if value is not None else hook.said.get(key) for key, value in said.items()}
        lifetime.end_former(hook)
        hook = None
    if hook is None:
        hook = kind(**said)
        hook.said = said
        lifetime.keep(hook)
    else:
        text = _late(hook, said)
        if text:
            hook.errors.add("watch", ValueError(f"{text} comes with the first watch() of a run"))
            warnings.warn(f"tocsin: watch({text}…) changes nothing: the run is open, and its settings came with the first watch(); "
                          "close() the hook first, or name another run", RuntimeWarning, stacklevel=3)
    if hook.enabled:
        try:
            attach(hook.sink, model, optimizer, loss, name, phases)
        except Exception as error:  # noqa: BLE001
            hook.errors.add("watch", error)
            warnings.warn(f"tocsin cannot watch this: {error}", RuntimeWarning, stacklevel=3)
    return hook


def _late(hook: Any, said: Mapping[str, Any]) -> str:
    """What was said now and not with the first watch() of the run: it changes nothing, and nobody should believe that it does."""
    late = [name for name in SETTINGS[2:] if said[name] is not None and not _same(said[name], hook.said.get(name))]
    return " and ".join(f"{name}=" for name in late)


def _same(one: Any, other: Any) -> bool:
    """Of what a script may give, an array or a configuration object too."""
    try:
        return one is other or bool(one == other) or getattr(one, "__dict__", one) == getattr(other, "__dict__", other)
    except Exception:  # noqa: BLE001
        return False
