"""What the columns of a table say of its labels, and whether two tables are alike: sums over rows, in NumPy. Missing elements (NaN) are left
out of each sum. docs/ledger.md says what the numbers mean."""

import secrets
from typing import Any, List, Optional, Tuple

import numpy

MOST_CLASSES = 4096
LEAST_ROWS = 200
_RANKED = 2048  # rows of each side that are compared by rank


def class_codes(labels: Any) -> Optional[Any]:
    """Numbers 0, 1, … of labels that are classes; None of more classes than are counted."""
    found, codes = numpy.unique(labels, return_inverse=True)
    return codes.astype(numpy.int64) if found.size <= min(MOST_CLASSES, max(labels.size // 10, 2)) else None


def fits(values: Any, labels: Any, codes: Optional[Any]) -> Any:
    """Per column: of quantities the share of the labels' variance that a straight line on the column explains (R²); of classes (``codes``)
    the share of the column's variance that lies between them (η², corrected for their number). 0 of columns that are constant or
    have fewer than 200 elements."""
    there = ~numpy.isnan(values)
    full = bool(there.all())
    count = numpy.full(values.shape[1], values.shape[0], dtype=numpy.float64) if full else there.sum(0).astype(numpy.float64)
    known = numpy.maximum(count, 1)
    x = values.astype(numpy.float64) if full else numpy.where(there, values, 0).astype(numpy.float64)
    x -= x.sum(0) / known
    if not full:
        x[~there] = 0
    spread = numpy.einsum("ij,ij->j", x, x)
    scale = numpy.abs(values[:1]) if full else numpy.nanmax(numpy.abs(numpy.where(there, values, 0)), 0, keepdims=True)
    usable = (count >= LEAST_ROWS) & (spread > 1e-12 * count * (numpy.abs(scale[0]).astype(numpy.float64) ** 2 + 1e-30))
    if codes is not None and codes.max() > 1:
        classes = int(codes.max()) + 1
        order = numpy.argsort(codes, kind="stable")
        starts = numpy.flatnonzero(numpy.r_[True, numpy.diff(codes[order]) > 0])
        sums = numpy.add.reduceat(x[order], starts, axis=0)
        held = numpy.diff(numpy.r_[starts, order.size])[:, None] if full else numpy.add.reduceat(there[order].astype(numpy.float64), starts, axis=0)
        between = (sums ** 2 / numpy.maximum(held, 1)).sum(0)
        share = between / numpy.where(usable, spread, 1)
        share = 1 - (1 - share) * numpy.maximum(count - 1, 1) / numpy.maximum(count - classes, 1)
    else:
        t = (labels if codes is None else codes).astype(numpy.float64)
        t = t - t.mean()
        along = x.T @ t
        if full:
            of_labels: Any = float(t @ t)
        else:
            mask = there.astype(numpy.float64)
            of_labels = mask.T @ (t * t) - (mask.T @ t) ** 2 / known
        usable &= numpy.asarray(of_labels) > 0
        share = along ** 2 / numpy.where(usable, spread * of_labels, 1)
    return numpy.where(usable, numpy.clip(share, 0, 1), 0)


def equality(column: Any, labels: Any) -> float:
    """Share of elements that are their label bit for bit, beyond what chance makes (Cohen's kappa): 1 of a copy, about 0 of a column
    that holds the most frequent label everywhere."""
    there = ~numpy.isnan(column)
    count = int(there.sum())
    if count < LEAST_ROWS:
        return 0.0
    column, labels = column[there], labels.astype(numpy.float32)[there]
    equal = float((column == labels).mean())
    if equal < 0.5:
        return 0.0
    found, of_labels = numpy.unique(labels, return_counts=True)
    others, of_column = numpy.unique(column, return_counts=True)
    _, first, second = numpy.intersect1d(found, others, assume_unique=True, return_indices=True)
    chance = float((of_labels[first] * of_column[second]).sum()) / count ** 2
    return (equal - chance) / (1 - chance) if chance < 1 else 0.0


def best_columns(values: Any, labels: Any, codes: Optional[Any], exact: bool) -> List[Tuple[int, float, float, float]]:
    """(column, fit, the fit with targets shifted by a row, equality) of the three that fit best, best first."""
    if labels.size < LEAST_ROWS:
        return []
    found = fits(values, labels, codes)
    best = [int(at) for at in numpy.argsort(-found, kind="stable")[:3] if found[at] > 0]
    if not best:
        return []
    few = numpy.ascontiguousarray(values[:, best])
    back = fits(few[1:], labels[:-1], None if codes is None else codes[:-1])
    ahead = fits(few[:-1], labels[1:], None if codes is None else codes[1:])
    return [(at, float(found[at]), float(max(back[place], ahead[place])), equality(few[:, place], labels) if exact else 0.0)
            for place, at in enumerate(best)]


class Fingerprints:
    """64 bits per row, of its elements and its label, under a salt that this process draws and keeps."""

    def __init__(self, columns: int) -> None:
        self._odd = numpy.array([secrets.randbits(64) | 1 for _ in range(columns + 1)], dtype=numpy.uint64)

    def of(self, values: Any, labels: Any) -> Any:
        bits = numpy.column_stack([values, labels.astype(numpy.float32) + numpy.float32(0)]).view(numpy.uint32).astype(numpy.uint64)
        bits *= numpy.uint64(0x9E3779B97F4A7C15)
        bits ^= bits >> numpy.uint64(29)
        return bits @ self._odd


def overlap(train: Any, judged: Any) -> Tuple[int, int]:
    """Of fingerprints: how many of ``judged`` are among ``train``, and how many of ``train`` are there more than once."""
    known = numpy.sort(train)
    again = known[1:] == known[:-1]
    repeats = int((numpy.r_[False, again] | numpy.r_[again, False]).sum()) if known.size else 0
    place = numpy.minimum(numpy.searchsorted(known, judged), max(known.size - 1, 0))
    return (int((known[place] == judged).sum()) if known.size else 0), repeats


def distances(first: Any, second: Any) -> Any:
    """Per column the largest difference between the two distribution functions (Kolmogorov and Smirnov), of at most 2048 rows of each; 0
    where a side has fewer than 30 elements."""
    first, second = few(first), few(second)
    both = numpy.concatenate([first, second]).T  # columns lie together
    order = numpy.argsort(both, axis=1)  # NaN last
    ordered = numpy.take_along_axis(both, order, 1)
    one, two = (~numpy.isnan(first)).sum(0), (~numpy.isnan(second)).sum(0)
    step = numpy.where(order < len(first), 1 / numpy.maximum(one, 1)[:, None], -1 / numpy.maximum(two, 1)[:, None])
    gap = numpy.abs(numpy.cumsum(step, axis=1))
    last_of_ties = numpy.ones(gap.shape, dtype=bool)
    last_of_ties[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    gap[~last_of_ties | numpy.isnan(ordered)] = 0
    return numpy.where((one >= 30) & (two >= 30), numpy.minimum(gap.max(1), 1), 0)


def drifts(values: Any) -> Any:
    """Per column the distance of the first half of the rows from the second, or of the first four fifths from the last, whichever is larger:
    what order in time makes."""
    half, late = len(values) // 2, 4 * len(values) // 5
    if half < 30:
        return numpy.zeros(values.shape[1])
    return numpy.maximum(distances(values[:half], values[half:]), distances(values[:late], values[late:]))


def class_distance(first: Any, second: Any) -> float:
    """Of two lists of classes: half the sum of the differences of their shares (total variation)."""
    found = numpy.unique(numpy.concatenate([first, second]))
    one = numpy.bincount(numpy.searchsorted(found, first), minlength=found.size) / first.size
    two = numpy.bincount(numpy.searchsorted(found, second), minlength=found.size) / second.size
    return float(numpy.abs(one - two).sum() / 2)


def class_drift(labels: Any) -> float:
    half, late = labels.size // 2, 4 * labels.size // 5
    if half < 30:
        return 0.0
    return max(class_distance(labels[:half], labels[half:]), class_distance(labels[:late], labels[late:]))


def compared(rows: int) -> int:
    """How many of so many rows are compared by rank."""
    return min(rows, _RANKED)


def few(values: Any) -> Any:
    """The rows that are compared by rank."""
    count = compared(len(values))
    return values[numpy.arange(count) * len(values) // count]

