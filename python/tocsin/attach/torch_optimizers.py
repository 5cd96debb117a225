"""PyTorch under `tocsin run`: at its first update an optimizer is watched, with the model whose parameters it holds."""

import gc
import sys
import weakref
from typing import Any, Callable, List, Optional, Tuple

from tocsin.adapters.torch.optimizers import hooks
from tocsin.hook.watching import watch
from tocsin.process import lifetime
from .stop import obey

_hook: Optional[Any] = None  # that was opened here
_seen: "weakref.WeakSet[Any]" = weakref.WeakSet()


def begin(torch: Any, guarded: Callable[..., Any], say: Callable[[str], None]) -> None:
    """By the hook for all optimizers (torch 2); where there is none, by each optimizer's own."""
    def first_step(optimizer: Any) -> None:
        if optimizer not in _seen:
            _seen.add(optimizer)
            guarded("a PyTorch optimizer", _attach, torch, optimizer, say)

    optimizers = sys.modules.get("torch.optim.optimizer")  # torch 1.13 hides it
    register = getattr(optimizers, "register_optimizer_step_pre_hook", None)
    if register is not None:
        register(lambda optimizer, args, kwargs: first_step(optimizer))
        return
    inner = torch.optim.Optimizer.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        inner(self, *args, **kwargs)
        guarded("a PyTorch optimizer", _once, self, first_step)

    torch.optim.Optimizer.__init__ = init


def _once(optimizer: Any, first_step: Callable[[Any], None]) -> None:
    """``first_step(optimizer)`` before its first update."""
    weak = weakref.ref(optimizer)

    def before(_: Any) -> None:
        alive = weak()
        if alive is not None and alive not in _seen:
            first_step(alive)

    hooks.install(optimizer, before, lambda: None)


def _attach(torch: Any, optimizer: Any, say: Callable[[str], None]) -> None:
    global _hook
    opened = lifetime.open_hook()
    if opened is not None and opened is not _hook:
        return  # the script, or a trainer's callback, watches by itself
    model, loss = _model_of(torch, optimizer)
    _hook = watch(model, optimizer, loss=loss)
    if _hook.enabled:
        # After those of the adapter: by then the update has ended.
        hooks.install(optimizer, lambda _: None, lambda: _obey(say))
        if opened is None:
            _close_with_child()
    if _hook.enabled and _hook.rank == 0:
        name = "parameters of no module" if model is None else type(model).__name__
        also = "" if loss is None else f", the output of {type(loss).__name__} is its loss"
        say(f"attached to {type(optimizer).__name__} of {name}{also}")


def _obey(say: Callable[[str], None]) -> None:
    if _hook is not None and _hook is lifetime.open_hook():
        obey(_hook, say)


def _close_with_child() -> None:
    """A process of multiprocessing ends without the interpreter's exit handlers; it has its own."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None and process.parent_process() is not None:
        from multiprocessing import util

        util.Finalize(None, _end_of_child, exitpriority=10)


def _end_of_child() -> None:
    if _hook is not None and _hook is lifetime.open_hook():
        error = sys.exc_info()[1]
        _hook.close(**lifetime.ending_of(None if error is None else type(error), error))


def _model_of(torch: Any, optimizer: Any) -> Tuple[Any, Any]:
    """(model, loss module): the outermost module with most of the optimizer's parameters, and the loss module
    of the process if there is just one. Looked for among all objects, once per optimizer."""
    module = torch.nn.Module
    alive: List[Any] = [one for one in gc.get_objects() if issubclass(type(one), module)]
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}

    def fits(one: Any) -> Tuple[int, int]:
        return (sum(id(parameter) in held for parameter in one.parameters()), sum(1 for _ in one.modules()))

    best, most = None, (0, 0)
    for one in alive:
        found = fits(one)
        if found > most:
            best, most = one, found
    inside = set() if best is None else {id(part) for part in best.modules()}
    losses = [one for one in alive if type(one).__name__.endswith("Loss") and id(one) not in inside]
    return best, losses[0] if len(losses) == 1 else None
