"""The ledger of a run (docs/ledger.md): sums of the loss calls of each step, and how often they are measured."""

import math
from typing import Any, Dict, List, Optional, Tuple

from .batch import Batch
from .batch_book import BatchBook
from .by_class import Row, Tables
from .constants import Constant, by_class, split
from .moments import Form

FIRST = 64           # steps that are all measured
SHARE = 0.002        # of the time of training
# A run of short steps may spend this in any case, 0.2 % of 50 seconds: until then every second step is measured at least. Short trainings
# would end before there is enough to judge by.
ALLOWANCE, ALLOWED, SHORT = 0.1, 2, 5e-3
DENSE, DENSE_SHARE = 16, 0.005  # very short steps: up to every 16th as long as it costs no more than this
MOST = 1 << 12
MAX_CALLS = 8        # different ones of a run
_LATEST = 15         # times, of which the middle one counts
_SUMS = ("samples", "loss", "pairs", "wins", "straight", "crossed", "output_spread", "target_spread")
_ANSWERS = ("right", "answers", "labels")
_SAME = ("same_as_input", "same_by_chance", "input_places")


class Pace:
    """Which steps are measured: looks at times only. ``extra`` is what measuring costs where it shows in no time of
    its own, as inside a compiled step: the difference of both kinds of steps."""

    def __init__(self) -> None:
        self.every = 1
        self.steps = self.measured = 0
        self._spent = 0.0
        self._plain: List[float] = []
        self._full: List[float] = []
        self._costs: List[float] = []

    def due(self) -> bool:
        """Whether the step that comes now is measured."""
        self.steps += 1
        return self.steps <= FIRST or self.steps % self.every == 0

    def took(self, measured: bool, step: float, cost: float = 0.0) -> None:
        """A step took ``step`` seconds, of which ``cost`` were ours on the host."""
        times = self._full if measured else self._plain
        times.append(step - cost)
        if measured:
            self.measured += 1
            self._costs.append(cost)
        for kept in (times, self._costs):
            del kept[:-_LATEST]
        if self.steps >= FIRST and self._full:
            inside = max(0.0, _quick(self._full) - _quick(self._plain)) if self._plain else 0.0
            costs, lasts = _middle(self._costs) + inside, _middle(self._plain or self._full)
            self._spent += costs if measured else 0.0
            self.every = every(costs, lasts)
            if lasts < SHORT and self._spent < ALLOWANCE:
                self.every = min(self.every, ALLOWED)
            if not self._plain:
                self.every = max(self.every, 2)  # to see what a step costs without


def every(cost: float, step: float) -> int:
    """A power of two: measuring costs SHARE of the time at most, of short steps DENSE_SHARE."""
    if not step > 0.0:
        return 1
    wanted = _power(cost / (SHARE * step))
    return wanted if wanted <= DENSE else max(DENSE, _power(cost / (DENSE_SHARE * step)))


def _power(ratio: float) -> int:
    power = 1
    while power < ratio and power < MOST:
        power *= 2
    return power


