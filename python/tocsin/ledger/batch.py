"""What the batch of a step holds (docs/ledger.md, "Worlds" and "Data sets"), as arrays of a fixed form: moments of inputs and targets, rows for
columns, fingerprints of samples.

As in ``moments.py`` the arithmetic is written once, over a table of operations, and runs inside compiled steps. Fingerprints have no salt here: a
compiled step must not differ from process to process, or nobody could keep it. They get one as soon as they are in host memory.
"""

import math
import random
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

ROWS, EVALUATION_ROWS = 32, 256  # that moments look at
WIDTH, PIXELS, CHANNELS = 512, 256, 4  # numbers of a row; of a channel of an image; channels of what is an image
QUANTITIES = ("squared", "absolute", "huber", "poisson", "binary", "other")
MOST_COLUMNS, MOST_CLASSES, MOST_PRODUCTS = 512, 4096, 1 << 12  # columns; classes; columns × quantities
TABLE_ROWS, TABLE_NUMBERS = 256, 1 << 15  # of a step
MOST_TENSORS, MOST_WORDS, MOST_TARGETS, MOST_NUMBERS = 2, 256, 16, 1 << 17
_LANES = 2
_WORDS = (2 * MOST_WORDS) * MOST_TENSORS + 2 * MOST_TARGETS  # numbers of 64 bits have two each
_draw = random.Random(20)
ODD = [[_draw.getrandbits(32) | 1 for _ in range(_WORDS)] for _ in range(_LANES)]


class Group(NamedTuple):
    """``parts``: channels that have moments of their own."""

    name: str
    parts: int


class Table(NamedTuple):
    """Rows whose columns are compared with their targets."""

    rows: int
    width: int
    units: int
    classes: bool


class BatchForm(NamedTuple):
    """What the numbers are of."""

    groups: Tuple[Group, ...] = ()
    table: Optional[Table] = None

    @property
    def length(self) -> int:
        rows = 0 if self.table is None else self.table.rows * (self.table.width + self.table.units + 1)
        return sum(1 + 3 * one.parts for one in self.groups) + rows


class Batch(NamedTuple):
    """``numbers``: of the form's length. ``prints``: (samples, 2) of 32 bits each, or None."""

    form: BatchForm
    numbers: Any
    prints: Any


class Wanted(NamedTuple):
    """What is to be told of a batch; where a step is compiled, all of it is computed."""

    rows: int = ROWS  # of which moments are taken
    moments: bool = True
    table: bool = True


class Moments(NamedTuple):
    """Of one group. ``means`` are about ``pivots``, ``variances`` about the means, each of a part."""

    name: str
    rows: float
    pivots: Any
    means: Any
    variances: Any


def batch(ops: Any, kind: str, call: str, outputs: Any, targets: Any, inputs: Sequence[Any], wanted: Wanted) -> Optional[Batch]:
    """Of one loss call. ``kind``: of ``moments.KINDS``; ``call``: its name; ``inputs``: arrays with a row for each sample, none to leave them out.
    None: there is nothing to tell."""
    groups: List[Group] = []
    parts: List[Any] = []

    def add(name: str, value: Any) -> None:
        some = _spread_out(ops, value, wanted.rows) if wanted.moments else None
        if some is not None:
            groups.append(Group(name, int(some[0].shape[1])))
            parts.extend(_moments(ops, *some))

    if kind in QUANTITIES and ops.is_floating(targets) and len(targets.shape) > 0:
        add(f"target/{call.replace('/', '.')}", targets if len(targets.shape) > 1 else targets[:, None])
    for place, one in enumerate(inputs):
        if ops.is_floating(one) and len(one.shape) > 1:
            add(f"input/{place}", one)
    table = _table(ops, kind, outputs, targets, inputs) if wanted.table else None
    if table is not None:
        parts.append(table[1])
    prints = _prints(ops, list(inputs[:MOST_TENSORS]), targets) if inputs and len(targets.shape) > 0 else None
    if not parts and prints is None:
        return None
    xp = ops.module
    flat = [ops.cast(xp.reshape(one, (-1,)), ops.floats) for one in parts]
    return Batch(BatchForm(tuple(groups), table[0] if table else None), xp.concatenate(flat, axis=0) if flat else None, prints)


def moments_of(form: BatchForm, numbers: Any) -> List[Moments]:
    """``numbers``: an array of NumPy."""
    found, at = [], 0
    for name, parts in form.groups:
        own = numbers[at + 1:at + 1 + 3 * parts].reshape(3, parts)
        found.append(Moments(name, float(numbers[at]), *own))
        at += 1 + 3 * parts
    return found


def table_of(form: BatchForm, numbers: Any) -> Any:
    """(values, targets) of its rows."""
    table = form.table
    assert table is not None
    rows = numbers[form.length - table.rows * (table.width + table.units + 1):].reshape(table.rows, -1)
    rows = rows[rows[:, -1] > 0]
    return rows[:, :table.width], rows[:, table.width:-1]


# ---- which rows and numbers


