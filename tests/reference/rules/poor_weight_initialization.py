"""1.3 PoorWeightInitialization, preset original, at the first `steps` steps of each worker: the variances of the activation
inputs lie too far apart (`variance_ratio`), a gradient spans too little (`gradient_range`), the losses stand (`loss_flat`).
combine any: one holds, each a kind; all: all three at the same step (kind `all`). Switched on by `max_gain`: every weight matrix, two or
more, multiplies the variance of its input by more (`large_weights`); docs/rules/poor_weight_initialization.md."""
import math
import re

from tests.reference import columns
from tests.reference.judging import HIT, INSUFFICIENT, OK, TRAINING, Evaluation

DEFAULTS = {"activation_inputs_regex": (".*relu_input", ".*ReLU_input"), "threshold": 10.0, "distribution_range": 0.001,
            "patience": 5, "steps": 10, "combine": "any", "max_gain": 0.0}
TOCSIN = {}
UNIT = ("mode", "worker")


def variance_ratio(p, rows):
    """Whether it holds; None: the step does not bring its inputs."""
    inputs = [row for row in rows if row.columns["count"] >= 2 and row.known.role != "activation_out"
              and (row.known.role == "activation_in" or any(re.search(one, row.name) for one in p["activation_inputs_regex"]))]
    variances = [columns.variance(row.columns) for row in inputs]
    if len(variances) < 2 or not all(map(math.isfinite, variances)):
        return None
    return max(variances) / max(min(variances), 1e-12) > p["threshold"]


def gradient_range(p, rows):
    spans = []
    for row in rows:
        low, high = row.statistics.get(("p05", ())), row.statistics.get(("p95", ()))
        if row.known.role == "gradient" and row.columns["count"] >= 2 and low is not None and high is not None:
            spans.append((high - low) / (1.0 if row.flag(18) else row.loss_scale))
    if not spans or not all(map(math.isfinite, spans)):
        return None
    return min(spans) < p["distribution_range"]


def loss_flat(p, rows, seen):
    """`seen`: {name: finite losses until now}, this step's among them. patience 0: off."""
    if p["patience"] == 0:
        return None
    here = [row.name for row in rows if row.known.role == "loss" and math.isfinite(row.columns["sum"])]
    if not here:
        return None

    def flat(losses):
        since = len(losses) - 1 - losses.index(min(losses))
        return since >= p["patience"]
    return all(flat(seen[name]) for name in seen)


def large_weights(p, rows):
    """Mean square of a matrix times its inputs: the elements of a row of it; of a square where the shape is not known."""
    large = []
    for row in rows:
        shape, count = row.known.shape, row.columns["count"]
        if row.known.role != "weight" or count < 32 or (shape and sum(one > 1 for one in shape) < 2):
            continue
        square = row.columns["sumsq"] / count
        if square == 0:
            continue
        gain = square * (count / shape[0] if shape else math.sqrt(count))
        large.append(math.isfinite(square) and (square > 4 or (gain > p["max_gain"] and not abs(square - 1) <= 0.1)))
    if p["max_gain"] == 0 or len(large) < 2:
        return None
    return all(large)


def evaluate(p, history):
    if p["preset"] == "tocsin":
        raise ValueError("preset tocsin names no kinds")
    steps, order, seen, out = {}, [], {}, []
    for row in history.rows:
        if row.mode in (p["modes"] or TRAINING) and row.step < p["steps"]:
            key = (row.rank, row.mode, row.step)
            if key not in steps:
                order.append(key)
            steps.setdefault(key, []).append(row)
    for rank, mode, step in order:
        rows = steps[rank, mode, step]
        known = seen.setdefault((rank, mode), {})
        for row in rows:
            if row.known.role == "loss" and math.isfinite(row.columns["sum"]):
                known.setdefault(row.name, []).append(row.columns["sum"] / row.columns["count"])
        held = {"variance_ratio": variance_ratio(p, rows), "gradient_range": gradient_range(p, rows),
                "loss_flat": loss_flat(p, rows, known)}
        if p["combine"] == "any":
            held["large_weights"] = large_weights(p, rows)
        unit = (("mode", mode), ("worker", f"worker_{rank}"))
        if set(held.values()) == {None}:
            if any(row.known.role in ("loss", "gradient", "activation_in") for row in rows):
                out.append(Evaluation(unit, INSUFFICIENT, step))
            continue
        if p["combine"] == "all":
            kinds = ("all",) if all(held.values()) else ()
        else:
            kinds = tuple(sorted(kind for kind, one in held.items() if one))
        out.append(Evaluation(unit, HIT if kinds else OK, step, kinds))
    return out


