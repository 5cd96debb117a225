"""``watch()``: the one way to a hook."""

from typing import Any, Mapping, Optional

from tocsin.loop.phases import Wanted
from tocsin.process import lifetime
from .hook import Capture, Hook, Rules, Stop
from .opening import opened


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
    hook: Hook = opened(Hook, said, model, optimizer, loss, name, phases)
    return hook


def unwatch(model: Any = None) -> None:
    """Call :meth:`Hook.unwatch` of the open hook. Without one, do nothing."""
    hook = lifetime.open_hook()
    if hook is not None:
        hook.unwatch(model)


def get_hook() -> Optional[Hook]:
    """Return the open hook of this process, or None."""
    return lifetime.open_hook()
