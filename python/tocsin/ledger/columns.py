"""What single columns of a model's inputs say of its targets (docs/ledger.md, ``ledger/data/train/column_fit``), from the rows of the first
batches of training: at most 2048, which stay in the process and are forgotten as soon as they have been looked at.

A column is a place of a sample. Of one quantity per sample, or of classes, the fit is that of a booster's columns. Of several quantities
per sample only elements are looked at that are the target bit for bit.
"""

from typing import Any, Dict, List, Tuple

import numpy

from .boosting_columns import LEAST_ROWS, Fingerprints, best_columns, class_codes, equality

OF_BATCH, MOST_ROWS = 128, 2048
FIRST = 256  # rows at the first look
MOST_NUMBERS = 1 << 18  # but for two looks
_LIKELY = 0.9


class Columns:
    """Of one loss of a training."""

    def __init__(self, width: int, classes: bool, units: int) -> None:
        """``units``: quantities of a sample."""
        self.width, self.classes, self.units = width, classes, units
        self.batches = self.rows = 0
        self._next, self._most = FIRST, max(2 * FIRST, min(MOST_ROWS, MOST_NUMBERS // width))
        self._values: List[Any] = []
        self._targets: List[Any] = []
        self._prints = Fingerprints(width + units - 1)

    @property
    def done(self) -> bool:
        return self.rows >= self._most

    def some(self, count: int) -> slice:
        """Which rows of a batch of ``count`` are looked at. Others, where the same batch comes again and again."""
        wanted = min(count, OF_BATCH)
        begin = (self.batches * wanted) % max(count - wanted + 1, 1)
        return slice(begin, begin + wanted)

    def add(self, values: Any, targets: Any) -> Dict[str, float]:
        """``values``: (rows, width); ``targets``: (rows, units). What is to be told now: fields of ``ledger/data/train/``."""
        self.batches += 1
        self.rows += len(values)
        self._values.append(values)
        self._targets.append(targets)
        if self.rows < self._next:
            return {}
        self._next = max(2 * self._next, self.rows + 1)
        with numpy.errstate(all="ignore"):
            out = self._told()
        if self.done:
            self._values, self._targets = [], []
        return out

    def _told(self) -> Dict[str, float]:
        values, targets = (numpy.concatenate(parts).astype(numpy.float32) + numpy.float32(0) for parts in (self._values, self._targets))
        values[~numpy.isfinite(values)] = numpy.nan
        known = numpy.isfinite(targets).all(1)
        if self.classes:
            known &= targets[:, 0] >= 0
        values, targets = values[known], targets[known]
        together = numpy.column_stack([values, targets[:, :-1]])
        _, first = numpy.unique(self._prints.of(together, targets[:, -1]), return_index=True)
        chosen = numpy.sort(first)  # a row that comes again says nothing new
        values, targets = values[chosen], targets[chosen]
        if len(values) < LEAST_ROWS:
            return {}
        out = {"read": float(len(values)), "batches": float(self.batches)}
        found: List[Tuple[int, float, float, float]]
        if self.classes or self.units == 1:
            codes = class_codes(targets[:, 0]) if self.classes else None
            if self.classes and codes is None:
                return {}  # too many for so few rows
            if codes is not None:
                out["classes"] = float(codes.max()) + 1
            found = best_columns(values, targets[:, 0], codes, True)
        else:
            found = self._copied(values, targets)
        for at, fit, shifted, equal in found:
            out.update({f"column_fit/{at}": fit, f"shifted_fit/{at}": shifted, f"column_equal/{at}": equal})
        return out

    @staticmethod
    def _copied(values: Any, targets: Any) -> List[Tuple[int, float, float, float]]:
        """The column that is the likeliest copy of one of several quantities."""
        share = numpy.stack([(values == targets[:, unit:unit + 1]).mean(0) for unit in range(targets.shape[1])])
        unit, at = numpy.unravel_index(int(share.argmax()), share.shape)
        if share[unit, at] < _LIKELY:
            return []
        return [(int(at), 0.0, 0.0, max(0.0, equality(values[:, at], targets[:, unit])))]
