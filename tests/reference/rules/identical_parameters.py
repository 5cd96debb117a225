"""49 identical_parameters (detection quality, section 3): a weight matrix of more than 64 elements without variance. Modes
train and global. All zeros count from the second saved step in a row on: layers that are set to zero on purpose (adapters,
residual branches) are moved by the first update."""
import math

from tests.reference import columns
from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, row_unit, selects, wants

DEFAULTS = {}
TOCSIN = {}
NEW = True  # no counterpart in the original


def judge(row, before):
    if row.columns["count"] <= 64 or len(row.known.shape) < 2:
        return NOT_APPLICABLE
    v = columns.variance(row.columns)
    if not math.isfinite(v):
        return INSUFFICIENT
    if v == 0 and row.columns["zero"] == row.columns["count"] and not (before and before.columns["zero"] == before.columns["count"]):
        return INSUFFICIENT
    return HIT if v == 0 else OK


def evaluate(p, history):
    out, finite = [], {}
    for row in history.rows:
        if row.scalar or not selects(p, row, roles={"weight"}) or not wants(p, row, TRAINING):
            continue
        outcome = judge(row, finite.get(row_unit(row)))
        out.append(Evaluation(row_unit(row), outcome, row.step))
        if math.isfinite(columns.variance(row.columns)) if row.columns["count"] else False:
            finite[row_unit(row)] = row
    return out
