"""family_baseline, a rule of our own: docs/rules/family_baseline.md. What earlier runs had in the same piece of training, or at
evaluation passes there, says where this one is expected."""
import math
import statistics

from tests.reference import words
from tests.reference.history import mean, value
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation, selects, wants

DEFAULTS = {"family": ["recipe"], "min_runs": 8, "z_threshold": 4, "points": 3, "better": False}
TOCSIN = {}
NEW = True
MODES = ("train", "global", "eval")


def piece(step):
    """The first 16 steps each, then eight pieces per doubling, named by their first step."""
    if step < 16:
        return max(step, 0)
    width = 1
    while width * 16 <= step:
        width *= 2
    return step // width * width  # width: an eighth of the power of two below


def series(p, history):
    """{(name, mode): [(place, piece, first step, step, value)]}: what is judged, each when it is over."""
    out, running = {}, {}
    for number, points in enumerate(history.passes()):
        last = points[-1]
        rows = {}
        for point in points:
            for name, by_rank in point.values.items():
                chosen = [pair for pair in by_rank if wants(p, pair[1], MODES) and selects(p, pair[1], roles={"loss", "metric"})]
                if chosen:
                    rows.setdefault(name, []).append((point.step, value(chosen)))
        for name, values in rows.items():
            key = name, last.mode
            if last.mode == "eval":
                out.setdefault(key, []).append((number, piece(last.train_step), last.step, last.step, mean([one for _, one in values])))
                continue
            [(step, one)] = values
            at = piece(step)
            open_piece = running.get(key)
            if open_piece and at > open_piece[0]:
                finite = [one for one in open_piece[2] if math.isfinite(one)]
                out.setdefault(key, []).append((number, open_piece[0], open_piece[1], step, mean(finite) if finite else math.nan))
                open_piece = None
            if not open_piece:
                open_piece = running[key] = (at, step, [])
            open_piece[2].append(one)
    return out


def curves(p, history):
    """{(name, mode): {piece: mean}} of a run that is over."""
    out = {}
    for (name, mode), points in series(p, history).items():
        pieces = {}
        for _, at, _, _, number in points:
            if math.isfinite(number):
                pieces.setdefault(at, []).append(number)
        out[name, mode] = {at: mean(numbers) for at, numbers in pieces.items()}
    return out


def quantile(ordered, q):
    place = (len(ordered) - 1) * q
    low = int(place)
    return ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def expected(p, values):
    """(median, limit) from the values of earlier runs, oldest first; None: too few."""
    if len(values) < p["min_runs"]:
        return None
    split = p["min_runs"]
    while split + p["min_runs"] <= len(values):
        older, newer = values[:split], values[split:]
        if min(newer) > max(older) or max(newer) < min(older):
            values, split = newer, p["min_runs"] - 1
        split += 1
    ordered = sorted(values)
    median = statistics.median(ordered)
    spread = max(1.4826 * statistics.median([abs(one - median) for one in ordered]),
                 (quantile(ordered, 0.75) - quantile(ordered, 0.25)) / 1.349, 0.01 * abs(median))
    z, n = p["z_threshold"], len(ordered) - 1
    wide = z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n * n)
    return median, wide * spread * math.sqrt(1 + 1 / len(ordered))


def wrong_way(name, row):
    if row.known.direction:
        return -1 if row.known.direction == "max" else 1
    if words.grows(name, None):
        return -1
    return 1 if row.known.role == "loss" or words.counts_samples(name) else 0


def evaluate(p, history):
    past = [curves(p, other) for other in history.others
            if other.ended_at is not None and {outcome for outcome, _ in other.outcomes.values()} == {"completed"}][-32:]
    known = {row.name: row for row in history.rows}
    out = []
    for (name, mode), points in series(p, history).items():
        way, row = wrong_way(name, known[name]), 0
        for place, at, _, step, number in points:
            range_of = expected(p, [one[name, mode][at] for one in past if at in one.get((name, mode), {})])
            unit = (("metric", name), ("mode", mode))
            if range_of is None or not math.isfinite(number):
                out.append((place, Evaluation(unit, INSUFFICIENT, step)))
                continue
            away = number - range_of[0]
            better = way * away < 0
            if abs(away) <= range_of[1] or (better and not p["better"]):
                row = 0
                out.append((place, Evaluation(unit, OK, step)))
                continue
            row += 1
            kind = "outside" if way == 0 else "better" if better else "worse"
            out.append((place, Evaluation(unit, HIT, step, (kind,)) if row >= p["points"] else Evaluation(unit, OK, step)))
    return [one for _, one in sorted(out, key=lambda pair: pair[0])]
