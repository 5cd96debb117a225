"""Whether updates survive the precision in which weights are stored (docs/ledger.md, ``ledger/precision/…``).

A few elements of each of the largest 16-bit weights are copied before an update and compared after it. On a device nothing is waited for:
the counts follow when it is done. The copies are ours; no tensor of the loop is kept beyond the update.
"""

import sys
from time import perf_counter
from typing import Any, Dict, List, Optional, Tuple

from tocsin.adapters.torch.optimizers.scaling import Scaling
from tocsin.loop.marks import Marks
from tocsin.loop.sink import Sink
from tocsin.tensors.torch_names import local

TENSORS, ELEMENTS = 8, 1024  # of each tensor at most
WINDOW = 64  # updates that are looked at together
SHARE = 0.002  # of the time of training, behind the first window
STEADY = 0.5  # of a group's largest learning rate: below, updates are meant to be small
# Names under which an optimizer keeps what the stored weight lacks: a float32 copy, or the error of a sum (Kahan).
_REST = ("kahan", "compensation", "master", "shift", "residual")


class Precision:
    """Of one optimizer. ``before()`` and ``after()`` stand around each update."""

    def __init__(self, sink: Sink) -> None:
        self._marks = Marks(sink, "precision")
        self._chosen: List[Tuple[Any, Dict[str, Any]]] = []  # (parameter, its group), as long as the optimizer holds them
        self._count = -1
        self._rates: Dict[int, Tuple[float, float]] = {}  # by id() of the group: the newest rate, and the largest
        self._before: Optional[Any] = None  # the elements that are looked at, while an update goes on
        self._gradient: Optional[Any] = None  # whether they have one
        self._given: Optional[Any] = None  # in the window: elements that had a gradient,
        self._moved: Optional[Any] = None  # and those that an update changed
        self._updates = 0  # of the window
        self._first = True  # window
        self._spent, self._next = 0.0, 0.0

    def before(self, optimizer: Any, count: int) -> bool:
        """Whether there is anything to look at, now or later. ``count``: of parameters that the optimizer holds."""
        if count != self._count:
            self._choose(optimizer, count)
        if not self._chosen:
            return False
        steady = self._steady()  # at each update: it keeps the rates
        began = perf_counter()
        if not steady or (not self._first and began < self._next):
            return True
        torch = sys.modules["torch"]
        with torch.no_grad():
            gradients = [parameter.grad for parameter, _ in self._chosen]
            if any(one is None or one.is_sparse or not local(one).is_contiguous() for one in gradients):
                return True  # the same elements in each update of a window
            self._before = torch.cat([_some(parameter) for parameter, _ in self._chosen])
            self._gradient = torch.cat([_some(gradient) for gradient in gradients]) != 0
        self._spent = perf_counter() - began
        return True

    def after(self, optimizer: Any, scaling: Optional[Scaling]) -> None:
        """The update is made, or left out in its kernel."""
        before, gradient = self._before, self._gradient
        self._before = self._gradient = None
        if before is None or gradient is None:
            return
        began = perf_counter()
        torch = sys.modules["torch"]
        with torch.no_grad():
            now = torch.cat([_some(parameter) for parameter, _ in self._chosen])
            if now.shape != before.shape or now.device != before.device or now.dtype is not before.dtype:
                self._count = -1  # the model was changed: it is chosen anew
                return
            if scaling is not None and scaling.found_inf is not None:
                gradient = gradient & (scaling.found_inf.reshape(()) == 0)
            moved = (now != before) & gradient
            self._given = gradient if self._given is None else self._given | gradient
            self._moved = moved if self._moved is None else self._moved | moved
            self._updates += 1
            fields = ["elements", "swallowed"]
            counts = [gradient.sum(dtype=torch.float32), (gradient & ~moved).sum(dtype=torch.float32)]
            if self._updates >= WINDOW:
                lost = self._given & ~self._kept_elsewhere(optimizer)
                fields += ["window", "unmoved"]
                counts += [lost.sum(dtype=torch.float32), (lost & ~self._moved).sum(dtype=torch.float32)]
                self._first = False
                self._begin()
            self._marks.tell(fields, torch.stack(counts))
        now_is = perf_counter()
        self._next = now_is + (now_is - began + self._spent) / SHARE

    def _begin(self) -> None:
        """A window."""
        self._given = self._moved = None
        self._updates = 0

    def _choose(self, optimizer: Any, count: int) -> None:
        self._count = count
        self._begin()
        torch = sys.modules["torch"]
        fit = [(parameter, group) for group in optimizer.param_groups for parameter in group["params"]
               if parameter.requires_grad and parameter.dtype in (torch.bfloat16, torch.float16)
               and local(parameter.detach()).numel() > 0 and local(parameter.detach()).is_contiguous()
               and not _rounds_by_chance(optimizer, group)]
        where = [(parameter.dtype, local(parameter.detach()).device) for parameter, _ in fit]
        fit = [one for one, place in zip(fit, where) if place == where[0]]
        # The largest: where updates are lost, they are lost in these. Scales of norms are few, and close to 1.
        self._chosen = sorted(fit, key=lambda one: -int(local(one[0].detach()).numel()))[:TENSORS]

    def _steady(self) -> bool:
        """Rates do not rise, are above zero and not far below what they were: updates are meant to change something."""
        steady = True
        for group in {id(group): group for _, group in self._chosen}.values():
            rate = group.get("lr")
            if rate is None or getattr(rate, "is_cuda", False):
                return False  # to read it would wait for the device
            rate = float(rate)
            newest, largest = self._rates.get(id(group), (rate, rate))
            steady = steady and 0 < rate <= newest and rate >= STEADY * largest
            self._rates[id(group)] = rate, max(rate, largest)
        return steady

    def _kept_elsewhere(self, optimizer: Any) -> Any:
        """Of each element, whether the optimizer's state keeps its weight more precisely: a compensation, or a float32 tensor that
        rounds to what is stored."""
        torch = sys.modules["torch"]
        return torch.cat([_kept_of(optimizer, parameter).expand(len(_some(parameter))) for parameter, _ in self._chosen])


def _kept_of(optimizer: Any, parameter: Any) -> Any:
    torch = sys.modules["torch"]
    stored = _some(parameter)
    kept = torch.zeros((), dtype=torch.bool, device=stored.device)
    state = getattr(optimizer, "state", {}).get(parameter, None)
    for name, value in state.items() if isinstance(state, dict) else ():
        value = local(value.detach()) if hasattr(value, "detach") else None
        if value is None or value.numel() != local(parameter.detach()).numel() or value.device != stored.device:
            continue
        if any(word in str(name).lower() for word in _REST):
            kept = torch.ones_like(kept)
        elif value.dtype is torch.float32 and value.is_contiguous():
            kept = kept | (_some(value).to(stored.dtype) == stored).all()
    return kept


def _some(tensor: Any) -> Any:
    """At most ELEMENTS of it, evenly spaced and always the same ones."""
    flat = local(tensor.detach()).reshape(-1)
    return flat[::max(1, -(-int(flat.numel()) // ELEMENTS))]


def _rounds_by_chance(optimizer: Any, group: Dict[str, Any]) -> bool:
    """It says that it rounds stochastically: then the mean of its updates arrives."""
    said = [*vars(optimizer).items(), *group.items()]
    return any("stochastic" in str(name).lower() and value is True for name, value in said)
