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
    """Start watching a training, and return its hook.

    Never raises. If something is wrong you get one warning, and the hook is off (``hook.enabled`` is False).

    ``model``, ``optimizer``: what to watch. ``loss``: a loss module; its output is logged as ``loss``.
    ``run``, ``job``: names. Without them the launcher or the process gives the run a name.
    ``name``: a prefix for the tensors of this model and optimizer, when a loop has several. Without it, a model
    whose parameter names are taken gets the name of its class as prefix.
    ``out``: ``"kafka://host:9092"`` or a directory. Default: TOCSIN_BROKERS, TOCSIN_OUT, the configuration file,
    then ``./tocsin-data``.
    ``capture``: the section ``capture`` as a dictionary; it overrides the file that ``config`` names.
    ``phases``: which phases of a step are timed. True: all. False: only the update. Or a list of names.
    ``rules``: rules that judge in a thread of this process. Names of rules and groups (``"default"``), a list of
    names or configuration items, a YAML file, or True for the rules of the configuration.
    ``stop``: which of these rules may stop the run: a severity, rule names, or True for ``error`` and above.

    Called again, ``watch`` returns the same hook and attaches what is new. Another ``run`` or ``job`` first closes
    the former hook, as failed if something was raised meanwhile, and detaches its optimizers. The same happens in a
    run of one process when every watched model has been updated and is gone: a notebook cell that runs again, or the
    next turn of a sweep. Arguments that you leave out then keep their former values.
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
    """Call :meth:`Hook.unwatch` of the open hook. Without one, do nothing."""
    hook = _lifetime.open_hook()
    if hook is not None:
        hook.unwatch(model)


def get_hook() -> Optional[Hook]:
    """Return the open hook of this process, or None."""
    return _lifetime.open_hook()
