"""46 update_large (detection quality, section 3): a weight matrix moves by more than 0.3 of its norm per step, twice in a
row, after two warm-up steps: mode steps 0 and 1. Modes train and global."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, row_unit, selects, wants

DEFAULTS = {"min_hits": 2, "threshold": 0.3, "warmup_steps": 2}
TOCSIN = {}
NEW = True  # no counterpart in the original


def judge(p, row):
    if row.columns["count"] == 0 or len(row.known.shape) < 2:
        return NOT_APPLICABLE
    found = [row.statistics.get((name, ())) for name in ("delta_l2", "prev_l2", "delta_from_step")]
    if None in found or row.step < p["warmup_steps"]:
        return INSUFFICIENT
    delta, before, since = found
    if math.isnan(delta) or math.isnan(before):
        return INSUFFICIENT
    return HIT if delta > p["threshold"] * before * (row.step - since) else OK


def evaluate(p, history):
    return [Evaluation(row_unit(row), judge(p, row), row.step) for row in history.rows
            if not row.scalar and selects(p, row, roles={"weight"}) and wants(p, row, TRAINING)]
