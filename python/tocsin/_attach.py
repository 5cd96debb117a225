"""`tocsin run -- python train.py`: attaches the hook to what the script imports, without a line of code.

`tocsin run` puts a start-up module on PYTHONPATH, which loads this file, by its path, in every interpreter below: it must be quick, and
imports the package only when there is something to attach to. Whatever goes wrong here is one line on stderr; the script goes on.

Attaches by public means: callbacks of trainers, torch's hook for all optimizers. A script that calls ``tocsin.watch`` itself is left alone.
"""

import functools
import inspect
import os
import sys

_SAID = set()


def say(text):
    """Once per text; nothing with TOCSIN_QUIET=1."""
    if text not in _SAID and os.environ.get("TOCSIN_QUIET", "0") in ("", "0"):
        _SAID.add(text)
        try:
            print(f"tocsin: {text}", file=sys.stderr, flush=True)
        except Exception:  # noqa: BLE001 - stderr may be closed
            pass


def guarded(what, function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001 - the script is not ours to break
        say(f"cannot attach to {what}: {type(error).__name__}: {error}")
        return None


def _ours(callbacks):
    return any(type(one).__module__.startswith("tocsin.") or
               getattr(one, "__module__", "").startswith("tocsin.") for one in callbacks or ())


def after_init(owner, what, add):
    """``add(instance)`` after each of the class's instances is made."""
    inner = owner.__init__

    @functools.wraps(inner)
    def init(self, *args, **kwargs):
        inner(self, *args, **kwargs)
        if getattr(self, "_tocsin_attached", None) is None:  # of a subclass that calls its parent's
            guarded(what, _mark, self)
            guarded(what, add, self)

    owner.__init__ = init


def _mark(instance):
    instance._tocsin_attached = True


def with_callback(function, what, make):
    """The function with one callback more in its argument ``callbacks``."""
    signature = inspect.signature(function)

    def added(args, kwargs):
        bound = signature.bind(*args, **kwargs)
        given = bound.arguments.get("callbacks")
        callbacks = list(given) if isinstance(given, (list, tuple, set)) else [] if given is None else [given]
        if _ours(callbacks):
            return None
        bound.arguments["callbacks"] = [*callbacks, make()]
        say(f"attached to {what}")
        return bound

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        bound = guarded(what, added, args, kwargs)
        return function(*args, **kwargs) if bound is None else function(*bound.args, **bound.kwargs)

    return wrapper


# ---- one function per framework, called with the module when its import is through


def _torch(torch):
    from tocsin.attach import torch_optimizers
    torch_optimizers.begin(torch, guarded, say)


def _transformers(module):
    def add(trainer):
        from tocsin.frameworks.transformers import TocsinCallback
        if not _ours(trainer.callback_handler.callbacks):
            trainer.add_callback(TocsinCallback())
            say("attached to transformers.Trainer")

    after_init(module.Trainer, "transformers.Trainer", add)


def _lightning(module):
    def add(trainer):
        from tocsin.frameworks.lightning import TocsinCallback
        if not _ours(trainer.callbacks):
            trainer.callbacks.append(TocsinCallback())
            say("attached to lightning.Trainer")

    after_init(module.Trainer, "lightning.Trainer", add)


def _boosting(module, make):
    wrapped = with_callback(module.train, f"{module.__name__}.train", make)
    for place in ("", ".training", ".engine", ".sklearn"):
        holder = sys.modules.get(module.__name__ + place)
        if holder is not None and getattr(holder, "train", None) is wrapped.__wrapped__:
            holder.train = wrapped


def _xgboost(module):
    def make():
        from tocsin.frameworks.xgboost import TocsinCallback
        return TocsinCallback()

    _boosting(module, make)


def _lightgbm(module):
    def make():
        from tocsin.frameworks.lightgbm import callback
        return callback()

    _boosting(module, make)


def _keras(module):
    def make():
        from tocsin.frameworks.keras import TocsinCallback
        return TocsinCallback()

    module.Model.fit = with_callback(module.Model.fit, "keras.Model.fit", make)


FRAMEWORKS = {"torch": _torch, "transformers.trainer": _transformers, "lightning.pytorch": _lightning,
              "pytorch_lightning": _lightning, "xgboost": _xgboost, "lightgbm": _lightgbm, "keras": _keras}


class Imports:
    """A finder that finds nothing by itself: it lets the others find, and is told when such a module's code has run."""

    def __init__(self):
        self._left = dict(FRAMEWORKS)

    def find_spec(self, name, path=None, target=None):
        attach = self._left.pop(name, None)
        if attach is None:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = None if finder is self or find is None else find(name, path, target)
            if spec is not None:
                guarded(name, _follow, spec, attach)
                return spec
        self._left[name] = attach  # not there (yet)
        return None


def _follow(spec, attach):
    loader, run = spec.loader, spec.loader.exec_module

    def exec_module(module):
        del loader.exec_module  # the loader is as it was: others look into it
        run(module)
        guarded(spec.name, attach, module)

    loader.exec_module = exec_module


def begin():
    for switch in ("TOCSIN_DISABLED", "TOCSIN_DISABLE"):
        if os.environ.get(switch, "0") not in ("", "0"):
            return
    sys.meta_path.insert(0, Imports())