def _places(ops: Any, value: Any, most: int) -> Tuple[Any, Any]:
    """(numbers of evenly spaced rows, whether each is one), ``most`` of them, so that the form does not depend on the batch's size."""
    xp, known = ops.module, value.shape[0]
    at = ops.cast(xp.arange(most), "int32")
    count = known if isinstance(known, int) else ops.count(value)
    places = at * ((count + (most - 1)) // most)
    return xp.where(places < count, places, count - 1 + 0 * at), places < count


def _spread_out(ops: Any, value: Any, most: int) -> Optional[Tuple[Any, Any]]:
    """((rows, parts, numbers), which rows are some)."""
    shape = tuple(value.shape)
    if not all(isinstance(one, int) and one > 0 for one in shape[1:]) or shape[0] == 0:
        return None
    xp = ops.module
    if isinstance(shape[0], int) and not ops.fixed:
        taken = value[::-(-shape[0] // most)]
        valid = xp.ones(taken.shape[0], bool)
    else:
        places, valid = _places(ops, value, most)
        taken = xp.take(value, places, axis=0)
    last = len(shape) == 4 and shape[3] <= CHANNELS
    if last or (len(shape) == 4 and shape[1] <= CHANNELS):
        height, width = shape[1:3] if last else shape[2:]
        apart = max(1, math.isqrt(max(1, height * width // PIXELS)))
        some = slice(apart // 2, None, apart)
        taken = xp.transpose(taken[:, some, some, :], (0, 3, 1, 2)) if last else taken[:, :, some, some]
        return xp.reshape(taken, (taken.shape[0], taken.shape[1], -1)), valid
    width = math.prod(shape[1:])
    taken = xp.reshape(taken, (-1, width))[:, ::-(-width // WIDTH)]
    return taken[:, None, :], valid


def _moments(ops: Any, some: Any, valid: Any) -> List[Any]:
    """[rows, pivot, mean, variance] of each part. The mean is taken about a number of the batch's own: what is far from 0 would lose its digits."""
    xp = ops.module
    values = ops.cast(some, ops.floats)
    pivot = values[0, :, 0]
    apart = xp.where(valid[:, None, None], values - pivot[None, :, None], xp.zeros_like(values))
    rows = xp.sum(ops.cast(valid, ops.floats))
    numbers = rows * values.shape[2]
    total = lambda value: xp.sum(xp.sum(value, axis=2), axis=0) / numbers  # noqa: E731 (a row at a time: some frameworks add one after the other)
    means = total(apart)
    off = xp.where(valid[:, None, None], apart - means[None, :, None], xp.zeros_like(values))
    return [rows, pivot, means, total(off * off)]


def widest(ops: Any, inputs: Sequence[Any]) -> Any:
    """Of floating ones: beside a table, others are weights, times and the like. None: there is none, or its width is not known."""
    tables = [one for one in inputs if ops.is_floating(one) and len(one.shape) > 1 and all(isinstance(size, int) for size in one.shape[1:])]
    return max(tables, key=lambda one: math.prod(one.shape[1:]), default=None)


def _table(ops: Any, kind: str, outputs: Any, targets: Any, inputs: Sequence[Any]) -> Optional[Tuple[Table, Any]]:
    """None: these inputs have no columns that could be a target."""
    values = widest(ops, inputs)
    if values is None or len(targets.shape) == 0 or not all(isinstance(size, int) for size in targets.shape[1:]):
        return None
    xp, width, units = ops.module, math.prod(values.shape[1:]), math.prod(targets.shape[1:])
    classes = kind == "cross_entropy"
    if width > MOST_COLUMNS or width == 0 or units == 0:
        return None
    if classes:
        shares = len(targets.shape) == len(outputs.shape) and targets.shape[-1] == outputs.shape[-1]
        if len(outputs.shape) != 2 or not 2 <= outputs.shape[1] <= MOST_CLASSES or not (shares or units == 1):
            return None
        targets = xp.argmax(targets, axis=-1) if shares else targets
        units = 1
    elif units * width > MOST_PRODUCTS or (units == width and units > 1):
        return None  # what is to be given is of the same kind as what is given: a reconstruction
    rows = max(1, min(TABLE_ROWS, TABLE_NUMBERS // width))
    if isinstance(values.shape[0], int) and not ops.fixed:
        rows = min(rows, values.shape[0])
    places, valid = _places(ops, values, rows)
    both = [ops.cast(xp.reshape(xp.take(one, places, axis=0), (-1, size)), ops.floats) for one, size in ((values, width), (targets, units))]
    return Table(rows, width, units, classes), xp.concatenate([*both, ops.cast(valid, ops.floats)[:, None]], axis=1)


# ---- fingerprints


def _prints(ops: Any, inputs: List[Any], target: Any) -> Any:
    """(samples, 2): for each sample two sums of its words, mixed and times an odd number of its place, of 32 bits. A zero adds nothing. So a text
    has one fingerprint, however far it is padded with zeros. None: there are no words, or how many is not known."""
    xp = ops.module
    for one in (*inputs, target):
        if not ops.has_words(one) or not all(isinstance(size, int) for size in one.shape[1:]):
            return None
    of_sample = sum(min(math.prod(one.shape[1:]), MOST_WORDS) for one in inputs)
    known = inputs[0].shape[0]
    apart = max(1, -(-known * of_sample // MOST_NUMBERS)) if isinstance(known, int) else 1
    sums: List[Any] = [0] * _LANES
    for at, (value, most) in enumerate([*((one, MOST_WORDS) for one in inputs), (target, MOST_TARGETS)]):
        width = math.prod(value.shape[1:])
        some = xp.reshape(value[::apart] if apart > 1 else value, (-1, width))
        if width > most:
            some = some[:, ::-(-width // most)] if ops.is_floating(some) or ops.is_byte(some) else some[:, :most]
        words = _mixed(ops, ops.words(some))
        begin = 2 * MOST_WORDS * (at if at < len(inputs) else MOST_TENSORS)
        for lane in range(_LANES):
            odd = ODD[lane][begin:begin + int(words.shape[1])]
            sums[lane] = ops.low(sums[lane] + ops.total(ops.times(words, ops.whole(odd))))
    return xp.stack(sums, axis=1)


def _mixed(ops: Any, words: Any) -> Any:
    """So that every bit depends on all (the end of MurmurHash3, of 32 bits)."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        words = ops.times(words ^ ops.shifted(words, shift), ops.whole(factor))
    return words ^ ops.shifted(words, 16)
