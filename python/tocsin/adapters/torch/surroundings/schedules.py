"""Schedules of learning rates: how long they are, and how often they step.

A scheduler that was made before ``watch()`` is nowhere to be found, so ``step()`` of PyTorch's schedulers is replaced as
long as the hook is open: it counts, and looks at the scheduler at doubled counts only. Names, classes and results stay."""

import functools
import sys
import weakref
from threading import get_ident
from typing import Any, Optional, Set, Tuple

from tocsin.adapters.torch.first_updates.order import anybody_watches, schedule_stepped
from tocsin.adapters.torch.optimizers.hooks import unwrapped
from tocsin.loop.sink import Sink
from tocsin.process.replacing import Replacing
from .schedule_ends import end_of, follows_metric

# Between two looks: so many updates or scheduler steps tell one step per update from one per epoch, although mixed precision
# may have left out some of the first updates.
_LEAST_UPDATES, _LEAST_STEPS = 8, 16
_NEAR = 0.125  # of a whole number, which it then is


class _Seen:
    """One scheduler."""

    __slots__ = ("count", "before", "stride")

    def __init__(self) -> None:
        self.count = 0
        self.before: Optional[Tuple[int, int]] = None  # (count, updates) of the look before
        self.stride: Optional[float] = None


class Schedules(Replacing):
    """Of one hook, and of the thread that called ``watch()``."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self.sink, self.thread = sink, get_ident()
        self.inside = False
        self._seen: "weakref.WeakKeyDictionary[Any, _Seen]" = weakref.WeakKeyDictionary()
        # Schedulers that have stepped, by optimizer; it remembers those that are gone.
        self._many: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()
        with sink.guard("schedules"):
            self._replace()
        sink.attach(self)  # held weakly: what is replaced keeps it

    def _replace(self) -> None:
        module = sys.modules.get("torch.optim.lr_scheduler")
        for owner in list(vars(module).values()) if module is not None else ():
            inner = vars(owner).get("step") if isinstance(owner, type) else None
            if inner is not None and owner.__module__ == module.__name__:  # type: ignore[union-attr]
                ours = self._around(inner)
                self.replace(owner, "step", ours)

    def _around(self, inner: Any) -> Any:
        compiling = getattr(getattr(sys.modules["torch"], "compiler", None), "is_compiling", None) or _never

        @functools.wraps(inner)
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            # One that is a part of another steps inside of it.
            if compiling() or self.inside or not self.sink.active or get_ident() != self.thread:
                return inner(scheduler, *args, **kwargs)
            self.inside = True
            try:
                result = inner(scheduler, *args, **kwargs)
            finally:
                self.inside = False
            self._stepped(scheduler)
            if anybody_watches() and not args and not kwargs and getattr(scheduler, "_step_count", 2) > 1:  # 1: it is being made
                with self.sink.guard("schedules"):
                    schedule_stepped(scheduler, unwrapped(scheduler.optimizer))
            return result

        return step

    def _stepped(self, scheduler: Any) -> None:
        try:
            seen = self._seen.get(scheduler)
            if seen is None:
                seen = self._seen[scheduler] = _Seen()
            seen.count += 1
            if seen.count & (seen.count - 1) == 0:
                self._look(scheduler, seen)
        except Exception as error:  # noqa: BLE001
            self.sink.failed("schedules", error)

    def _look(self, scheduler: Any, seen: _Seen) -> None:
        optimizer = unwrapped(scheduler.optimizer)
        adapter = next((one for one in self.sink.adapters()
                        if hasattr(one, "say_rate_again") and one.parts()[1] is optimizer), None)
        if adapter is None or optimizer is None:
            return
        plan = self.sink.plan
        new = follows_metric(scheduler) and plan.say(follows_metric=1)
        updates = plan.updates_done()
        if seen.before is None:
            seen.before = (seen.count, updates)
        steps, done = seen.count - seen.before[0], updates - seen.before[1]
        if done >= 1 and (done >= _LEAST_UPDATES or steps >= _LEAST_STEPS):
            seen.before = (seen.count, updates)
            if seen.stride is None:
                self._many[optimizer] = self._many.get(optimizer, 0) + 1
            seen.stride = _whole(done / steps)
            new = self._tell() or new
        if new or adapter.rate_is_low():
            adapter.say_rate_again()

    def _tell(self) -> bool:
        """Says when the schedule ends; of several that differ none. Whether that is new."""
        plan = self.sink.plan
        ends: Set[Tuple[float, float, float]] = set()
        for scheduler, seen in list(self._seen.items()):
            if seen.stride is not None:
                ends.add((*(end_of(scheduler) or (0.0, 1.0)), seen.stride))
        if len(ends) != 1 or max(self._many.values()) > 1 or len(self._many) < len(self.sink.clock.drivers()):
            plan.forget_schedule()
            return False
        length, lowest, stride = next(iter(ends))
        if length <= 0:
            plan.forget_schedule()
            return False
        return plan.say(length=length, stride=stride, schedule=round(length * stride), lowest=lowest)


def _whole(stride: float) -> float:
    """The whole number of updates per step, or of steps per update, that it is nearly."""
    times = stride if stride >= 1 else 1 / stride
    near = round(times)
    if abs(times - near) <= _NEAR * near:
        times = float(near)
    return times if stride >= 1 else 1 / times


def _never() -> bool:
    return False
