"""Whether a fault did harm: a twin that goes as well as the healthy run is no faulty run. The measure was fixed before the first of these runs was judged, and
counts for recordings that note their evaluations (`passes`: [step, value], less is better, the first one before the training)."""
import math

GAIN = 0.1    # of what the twin gained: so much worse on the mean since the fault …
ONCE = 0.3    # … or so much in a single evaluation
# What is wrong with them is not the model's quality, or the recording cannot measure it: they count always.
ITSELF = {"evaluated_in_training", "leak", "target_unrelated", "softmax_twice", "target_leaks", "held_in_training", "evaluated_on_training"}


def _finite(values):
    return all(math.isfinite(one) for one in values)


def turned(run):
    """Whether a run has given back a part of what it gained: its last three evaluations are all worse than its best. A healthy one that did is none."""
    values = [value for _, value in getattr(run, "passes", None) or []]
    return bool(values) and _finite(values) and min(values[-3:]) > min(values) + GAIN * max(values[0] - min(values), 1e-9)


def harmless(run, twin):
    """Whether a run with a fault (report.Run) did as well as its twin."""
    passes, healthy = getattr(run, "passes", None), getattr(twin, "passes", None)
    if not passes or not healthy or run.fault in ITSELF or not _finite(value for _, value in passes):
        return False
    if run.slow:  # against itself, since it has other data and steps than its twin
        return not turned(run)
    gained = max(healthy[0][1] - min(value for _, value in healthy), 1e-9)
    there = dict(map(tuple, healthy))
    worse = [value - there[step] for step, value in passes if step >= run.onset and step in there and step > 0]
    return bool(worse) and sum(worse) / len(worse) <= GAIN * gained and max(worse) <= ONCE * gained
