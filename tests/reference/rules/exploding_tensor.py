"""1.2 ExplodingTensor: NaN or Inf (only_nan: NaN) in any tensor or scalar. One step of one tensor; all modes."""
from tests.reference.judging import (ALL_MODES, FLOATING, HIT, NOT_APPLICABLE, OK, Evaluation, row_unit, selects, wants)

DEFAULTS = {"only_nan": False, "ignore_skipped_steps": True, "ignore_masks": False}
TOCSIN = {"ignore_masks": True}
SKIPPED = 20


def judge(p, row):
    if row.dtype not in FLOATING or row.columns["count"] == 0:
        return NOT_APPLICABLE
    if row.role == "gradient" and row.flag(SKIPPED) and p["ignore_skipped_steps"]:
        return NOT_APPLICABLE
    known = row.columns
    if p["ignore_masks"] and row.role in ("activation_in", "input") and known["neginf"] and known["neginf"] + known["zero"] == known["count"]:
        return NOT_APPLICABLE  # added to the scores of attention
    bad = row.columns["nan"]
    if not p["only_nan"]:
        bad += row.columns["posinf"] + row.columns["neginf"]
    return HIT if bad >= 1 else OK


def evaluate(p, history):
    return [Evaluation(row_unit(row), judge(p, row), row.step) for row in history.rows
            if selects(p, row, everything=True) and wants(p, row, ALL_MODES)]
