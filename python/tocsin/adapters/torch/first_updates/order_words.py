"""What the order of calls around the first updates says, as findings of ``training_preflight``."""

import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

from .loss_weight import LossWeight
from .order import Order
from .scaler_order import ScalerOrder

Found = Tuple[str, List[str], int, str]  # kind, names, count, sentence

_CLEARED = ("gradients of {} are cleared between backward() and optimizer.step(), so updates use none of them, call optimizer.zero_grad() before "
            "backward()")
_REUSED = "the optimizer of {} makes two updates from one backward pass, call optimizer.step() once per backward()"
_TWICE = "each update of {} changes {} of its parameters twice, they are in a second group or optimizer, give each parameter to one group"
_FIRST = ("the schedule of the learning rate of {} steps before the optimizer, so its first rate is never used, call scheduler.step() after "
          "optimizer.step()")
_SCHEDULE_TWICE = ("the schedule of the learning rate of {} steps twice per backward pass, so it ends in half the time, call scheduler.step() once "
                   "per update")
_LEFT_OUT = ("the optimizer of {} uses gradients that are still multiplied by the loss scale, call scaler.step(optimizer) in the place of "
             "optimizer.step()")
_NOT_SCALED = ("the scaler divides gradients of {} by a loss scale that they were never multiplied by, call scaler.scale(loss).backward()")
_ACCUMULATION = ("the optimizer of {} makes an update after each backward pass, although {} passes per update are planned, step only after the "
                 "last of them")
_DIVIDED = "the loss of {} is divided by {} twice, by the script and by its trainer, leave the division out of the script"


def findings(order: Order, scaler: Optional[ScalerOrder], weight: Optional[LossWeight], model: str, names: Dict[int, str],
             planned: Optional[float]) -> Iterator[Found]:
    """``names`` of parameters by id(). ``planned``: backward passes per update, where the script or its trainer says so."""
    if order.cleared():
        yield "gradients_cleared", [], 0, _CLEARED.format(model)
    if order.reused():
        yield "gradients_reused", [], 0, _REUSED.format(model)
    twice = [names.get(key, "without a name") for key in order.twice()]
    if twice:
        yield "parameter_twice", twice, len(twice), _TWICE.format(model, len(twice))
    early, double = order.schedules_before_update(), order.schedules_twice()
    if early:
        yield "schedule_first", early, len(early), _FIRST.format(model)
    if double:
        yield "schedule_twice", double, len(double), _SCHEDULE_TWICE.format(model)
    if scaler is not None and scaler.left_out():
        yield "scaler_left_out", [], 0, _LEFT_OUT.format(model)
    if scaler is not None and scaler.not_scaled():
        yield "loss_not_scaled", [], 0, _NOT_SCALED.format(model)
    count = int(planned or _of_accelerate())
    if count > 1 and order.passes() == 1:
        yield "accumulation_left_out", [], count, _ACCUMULATION.format(model, count)
    scale = 1.0 if scaler is None else scaler.loss_scale()
    if weight is not None and scale > 0 and weight.divided_twice(order.passes(), count, scale):
        yield "loss_divided_twice", [], count, _DIVIDED.format(model, count)


def _of_accelerate() -> int:
    """Micro-batches per update that an ``Accelerator`` was made for."""
    state: Any = getattr(sys.modules.get("accelerate.state"), "GradientState", None)
    kept = getattr(state, "_shared_state", None) or {}
    return int((kept.get("plugin_kwargs") or {}).get("num_steps") or 1)
