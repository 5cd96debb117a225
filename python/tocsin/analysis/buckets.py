"""A frame thinned to points: buckets of 2^k steps that begin at multiples of their width, as the page draws (docs/page.md)."""

import math
from typing import Any, Dict, List

from .columns import INTEGER, REAL, TEXT, TIME, Table, made, numpy
from .selection import Query

_BUCKET = ("step", "width", "time", "n", "min", "max", "first", "last", "mean", "nan", "posinf", "neginf", "bad_step")
_KINDS = {"run": TEXT, "worker": TEXT, "mode": TEXT, "name": TEXT, "time": TIME, **dict.fromkeys(("min", "max", "first", "last", "mean", "smooth"), REAL)}
_OF = ("run", "attempt", "worker", "rank", "mode", "name")


def bucketed(table: Table, query: Query) -> Table:
    """For each series (run, attempt, worker, mode, name): the range is that of all of them together. One value: that of a metric, or the one
    statistic that was asked for. ``n`` to ``mean`` are of finite values, the others count what is none; ``bad_step``: the first of them."""
    of = query.selection.kind
    value = "seconds" if of == "step" else "value" if of == "metric" else (query.stat or ("",))[0]
    if of not in ("metric", "step", "tensor", "collection") or value not in table or len(query.stat or (1,)) != 1:
        raise ValueError("points: needs metric(…), step(), or tensor(…) with one stat")
    keys = [name for name in _OF if name in table]
    steps, values, times = (list(map(_plain, table[name].data)) for name in ("step", value, "time"))
    codes = [list(map(_plain, table[name].data)) for name in keys]
    series: Dict[Any, List[int]] = {}
    for row, key in enumerate(zip(*codes)):
        series.setdefault(key, []).append(row)
    level = _level(steps, query)
    out: Dict[str, List[Any]] = {name: [] for name in (*keys, *_BUCKET, *(["smooth"] if query.smooth else []))}
    for rows in series.values():
        rows.sort(key=lambda row: steps[row])
        words = {name: table[name].value(rows[0]) for name in keys}
        soft = smoothed([(steps[row], values[row]) for row in rows], query.smooth) if query.smooth else {}
        buckets: Dict[int, List[int]] = {}
        for row in rows:
            buckets.setdefault(steps[row] >> level, []).append(row)
        for place, inside in buckets.items():
            one = {**words, "step": place << level, "width": 1 << level, "time": times[inside[0]],
                   **_bucket([(steps[row], values[row]) for row in inside]), "smooth": soft.get(steps[inside[-1]])}
            for name, listed in out.items():
                listed.append(one[name])
    return {name: made(_KINDS.get(name, INTEGER), listed) for name, listed in out.items()}


def _level(steps: List[int], query: Query) -> int:
    """The smallest k with which the range has at most so many buckets of 2^k steps, plus one."""
    low, high = query.steps if query.steps is not None else (None, None)
    low = min(steps, default=0) if low is None else low
    high = max(steps, default=0) + 1 if high is None else high
    level = 0
    while ((high - low - 1) >> level) + 1 > (query.points or 1):
        level += 1
    return level


def _plain(one: Any) -> Any:
    return one.item() if numpy is not None else one


def _bucket(inside: List[Any]) -> Dict[str, Any]:
    finite = [value for _, value in inside if math.isfinite(value)]
    bad = [step for step, value in inside if not math.isfinite(value)]
    none = [None] * 5
    least, most, first, last, mean = (min(finite), max(finite), finite[0], finite[-1], math.fsum(finite) / len(finite)) if finite else none
    return {"n": len(finite), "min": least, "max": most, "first": first, "last": last, "mean": mean,
            "nan": sum(1 for _, value in inside if math.isnan(value)), "posinf": sum(1 for _, value in inside if value == math.inf),
            "neginf": sum(1 for _, value in inside if value == -math.inf), "bad_step": min(bad, default=None)}


def smoothed(points: List[Any], span: int) -> Dict[int, float]:
    """Exponential mean of finite values over so many steps, corrected for its beginning: a constant stays what it is."""
    out: Dict[int, float] = {}
    total = weight = 0.0
    before = points[0][0] if points else 0
    for step, value in points:
        if math.isfinite(value):
            decay = math.exp(-(step - before) / span)
            total, weight, before = total * decay + value, weight * decay + 1.0, step
        if weight:
            out[step] = total / weight
    return out
