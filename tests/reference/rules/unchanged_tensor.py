"""2.9 UnchangedTensor: the last num_steps saved values of one (tensor, worker, mode) agree with the newest within tolerance.

From what the rows say of their values: equal digests prove it (with NaN only under equal_nan); delta_excess(rtol) ≤ atol of
each neighbouring pair is accepted; least or largest elements that lie apart disprove it. Loss scales do not matter.
"""
import math

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, row_unit, selects, wants

DEFAULTS = {"num_steps": 3, "rtol": 1e-5, "atol": 1e-8, "equal_nan": False}
TOCSIN = {}


def differ(p, old, new, whole):
    """What unequal reductions prove: if every element agreed, extremes would within what that is at most, means on average."""
    a, b, n = old.columns, new.columns, new.columns["count"]
    if any(a[name] != b[name] for name in ("nan", "posinf", "neginf")):
        return True
    if b["nan"] + b["posinf"] + b["neginf"]:
        return False
    atol, rtol = (0, 0) if whole else (p["atol"], p["rtol"])
    most = atol + rtol * max(abs(b["min"]), abs(b["max"]))
    average = (atol + rtol * b["abs_sum"] / n) * (1 + 1e-6) + 2e-5 * b["abs_sum"] / n
    return (any(abs(a[name] - b[name]) > most for name in ("min", "max"))
            or any(abs(a[name] - b[name]) / n > average for name in ("sum", "abs_sum")))


def agrees(p, old, new):
    """Of single values."""
    y, x = old.columns["min"], new.columns["min"]
    if math.isnan(x) or math.isnan(y):
        return math.isnan(x) and math.isnan(y)  # only asked under equal_nan
    if math.isinf(x) or math.isinf(y):
        return x == y
    whole = new.dtype.startswith(("i", "u", "bool"))
    return abs(y - x) <= (0 if whole else p["atol"] + p["rtol"] * abs(x))


def judge(p, saved):
    """`saved`: the rows of the unit until now, the newest last."""
    newest = saved[-1]
    if newest.columns["count"] == 0:
        return NOT_APPLICABLE
    if len(saved) < p["num_steps"]:
        return INSUFFICIENT
    last = saved[-p["num_steps"]:]
    if any((one.columns["count"], one.known.shape) != (newest.columns["count"], newest.known.shape) for one in last):
        return OK  # another shape is a change
    if any(one.columns["nan"] for one in last) and not p["equal_nan"]:
        return OK
    if newest.columns["count"] == 1:  # the value itself is known
        return HIT if all(agrees(p, one, newest) for one in last[:-1]) else OK
    whole = newest.dtype.startswith(("i", "u", "bool"))
    exact = whole or (p["rtol"] == 0 and p["atol"] == 0)
    known, chain = True, not whole  # chain: each neighbour so far is within tolerance of the next; whole numbers have none
    for older, newer in zip(last[-2::-1], last[:0:-1]):
        excess = newer.statistics.get(("delta_excess", (p["rtol"],)))
        if newer.statistics.get(("delta_from_step", ())) != older.step:
            excess = None
        apart = chain and excess is not None and excess > p["atol"]
        chain = chain and excess is not None and excess <= p["atol"]
        digests = [one.statistics.get(("digest", ())) for one in (older, newest)]
        if None not in digests and digests[0] == digests[1]:
            continue
        if (exact and None not in digests) or differ(p, older, newest, whole):
            return OK
        if apart:
            return OK
        known = known and chain
    return HIT if known else INSUFFICIENT


def evaluate(p, history):
    saved, out = {}, []
    for row in history.rows:
        if selects(p, row) and wants(p, row, TRAINING):
            saved.setdefault(row_unit(row), []).append(row)
            out.append(Evaluation(row_unit(row), judge(p, saved[row_unit(row)]), row.step))
    return out
