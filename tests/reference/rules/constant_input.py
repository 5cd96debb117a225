"""47 constant_input (detection quality, section 3): the variance of a model input is below 1e-10 and there is no NaN, at 3
sampled steps in a row. All modes. Masks and segments are constant in healthy jobs: bool, and integers that are all 0 or
all 1, are not applicable. A further input of a model (its
name ends in _input_1, _input_2, …) is judged from the first step on at which it varies. So is judged the target that the hook found for all samples of a step (squared_error_input_1)."""
import math
import re

from tests.reference import columns
from tests.reference.judging import ALL_MODES, HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, row_unit, selects, wants

DEFAULTS = {"min_hits": 3, "threshold": 1e-10}
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
TOCSIN = {}
NEW = True  # no counterpart in the original


def judge(p, row, varied):
    if row.columns["count"] < 2 or row.dtype == "bool":
        return NOT_APPLICABLE
    if row.dtype in INTEGERS and row.columns["min"] == row.columns["max"] and row.columns["min"] in (0, 1):
        return NOT_APPLICABLE
    v = columns.variance(row.columns)
    if not math.isfinite(v):
        return INSUFFICIENT
    further = re.search(r"_input_(\d+)$", row.name)
    if v < p["threshold"] and not varied and further and further[1] != "0" and not is_target(row):
        return NOT_APPLICABLE
    return HIT if v < p["threshold"] else OK


def evaluate(p, history):
    out, varied = [], set()
    for row in history.rows:
        if row.scalar or not looks_at(p, row) or not wants(p, row, ALL_MODES):
            continue
        outcome = judge(p, row, row_unit(row) in varied)
        if outcome == OK:
            varied.add(row_unit(row))
        out.append(Evaluation(row_unit(row), outcome, row.step))
    return out


def is_target(row):
    return row.name.endswith("squared_error_input_1")


def looks_at(p, row):
    own = not p["collection_names"] and not p["tensor_regex"] and row.name.split(".")[-1] == "squared_error_input_1"
    return own or selects(p, row, roles={"input"})
