"""Tocsin's training hook: watches tensors and scalars, and asks the loop to stop when a rule says so.

    import tocsin
    hook = tocsin.watch(model, optimizer)
    for batch in loader:
        loss = train_step(batch)
        hook.log(loss=loss)
        if hook.should_stop():
            break

Importing the package starts nothing and loads no library; work begins at the first ``watch``.
"""

from .hook.commands import StopRequest
from .hook.hook import EXIT_STOPPED, Hook
from .hook.watching import get_hook, unwatch, watch

__version__ = "0.2.0"
# Seldom needed, and not small: loaded when they are asked for.
_CONFIG = ("CollectionConfig", "DebuggerHookConfig", "ReductionConfig", "SaveConfig", "SaveConfigMode")
__all__ = ["EXIT_STOPPED", "Hook", "Rule", "StopRequest", "__version__", "get_hook", "unwatch", "watch", *_CONFIG]


def __getattr__(name):
    if name in _CONFIG or name == "DebugHookConfig":  # the job description's word for it
        from .settings import hook_config
        return getattr(hook_config, name.replace("DebugHook", "DebuggerHook"))
    if name == "Rule":  # a training process needs none
        from .rules import Rule
        return Rule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
