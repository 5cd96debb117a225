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
    elif rules and hook.judge is None:
        hook.errors.add("watch", ValueError("rules= comes with the first watch() of a run"))
    if hook.enabled:
        try:
            adapters.attach(hook.sink, model, optimizer, loss, name, phases)
        except Exception as error:  # noqa: BLE001
            hook.errors.add("watch", error)
            warnings.warn(f"tocsin cannot watch this: {error}", RuntimeWarning, stacklevel=2)
    return hook


def unwatch(model: Any = None) -> None:
    """:meth:`Hook.unwatch` of the open hook; without one it does nothing."""
    hook = _lifetime.open_hook()
    if hook is not None:
        hook.unwatch(model)


def get_hook() -> Optional[Hook]:
    """The open hook of this process, or None."""
    return _lifetime.open_hook()
