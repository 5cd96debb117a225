"""1.6 WeightUpdateRatio: r = ‖W_s − W_p‖ / (‖W_p‖ + epsilon) between two saved values of one (tensor, worker, mode).

Two plain norms bound r from below only: they may prove `too_large`, never anything else. Preset tocsin: r per step, and
`too_small` relative to the learning rate.
"""
import math

from tests.reference import columns
from tests.reference.judging import (HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, row_unit, selects, wants)

DEFAULTS = {"num_steps": None, "large_threshold": 10.0, "small_threshold": 1e-8, "epsilon": 1e-9}
TOCSIN = {"small_threshold": 1e-6}
NOT_TRAINABLE = 21


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


def judge(p, saved, row):
    """(outcome, kinds). `saved`: earlier rows of the same shape."""
    if row.columns["count"] == 0 or row.flag(NOT_TRAINABLE):
        return NOT_APPLICABLE, ()
    older = previous(p, saved, row)
    if older is None:
        return INSUFFICIENT, ()
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
        return INSUFFICIENT, ()
    if r > p["large_threshold"]:
        if before < p["epsilon"] and p["preset"] == "tocsin":
            return INSUFFICIENT, ()  # layers are set to zero on purpose
        return HIT, ("from_zero" if before < p["epsilon"] else "too_large",)
    if not proven:
        return INSUFFICIENT, ()
    if p["preset"] == "tocsin" and row.learning_rate is not None:
        if row.largest_rate == 0 and row.step >= 5:
            return (HIT, ("too_small",)) if r < p["small_threshold"] else (OK, ())  # no schedule has begun
        if row.learning_rate == 0:
            return INSUFFICIENT, ()  # nothing was to move
        if saved and saved[-1].step == older == row.step - 1 and saved[-1].learning_rate == 0:
            return INSUFFICIENT, ()  # the one update between was made with a rate of 0
        r /= row.learning_rate / row.largest_rate
    return (HIT, ("too_small",)) if r < p["small_threshold"] else (OK, ())


def evaluate(p, history):
    saved, out = {}, []
    for row in history.rows:
        if row.scalar or not selects(p, row, roles={"weight"}) or not wants(p, row, TRAINING):
            continue
        before = saved.setdefault(row_unit(row), [])
        if before and shape(before[-1]) != shape(row):
            before.clear()  # another shape starts anew
        outcome, kinds = judge(p, before, row)
        out.append(Evaluation(row_unit(row), outcome, row.step, kinds))
        if outcome != NOT_APPLICABLE:
            before.append(row)
    return out
