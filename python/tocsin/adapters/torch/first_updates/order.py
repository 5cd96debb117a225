"""The order of calls around the first updates of one optimizer: backward passes, clearing, the schedule, the update itself.

A few parameters are watched by hooks until the third update. What is told follows from the order alone, and must be so in each interval between
two updates. Where calls cannot be seen (compiled, sharded, packed, DeepSpeed) nothing is told.
"""

import sys
import weakref
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from tocsin.adapters.torch.optimizers.kept import _compiles
from tocsin.adapters.torch.optimizers.scalers import was_asked
from tocsin.adapters.torch.optimizers.zero import is_deepspeed
from tocsin.loop.sink import Sink

_LARGEST = 65_536  # elements of a parameter that is watched: a copy and a comparison of it cost nothing
_INTERVALS = 2  # between updates
_watching: "weakref.WeakSet[Order]" = weakref.WeakSet()
# The last use of a gradient by an update: (the optimizer's id(), the gradient, its version), by id() of the parameter.
_used: Dict[int, Tuple[int, "weakref.ref[Any]", int]] = {}


class _Interval:
    """What was called since the last update."""

    __slots__ = ("passes", "arrived", "steps", "late", "cleared", "reused")

    def __init__(self) -> None:
        self.passes: Dict[int, int] = {}  # backward passes by watched parameter
        self.arrived: List[Any] = []  # whether their gradients have an element that is not zero
        self.steps: Dict[int, int] = {}  # of schedules, by id()
        self.late: Set[int] = set()  # schedules that have stepped since the last backward pass
        self.cleared: Optional[Any] = None  # whether all gradients are none or zero at its end
        self.reused: List[Any] = []  # whether the gradients of the update before are used again

    def most(self) -> int:
        return max(self.passes.values(), default=0)


