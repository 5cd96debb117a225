"""49 identical_parameters (detection quality, section 3): a weight matrix of more than 64 elements without variance. Modes
train and global. All zeros, and ones of three dimensions, count from the second saved step in a row on that is 10 updates after the
first: layers that start so on purpose (adapters, residual branches, gains of a normalisation) have moved by then. A matrix has two dimensions that
are larger than 1. Beside a weight of its shape in its module whose values differ, a constant one is insufficient."""
import math

from tests.reference import columns
from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, row_unit, selects, wants

DEFAULTS = {}
TOCSIN = {}
NEW = True  # no counterpart in the original


def may_be_meant(row):
    alike = row.columns["min"] == row.columns["max"]
    return alike and (row.columns["min"] == 0 or (row.columns["min"] == 1 and len(row.known.shape) == 3))


def is_told_apart(row, rows):
    """`rows`: of the same step."""
    module = row.name.rpartition(".")[0]
    return bool(module) and any(one.role == "weight" and one.name != row.name and one.name.rpartition(".")[0] == module
                                and one.known.shape == row.known.shape and one.columns["min"] < one.columns["max"] for one in rows)


def judge(row, since, rows):
    """`since`: the first of the saved steps in a row that may be meant; empty: there is none."""
    if row.columns["count"] <= 64 or sum(n > 1 for n in row.known.shape) < 2:
        return NOT_APPLICABLE
    v = columns.variance(row.columns)
    if not math.isfinite(v):
        return INSUFFICIENT
    if row.columns["min"] == row.columns["max"] and is_told_apart(row, rows):
        return INSUFFICIENT
    if not may_be_meant(row):
        since.clear()
        return HIT if v == 0 else OK
    since.append(row.step)
    return HIT if len(since) >= 2 and row.step - since[0] >= 10 else INSUFFICIENT


def evaluate(p, history):
    out, since = [], {}
    for row in history.rows:
        if row.scalar or not selects(p, row, roles={"weight"}) or not wants(p, row, TRAINING):
            continue
        rows = [one for one in history.rows if (one.rank, one.mode, one.step, one.scalar) == (row.rank, row.mode, row.step, False)]
        outcome = judge(row, since.setdefault(row_unit(row), []), rows)
        out.append(Evaluation(row_unit(row), outcome, row.step))
    return out
