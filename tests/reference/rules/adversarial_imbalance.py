"""44 adversarial_imbalance (detection quality, section 3): of the losses of a training step the smallest lies below 0.02 of
the largest (medians of the last 5 values of each), at 3 points in a row. Not applicable to losses that have ever been negative,
of which a small one passes through zero, where one is of a policy or of values, and to losses that were as unequal at their first values: those are weighted so. Adversaries move against each other:
since its first value the smallest has fallen, and the largest has not."""
import math
import statistics

from tests.reference import words
from tests.reference.history import value
from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, selects, wants

DEFAULTS = {"min_hits": 3, "ratio_threshold": 0.02, "balanced_first": True}
TOCSIN = {}
NEW = True
UNIT = ("mode",)  # the losses of a step are judged together


POLICY = {"actor", "policy", "pi", "value", "qf", "q", "q1", "q2", "vf"}


def judge(p, values, names):
    """`values`: all values until now of each loss of the step."""
    if len(values) < 2:
        return NOT_APPLICABLE
    if any(len(one) < 5 or not all(map(math.isfinite, one[-5:])) for one in values):
        return INSUFFICIENT
    if any(POLICY & set(words.words(name)) for name in names):
        return NOT_APPLICABLE
    firsts = [one[0] for one in values]
    medians = [statistics.median(one[-5:]) for one in values]
    if any(x < 0 for one in values for x in one) or (p["balanced_first"] and min(firsts) < p["ratio_threshold"] * max(firsts)):
        return NOT_APPLICABLE
    falls = any(median < first for median, first in zip(medians, firsts) if median == min(medians))
    stays = any(median >= first for median, first in zip(medians, firsts) if median == max(medians))
    if p["balanced_first"] and not (falls and stays):
        return OK  # they do not move against each other
    return HIT if min(medians) < p["ratio_threshold"] * max(medians) else OK


def evaluate(p, history):
    out, seen = [], {}
    for point in history.points():
        here, names = [], []
        for name, by_rank in point.values.items():
            rows = [pair for pair in by_rank if wants(p, pair[1], TRAINING) and selects(p, pair[1], roles={"loss"})]
            if rows and words.is_train(name) and not words.counts_samples(name):
                seen.setdefault((point.mode, name), []).append(value(rows))
                here.append(seen[point.mode, name])
                names.append(name)
        if here:
            out.append(Evaluation((("mode", point.mode),), judge(p, here, names), point.step))
    return out
