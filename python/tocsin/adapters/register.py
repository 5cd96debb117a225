"""A model that is registered before its optimizer is known, as the original's hooks have it."""

import gc
import sys
import weakref
from typing import Any, Callable, List

from .attach import attach


def register(hook: Any, model: Any) -> None:
    """Watches the model, and its optimizers as they are found."""
    if not hasattr(model, "named_parameters"):
        raise TypeError(f"register_module: a torch.nn.Module, not {type(model).__name__}")
    torch = sys.modules["torch"]
    there = [one for one in gc.get_objects() if isinstance(one, torch.optim.Optimizer) and _updates(one, model)]
    for optimizer in there:
        attach(hook.sink, model, optimizer, None)
    if there:
        return
    before = set(map(id, hook.sink.adapters()))
    attach(hook.sink, model, None, None)
    alone = [one for one in hook.sink.adapters() if id(one) not in before]
    _when_it_updates(torch, weakref.ref(hook), weakref.ref(model), alone)


def _updates(optimizer: Any, model: Any) -> bool:
    parameters = {id(one) for one in model.parameters()}
    return any(id(one) in parameters for group in optimizer.param_groups for one in group["params"])


def _when_it_updates(torch: Any, hook: Callable[[], Any], model: Callable[[], Any], alone: List[Any]) -> None:
    """At an optimizer's first update, by the hook for all of them (torch 2); where there is none, when one is made.
    ``alone``: what watches the model until then."""
    seen: "weakref.WeakSet[Any]" = weakref.WeakSet()

    def met(optimizer: Any) -> None:
        watching, watched = hook(), model()
        if watching is None or not watching.enabled or watched is None or optimizer in seen:
            return
        seen.add(optimizer)
        with watching.sink.guard("register_module"):
            if _updates(optimizer, watched):
                while alone:
                    watching.sink.let_go(alone.pop())
                attach(watching.sink, watched, optimizer, None)

    optimizers = sys.modules.get("torch.optim.optimizer")  # torch 1.13 hides it
    every = getattr(optimizers, "register_optimizer_step_pre_hook", None)
    if every is not None:
        every(lambda optimizer, args, kwargs: met(optimizer))
        return
    inner = torch.optim.Optimizer.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        inner(self, *args, **kwargs)
        met(self)

    torch.optim.Optimizer.__init__ = init
