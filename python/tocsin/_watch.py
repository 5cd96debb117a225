"""``watch()``: the one way to a hook."""

import warnings
from typing import Any, Mapping, Optional

from . import _lifetime, adapters
from ._phases import Wanted
from .hook import Capture, Hook, Rules, Stop


def watch(model: Any = None, optimizer: Any = None, *, name: Optional[str] = None,
          run: Optional[str] = None, job: Optional[str] = None,
          labels: Optional[Mapping[str, str]] = None, out: Optional[str] = None,
          capture: Capture = None, config: Optional[str] = None, loss: Any = None,
          phases: Wanted = True, rules: Rules = None, stop: Stop = None) -> Hook:
    """Starts watching; called again it gives the same hook and attaches what is new. With another
    ``run`` or ``job`` it first closes the hook of the former one, as failed if something was raised
    in the meantime, and lets its optimizers go. The same happens, in a run of one process, where all that the former
    watched has updated and is gone: a cell that is run again, the next of a sweep. What is not said then is as it was.

    ``name``: prefix of the tensors of this model and optimizer, where a loop has several. Without it a
    model whose parameters are named like those of one before gets the name of its class.

    ``out``: ``"kafka://host:9092"``, a directory, or None: TOCSIN_BROKERS, TOCSIN_OUT, the
    configuration file, then ``./tocsin-data``. ``loss``: a loss module whose output is logged as
    ``loss``. ``phases``: what is timed without being asked for (docs/hook.md): all of it, False for the update alone, or
    names. ``rules``: who judges in a thread of this process, with nothing else to
    start: names of rules and groups (``"default"``), a list of them or of items as in a configuration,
    a YAML file, or True for those of the configuration. What they find is a line on stderr and stands in
    ``hook.issues()``. ``stop``: which of them may stop the run (``hook.should_stop()``): a severity, names of
    rules, or True for ``error`` and above. Never raises: what is wrong is one warning, and the hook is off (``hook.enabled``).
    """
    said = {"run": run, "job": job, "labels": labels, "out": out, "capture": capture, "config": config, "rules": rules,
            "stop": stop}
    hook = _lifetime.hook_of(run, job)
    if hook is not None and (model is not None or optimizer is not None) and hook.sink.deserted():
        said = {key: value if value is not None else hook.said.get(key) for key, value in said.items()}
        _lifetime.end_former(hook)
        hook = None
    if hook is None:
        hook = Hook(**said)
        hook.said = said
        _lifetime.keep(hook)
    else:
        _say_what_comes_late(hook, said)
    if hook.enabled:
        try:
            adapters.attach(hook.sink, model, optimizer, loss, name, phases)
        except Exception as error:  # noqa: BLE001
            hook.errors.add("watch", error)
            warnings.warn(f"tocsin cannot watch this: {error}", RuntimeWarning, stacklevel=2)
    return hook


def _say_what_comes_late(hook: Hook, said: Mapping[str, Any]) -> None:
    """Settings belong to a run: a later watch() of it changes none, and nobody should believe that it does."""
    late = [name for name in ("labels", "out", "capture", "config", "rules", "stop")
            if said[name] is not None and not _same(said[name], hook.said.get(name))]
    if not late:
        return
    text = " and ".join(f"{name}=" for name in late)
    hook.errors.add("watch", ValueError(f"{text} comes with the first watch() of a run"))
    warnings.warn(f"tocsin: watch({text}…) changes nothing: the run is open, and its settings came with the first watch(); "
                  "close() the hook first, or name another run", RuntimeWarning, stacklevel=3)


def _same(one: Any, other: Any) -> bool:
    """Of what a script may give, an array or a configuration object too."""
    try:
        return one is other or bool(one == other) or getattr(one, "__dict__", one) == getattr(other, "__dict__", other)
    except Exception:  # noqa: BLE001
        return False


def unwatch(model: Any = None) -> None:
    """:meth:`Hook.unwatch` of the open hook; without one it does nothing."""
    hook = _lifetime.open_hook()
    if hook is not None:
        hook.unwatch(model)


def get_hook() -> Optional[Hook]:
    """The open hook of this process, or None."""
    return _lifetime.open_hook()