def _middle(times: List[float]) -> float:
    return sorted(times)[len(times) // 2] if times else 0.0


def _quick(times: List[float]) -> float:
    """The lower quartile: what else the machine does adds to some of the steps."""
    return sorted(times)[len(times) // 4]


class Book:
    """Of one hook. ``add()`` for each measured call, ``publish()`` at the end of the step that they belong to."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._constants: Dict[str, Constant] = {}
        self._sums: Dict[str, Dict[str, float]] = {}  # of the present step, by call
        self._without: Dict[str, bool] = {}           # whether one of its calls had no past
        self._learn: List[Tuple[str, Form, Dict[str, float], Any]] = []
        self._skipped: Dict[str, int] = {}
        self._ids: Dict[str, int] = {}
        self.training, self.evaluation = Pace(), Pace()
        self.seconds = 0.0
        self.classes = Tables(sink.clock, self._publish_classes)
        self.batches = BatchBook(self._publish)
        self._learns = False  # the calls of the present step are of training

    def watches(self, model: Any, optimizer: Any) -> bool:
        """It is nobody's."""
        return False

    def detach(self) -> None:
        """The hook closes."""
        with self._sink.guard("ledger"):
            self.batches.over(self.evaluation.steps)

    def counts(self) -> Dict[str, Any]:
        """For ``hook.stats()``."""
        told = {"calls": self.training.steps, "measured": self.training.measured, "every": self.training.every,
                "seconds": self.seconds, "evaluation": {"calls": self.evaluation.steps, "measured": self.evaluation.measured}}
        told["inputs"] = self.batches.counts()
        return {**told, **({"left_out": dict(self._skipped)} if self._skipped else {})}

    def skip(self, reason: str) -> None:
        """A loss of which nothing can be told."""
        self._skipped[reason] = self._skipped.get(reason, 0) + 1

    def add(self, name: str, form: Form, vector: Any, learns: bool = True, batch: Optional[Batch] = None) -> None:
        """``vector``: of ``moments.moments``, as an array of NumPy; ``batch``: what it was given, the same."""
        if name not in self._constants and len(self._constants) >= MAX_CALLS:
            self.skip("calls")
            return
        vector = vector.astype("float64")
        head, tail = split(form, vector)
        if not head["rows"] > 0:
            return  # of a step that was not measured
        self._learns = learns
        self.batches.add(name, form, vector, batch)
        constant = self._constants.setdefault(name, Constant())
        if not head["samples"] > 0:
            self._sum(name, {"no_targets": 1.0, "calls": 1.0})
            return
        if not all(math.isfinite(head[field]) for field in ("loss", "straight", "crossed", "output_spread", "target_spread", "weight")):
            self.skip("not_finite")
            return
        values = {field: head[field] for field in _SUMS if head["samples"] > 1 or not field.endswith("_spread")}
        values.update({field: head[field] for field in (*(_ANSWERS if form.answers else ()), *(_SAME if form.same else ()))})
        for field in ("straight", "crossed"):
            values[field] *= head["weight"] / head["samples"]  # in the unit of the loss, whose samples have weights
        values["calls"] = 1.0
        if head["one_target"]:
            values["one_target"] = 1.0
        trivial = constant.loss(form, head, tail)
        if trivial is None or not math.isfinite(trivial):
            self._without[name] = True
        else:
            values["trivial"] = trivial
        self._sum(name, values)
        if head["ceiling"] > 0:
            self._sums[name]["ceiling"] = head["ceiling"]
        if learns:
            self._learn.append((name, form, head, tail))
        table = by_class(form, vector)
        if table is not None:
            self.classes.add(name, table, learns)

    def _sum(self, name: str, values: Dict[str, float]) -> None:
        sums = self._sums.setdefault(name, {})
        for field, value in values.items():
            sums[field] = sums.get(field, 0.0) + value

    def publish(self, ends: bool = True) -> None:
        """As scalars of the present step; what was seen in it makes the constants of the next ones. ``ends``: no more is
        added to this step."""
        for name, sums in self._sums.items():
            for field, value in sums.items():
                if field == "trivial" and self._without.get(name):
                    continue
                self._publish(f"ledger/{name}/{field}", value)
        self._sums, self._without = {}, {}
        self.batches.publish(self._learns, self.training.steps, self.evaluation.steps)
        self.classes.look()
        if ends:
            self.learn()

    def _publish(self, full: str, value: float) -> None:
        if full not in self._ids:
            self._ids[full] = self._sink.scalar(full, "ledger")
        self._sink.publish_scalar(full, value)

    def _publish_classes(self, name: str, rows: List[Row]) -> None:
        with self._sink.guard("ledger"):
            for field, value in rows:
                self._publish(f"ledger/{name}/{field}", value)

    def learn(self) -> None:
        """The step has ended whose targets were added."""
        for name, *seen in self._learn:
            self._constants[name].learn(*seen)
        self._learn = []
