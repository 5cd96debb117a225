"""3.2 NLPSequenceRatio: of the elements of a token input more than a threshold's percentage are the token; from the vector
value_counts of the tokens, or as far as the count of zeros and the extremes prove it. One step; all modes. Chosen by role
(preset tocsin), integers that have never been more than 1 are masks and segments: not applicable."""
import re

from tests.reference.judging import (ALL_MODES, HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, row_unit, selects, wants)

DEFAULTS = {"token_values": (0,), "token_thresholds_percent": (50,)}
TOCSIN = {}
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def count(row, token):
    """(at least, at most): how many elements are the token."""
    for (name, values), counts in row.vectors.items():
        if name == "value_counts" and token in values:
            return (counts[values.index(token)],) * 2
    c = row.columns
    if not c["min"] - 1e-6 <= token <= c["max"] + 1e-6:
        return 0, 0
    if abs(c["min"] - token) <= 1e-6 and abs(c["max"] - token) <= 1e-6:
        return c["count"], c["count"]
    if token:
        return 0, c["count"] - c["zero"]
    return c["zero"], c["zero"] if row.dtype in INTEGERS else c["count"]


def judge(p, row, most):
    n = row.columns["count"]
    if n == 0:
        return NOT_APPLICABLE
    if row.columns["nan"]:
        return INSUFFICIENT
    by_role = p["preset"] == "tocsin" and row.role == "input"
    if by_role and (row.dtype not in INTEGERS or most <= 1):
        return NOT_APPLICABLE
    tokens = [float(one) for one in p["token_values"]]
    limits = p["token_thresholds_percent"]
    limits = [float(one) for one in (limits * len(tokens) if len(limits) == 1 else limits)]
    counts = [count(row, token) for token in tokens]
    if any(100 * low / n > limit for (low, _), limit in zip(counts, limits)):
        return HIT
    return OK if all(100 * high / n <= limit for (_, high), limit in zip(counts, limits)) else INSUFFICIENT


def chosen(p, row):
    if p["collection_names"] or p["tensor_regex"]:
        return selects(p, row)
    if p["preset"] == "tocsin":
        return row.known.role == "input" and row.dtype in INTEGERS
    return bool(re.search("embedding0_input_0", row.name))


def evaluate(p, history):
    out, most = [], {}
    for row in history.rows:
        if row.scalar or not chosen(p, row) or not wants(p, row, ALL_MODES):
            continue
        unit = row_unit(row)
        if row.columns["count"] and not row.columns["nan"]:
            most[unit] = max(most.get(unit, 0), row.columns["max"])
        out.append(Evaluation(unit, judge(p, row, most.get(unit, 0)), row.step))
    return out
