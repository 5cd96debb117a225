"""Columns that know the target, and samples of an evaluation that were trained on, in jobs whose steps give arrays back: rows
``ledger/data/train/<field>`` and ``ledger/data/evaluation/<field>`` (docs/ledger.md), as PyTorch jobs have them.

Told at doubled numbers of rows, and of the 1st, 2nd, 4th, … evaluation after training has begun. Fingerprints get a salt here, which the process draws
and keeps; neither leaves it.
"""

import secrets
from typing import Any, Callable, Dict, Optional

import numpy

from .batch import BatchForm, table_of
from .columns import Columns
from .fingerprints import LEAST, Kept, Pass, mixed


class Samples:
    """Of one job, of the first loss whose targets belong to the inputs row by row. ``tell(field, value)``: a row of the present step."""

    def __init__(self, tell: Callable[[str, float], None]) -> None:
        self._tell = tell
        self._salt = numpy.uint64(secrets.randbits(64))
        self._call: Optional[str] = None
        self._columns: Optional[Columns] = None
        self._train = Kept()
        self._pass: Optional[Pass] = None
        self._trained = -1  # steps of training before it
        self._before = 0  # batches of evaluations before it
        self._passes = 0

    def wants_table(self) -> bool:
        return self._call is None or (self._columns is not None and not self._columns.done)

    def trained(self, call: str, form: BatchForm, numbers: Any, prints: Any) -> None:
        """``numbers``, ``prints``: of ``batch.batch``, in host memory. Those of no inputs say nothing."""
        if (form.table is None and prints is None) or self._call not in (None, call):
            return
        if self._call is None:
            self._call = call
            if form.table is not None:
                self._columns = Columns(form.table.width, form.table.classes, form.table.units)
        columns, table = self._columns, form.table
        if columns is not None and table is not None and not columns.done and (table.width, table.units) == (columns.width, columns.units):
            for field, value in columns.add(*table_of(form, numbers)).items():
                self._tell(f"train/{field}", value)
        if prints is not None:
            self._train.add(self._salted(prints))

    def evaluated(self, call: str, prints: Any, trained: int, calls: int) -> None:
        """After ``trained`` batches of training, as the ``calls``-th of evaluations, measured or not."""
        if call != self._call or prints is None:
            return
        if self._trained != trained:
            self.over(calls - 1)
            self._trained = trained
            enough = self._train.visits >= LEAST
            self._passes += enough
            if enough and self._passes & (self._passes - 1) == 0:
                self._pass = Pass(trained)
        if self._pass is not None:
            self._pass.add(self._salted(prints))

    def over(self, calls: int) -> None:
        """An evaluation has ended, if there was one. ``calls``: batches of evaluations until now: most may not have been measured."""
        ended, self._pass = self._pass, None
        if ended is not None:
            ended.missed = max(0, calls - self._before - ended.calls)
        self._before = calls
        fields = None if ended is None else ended.compared(self._train)
        if fields is not None:
            for field, value in {**fields, "look": float(self._passes.bit_length())}.items():
                self._tell(f"evaluation/{field}", value)

    def counts(self) -> Dict[str, Any]:
        """For ``hook.stats()``."""
        return {"samples": self._train.visits}

    def _salted(self, prints: Any) -> Any:
        both = numpy.asarray(prints).reshape(-1, 2).astype(numpy.uint64)
        return mixed((both[:, 0] | both[:, 1] << numpy.uint64(32)) ^ self._salt)
