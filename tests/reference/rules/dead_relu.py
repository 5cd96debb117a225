"""1.1 DeadRelu: the share of units of a ReLU output that are hardly ever active, from unit_inactive_count(θ) and
unit_count, or as far as the number of positive elements proves it. One step, or as many as bring min_samples; all modes."""
import math

from tests.reference import bounds, columns
from tests.reference.judging import (ALL_MODES, HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, row_unit, selects, wants)

DEFAULTS = {"threshold_inactivity": 1.0, "threshold_layer": 50.0, "unit_axis": "auto", "min_samples": 1}
TOCSIN = {"threshold_layer": 60.0}


def judge(p, row, window):
    if row.columns["count"] == 0 or (row.columns["count"] == 1 and not row.known.shape):
        return NOT_APPLICABLE  # empty, or of rank 0
    if math.isnan(columns.abs_max(row.columns)):
        return INSUFFICIENT
    inactive = row.statistics.get(("unit_inactive_count", (p["threshold_inactivity"],)))
    units = row.statistics.get(("unit_count", ())) or 0
    expected = bounds.units_of(row, p["unit_axis"])
    if p["unit_axis"] != "auto" and expected and units != expected:
        units = 0  # units of another kind than those asked for
    if not units:
        inactive, units = None, expected
    c = row.columns
    active = (c["count"] - c["zero"] - c["negative"]) / c["count"]
    added = window.add(units, c["count"], active, active, p["min_samples"])
    if added is None:
        return INSUFFICIENT
    steps, samples, low, high = added
    if inactive is not None and steps == 1:
        low = high = inactive / units
    else:
        low, high = bounds.units_below(low, high, p["threshold_inactivity"], units, samples)
    if 100 * low > p["threshold_layer"]:
        return HIT
    return OK if 100 * high <= p["threshold_layer"] else INSUFFICIENT


def chosen(p, row):
    if p["collection_names"] or p["tensor_regex"]:
        return selects(p, row)
    activation_out = row.known.role == "activation_out" or (row.known.role == "other" and "output" in row.name)
    return ("relu_output" in row.name or "ReLU_output" in row.name
            or (activation_out and (row.known.op_type or "").lower() in ("relu", "relu6")))


def evaluate(p, history):
    windows = {}
    return [Evaluation(row_unit(row), judge(p, row, windows.setdefault(row_unit(row), bounds.Window())), row.step)
            for row in history.rows if not row.scalar and chosen(p, row) and wants(p, row, ALL_MODES)]
