"""budget (docs/rules/budget.md): the lengths of training and schedule against each other, and rates that have been below `share` of their
largest for as many updates as they were above. Everything is computed anew from all values until now."""
import math
import re

from tests.reference.history import value
from tests.reference.judging import HIT, INSUFFICIENT, OK, TRAINING, Evaluation, selects, wants
from tests.reference.rules import learning_rate_decay

DEFAULTS = {"share": 0.01, "early": 0.8, "late": 1.25, "per_epoch": 10, "reach": 0.5, "worth": 50}
TOCSIN = {}
NEW = True  # no counterpart in the original
PLAN = "ledger/plan/"
DECAYED = 0.0625


def below(p, rate, largest):
    return rate < p["share"] * (1 - 1e-9) * largest


def stage(p, points):
    """The points since the rate fell in one update to less than `share` of what it was, and was not 0."""
    begin = 0
    for at in range(1, len(points)):
        if points[at][1] > 0 and below(p, points[at][1], points[at - 1][1]):
            begin = at
    return points[begin:]


def ended(p, points):
    """Whether a rate is low, and has been since it rose last for at least as many updates as it was not."""
    over = low = largest = 0
    for (step, rate), (following, then) in zip(points, points[1:]):
        largest = max(largest, rate)
        if below(p, rate, largest):
            low += following - step
        else:
            over += following - step
        if then > rate:
            low = 0
    return below(p, points[-1][1], max(rate for _, rate in points)) and 0 < low and over <= low


def same(p, one, other):
    return p["early"] * other <= one <= p["late"] * other


def misfit(p, plan):
    updates, schedule = plan.get("updates", 0), plan.get("schedule", 0)
    if not (updates > 0 and schedule > 0):
        return None
    early = plan.get("lowest", 1) < p["share"] and schedule / updates < p["early"] and not plan.get("early_stopping")
    late = schedule / updates > p["late"]
    if not early and not late:
        return None
    epochs, length, stride = (plan.get(name, 0) for name in ("epochs", "length", "stride"))
    if epochs > 0 and length > 0 and stride > 0:
        each_epoch = stride > 1 and same(p, stride * epochs, updates)
        if late and each_epoch and length > p["per_epoch"] * epochs:
            return "per_epoch"
        if early and not each_epoch and same(p, length, epochs):
            return "per_epoch"
    if plan.get("accumulation", 0) > 1 and same(p, 1 / (schedule / updates) if early else schedule / updates, plan["accumulation"]):
        return "per_batch"
    return "ends_early" if early else "unfinished"


def judge(p, plan, points, planned):
    """(outcome, kinds) at the last of the points of one rate. `planned`: whether the plan is about this rate."""
    points = stage(p, points)
    if planned:
        kind = misfit(p, plan)
        if kind:
            return HIT, (kind,)
        step, rate = points[-1]
        rises = rate > max((before for _, before in points[:-1]), default=math.inf)
        if rises and plan.get("updates", 0) > 1 and plan["updates"] - step <= max(1, plan.get("stride", 0)) and rate > points[0][1]:
            return HIT, ("warmup_only",)
    if not plan.get("follows_metric") and ended(p, points):
        return HIT, ("ends_early",)
    if max(rate for _, rate in points) > 0 and decays(p, points):
        return HIT, ("ends_early",)
    return OK, ("",)


def decays(p, points):
    """As learning_rate_decay tells it."""
    places = learning_rate_decay.decay({"share": DECAYED}, points)
    if places is None:
        return False
    start, middle, end = places
    first, second = points[middle][0] - points[start][0], points[end][0] - points[middle][0]
    if not (first > 0 and second > 0 and max(first, second) <= learning_rate_decay.EVEN * min(first, second)):
        return False
    largest = max(rate for _, rate in points)
    to_come = points[end][1] / largest * second / -math.log(math.sqrt(DECAYED))
    return learning_rate_decay.worth(points[:end + 1], end) + to_come < p["worth"]


def rounds(p, plan):
    if not (0 < plan.get("shrinkage", 0) <= 1 and plan.get("rounds", 0) >= 1):
        return INSUFFICIENT, ("",)
    if plan.get("early_stopping") or plan["rounds"] > 10_000:
        return OK, ("",)
    return (HIT, ("too_small",)) if 1 - (1 - plan["shrinkage"]) ** plan["rounds"] < p["reach"] else (OK, ("",))


def selected(p, row):
    if row.name.startswith(PLAN):
        return True
    if p["collection_names"] or p["tensor_regex"]:
        return selects(p, row)
    return re.search(r"(^|\.)learning_rate$", row.name) is not None


def is_number(number):
    return number >= 0 and math.isfinite(number)


def evaluate(p, history):
    series, plan, first, out = {}, {}, None, []
    for point in history.points():
        found = {}
        for name, by_rank in point.values.items():
            rows = [pair for pair in by_rank if wants(p, pair[1], TRAINING) and selected(p, pair[1])]
            if rows:
                found[name] = value(rows)
        for name, number in found.items():
            if name.startswith(PLAN) and is_number(number):
                plan[name.removeprefix(PLAN)] = number
        rates = {name: rate for name, rate in found.items() if not name.startswith(PLAN)}
        if first is None:
            first = min((name for name, rate in rates.items() if is_number(rate)), default=None)
        for name, rate in rates.items():
            unit = (("metric", name), ("mode", point.mode))
            if not is_number(rate):
                out.append(Evaluation(unit, INSUFFICIENT, point.step))
                continue
            points = series.setdefault((name, point.mode), [])
            points.append((point.step, rate))
            outcome, kinds = judge(p, plan, points, name == first)
            out.append(Evaluation(unit, outcome, point.step, kinds))
        if PLAN + "rounds" in found:
            outcome, kinds = rounds(p, plan)
            out.append(Evaluation((("metric", PLAN + "rounds"), ("mode", point.mode)), outcome, point.step, kinds))
    return out
