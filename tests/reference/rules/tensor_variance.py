"""2.8 TensorVariance: population variance above max_threshold (`high`) or below min_threshold (`low`). One step; all modes.
Of a gradient after unscaling. Preset tocsin: tensors of rank 2 and more only."""
import math

from tests.reference import columns
from tests.reference.judging import (ALL_MODES, HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, row_unit, selects, wants)

DEFAULTS = {"max_threshold": None, "min_threshold": None}
TOCSIN = {}
UNSCALED = 18


def judge(p, row):
    """(outcome, kinds)"""
    if row.columns["count"] < 2 or (p["preset"] == "tocsin" and len(row.known.shape) < 2):
        return NOT_APPLICABLE, ()
    v = columns.variance(row.columns)
    if row.role == "gradient" and not row.flag(UNSCALED):
        v /= row.loss_scale ** 2
    if not math.isfinite(v):
        return INSUFFICIENT, ()
    if p["max_threshold"] is not None and v > p["max_threshold"]:
        return HIT, ("high",)
    if p["min_threshold"] is not None and v < p["min_threshold"]:
        return HIT, ("low",)
    return OK, ()


def evaluate(p, history):
    out = []
    for row in history.rows:
        if selects(p, row) and wants(p, row, ALL_MODES):
            outcome, kinds = judge(p, row)
            out.append(Evaluation(row_unit(row), outcome, row.step, kinds))
    return out
