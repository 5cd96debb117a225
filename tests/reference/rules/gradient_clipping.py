"""8.4 GradientClipping, on the scalars grad_norm, clip_norm and clipped of each worker: too many steps of a full window are
clipped (`too_often`), or the norm is far above the median of the window before (`spike`). Modes train and global."""
import math
import statistics

from tests.reference.judging import HIT, INSUFFICIENT, OK, TRAINING, Evaluation, wants

DEFAULTS = {"window": 100, "max_clipped_fraction": 0.5, "max_norm": None, "spike_factor": 10.0, "min_cut": 0}
TOCSIN = {"window": 30, "min_cut": 10}
UNIT = ("mode", "worker")  # how the metric is spelled is not laid down
ENOUGH = 20


def is_clipped(p, step):
    """None: nothing says so."""
    limit = limit_of(p, step)
    if limit is not None:
        return step["grad_norm"] > limit
    return step["clipped"] > 0 if "clipped" in step else None


def limit_of(p, step):
    return p["max_norm"] if p["max_norm"] is not None else step.get("clip_norm")


def is_deep(p, steps):
    """Whether the median norm is far above the limit. None: nobody says the limit."""
    if p["min_cut"] == 0:
        return True
    if any(limit_of(p, step) is None for step in steps):
        return None
    return statistics.median(step["grad_norm"] / limit_of(p, step) for step in steps) > p["min_cut"]


def judge(p, steps):
    """(outcome, kinds) of the newest of the steps with a finite norm."""
    kinds, judged = [], False
    norms = [step["grad_norm"] for step in steps]
    last = [is_clipped(p, step) for step in steps[-p["window"]:]]
    deep = is_deep(p, steps[-p["window"]:])
    if len(last) == p["window"] and None not in last and deep is not None:
        judged = True
        if last.count(True) / len(last) > p["max_clipped_fraction"] and deep:
            kinds.append("too_often")
    before = norms[:-1][-p["window"]:]
    if len(before) >= ENOUGH:
        judged = True
        if norms[-1] > p["spike_factor"] * statistics.median(before):
            kinds.append("spike")
    if kinds:
        return HIT, tuple(kinds)
    return (OK if judged else INSUFFICIENT), ()


def evaluate(p, history):
    steps, order = {}, []
    for row in history.rows:
        if row.scalar and row.name in ("grad_norm", "clip_norm", "clipped") and wants(p, row, TRAINING):
            key = (row.rank, row.mode, row.step)
            if key not in steps:
                order.append(key)
            steps.setdefault(key, {})[row.name] = row.columns["sum"]
    out, seen = [], {}
    for rank, mode, step in order:
        unit = (("metric", "grad_norm"), ("mode", mode), ("worker", f"worker_{rank}"))
        value = steps[rank, mode, step]
        if "grad_norm" not in value or not math.isfinite(value["grad_norm"]):
            if "grad_norm" in value:
                out.append(Evaluation(unit, INSUFFICIENT, step))
            continue
        known = seen.setdefault(unit, [])
        known.append(value)
        outcome, kinds = judge(p, known)
        out.append(Evaluation(unit, outcome, step, kinds))
    return out
