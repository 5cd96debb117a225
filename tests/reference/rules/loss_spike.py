"""50 loss_spike (detection quality, section 3). What the specification leaves open is as docs/rules/loss_spike.md has it: z is the
median of the latest 3 values against median and scaled median deviation (at least 1 % of the median) of the latest `window`
values that belong to no spike, at least 30 of them. More than z_threshold for `points` values in a row opens a spike: `transient`
when z comes back within recovery_steps of where the row began, `spike` at every value from then on."""
import math
import statistics

from tests.reference import words
from tests.reference.history import value
from tests.reference.judging import HIT, INSUFFICIENT, OK, TRAINING, Evaluation, selects, wants

DEFAULTS = {"z_threshold": 8, "window": 200, "points": 3, "recovery_steps": 20, "train_set": ""}
TOCSIN = {}
NEW = True
LEAST = 30


def score(p, latest, calm):
    base = calm[-p["window"]:]
    middle = statistics.median(base)
    deviation = 1.4826 * statistics.median([abs(one - middle) for one in base])
    return (statistics.median(latest) - middle) / max(deviation, 0.01 * abs(middle), 1e-12)


def judge(p, points):
    """[(step, outcome, kinds)] of [(step, value)]."""
    out, latest, calm, row, lasting = [], [], [], [], 0
    for step, number in points:
        if math.isnan(number):
            out.append((step, INSUFFICIENT, ()))
            continue
        latest = (latest + [number])[-3:]
        if len(calm) < LEAST:
            out.append((step, INSUFFICIENT, ()))
            calm += [number] if math.isfinite(number) else []
        elif score(p, latest, calm) > p["z_threshold"]:
            row.append(step)
            lasts = len(row) >= p["points"] and step - row[0] >= p["recovery_steps"]
            lasting += lasts
            if lasting >= p["window"]:  # the usual level from now on
                out.append((step, INSUFFICIENT, ()))
                latest, calm, row, lasting = [], [], [], 0
            else:
                out.append((step, HIT, ("spike",)) if lasts else (step, OK, ()))
        else:
            passed = len(row) >= p["points"] and step - row[0] < p["recovery_steps"]
            out.append((step, HIT, ("transient",)) if passed else (step, OK, ()))
            calm += [number] if math.isfinite(number) else []
            row, lasting = [], 0
    return out


def evaluate(p, history):
    series, order = {}, {}
    for place, point in enumerate(history.points()):
        for name, by_rank in point.values.items():
            rows = [pair for pair in by_rank if wants(p, pair[1], TRAINING) and selects(p, pair[1], roles={"loss"})]
            if rows and words.is_train(name) and not words.grows(name, rows[0][1].known.direction):
                series.setdefault((name, point.mode), []).append((point.step, value(rows)))
                order.setdefault((name, point.mode), []).append(place)
    out = []
    for (name, mode), points in series.items():
        for place, (step, outcome, kinds) in zip(order[name, mode], judge(p, points)):
            out.append((place, Evaluation((("metric", name), ("mode", mode)), outcome, step, kinds)))
    return [one for _, one in sorted(out, key=lambda pair: pair[0])]