class Order:
    """Of one optimizer. ``update()`` is called at each update, before it is made, until ``end()``."""

    def __init__(self, sink: Sink, optimizer: Any) -> None:
        self._sink = sink
        self._optimizer: Any = weakref.ref(optimizer)
        self._parameters: List[Any] = []
        self._before: List[Tuple[Any, int, Any]] = []  # gradients of the update before: the tensor, its version, a copy
        self._handles: List[Any] = []
        self._now = _Interval()
        self._intervals: List[_Interval] = []
        self._updates = 0
        self._first: Dict[int, int] = {}  # steps of schedules before the first update
        self._schedules: Dict[int, Any] = {}
        self._twice: Set[int] = set()
        self._resumed = True
        _watching.add(self)

    # ---- what is called

    def stepped(self, scheduler: Any) -> None:
        """A schedule of this optimizer has made a step."""
        key = id(scheduler)
        self._schedules[key] = scheduler
        if self._updates == 0:
            # A training that is resumed may catch up: more than one step, or one of a schedule that is further. An update may have been made
            # before the hook was there: PyTorch notes that of optimizers that have a schedule.
            optimizer = self._optimizer()
            begun = getattr(optimizer, "_opt_called", False) or getattr(optimizer, "_step_count", 0) > 0
            new = getattr(scheduler, "last_epoch", None) == 1 and not begun
            self._first[key] = self._first.get(key, 0) + 1 if new else 2
            return
        self._now.steps[key] = self._now.steps.get(key, 0) + 1
        self._now.late.add(key)

    def of(self, optimizer: Any) -> bool:
        return optimizer is not None and self._optimizer() is optimizer

    def update(self, optimizer: Any, parameters: List[Any]) -> None:
        if is_deepspeed(optimizer):
            return
        if self._updates == 0:
            self._begin(parameters)
        else:
            self._close()
        self._updates += 1
        self._before = [(one.grad, int(one.grad._version), one.grad.detach().clone()) for one in self._parameters if _dense(one.grad)]
        self._share(optimizer, parameters)
        self._now = _Interval()

    def end(self) -> None:
        """Enough was seen."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._parameters, self._before = [], [], []
        _watching.discard(self)
        if not list(_watching):
            _used.clear()

    # ---- what it says

    def cleared(self) -> bool:
        """Each update found gradients of zeros, or none, although passes had given others."""
        return self._always(lambda one: bool(one.arrived) and any(bool(flag) for flag in one.arrived)
                            and one.cleared is not None and bool(one.cleared))

    def reused(self) -> bool:
        """An update used the very gradients of the one before."""
        return any(one.most() == 0 and bool(one.reused) and all(bool(flag) for flag in one.reused) for one in self._intervals)

    def twice(self) -> Set[int]:
        """Parameters, by id(), that are changed twice from one backward pass."""
        return self._twice

    def passes(self) -> int:
        """Backward passes per update, if they were the same; 0: not, or nobody knows."""
        counts = {one.most() for one in self._intervals}
        return counts.pop() if len(self._intervals) >= _INTERVALS and len(counts) == 1 else 0

    def schedules_before_update(self) -> List[str]:
        """Classes of schedules that step behind the backward pass and before its update."""
        keys = [set(one.late) if one.most() > 0 else set() for one in self._intervals]
        found = set.intersection(*keys) if len(keys) >= _INTERVALS else set()
        if not found:
            found = {key for key, count in self._first.items() if count == 1 and not self._resumed}
        return self._classes(found)

    def schedules_twice(self) -> List[str]:
        """Classes of schedules that make two steps for each backward pass."""
        if "accelerate" in sys.modules and _ranks() > 1:  # it makes a step for each rank
            return []
        keys = [{key for key, count in one.steps.items() if count == 2 * one.most() > 0} for one in self._intervals]
        return self._classes(set.intersection(*keys) if len(keys) >= _INTERVALS else set())

    # ----

    def _always(self, holds: Any) -> bool:
        return len(self._intervals) >= _INTERVALS and all(holds(one) for one in self._intervals)

    def _classes(self, keys: Iterable[int]) -> List[str]:
        return sorted(type(self._schedules[key]).__name__ for key in keys)

    def _begin(self, parameters: List[Any]) -> None:
        optimizer = self._optimizer()
        # A restored optimizer has a state. A scaler may have left out updates before this one: then the schedule came in time.
        self._resumed = bool(optimizer.state) or not self._sink.wants_ledger or was_asked(optimizer)
        if _compiles():
            return
        fit = [one for one in parameters if _fits(one)]
        if not fit:
            return
        smallest = min(fit, key=lambda one: int(one.numel()))
        self._parameters = list({id(one): one for one in (fit[0], fit[-1], smallest)}.values())
        mine = weakref.ref(self)
        self._handles = [one.register_hook(_Arrives(mine, number)) for number, one in enumerate(self._parameters)]

    def arrives(self, number: int, gradient: Any) -> None:
        now = self._now
        now.passes[number] = now.passes.get(number, 0) + 1
        now.late.clear()
        if len(now.arrived) < 2 * len(self._parameters) and _dense(gradient):
            now.arrived.append((gradient.detach() != 0).any())

    def _close(self) -> None:
        now = self._now
        gradients = [one.grad for one in self._parameters]
        if gradients and all(one is None or _dense(one) for one in gradients):
            left = [(one.detach() != 0).any() for one in gradients if one is not None]
            now.cleared = not any(bool(one) for one in left)
        for gradient, (before, version, copy) in zip(gradients, self._before):
            same = gradient is not None and gradient is before and int(gradient._version) == version
            now.reused.append(same and bool((copy != 0).any()) and bool((gradient == copy).all()))
        self._intervals.append(now)

    def _share(self, optimizer: Any, parameters: List[Any]) -> None:
        """Which gradients another optimizer, or another group, has used in the same state."""
        if any(count > 1 for count in _counts(optimizer).values()):
            self._twice |= {key for key, count in _counts(optimizer).items() if count > 1}
        for one in parameters:
            gradient = one.grad
            if gradient is None or not _dense(gradient):
                continue
            before = _used.get(id(one))
            if before is not None and before[0] != id(optimizer) and before[1]() is gradient and before[2] == int(gradient._version):
                if bool((gradient != 0).any()):
                    self._twice.add(id(one))
            _used[id(one)] = (id(optimizer), weakref.ref(gradient), int(gradient._version))


class _Arrives:
    """A hook on a parameter. It keeps nothing, and never fails."""

    __slots__ = ("_order", "_number")
    __torch_unserializable__ = True  # nobody is warned who saves the parameter

    def __init__(self, order: Any, number: int) -> None:
        self._order, self._number = order, number

    def __call__(self, gradient: Any) -> None:
        order = self._order()
        if order is not None:
            try:
                order.arrives(self._number, gradient)
            except Exception:  # of a subclass of tensors, perhaps: the job's backward pass goes on
                pass


def schedule_stepped(scheduler: Any, optimizer: Any) -> None:
    """``scheduler.step()`` was called without arguments, by a script."""
    for order in list(_watching):
        if order.of(optimizer):
            order.stepped(scheduler)


def anybody_watches() -> bool:
    return bool(_watching)


def _counts(optimizer: Any) -> Dict[int, int]:
    out: Dict[int, int] = {}
    for group in optimizer.param_groups:
        for one in group["params"]:
            if one.requires_grad:
                out[id(one)] = out.get(id(one), 0) + 1
    return out


def _fits(parameter: Any) -> bool:
    return (parameter.is_leaf and parameter.requires_grad and not hasattr(parameter, "to_local") and 0 < parameter.numel() <= _LARGEST
            and type(parameter).__name__ in ("Tensor", "Parameter"))


def _dense(gradient: Any) -> bool:
    return gradient is not None and not gradient.is_sparse and type(gradient).__name__ in ("Tensor", "Parameter")


def _ranks() -> int:
    distributed = getattr(sys.modules.get("torch"), "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return int(distributed.get_world_size())
