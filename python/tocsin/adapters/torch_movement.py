"""Whether what may move moves, and along its gradient (docs/ledger.md, ``ledger/movement/…``).

The same few elements of some tensors are copied before an update and compared after it. Of momentum and of Adam the sum of ⟨gradient, way⟩ / rate over
the updates is never above zero, element by element, whatever the gradients were: so a few elements are as good as all.
On a device nothing is waited for. The copies are ours; no tensor of the loop is kept beyond the update.
"""

import math
import random
import sys
from time import perf_counter
from typing import Any, Callable, List, Optional, Tuple

from ..sink import Sink
from .torch_marks import Marks
from .torch_names import local
from .torch_scaling import Scaling
from .torch_still import WithoutGradient
from .torch_way import Way, flat

TENSORS, ELEMENTS = 16, 128  # of each tensor at most: what is far apart in memory takes time
DENSE = 64  # the first updates are all looked at
SHARE = 0.001  # of the time of training, behind them


class Movement:
    """Of one optimizer. ``before()`` and ``after()`` stand around each update."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._marks = Marks(sink, "movement")
        self._without = WithoutGradient(sink)
        self._chosen: List[Tuple[Any, int, int]] = []  # (parameter, first element, from one to the next), in the order of the groups
        self._way: Optional[Way] = None
        self._count = -1
        self._looks = 0
        self._at: Optional[int] = None  # the step of the newest look
        self._before: Optional[Any] = None  # the elements, while an update goes on
        self._gradient: Optional[Any] = None
        self._newest: Optional[Tuple[Any, int]] = None  # the gradient of the newest look, and its step
        self._turned: Optional[Any] = None
        self._spent, self._next = 0.0, 0.0
        self._chance = random.Random(1)  # the steps that are looked at have no rhythm that an optimizer could have

    def before(self, optimizer: Any, count: int, named: Callable[[], List[Tuple[str, Any]]], scaling: Optional[Scaling]) -> None:
        """``count``: of parameters that the optimizer holds; ``named``: them with their names, as far as they train."""
        began = perf_counter()
        if began < self._next and count == self._count and self.rests():
            return
        self._without.look(optimizer, count, named)
        if count != self._count:
            self._choose(optimizer, count)
        step = self._sink.clock.position()[1]
        follows = self._newest is not None and self._newest[1] == step - 1
        due = bool(self._chosen) and (self._looks < DENSE or began >= self._next)
        torch = sys.modules["torch"]
        if due or follows:
            with torch.no_grad():
                gradient = self._gradients(torch, scaling)
                if follows and self._newest is not None and self._newest[0].shape == gradient.shape:
                    self._turned = _cosine(torch, self._newest[0], gradient)
                if due:
                    self._gradient = gradient
                    self._before = self._elements(torch)
        self._newest = None
        self._spent = perf_counter() - began
        if follows and not due:
            self._next += self._spent / SHARE

    def after(self, optimizer: Any) -> None:
        """The update is made, or left out in its kernel."""
        before, gradient, turned = self._before, self._gradient, self._turned
        self._before = self._gradient = self._turned = None
        if before is None or gradient is None or self._way is None:
            if turned is not None:
                self._marks.tell_later(["turned"], turned.reshape(1), _finite)
            return
        began = perf_counter()
        torch = sys.modules["torch"]
        step = self._sink.clock.position()[1]
        with torch.no_grad():
            now = self._elements(torch)
            if now.shape != before.shape or now.device != before.device:
                self._count = -1  # the model was changed: it is chosen anew
                return
            sums = self._way.sums(torch, optimizer, gradient, before, now)
            if sums is None:
                return
            # Updates that this look stands for.
            fields, stands_for = ["along", "gradient", "update"], 1.0 if self._at is None else float(max(1, step - self._at))
            if turned is not None:
                fields, sums = [*fields, "turned"], torch.cat([sums, turned.reshape(1)])
            self._marks.tell_later(["stands_for", *fields], sums, lambda numbers: _with(stands_for, numbers))
        self._newest, self._at = (gradient, step), step
        self._looks += 1
        now_is = perf_counter()
        self._next = now_is + (now_is - began + self._spent) / SHARE * (0.5 + self._chance.random())

    def rests(self) -> bool:
        """The next update needs nobody."""
        return self._without.rests() and (not self._chosen or (self._looks >= DENSE and self._newest is None))

    # ---- the elements

    def _choose(self, optimizer: Any, count: int) -> None:
        self._count = count
        self._newest = self._at = None
        torch = sys.modules["torch"]
        fit = [(parameter, number) for number, group in enumerate(optimizer.param_groups) for parameter in group["params"]
               if parameter.requires_grad and parameter.is_floating_point() and local(parameter.detach()).numel() > 0
               and flat(torch, local(parameter.detach())) is not None and not getattr(parameter.grad, "is_sparse", False)]
        fit = [one for one in fit if local(one[0].detach()).device == local(fit[0][0].detach()).device]
        matrices = [one for one in fit if one[0].dim() > 1] or fit
        stride = -(-len(matrices) // TENSORS) if matrices else 1
        matrices = matrices[::stride]
        self._chosen = [(parameter, *_places(parameter)) for parameter, _ in matrices]
        self._way = Way(optimizer, [(number, len(range(start, local(parameter.detach()).numel(), every)))
                                    for (parameter, number), (_, start, every) in zip(matrices, self._chosen)])

    def _elements(self, torch: Any) -> Any:
        return torch.cat([_some(torch, local(parameter.detach()), start, every) for parameter, start, every in self._chosen]).float()

    def _gradients(self, torch: Any, scaling: Optional[Scaling]) -> Any:
        parts = []
        for parameter, start, every in self._chosen:
            held, gradient = local(parameter.detach()), parameter.grad
            part = None if gradient is None or gradient.is_sparse else local(gradient.detach())
            if part is None or part.shape != held.shape or part.stride() != held.stride():
                parts.append(torch.zeros(len(range(start, held.numel(), every)), dtype=held.dtype, device=held.device))
            else:
                parts.append(_some(torch, part, start, every))
        out = torch.cat(parts).float()
        return out if scaling is None or scaling.scale is None else out / scaling.scale


def _places(parameter: Any) -> Tuple[int, int]:
    """(first, from one to the next): evenly spaced, and not all of them in one column."""
    held = local(parameter.detach())
    every = max(1, -(-held.numel() // ELEMENTS))
    columns = int(held.shape[-1]) if held.dim() > 1 else 1
    while every > 1 and columns > 1 and math.gcd(every, columns) > 1:
        every += 1
    return every // 2, every


def _some(torch: Any, tensor: Any, start: int, every: int) -> Any:
    return flat(torch, tensor)[start::every]


def _cosine(torch: Any, one: Any, other: Any) -> Any:
    return torch.dot(one, other) / (torch.linalg.vector_norm(one) * torch.linalg.vector_norm(other))


def _finite(numbers: Any) -> List[float]:
    listed: List[float] = numbers.tolist()
    return listed if all(math.isfinite(one) for one in listed) else []


def _with(first: float, numbers: Any) -> List[float]:
    """Of a look whose numbers are not finite nothing is told."""
    listed = numbers.tolist()
    sums, turned = listed[:3], [one for one in listed[3:] if math.isfinite(one)]
    return [first, *sums, *turned] if all(math.isfinite(one) for one in sums) else []
