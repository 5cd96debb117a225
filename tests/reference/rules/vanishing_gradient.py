"""1.5 VanishingGradient: mean|g| < threshold for a gradient, and for at least `min_fraction` of the worker's gradients of
the step. Divided by the loss scale where the producer has not done so. Ours beside, preset tocsin: in the first 5 steps a gradient
that is 0 throughout is insufficient; a layer that starts at zero lets none through."""
import math

from tests.reference.judging import (HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, row_unit, selects, wants)

DEFAULTS = {"threshold": 1e-7, "min_fraction": 0}
TOCSIN = {"min_fraction": 0.25}
UNSCALED = 18


def judge(p, row):
    if row.columns["count"] == 0:
        return NOT_APPLICABLE
    scale = 1.0 if row.flag(UNSCALED) else row.loss_scale
    abs_mean = row.columns["abs_sum"] / row.columns["count"] / scale
    if not math.isfinite(abs_mean):
        return INSUFFICIENT
    if p["preset"] == "tocsin" and row.step < 5 and row.columns["zero"] == row.columns["count"]:
        return INSUFFICIENT
    return HIT if abs_mean < p["threshold"] else OK


def evaluate(p, history):
    judged = [(row, judge(p, row)) for row in history.rows
              if selects(p, row, roles={"gradient"}) and wants(p, row, TRAINING)]
    out = []
    for row, outcome in judged:
        if outcome == HIT:
            step = [other for one, other in judged
                    if (one.rank, one.mode, one.step) == (row.rank, row.mode, row.step) and other in (OK, HIT)]
            if step.count(HIT) < p["min_fraction"] * len(step):
                outcome = OK
        out.append(Evaluation(row_unit(row), outcome, row.step))
    return out
