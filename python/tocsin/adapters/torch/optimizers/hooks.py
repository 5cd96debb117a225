"""Where a PyTorch optimizer is hooked: around its update, and between a closure and the update."""

import functools
import sys
import types
import weakref
from typing import Any, Callable, Optional, Tuple

from .zero import is_deepspeed

Closure = Callable[..., Any]
# Called before the update with its closure, if it has one; what it gives back is called instead.
Before = Callable[[Optional[Closure]], Optional[Closure]]

_HOLDERS = ("optimizer", "_optimizer")  # AcceleratedOptimizer, LightningOptimizer and their like


def unwrapped(optimizer: Any) -> Any:
    """The optimizer that updates, inside of those that only pass ``step()`` on to it."""
    for _ in range(8):
        if is_deepspeed(optimizer):  # the one inside updates piece by piece, without names
            return optimizer
        held = (getattr(optimizer, name, None) for name in _HOLDERS)
        inner = next((one for one in held if one is not None and one is not optimizer
                      and hasattr(one, "param_groups") and callable(getattr(one, "step", None))),
                     None)
        if inner is None:
            return optimizer
        optimizer = inner
    return optimizer


def install(optimizer: Any, before: Before, after: Callable[[], None], kept: Any = None) -> Callable[[], None]:
    """Has both called around each update. Returns what undoes it. The optimizer keeps ``kept``.

    By the optimizer's own hooks (torch 2) or, where it has none (torch 1.13), by a bound method on the
    instance that calls the one before it.
    """
    if hasattr(optimizer, "register_step_pre_hook") and hasattr(optimizer,
                                                                "register_step_post_hook"):
        return _register(optimizer, before, after, kept)
    return _wrap(optimizer, before, after, kept)


def _register(optimizer: Any, before: Before, after: Callable[[], None], kept: Any) -> Callable[[], None]:
    def before_step(_: Any, args: Any, kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:  # args[0] is the optimizer
            before(None)
            return None
        return _replaced(before, args, kwargs, 1)

    def after_step(*_: Any, _kept: Any = kept) -> None:
        after()

    handles = [optimizer.register_step_pre_hook(_untraced(before_step)),
               optimizer.register_step_post_hook(_untraced(after_step))]

    def undo() -> None:
        for handle in handles:
            handle.remove()

    return undo


def _untraced(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled ``step()`` calls it as it is. Importing the compiler would take seconds: torch does so
    when it makes an optimizer, and where it has not, nothing is compiled."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    disable = getattr(compiler, "disable", None)
    return disable(hook) if disable is not None and "torch._dynamo" in sys.modules else hook


def _wrap(optimizer: Any, before: Before, after: Callable[[], None], kept: Any) -> Callable[[], None]:
    inner = optimizer.step
    had_own = "step" in optimizer.__dict__
    watched = weakref.ref(optimizer)

    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not args and not kwargs:
            before(None)
            result = inner()
        else:
            replaced = _replaced(before, args, kwargs, 0)
            if replaced is not None:
                args, kwargs = replaced
            result = inner(*args, **kwargs)
        after()
        return result

    # Copies __dict__ too: the marks `hooked` (profiler) and `_with_counter` (schedulers) stay, and a
    # scheduler made later finds __self__ and __func__ because this is a bound method.
    functools.update_wrapper(step, inner)
    step._tocsin_keeps = kept  # type: ignore[attr-defined]
    bound = types.MethodType(step, optimizer)
    optimizer.step = bound

    def undo() -> None:
        # Somebody may have wrapped us since; then we stay, and do nothing.
        own = watched()
        if own is not None and own.__dict__.get("step") is bound:
            if had_own:
                own.step = inner
            else:
                del own.__dict__["step"]

    return undo


def _replaced(before: Before, args: Tuple[Any, ...], kwargs: Any, place: int) -> Any:
    """Calls ``before`` with the closure among the arguments of ``step()``, by name or at ``place``.
    The arguments with another closure, or None: they stay."""
    named = kwargs.get("closure")
    closure = named if named is not None else args[place] if len(args) > place else None
    instead = before(closure if callable(closure) else None)
    if instead is None:
        return None
    if named is not None:
        return args, {**kwargs, "closure": instead}
    return args[:place] + (instead,) + args[place + 1:], kwargs
