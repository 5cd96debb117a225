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

from tocsin.adapters.torch.optimizers.scalers import scale_of
from tocsin.adapters.torch.optimizers.scaling import Scaling
from tocsin.loop.marks import Marks
from tocsin.loop.sink import Sink
from tocsin.tensors.torch_names import local
from .peers import Peers
from .still import WithoutGradient
from .underflow import Underflow, worth
from .way import Way, flat

TENSORS, ELEMENTS = 16, 128  # of each tensor at most: what is far apart in memory takes time
DENSE = 64  # the first updates are all looked at
FOLLOWED = ["turned", "pays"]
SHARE = 0.001  # of the time of training, behind them


class Movement:
    """Of one optimizer. ``before()`` and ``after()`` stand around each update."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._marks = Marks(sink, "movement")
        self._without = WithoutGradient(sink)
        self._chosen: List[Tuple[Any, int, int]] = []  # (parameter, first element, from one to the next), in the order of the groups
        self._way: Optional[Way] = None
        self._peers: Optional[Peers] = None
        self._underflow = Underflow(sink)
        self._weights: Optional[Any] = None  # elements that one which is looked at stands for
        self._named: Optional[Callable[[], List[Tuple[str, Any]]]] = None  # while an update goes on
        self._count = -1
        self._looks = 0
        self._at: Optional[int] = None  # the step of the newest look
        self._before: Optional[Any] = None  # the elements, while an update goes on
        self._gradient: Optional[Any] = None
        # Of the newest look the gradient and what it changed in all elements, the gradient's norm, and the step.
        self._newest: Optional[Tuple[Any, Any, int]] = None
        self._followed: Optional[Any] = None  # their products with the gradient of the next update, and both norms
        self._norm: Optional[Any] = None
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
        follows = self._newest is not None and self._newest[2] == step - 1
        due = bool(self._chosen) and (self._looks < DENSE or began >= self._next)
        torch = sys.modules["torch"]
        if due or follows:
            with torch.no_grad():
                gradient = self._gradients(torch, scaling)
                self._norm = torch.linalg.vector_norm(gradient, dim=0, keepdim=True)
                if follows and self._newest is not None and self._newest[0].shape[1:] == gradient.shape:
                    self._followed = torch.cat([torch.mv(self._newest[0], gradient), self._newest[1], self._norm])
                if due:
                    self._gradient = gradient
                    self._before = self._elements(torch)
                    self._named = named
        self._newest = None
        self._spent = perf_counter() - began
        if follows and not due:
            self._next += self._spent / SHARE

    def after(self, optimizer: Any) -> None:
        """The update is made, or left out in its kernel."""
        before, gradient, followed, named = self._before, self._gradient, self._followed, self._named
        self._before = self._gradient = self._followed = self._named = None
        if before is None or gradient is None or named is None or self._way is None or self._peers is None:
            if followed is not None:
                self._marks.tell_later(FOLLOWED, followed, lambda numbers: _followed(numbers.tolist()))
            return
        began = perf_counter()
        torch = sys.modules["torch"]
        step = self._sink.clock.position()[1]
        with torch.no_grad():
            now = self._elements(torch)
            if now.shape != before.shape or now.device != before.device:
                self._count = -1  # the model was changed: it is chosen anew
                return
            moved = now - before
            found = self._way.sums(torch, optimizer, gradient, moved, before)
            if found is None:
                return
            sums, way = found
            # Updates that this look stands for.
            stands_for = 1.0 if self._at is None else float(max(1, step - self._at))
            if followed is not None:
                sums = torch.cat([sums, followed])
            self._marks.tell_later(["stands_for", "along", "gradient", "update", *FOLLOWED], sums, lambda numbers: _with(stands_for, numbers))
            self._newest, self._at = (torch.stack([gradient, moved * self._weights]), self._norm, step), step
            self._peers.add(torch, gradient, way, moved)
            if self._peers.due:
                self._peers.tell(torch, now, self._way.rate(optimizer), named)
                scale = scale_of(optimizer)
                if worth(torch, self._peers.chosen, scale is not None):
                    peers = self._peers
                    self._underflow.tell(torch, gradient, scale, lambda values: peers.of_each(torch, values), peers.sizes, peers.names(named))
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
        held = [local(parameter.detach()) for parameter, _ in matrices]
        sizes = [len(range(start, one.numel(), every)) for one, (_, start, every) in zip(held, self._chosen)]
        self._way = Way(optimizer, [(number, size) for (_, number), size in zip(matrices, sizes)])
        if not matrices:
            return
        stand_for = [one.numel() / size for one, size in zip(held, sizes)]
        self._weights = torch.repeat_interleave(torch.tensor(stand_for), torch.tensor(sizes)).to(held[0].device)
        self._peers = Peers(self._marks, torch, matrices, sizes, held[0].device)

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


def _followed(numbers: List[float]) -> List[float]:
    """How a gradient turned to the next one, and what this one says of the change in between: the loss must fall by that much."""
    along, pays, before, now = numbers
    size = before * now
    return [along / size, pays] if size > 0 and all(math.isfinite(one) for one in numbers) else []


def _with(first: float, numbers: Any) -> List[float]:
    """Of a look whose numbers are not finite nothing is told."""
    listed = numbers.tolist()
    if not all(math.isfinite(one) for one in listed[:3]):
        return []
    return [first, *listed[:3], *(_followed(listed[3:]) if len(listed) > 3 else [])]
