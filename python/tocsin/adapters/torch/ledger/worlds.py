"""What training and evaluation are given, for the question whether they see one world (docs/ledger.md, "Worlds"): moments of
floating inputs and of quantities, shares of classes, as scalars ``ledger/world/<group>/<field>``.

Of a batch at most 32 rows are looked at (256 of the first of an evaluation), of a row some 512 numbers at fixed places, so that
batches of any size agree. After 64 batches half as many are, whenever their number has doubled; in evaluation each then counts as
often as it stands for others. Means are taken less the first batch's, which stays here: what is squared is small, and what travels
is no mean of the data.
"""

import math
import sys
import weakref
from typing import Any, Dict, List, Optional, Tuple

from tocsin.loop.marks import Marks
from tocsin.loop.sink import Sink
from tocsin.process.replacing import Replacing
from .units import FAMILIES

ROWS, WIDTH, PIXELS = 32, 512, 256  # that are looked at: of a batch, of a row, of a channel of an image
FIRST, FIRST_ROWS = 4, 256  # so many batches of an evaluation, that may be all of it, of which so many rows are
CHANNELS = 4  # at most, of what is an image
LABELS = 4096  # of a call
CLASSES = 16  # buckets: label modulo 16
DENSE = 64  # batches of training that are all looked at
DENSE_PASS = 32  # of an evaluation
_QUANTITIES = frozenset(FAMILIES) - {"kl_div"}
_TRAIN = ("batches", "rows")
_EVAL = ("batches", "weights", "rows")
_OWN = ("mean", "square")
_SPREAD = ("mean", "mean_squared", "mean_lagged", "square", "square_squared", "square_lagged")


