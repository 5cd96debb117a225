"""What training and evaluation are given, in jobs whose steps give arrays back: rows ``ledger/world/<group>/<field>`` (docs/ledger.md, "Worlds"),
as PyTorch jobs have them (adapters/torch/ledger/worlds.py).

Of the first 64 steps each is told, then half as many whenever their number has doubled. In an evaluation the same begins at 32 batches, and each then
counts as often as it stands for others. Means are told less the mean of the first batch, which stays here.
"""

import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .batch import Moments

DENSE, DENSE_PASS = 64, 32  # steps of training, batches of an evaluation, that are all told
CLASSES = 16  # buckets: label modulo 16
MOST_LABELS = 4096  # that a batch's rows of classes count as
Row = Tuple[str, float]


class Held(NamedTuple):
    """Of one loss call of a batch. ``labels``: how many of each class there are; None: its targets are no classes."""

    call: str
    labels: Any
    moments: List[Moments]


class Worlds:
    """Of one job. ``tell(field, value)``: a row of the present step."""

    def __init__(self, tell: Callable[[str, float], None]) -> None:
        self._tell = tell
        self._centers: Dict[str, Any] = {}  # by group: of its first batch
        self._before: Dict[str, float] = {}  # of an evaluation: what the batch before had, by field
        self._looks = self._pass_looks = 0
        self._at = -1  # step of training
        self._now = False
        self._call = 0  # batch of evaluations that was looked at last
        self._inputs = ""  # the loss call whose inputs count
        self._passes = 0
        self._averages = self._said = False

    def has_averages(self) -> None:
        """The model has batch norm."""
        self._averages = True

    def begins_pass(self, number: int) -> None:
        """Training reads its data for the ``number``-th time."""
        if number > self._passes:
            self._passes = number
            self._tell("passes", float(number))

    def wants(self, step: int, learns: bool) -> bool:
        """Whether moments of the batch that comes now would be told. ``step``: as of ``trained()``."""
        if not learns:
            return self._looks > 0 and _due(self._pass_looks, DENSE_PASS)
        return self._now if step == self._at else _due(self._looks, DENSE)

    def trained(self, step: int, held: List[Held]) -> None:
        if step != self._at:
            self._at, self._now = step, _due(self._looks, DENSE)
            self._looks += 1
            self._before, self._pass_looks = {}, 0
        if not self._now:
            return
        if self._averages and not self._said:
            self._said = True
            self._tell("averages", 1.0)
        self._look(held, None)

    def evaluated(self, calls: int, held: List[Held]) -> None:
        """``calls``: batches of evaluations so far, measured or not."""
        if not self._looks:
            return  # nothing is known yet of what training is given
        place, self._pass_looks = self._pass_looks, self._pass_looks + 1
        if not _due(place, DENSE_PASS):
            return
        weight, self._call = float(max(calls - self._call, 1) if place else 1), calls
        self._look(held, weight)

    def _look(self, held: List[Held], weight: Optional[float]) -> None:
        """``weight``: how many batches of an evaluation this one stands for; None: it is training."""
        sums: Dict[str, float] = {}
        for call, labels, moments in held:
            if labels is not None and labels.sum() > 0:
                shares = _shares(labels)
                self._add(sums, f"class/{call.replace('/', '.')}", min(float(labels.sum()), MOST_LABELS), weight,
                          [(f"/{place}", (float(one),)) for place, one in enumerate(shares)])
            for one in moments:
                if one.name.startswith("input/"):
                    self._inputs = self._inputs or call
                    if call != self._inputs:
                        continue
                self._numbers(sums, one, weight)
        for field, value in sums.items():
            self._tell(field, value)

    def _numbers(self, sums: Dict[str, float], one: Moments, weight: Optional[float]) -> None:
        means = one.pivots + one.means
        center = self._centers.get(one.name)
        if center is None:
            if weight is not None or not all(math.isfinite(mean) for mean in means):
                return
            center = self._centers[one.name] = means
        if center.shape != means.shape:
            return
        away = one.pivots - center + one.means
        squares = one.variances + away * away
        several = len(means) > 1
        parts = [(f"/{place}" if several else "", (float(a), float(b))) for place, (a, b) in enumerate(zip(away, squares))]
        self._add(sums, one.name, one.rows, weight, parts)

    def _add(self, sums: Dict[str, float], group: str, rows: float, weight: Optional[float], parts: List[Tuple[str, Tuple[float, ...]]]) -> None:
        """``parts``: mean, and perhaps mean square, of each."""
        if not all(math.isfinite(value) for _, values in parts for value in values):
            return
        times = 1.0 if weight is None else weight

        def add(field: str, value: float) -> None:
            sums[f"{group}{field}"] = sums.get(f"{group}{field}", 0.0) + value

        add("/batches", times)
        add("/rows", times * rows)
        if weight is not None:
            add("/weights", weight * weight)
        for part, values in parts:
            for name, value in zip(("mean", "square"), values):
                add(f"{part}/{name}", times * value)
                if weight is not None and len(values) > 1:
                    key = f"{group}{part}/{name}"
                    add(f"{part}/{name}_squared", times * value * value)
                    add(f"{part}/{name}_lagged", times * value * self._before.get(key, value))
                    self._before[key] = value


def _due(looks: int, dense: int) -> bool:
    stride = 1
    while stride * dense <= looks:
        stride *= 2
    return looks % stride == 0


def _shares(labels: Any) -> Any:
    buckets = min(len(labels), CLASSES)
    return [labels[place::buckets].sum() / labels.sum() for place in range(buckets)]
