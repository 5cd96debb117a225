"""48 input_range (detection quality, section 3): |x| of a floating model input above 30. All modes."""
import math

from tests.reference import columns
from tests.reference.judging import (ALL_MODES, FLOATING, HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, row_unit, selects,
                                     wants)

DEFAULTS = {"threshold": 30}
TOCSIN = {}
NEW = True  # no counterpart in the original


def judge(p, row):
    if row.columns["count"] == 0 or row.dtype not in FLOATING:
        return NOT_APPLICABLE
    largest = columns.abs_max(row.columns)
    if math.isnan(largest):
        return INSUFFICIENT
    return HIT if largest > p["threshold"] else OK


def evaluate(p, history):
    return [Evaluation(row_unit(row), judge(p, row), row.step) for row in history.rows
            if not row.scalar and selects(p, row, roles={"input"}) and wants(p, row, ALL_MODES)]
