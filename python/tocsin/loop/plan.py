"""What a training has planned, as scalars of the role ``ledger`` (docs/ledger.md)."""

import math
from typing import Any, Dict, Optional, Tuple

from tocsin.process.contain import contained

PREFIX = "ledger/plan/"
FIELDS = frozenset(("updates", "epochs", "accumulation", "schedule", "length", "stride", "lowest", "follows_metric",
                    "rounds", "shrinkage", "early_stopping"))


class Plan:
    """Of one sink. A field is sent when it is said first and when it changes, in a training step, at most once per step:
    a step has one value of a name. What waits goes with the next one that is said, or with the next change of the rate."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._known: Dict[str, float] = {}
        self.pending: Dict[str, float] = {}
        self._sent_at: Dict[str, Tuple[str, int]] = {}

    def say(self, **fields: Any) -> bool:
        """Whether anything is new. None: not known. ``ValueError`` for what is no number of at least 0."""
        new: Dict[str, float] = {}
        for field, value in fields.items():
            if value is None:
                continue
            if field not in FIELDS:
                raise ValueError(f"{field!r} is no field of the plan ({', '.join(sorted(FIELDS))})")
            number = float(value)
            if not (math.isfinite(number) and number >= 0):
                raise ValueError(f"{field} is {value!r}: expected a number, 0 or more")
            if self._known.get(field) != number:
                new[field] = number
        self._known.update(new)
        self.pending.update(new)
        self.flush()
        return bool(new)

    def get(self, field: str) -> Optional[float]:
        return self._known.get(field)

    def forget_schedule(self) -> None:
        """There are several, or another one than before: nobody can say when it ends."""
        if self._known.get("schedule"):
            self.say(schedule=0, length=0)

    def flush(self) -> None:
        """Sends what waits, if this is a training step that has no value of it."""
        clock = self._sink.clock
        if not self.pending or clock.mode not in ("train", "global"):
            return
        position = clock.position()
        for field in sorted(self.pending):
            if self._sent_at.get(field) == position:
                continue
            self._sent_at[field] = position
            name = PREFIX + field
            if name not in self._sink.scalars:
                self._sink.scalar(name, "ledger")
            self._sink.publish_scalar(name, self.pending.pop(field))

    def updates_done(self) -> int:
        """Training steps that have ended, and the one that is held open after its update."""
        clock = self._sink.clock
        ahead = clock.ended_ahead() if clock.mode == "train" else 0
        return int(self._sink.counters()["steps"].get("train", 0)) + ahead


class Planning:
    """Of a :class:`tocsin.Hook`."""

    @contained()
    def plan(self, *, updates: Optional[float] = None, epochs: Optional[float] = None,
             accumulation: Optional[float] = None, schedule: Optional[float] = None,
             rounds: Optional[float] = None, shrinkage: Optional[float] = None) -> None:
        """State what your own loop has planned. The rule ``budget`` compares the learning-rate schedule with it.

        ``updates``: optimizer steps of the whole training. ``epochs``: passes over the data. ``accumulation``: micro-batches
        per update. ``schedule``: updates until the learning rate has come to its end, if no PyTorch scheduler says it.
        ``rounds``, ``shrinkage``: the trees of a booster and its learning rate. What you leave out stays as it was.
        Lightning, Transformers, Keras and the boosters state their plan themselves.
        """
        self.sink.plan.say(  # type: ignore[attr-defined]
            updates=updates, epochs=epochs, accumulation=accumulation, schedule=schedule, rounds=rounds, shrinkage=shrinkage,
            lowest=None if schedule is None else 0)
