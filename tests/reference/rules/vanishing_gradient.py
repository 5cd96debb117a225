"""1.5 VanishingGradient: mean|g| < threshold for a gradient, and for at least `min_fraction` of the worker's gradients of
the step. Divided by the loss scale where the producer has not done so. Ours beside, preset tocsin: biases are left out; a gradient
that is 0 throughout is insufficient before the fourth step that is as far from the one before as that, and in the first 5; and so is one that was seen between the threshold and 100 times that."""
import math

from tests.reference.judging import (HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, row_unit, selects, wants)

DEFAULTS = {"threshold": 1e-7, "min_fraction": 0}
TOCSIN = {"min_fraction": 0.25}
UNSCALED = 18


def judge(p, row, faded, zeros):
    if row.columns["count"] == 0:
        return NOT_APPLICABLE
    scale = 1.0 if row.flag(UNSCALED) else row.loss_scale
    abs_mean = row.columns["abs_sum"] / row.columns["count"] / scale
    if not math.isfinite(abs_mean):
        return INSUFFICIENT
    if p["preset"] == "tocsin" and abs_mean < p["threshold"]:
        if row_unit(row) in faded:
            return INSUFFICIENT
        if row.columns["zero"] == row.columns["count"]:
            steps = zeros.setdefault(row_unit(row), [])
            steps.append(row.step)
            if len({b - a for a, b in zip(steps[-4:], steps[-3:])}) != 1 or len(steps) < 4 or row.step < 5:
                return INSUFFICIENT
    if p["threshold"] <= abs_mean < 100 * p["threshold"]:
        faded.add(row_unit(row))
    return HIT if abs_mean < p["threshold"] else OK


def evaluate(p, history):
    faded, zeros = set(), {}
    judged = [(row, judge(p, row, faded, zeros)) for row in history.rows
              if selects(p, row, roles={"gradient"}) and wants(p, row, TRAINING) and not left_out(p, row)]
    out = []
    for row, outcome in judged:
        if outcome == HIT:
            step = [other for one, other in judged
                    if (one.rank, one.mode, one.step) == (row.rank, row.mode, row.step) and other in (OK, HIT)]
            if step.count(HIT) < p["min_fraction"] * len(step):
                outcome = OK
        out.append(Evaluation(row_unit(row), outcome, row.step))
    return out


def left_out(p, row):
    chosen = p["collection_names"] or p["tensor_regex"]
    return p["preset"] == "tocsin" and not chosen and row.name.endswith("bias")
