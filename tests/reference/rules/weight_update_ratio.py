"""1.6 WeightUpdateRatio: r = ‖W_s − W_p‖ / (‖W_p‖ + epsilon) between two saved values of one (tensor, worker, mode).

Two plain norms bound r from below only: they may prove `too_large`, never anything else. Preset tocsin: r per step, and
`too_small` relative to the learning rate by the largest so far, the smaller share of both ends. An update that a tensor which moved as it
last did would lose to rounding is not judged at half the largest rate and less, for a tenth of the steps so far. Elements of one size and both
signs are clipped to it. A single number must be too small three saves in a row: where it turns round it is so once.
"""
import math

from tests.reference import columns
from tests.reference.judging import (HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, row_unit, selects, wants)

DEFAULTS = {"num_steps": None, "large_threshold": 10.0, "small_threshold": 1e-8, "epsilon": 1e-9}
TOCSIN = {"small_threshold": 1e-6}
NOT_TRAINABLE = 21
RESOLUTION = {"f64": 2.0 ** -52, "c128": 2.0 ** -52, "f16": 2.0 ** -10, "bf16": 2.0 ** -7, "f8_e4m3": 2.0 ** -3, "f8_e5m2": 2.0 ** -2}
FLOAT32 = 2.0 ** -23
UNKNOWN = object()  # in place of a ratio: there is nothing to compare with


class Tensor:
    """What is known of one unit, since its shape is as it is."""

    def __init__(self):
        self.saved = []
        self.still = None  # the step from which on it has not moved
        self.last = None  # ratio where it moved, or had become smaller by and by since
        self.small = 0  # times in a row that it was too small
        self.usual = None  # relative update per step at the largest rate, where it last was not too small


def shape(row):
    return (row.columns["count"], row.known.shape)


def measured(row):
    """(p, ‖W_s − W_p‖, ‖W_p‖) as the producer states them; None: it does not."""
    found = [row.statistics.get((name, ())) for name in ("delta_from_step", "delta_l2", "prev_l2")]
    return None if None in found else (int(found[0]), *found[1:])


def previous(p, saved, row):
    """The saved step to compare with; None: there is none in reach. The one just before is what the producer says it is, even
    when its row was lost on the way."""
    if p["num_steps"] is not None:
        return next((one.step for one in saved if one.step >= row.step - p["num_steps"]), None)
    if measured(row):
        return measured(row)[0]
    return saved[-1].step if saved else None


def smaller_share(p, saved, row, older):
    """Of the learning rate by the largest so far at both ends of the way, where it is known; without num_steps the older end is
    the last save that arrived."""
    ends = [one for one in saved if one.step == older] if p["num_steps"] is not None else saved
    return min(one.learning_rate / one.largest_rate for one in (row, *ends[-1:]) if one.largest_rate)


def at_limits(row):
    """All elements are of one size and of both signs, as weights that are clipped to a limit are."""
    c = row.columns
    positive = c["count"] - c["nan"] - c["zero"] - c["negative"]
    most = columns.abs_max(c) * c["count"]
    return c["negative"] > 0 and positive > 0 and c["zero"] == 0 and abs(c["abs_sum"] - most) <= 1e-6 * most


def judge(p, tensor, row):
    """(outcome, kinds). Preset tocsin: an update that has become small by and by, each at least a tenth of the one before, has not stopped."""
    outcome, kinds, r = judge_ratio(p, tensor, row)
    if r is UNKNOWN:
        return outcome, kinds
    tensor.small = tensor.small + 1 if kinds == ("too_small",) else 0
    if p["preset"] == "tocsin" and kinds == ("too_small",):
        begins = not tensor.last and row.step < 10  # behind a branch that starts at zero
        if begins or at_limits(row) or (row.columns["count"] == 1 and tensor.small < 3):
            return INSUFFICIENT, ()
        if tensor.last and 10 * r >= tensor.last:
            outcome, kinds, tensor.last = INSUFFICIENT, (), r
    elif outcome == OK:
        tensor.last = r
    return outcome, kinds


def judge_ratio(p, tensor, row):
    """(outcome, kinds, r as it is compared)"""
    saved = tensor.saved
    if row.columns["count"] == 0 or row.flag(NOT_TRAINABLE):
        return NOT_APPLICABLE, (), UNKNOWN
    older = previous(p, saved, row)
    if older is None:
        return INSUFFICIENT, (), UNKNOWN
    proven = measured(row) is not None and measured(row)[0] == older
    if proven:
        _, delta, before = measured(row)
    else:
        before = next(columns.l2(one.columns) for one in saved if one.step == older)
        delta = abs(columns.l2(row.columns) - before)
    r = delta / (before + p["epsilon"])
    if p["preset"] == "tocsin":
        r /= row.step - older
    if math.isnan(r):
        return INSUFFICIENT, (), None
    if r > p["large_threshold"]:
        if p["preset"] == "tocsin" and before < max(p["epsilon"], 1e-4 * math.sqrt(row.columns["count"])):
            return INSUFFICIENT, (), None  # layers are set to zero, or next to it, on purpose
        return HIT, ("from_zero" if before < p["epsilon"] else "too_large",), r
    if not proven:
        return INSUFFICIENT, (), None
    if p["preset"] == "tocsin" and row.learning_rate is not None:
        if row.largest_rate == 0 and row.step >= 5:
            small = r < p["small_threshold"]  # no schedule has begun
            return (HIT, ("too_small",), r) if small else (OK, (), r)
        if row.learning_rate == 0:
            return INSUFFICIENT, (), None  # nothing was to move
        if saved and saved[-1].step == older == row.step - 1 and saved[-1].learning_rate == 0:
            return INSUFFICIENT, (), None  # the one update between was made with a rate of 0
        share = smaller_share(p, saved, row, older)
        if share == 0:
            return INSUFFICIENT, (), None  # a restart
        r /= share
        if r >= p["small_threshold"]:
            tensor.usual, tensor.still = r, None
            return OK, (), r
        tensor.still = older if tensor.still is None else tensor.still
        lost = tensor.usual and tensor.usual * share < 4 * RESOLUTION.get(row.dtype, FLOAT32)
        if lost and share <= 0.5 and row.step - tensor.still <= 0.1 * row.step:
            return INSUFFICIENT, (), None  # rounding explains it
    return (HIT, ("too_small",), r) if r < p["small_threshold"] else (OK, (), r)


def evaluate(p, history):
    tensors, out = {}, []
    for row in history.rows:
        if row.scalar or not selects(p, row, roles={"weight"}) or not wants(p, row, TRAINING):
            continue
        tensor = tensors.setdefault(row_unit(row), Tensor())
        if tensor.saved and shape(tensor.saved[-1]) != shape(row):
            tensor = tensors[row_unit(row)] = Tensor()  # another shape starts anew
        outcome, kinds = judge(p, tensor, row)
        out.append(Evaluation(row_unit(row), outcome, row.step, kinds))
        if outcome != NOT_APPLICABLE:
            tensor.saved.append(row)
    return out
