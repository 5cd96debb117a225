"""1.4 SaturatedActivation: the share of units of a tanh or sigmoid input that hardly ever lie inside (lo, hi), from
unit_saturated_count(lo, hi, θ) and unit_count, or proven by the least and largest element. Preset tocsin: the share of
elements beyond ±3, from abs_ge_count(3). One step; all modes; the activation is the kind."""
import math

from tests.reference import bounds as base
from tests.reference import columns
from tests.reference.judging import (ALL_MODES, HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, row_unit, selects, wants)

DEFAULTS = {"threshold_tanh_min": -9.4999, "threshold_tanh_max": 9.4999, "threshold_sigmoid_min": -23.0,
            "threshold_sigmoid_max": 16.99999, "threshold_inactivity": 1.0, "threshold_layer": 50.0,
            "gradient_threshold": None, "unit_axis": "auto", "min_samples": 1, "share_of": "units"}
TOCSIN = {"share_of": "elements", "threshold_tanh_min": -3.0, "threshold_tanh_max": 3.0, "threshold_sigmoid_min": -3.0, "threshold_sigmoid_max": 3.0}


def kind(row):
    """From the operator, else the last of the two that the name contains; None: neither."""
    if row.known.op_type:
        found = row.known.op_type.lower()
        return found if found in ("tanh", "sigmoid") else None
    name = row.name.lower()
    tanh, sigmoid = name.rfind("tanh"), name.rfind("sigmoid")
    return None if max(tanh, sigmoid) < 0 else "tanh" if tanh > sigmoid else "sigmoid"


def bounds(p, activation):
    g = p["gradient_threshold"]
    if g is not None:
        inside = (1 + math.sqrt(1 - 4 * g)) / 2
        x = math.atanh(math.sqrt(1 - g)) if activation == "tanh" else math.log(inside / (1 - inside))
        return -x, x
    return p[f"threshold_{activation}_min"], p[f"threshold_{activation}_max"]


def share(p, row, lo, hi, window):
    """(at least, at most): the share of saturated units, or of elements; None: there are too few samples."""
    count = row.statistics.get(("abs_ge_count", (hi,))) if lo == -hi else None
    n = row.columns["count"]
    beyond = (count / n, count / n) if count is not None else base.outside(row, lo, hi)
    if p["share_of"] == "elements":
        return beyond
    count = row.statistics.get(("unit_saturated_count", (lo, hi, p["threshold_inactivity"])))
    units = row.statistics.get(("unit_count", ())) or 0
    expected = base.units_of(row, p["unit_axis"])
    if p["unit_axis"] != "auto" and expected and units != expected:
        units = 0  # units of another kind than those asked for
    if not units:
        count, units = None, expected
    added = window.add(units, n, 1 - beyond[1], 1 - beyond[0], p["min_samples"])
    if added is None:
        return None
    steps, samples, *active = added
    if count is not None and steps == 1:
        return count / units, count / units
    return base.units_below(*active, p["threshold_inactivity"], units, samples)


def judge(p, row, window):
    activation = kind(row)
    if activation is None or row.columns["count"] == 0 or (row.columns["count"] == 1 and not row.known.shape):
        return NOT_APPLICABLE, ()
    if math.isnan(columns.abs_max(row.columns)):
        return INSUFFICIENT, ()
    shares = share(p, row, *bounds(p, activation), window)
    if shares is None:
        return INSUFFICIENT, ()
    low, high = shares
    if 100 * low > p["threshold_layer"]:
        return HIT, (activation,)
    return (OK if 100 * high <= p["threshold_layer"] else INSUFFICIENT), ()


def chosen(p, row):
    if p["collection_names"] or p["tensor_regex"]:
        return selects(p, row)
    activation_in = row.known.role == "activation_in" or (row.known.role == "other" and "input" in row.name)
    return ("tanh_input" in row.name or "sigmoid_input" in row.name
            or (activation_in and (row.known.op_type or "").lower() in ("tanh", "sigmoid")))


def evaluate(p, history):
    out, windows = [], {}
    for row in history.rows:
        if not row.scalar and chosen(p, row) and wants(p, row, ALL_MODES):
            outcome, kinds = judge(p, row, windows.setdefault(row_unit(row), base.Window()))
            out.append(Evaluation(row_unit(row), outcome, row.step, kinds))
    return out
