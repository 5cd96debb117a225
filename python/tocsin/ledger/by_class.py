"""What the ledger tells of single classes (docs/ledger.md, "Classes"): when, and of which.

Sums are collected in the process, and told when the updates since the first one have become 64, 128, 256 …, and at the end of each pass of
evaluation: thousands of classes in each step would be traffic for nothing. At most 64 classes are told. Of more, some are chosen without a look at
their outputs, so that what is usual can be known, and the others because they look worst.
"""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

FIELDS = ("labels", "answers", "right", "loss", "pairs", "wins")
MOST = 4096  # classes of a loss that are counted
TOLD = 64
FIRST = 64  # updates
LEAST = 50  # labels of a class that says what is usual
SHARE = 0.55  # of pairs that outputs which know a class win at least
MOST_LOSS = 100.0  # of a sample
_USUAL, _NEVER = 40, 8  # of those that are told, where there are more classes

Row = Tuple[str, float]


class Looks:
    """When sums of training are told: at the same updates in all workers, whatever each of them measures."""

    def __init__(self) -> None:
        self._begin: Optional[int] = None
        self._next = FIRST

    def due(self, number: int) -> bool:
        """``number``: of the step, of which those are measured that a power of two divides."""
        if self._begin is None:
            self._begin = number // FIRST * FIRST
        done = number - self._begin
        if done < self._next:
            return False
        while self._next <= done:
            self._next *= 2
        return True


def rows_of(table: Sequence[Sequence[float]], trained: Optional[Sequence[float]] = None) -> List[Row]:
    """(field, value) of what is told. ``table``: for each of ``FIELDS`` a number for each class. ``trained``: of an evaluation, targets of each class
    that training has had."""
    sums = dict(zip(FIELDS, table))
    labels = sums["labels"]
    samples = sum(labels)
    if not samples > 0:
        return []
    before = [0.0] * len(labels) if trained is None else trained
    rows = [("class_samples", samples), ("class_count", float(sum(label > 0 for label in labels)))]
    if trained is not None:
        rows.append(("class_trained", sum(trained)))
    for one in chosen(sums["labels"], sums["answers"], sums["pairs"], sums["wins"], trained):
        rows.extend((f"class_{field}/{one}", sums[field][one]) for field in FIELDS if sums[field][one])
        if before[one]:
            rows.append((f"class_trained/{one}", before[one]))
    return rows


def chosen(labels: Sequence[float], answers: Sequence[float], pairs: Sequence[float], wins: Sequence[float],
           trained: Optional[Sequence[float]]) -> List[int]:
    """Which classes are told of, in their order."""
    known = [one for one in range(len(labels)) if labels[one] > 0 or (trained is not None and trained[one] > 0)]
    if len(known) <= TOLD:
        return known
    there = [one for one in known if labels[one] > 0]
    usual = [one for one in there if labels[one] >= LEAST]
    found = dict.fromkeys(usual[at * len(usual) // _USUAL] for at in range(_USUAL if usual else 0))

    def add(ranked: Callable[[int], float], number: int) -> None:
        worst = sorted((one for one in there if ranked(one) > 0 and one not in found), key=lambda one: (-ranked(one), one))
        found.update(dict.fromkeys(worst[:max(0, min(number, TOLD - len(found)))]))

    if trained is not None:
        add(lambda one: 0.0 if trained[one] else labels[one], _NEVER)
    add(lambda one: labels[one] if not answers[one] else 0.0, _NEVER)
    add(lambda one: SHARE * pairs[one] - wins[one], TOLD)
    return sorted(found)


class Passes:
    """Has ``tell()`` called when the clock leaves an evaluation. Where a script evaluates batch by batch, without training in between, that is
    when there were 1, 2, 4 … of them."""

    def __init__(self, clock: Any, tell: Callable[[], None]) -> None:
        self._clock, self._tell = clock, tell
        self._new = True  # training has gone on since
        self._open = False  # there is something to tell
        self._left = 0
        clock.leaving.append(self._leaves)

    def trains(self) -> None:
        """A step of training was measured."""
        self._new = True

    def begins(self) -> bool:
        """A call of an evaluation is measured: whether it is the first one of its pass."""
        self._open, new, self._new = True, self._new, False
        if new:
            self._left = 0
        return new

    def ended(self) -> None:
        """The script says that an evaluation, or a batch of one, is over."""
        if self._open:
            self._open = False
            self._left += 1
            if self._left & (self._left - 1) == 0:
                self._tell()

    def _leaves(self, mode: str) -> None:
        if mode in ("eval", "predict"):
            self.ended()

    def end(self) -> None:
        """The hook closes."""
        if self._leaves in self._clock.leaving:
            self._clock.leaving.remove(self._leaves)
            self._leaves(self._clock.mode)


class Tables:
    """Sums per class of the calls of one book, as arrays of NumPy (classes in columns)."""

    def __init__(self, clock: Any, publish: Callable[[str, List[Row]], None]) -> None:
        """``publish``: is given a call and its rows, of the present step."""
        self._clock, self._publish = clock, publish
        self._training: Dict[str, Any] = {}
        self._evaluation: Dict[str, Any] = {}
        self._trained: Dict[str, Any] = {}
        self._looks: Dict[str, Looks] = {}
        self.passes = Passes(clock, self._pass_ended)

    def add(self, name: str, table: Any, learns: bool) -> None:
        """Of one measured call."""
        if learns:
            self.passes.trains()
            self._sum(self._trained, name, table[:1])
        elif self.passes.begins():
            self._evaluation = {}
        self._sum(self._training if learns else self._evaluation, name, table)

    def look(self) -> None:
        """The sums of a step of training are complete."""
        if self._clock.mode != "train":
            return
        for name in [one for one in self._training if self._looks.setdefault(one, Looks()).due(self._clock.position()[1] + 1)]:
            self._publish(name, rows_of(self._training.pop(name).tolist()))

    @staticmethod
    def _sum(sums: Dict[str, Any], name: str, table: Any) -> None:
        sums[name] = sums[name] + table if name in sums and sums[name].shape == table.shape else table

    def _pass_ended(self) -> None:
        tables, self._evaluation = self._evaluation, {}
        for name, table in tables.items():
            trained = self._trained.get(name)
            fits = trained is not None and trained.shape[1] == table.shape[1]
            self._publish(name, rows_of(table.tolist(), trained[0].tolist() if fits else None))
