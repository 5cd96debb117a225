"""3.1 CheckInputImages, per mode and tensor over steps and workers: once enough images were seen, some channel's mean is too
far from 0 (`mean`), with threshold_std also its deviation from 1 (`std`). From channel_sum, channel_sumsq, channel_count."""
import math
import re

from tests.reference.judging import ALL_MODES, HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, wants

DEFAULTS = {"threshold_mean": 0.2, "threshold_samples": 500, "regex": ".*hybridsequential0_input_0", "channel": 1,
            "threshold_std": None}
TOCSIN = {"threshold_mean": 2}
UNIT = ("tensor", "mode")


def chosen(p, row):
    """A stated role decides, the pattern where there is none."""
    return row.known.role == "input" if row.known.role != "other" else bool(re.search(p["regex"], row.name))


def vectors_of(row):
    """[sums, sums of squares, elements] per channel; of three axes, which are one channel, the columns say them."""
    if len(row.known.shape) == 3:
        return [[row.columns["sum"]], [row.columns["sumsq"]], [row.columns["count"]]]
    return [row.vectors.get((name, ())) for name in ("channel_sum", "channel_sumsq", "channel_count")]


def judge(p, rows):
    """`rows`: all until now."""
    kept = [row for row in rows if row.columns["count"] > 0]
    if not kept or len(rows[-1].known.shape) < 3:
        return NOT_APPLICABLE, ()
    vectors = [vectors_of(row) for row in kept]
    if any(None in three for three in vectors):
        return INSUFFICIENT, ()
    if sum(row.known.shape[0] for row in kept) < p["threshold_samples"]:
        return INSUFFICIENT, ()
    kinds = set()
    for c in range(len(vectors[0][0])):
        elements = sum(three[2][c] for three in vectors)
        mean = sum(three[0][c] for three in vectors) / elements
        if abs(mean) > p["threshold_mean"]:
            kinds.add("mean")
        std = math.sqrt(max(sum(three[1][c] for three in vectors) / elements - mean * mean, 0))
        if p["threshold_std"] is not None and abs(std - 1) > p["threshold_std"]:
            kinds.add("std")
    return (HIT, tuple(sorted(kinds))) if kinds else (OK, ())


def evaluate(p, history):
    out, seen = [], {}
    for point in history.points():
        for name, by_rank in sorted(point.values.items()):
            rows = [row for _, row in by_rank if not row.scalar and chosen(p, row) and wants(p, row, ALL_MODES)]
            if rows:
                known = seen.setdefault((name, point.mode), [])
                known += rows
                outcome, kinds = judge(p, known)
                out.append(Evaluation((("mode", point.mode), ("tensor", name)), outcome, point.step, kinds))
    return out