class Worlds(Replacing):
    """Of one ledger. ``given`` knows what the watched model was given last."""

    def __init__(self, sink: Sink, given: Any) -> None:
        super().__init__()
        self._sink, self._given = sink, given
        self._marks = Marks(sink, "world")
        self._centers: Dict[str, Any] = {}  # by group: of its first batch
        self._before: Dict[str, float] = {}  # of a pass: what the batch before had, by unit
        self._looks = self._pass_looks = 0
        self._rows = ROWS
        self._call = 0  # of evaluations, that was looked at last
        self._seen = -1  # pass of the model that was looked at
        self._step = -1
        self._now = False  # this step of training is looked at
        self._begun: Dict[Any, int] = {}  # passes over data sets, by set
        self._newest: Any = None
        self._training: Any = None  # the set that training reads
        self._told = 0
        self._averages = self._said = False
        self._count_passes()

    def follow(self, model: Any) -> None:
        """A model is watched."""
        self._averages = self._averages or any(name.endswith("running_mean") for name, _ in model.named_buffers())

    # ---- passes over the training data

    def _count_passes(self) -> None:
        loader = getattr(getattr(getattr(sys.modules["torch"], "utils", None), "data", None), "DataLoader", None)
        inner = getattr(loader, "__dict__", {}).get("__iter__")
        if inner is None:
            return
        import functools

        me = weakref.ref(self)

        @functools.wraps(inner)
        def begins(one: Any) -> Any:
            worlds = me()
            if worlds is not None and worlds._sink.active:
                with worlds._sink.guard("ledger"):
                    worlds._begins(getattr(one, "dataset", None))
            return inner(one)

        self.replace(loader, "__iter__", begins)

    def _begins(self, data: Any) -> None:
        if data is None:
            return
        self._newest = id(data)
        self._begun[self._newest] = self._begun.get(self._newest, 0) + 1
        if self._training == self._newest:
            self._tell_passes()

    def _tell_passes(self) -> None:
        self._told = self._begun[self._training]
        self._marks.tell(("passes",), [float(self._told)])

    # ---- a loss call that is measured

    def look(self, call: str, given: Any, step: Optional[int], calls: int) -> None:
        """``step``: of training; None: an evaluation. ``calls``: its calls so far, measured or not."""
        if step is not None:
            if step != self._step:
                self._step, self._now = step, self._is_due()
                self._before, self._pass_looks = {}, 0
                self._looks += 1
            if not self._now:
                return
            if not self._said:
                self._begin()
            weight, self._rows = 1.0, ROWS
        else:
            if not self._looks:
                return  # nothing is known yet of what training is given
            stride = 1
            while stride * DENSE_PASS <= self._pass_looks:
                stride *= 2
            place, self._pass_looks = self._pass_looks, self._pass_looks + 1
            if place % stride:
                return
            weight, self._call = float(calls - self._call if place else 1), calls  # those since the last one
            self._rows = FIRST_ROWS if place < FIRST else ROWS
        with sys.modules["torch"].no_grad():
            self._look(call, given, step is None, weight)

    def _look(self, call: str, given: Any, evaluates: bool, weight: float) -> None:
        self._targets(call, given, evaluates, weight)
        if self._given.passes == self._seen:
            return  # another loss of the same pass
        self._seen = self._given.passes
        for place, one in enumerate(self._given.tensors()):
            if one.is_floating_point() and one.dim() > 1 and one.numel() and one.element_size() > 1:
                self._numbers(f"input/{place}", one.detach(), evaluates, weight)

    def _is_due(self) -> bool:
        looks, stride = self._looks, 1
        while stride * DENSE <= looks:
            stride *= 2
        return looks % stride == 0

    def _begin(self) -> None:
        self._said, self._training = True, self._newest
        if self._training is not None:
            self._tell_passes()
        if self._averages:
            self._marks.tell(("averages",), [1.0])

    def _targets(self, call: str, given: Any, evaluates: bool, weight: float) -> None:
        target = given.target.detach()
        name = call.replace("/", ".")
        if target.dim() == 0 or not target.numel():
            return
        if given.name in _QUANTITIES and target.is_floating_point():
            self._numbers(f"target/{name}", target[:, None] if target.dim() == 1 else target, evaluates, weight)
        elif given.name in ("cross_entropy", "nll_loss"):
            shares = _shares(sys.modules["torch"], given, target)
            if shares is not None:
                self._tell(f"class/{name}", [f"/{place}" for place in range(shares.shape[0])], shares[None], min(len(target), LABELS), evaluates, weight)

    def _numbers(self, group: str, values: Any, evaluates: bool, weight: float) -> None:
        torch, some = sys.modules["torch"], _some_of(values, self._rows)
        if some.dtype is not torch.float64:
            some = some.float()
        over = (0, 2) if some.dim() == 3 else (0, 1)
        center = self._centers.get(group)
        if center is None:
            if evaluates:
                return
            center = self._centers[group] = some.mean(over, keepdim=True)
        if center.dim() != some.dim() or (center.dim() == 3 and center.shape[1] != some.shape[1]) or center.device != some.device:
            return
        apart = some - center
        moments = torch.stack((apart.mean(over).reshape(-1), (apart * apart).mean(over).reshape(-1)))
        parts = [f"/{place}" for place in range(moments.shape[1])] if moments.shape[1] > 1 else [""]
        self._tell(group, parts, moments, some.shape[0], evaluates, weight)

    def _tell(self, group: str, parts: List[str], moments: Any, rows: int, evaluates: bool, weight: float) -> None:
        """``moments``: means of each part, and perhaps mean squares, a tensor."""
        squares = moments.shape[0] > 1
        if evaluates:
            head, own = (weight, weight * weight, weight * rows), _SPREAD if squares else _OWN[:1]
        else:
            head, own = (1.0, float(rows)), _OWN if squares else _OWN[:1]
        fields = [f"{group}/{name}" for name in (_EVAL if evaluates else _TRAIN)] + [f"{group}{part}/{name}" for part in parts for name in own]
        before = self._before

        def read(numbers: Any) -> List[float]:
            by_part: Tuple[Any, ...] = tuple(zip(*numbers.tolist()))
            if not all(math.isfinite(one) for part in by_part for one in part):
                return []
            out = list(head)
            for part, values in zip(parts, by_part):
                for name, one in zip(_OWN, values):
                    out.append(weight * one)
                    if evaluates and squares:
                        key = f"{group}{part}/{name}"
                        out += (weight * one * one, weight * one * before.get(key, one))
                        before[key] = one
            return out

        self._marks.tell_later(fields, moments, read)


def _some_of(values: Any, most: int) -> Any:
    """(rows, numbers), or (rows, channels, numbers) of an image: a view where that can be."""
    rows = values[::-(-values.shape[0] // most)]
    if rows.dim() == 4 and rows.shape[1] <= CHANNELS:
        apart = max(1, math.isqrt(max(1, rows.shape[2] * rows.shape[3] // PIXELS)))
        return rows[:, :, apart // 2::apart, apart // 2::apart].flatten(2)
    return rows.flatten(1)[:, ::-(-rows[0].numel() // WIDTH)]


def _shares(torch: Any, given: Any, target: Any) -> Any:
    """Of each bucket of classes among the labels that count; None: no label."""
    scores = given.output
    classes = scores.shape[1 if scores.dim() > 1 else 0]
    buckets = min(classes, CLASSES)
    if target.is_floating_point():
        if target.dim() != 2 or classes > CLASSES:
            return None
        return target.float().mean(0)
    some = target.reshape(-1)
    some = some[::-(-some.shape[0] // LABELS)]
    valid = some != given.values["ignore_index"]
    if not some.is_cuda:
        some = some[valid]
        return torch.bincount(some % buckets, minlength=buckets).double() / len(some) if len(some) else None
    found = (some[:, None] % buckets == torch.arange(buckets, device=some.device)) & valid[:, None]
    return found.sum(0).double() / valid.sum()  # no label: not a number, and left out
