"""learning_rate_decay (docs/rules/learning_rate_decay.md): a rate that decays geometrically to `share` of its largest while all updates,
those to come among them, are worth fewer than `updates` at the largest; or one that has been 0 for `zero_updates`. Everything is computed anew from all values until now."""
import math
import re

from tests.reference.history import value
from tests.reference.judging import HIT, INSUFFICIENT, OK, TRAINING, Evaluation, selects, wants

DEFAULTS = {"updates": 50, "share": 0.0625, "zero_updates": 20}
TOCSIN = {}
NEW = True  # no counterpart in the original
EVEN = 1.5


def decay(p, points):
    """(start, middle, end) as places in `points` [(step, rate)] of the present decay; None where it has not come so far."""
    largest = max(rate for _, rate in points)
    middle = math.sqrt(p["share"]) * largest
    # Where the largest was reached, for the last time.
    start = [at for at, (_, rate) in enumerate(points) if rate == largest and (at == 0 or points[at - 1][1] < largest)][-1]
    below = start + 1
    for at in range(below, len(points)):
        if points[at][1] > middle:
            below = at + 1
    end = next((at for at in range(below, len(points)) if points[at][1] <= p["share"] * largest), None)
    return None if end is None else (start, below, end)


def worth(points, end):
    """Of the updates until the place `end`, in those at the largest rate."""
    largest = max(rate for _, rate in points)
    return points[0][0] + sum((points[at + 1][0] - points[at][0]) * points[at][1] / largest for at in range(end))


def judge(p, points):
    if max(rate for _, rate in points) == 0:
        return OK
    zeros = next(count for count, (_, rate) in enumerate([*reversed(points), (0, 1)]) if rate > 0)
    if 0 < zeros < len(points) and any(rate > 0 for _, rate in points[:-zeros]) and points[-1][0] - points[-zeros][0] >= p["zero_updates"]:
        return HIT
    places = decay(p, points)
    if places is None:
        return OK
    start, middle, end = places
    first, second = points[middle][0] - points[start][0], points[end][0] - points[middle][0]
    if not (first > 0 and second > 0 and max(first, second) <= EVEN * min(first, second)):
        return OK
    largest = max(rate for _, rate in points)
    total = worth(points[:end + 1], end) + points[end][1] / largest * second / -math.log(math.sqrt(p["share"]))
    return HIT if total < p["updates"] else OK


def selected(p, row):
    if p["collection_names"] or p["tensor_regex"]:
        return selects(p, row)
    return re.search(r"(^|\.)learning_rate$", row.name) is not None


def evaluate(p, history):
    series, out = {}, []
    for point in history.points():
        for name, by_rank in point.values.items():
            rows = [pair for pair in by_rank if wants(p, pair[1], TRAINING) and selected(p, pair[1])]
            if not rows:
                continue
            unit, rate = (("metric", name), ("mode", point.mode)), value(rows)
            if not (rate >= 0 and math.isfinite(rate)):
                out.append(Evaluation(unit, INSUFFICIENT, point.step))
                continue
            points = series.setdefault((name, point.mode), [])
            points.append((point.step, rate))
            out.append(Evaluation(unit, judge(p, points), point.step))
    return out
