"""2.1 AllZero: 100 · zero_count / n ≥ threshold. One step of one tensor; all modes."""
from tests.reference.judging import ALL_MODES, HIT, NOT_APPLICABLE, OK, Evaluation, row_unit, selects, wants

DEFAULTS = {"threshold": 100}
TOCSIN = {}


def judge(p, row):
    n = row.columns["count"]
    if n == 0:
        return NOT_APPLICABLE
    return HIT if 100 * row.columns["zero"] / n >= p["threshold"] else OK


def evaluate(p, history):
    return [Evaluation(row_unit(row), judge(p, row), row.step) for row in history.rows
            if selects(p, row) and wants(p, row, ALL_MODES)]
