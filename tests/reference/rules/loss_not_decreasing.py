"""2.3 LossNotDecreasing. Preset original: every num_steps steps against the value at least so many before. Preset tocsin
(detection quality, section 2): the curve of medians; here for `num_steps` 1, where every value is a point, because how the
spacing grows up to num_steps is the implementation's own function of the series. Ours beside: where a step has no series that should
fall, 1 − v of those that should grow by their name, and are at most 1."""
import math
import statistics

from tests.reference import words
from tests.reference.history import last_step, mean, value
from tests.reference.judging import (HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, selects, wants)
from tests.reference.rules import reward
from tocsin import wire

DEFAULTS = {"use_losses_collection": True, "num_steps": 10, "diff_percent": 0.1, "increase_threshold_percent": 5,
            "mode": None, "flat_evaluations": 0}
# An allowance for noise is the implementation's own; here there is none.
TOCSIN = {"noise_factor": 0, "jump_margin": 0.25}
ORDER = ("eval", "train", "global")


def series(p, history, modes, growing=False):
    """{(name, mode): [(step, value, place in the order of training)]}; of eval a point per pass. Those that should fall, or those that
    should grow."""
    def selected(row):
        if not wants(p, row, modes):
            return False
        own = bool(p["collection_names"] or p["tensor_regex"])
        chosen = own and selects(p, row)
        if p["use_losses_collection"] or not own:
            # A growing metric in mode train is looked at beside one of another set only: see below.
            metric = row.known.role == "metric" and (row.mode == "global" or growing)
            chosen = chosen or row.known.role == "loss" or metric
        return chosen and words.grows(row.name, row.known.direction) == growing

    out = {}
    for place, points in enumerate(history.passes()):
        steps = {}
        for point in points:
            for name, by_rank in point.values.items():
                chosen = [pair for pair in by_rank if selected(pair[1])]
                if chosen:
                    steps.setdefault(name, []).append((point.step, value(chosen)))
        for name, values in steps.items():
            # A pass is placed at its last step, and its value is the plain mean of its steps'.
            point = (last_step(p, points), mean([one for _, one in values]), place)
            out.setdefault((name, points[0].mode), []).append(point)
    return out


def unit(name, mode):
    return (("metric", name), ("mode", mode))


# --- original ----------------------------------------------------------------------------------


def compare(p, reference, newer):
    """(outcome, kinds) of one evaluation without `stuck`."""
    if math.isnan(newer) or not math.isfinite(reference):
        return INSUFFICIENT, ()
    if newer == math.inf:
        return HIT, ("increase",)
    if reference == 0:
        return (HIT, ("increase",)) if newer > 0 else (OK, ())
    d = 100 * (reference - newer) / abs(reference)
    if d == 0 or 0 < d < p["diff_percent"]:
        return HIT, ("plateau",)
    if d < 0 and -d > p["increase_threshold_percent"]:
        return HIT, ("increase",)
    return OK, ()


def original(p, points):
    """[(place, step, outcome, kinds)] of one series."""
    out, row = [], []  # row: (reference, value) of the evaluations without a break
    anchor = points[0][0]
    out.append((points[0][2], anchor, INSUFFICIENT, ()))
    for i, (step, newer, place) in enumerate(points):
        if step - anchor < p["num_steps"]:
            continue
        reference = [one for at, one, _ in points[:i] if at <= step - p["num_steps"]][-1]
        anchor = step
        outcome, kinds = compare(p, reference, newer)
        row = [] if outcome == INSUFFICIENT or reference == 0 else row + [(reference, newer)]
        k = p["flat_evaluations"]
        if k and len(row) >= k:
            first = row[-k][0]
            if all(100 * (first - one) / abs(first) < p["diff_percent"] for _, one in row[-k:]):
                outcome, kinds = HIT, kinds + ("stuck",)
        out.append((place, step, outcome, kinds))
    return out


def evaluate_original(p, history):
    chosen = (p["mode"].lower(),) if p["mode"] else ORDER
    judged = []
    for (name, mode), points in series(p, history, p["modes"] or chosen).items():
        judged += [(place, name, mode, step, outcome, kinds) for place, step, outcome, kinds in original(p, points)]
    judged.sort(key=lambda one: one[0])
    out, evaluated = [], set()
    for _, name, mode, step, outcome, kinds in judged:
        if outcome in (OK, HIT):
            evaluated.add(mode)
        # Without a stated mode only the first of them that has been evaluated may hit.
        first = next((one for one in ORDER if one in evaluated), mode)
        if outcome == HIT and not p["mode"] and first != mode:
            outcome, kinds = NOT_APPLICABLE, ()
        out.append(Evaluation(unit(name, mode), outcome, step, kinds))
    return out


# --- tocsin ------------------------------------------------------------------------------------


def jumps(p, values):
    """Each of the newest five lies above all of the twenty before, by a share of their range and of what was gained."""
    before, newest = values[-25:-5], values[-5:]
    if len(before) < 20 or p["jump_margin"] == 0:
        return False
    margin = p["jump_margin"] * max(max(before) - min(before), 0.01 * abs(max(before)))
    return min(newest) > max(before) + max(margin, 0.04 * (min(values[:5]) - min(values)))


def evaluations(p, history):
    """[(place, value)] of the first loss that is evaluated; of several in a step, whose name's hash is the least."""
    chosen, out = None, []
    for place, points in enumerate(history.passes()):
        rows = {}
        for point in points:
            for name, by_rank in point.values.items():
                theirs = [pair for pair in by_rank
                          if pair[1].known.role == "loss" and wants(p, pair[1], (*TRAINING, "eval"))]
                trains = words.is_train(name) if words.data_set(name) else point.mode != "eval"
                if theirs and not trains and not words.grows(name, theirs[0][1].known.direction):
                    rows.setdefault(name, []).append(value(theirs))
        if rows and chosen is None:
            chosen = min(rows, key=wire.xxh64)
        if chosen in rows:
            out.append((place, mean(rows[chosen])))
    return out


def goes_down(told, place):
    """What is known of the evaluation by then: its best lies half a percent below its first and in the later half, a quarter of the
    gain came after the second, and as much was not given back."""
    known = [one for at, one in told if at <= place]
    if not known or not math.isfinite(known[-1]):
        return False
    known = [one for one in known if math.isfinite(one)]
    gain = known[0] - min(known)
    if len(known) < 2 or gain < 0.005 * abs(known[0]) or 2 * known.index(min(known)) < len(known) - 1:
        return False
    return known[-1] - min(known) <= 0.25 * gain and (len(known) == 2 or known[1] - min(known) >= 0.25 * gain)


def curve(p, values, falls=False):
    """(outcome, kinds) at the last of these values, the points of a series; `falls`: those of an evaluation do."""
    if not math.isfinite(values[-1]):
        return INSUFFICIENT, ()
    values = [one for one in values if math.isfinite(one)]
    kinds = []
    if len(values) > 1 and values[-1] > 2 * abs(values[0]):
        kinds.append("early")
    medians = [statistics.median(values[i - 4:i + 1]) for i in range(4, len(values))]
    if medians:
        if stuck(medians):
            kinds.append("stuck")
        if all(rises(medians, i) for i in (-1, -2, -3)):
            kinds.append("rise")
        if all(lost(values, medians, i) for i in (0, 1)):
            kinds.append("lost")
    if jumps(p, values):
        kinds.append("jump")
    if kinds == ["stuck"] and falls:
        return INSUFFICIENT, ()
    if kinds:
        return HIT, tuple(one for one in kinds if not (falls and one == "stuck"))
    return (OK if medians else INSUFFICIENT), ()


def stuck(medians):
    """No improvement of 1 % of |best| over 4 points, and best > 0.9 · first."""
    if len(medians) < 5:
        return False
    before = min(medians[:-4])
    return min(medians[-4:]) > before - 0.01 * abs(before) and min(medians) > 0.9 * medians[0]


def rises(medians, i):
    """v > best + 0.5 · max(|best|, 0.5 · |first|) at the i-th of the newest points."""
    if len(medians) < -i:
        return False
    best = min(medians[:len(medians) + i + 1])
    return medians[i] > best + 0.5 * max(abs(best), 0.5 * abs(medians[0]))


def lost(values, medians, back):
    """More than half of what was gained is gone, `back` points ago."""
    if len(medians) <= back:
        return False
    until = len(medians) - back
    best, first = min(medians[:until]), medians[0]
    newest = statistics.median(values[len(values) - back - 3:len(values) - back])
    return first - best > 0.05 * abs(first) and newest > best + 0.5 * (first - best)


def is_loss(history, name):
    known = history.names.get(name)
    return known is not None and known.role == "loss"


def first_trained(history):
    """The place of the first value of a training set: of one that is named, or a loss of none that is named."""
    return min((place for place, points in enumerate(history.passes()) for point in points for name in point.values
                if point.mode != "eval" and words.is_train(name) and (words.data_set(name) or is_loss(history, name))), default=math.inf)


def stands_for_training(name):
    """Boosters write `validation_0-mlogloss`; often that is the only set there is."""
    return "-" in name and bool(words.data_set(name)) and not words.is_train(name)


def first_rewarded(p, history):
    """The place of the first reward or return: from there on losses have moving targets."""
    if p["collection_names"] or p["tensor_regex"]:
        return math.inf
    return min((place for place, points in enumerate(history.passes()) for point in points for name, by_rank in point.values.items()
                if point.mode != "eval" and reward.signal(name) in ("returns", "reward") and
                any(wants(p, row, TRAINING) and row.known.role in ("loss", "metric") for _, row in by_rank)),
               default=math.inf)


def judged(p, history, growing=False):
    """Series of training sets; and until there is one, those of what a booster is evaluated on."""
    out, trained, rewarded = {}, first_trained(history), first_rewarded(p, history)
    for key, points in series(p, history, p["modes"] or TRAINING, growing).items():
        points = [point for point in points if point[2] < rewarded]
        if words.is_train(key[0]):
            out[key] = points
        elif key[1] != "eval" and stands_for_training(key[0]):
            out[key] = [point for point in points if point[2] < trained]
    return out


def limits(p, name):
    """An evaluation that was at its best goes up again, by less than its range: that is no jump."""
    return p if words.is_train(name) else {**p, "jump_margin": 0}


def evaluate_tocsin(p, history):
    if p["num_steps"] != 1:
        raise ValueError("the reference of preset tocsin is for num_steps 1")
    out, told = [], evaluations(p, history)
    found = {key: points for key, points in judged(p, history).items() if not words.counts_samples(key[0])}
    # Several metrics of a data set, beside those of another, are no adversaries.
    evaluated = {place for place, points in enumerate(history.passes()) for point in points for name in point.values
                 if words.data_set(name) and not words.is_train(name)}
    falling = {place for points in found.values() for _, _, place in points}
    for (name, mode), points in judged(p, history, growing=True).items():
        if not words.grows(name):
            continue
        meant = is_loss(history, name) or bool(p["collection_names"] or p["tensor_regex"])
        alone = [(step, now, place) for step, now, place in points if place not in falling and
                 (meant or words.data_set(name) and (mode == "global" or place in evaluated))]
        for i, (step, now, place) in enumerate(alone):
            before = [1 - one for _, one, _ in alone[:i + 1] if not one > 1]
            falls = words.is_train(name) and goes_down(told, place)
            outcome, kinds = (NOT_APPLICABLE, ()) if now > 1 else curve(limits(p, name), before, falls)
            out.append((place, Evaluation(unit(name, mode), outcome, step, kinds)))
    for (name, mode), points in found.items():
        for i, (step, _, place) in enumerate(points):
            several = sum(any(at == place for _, _, at in other) for other in found.values()) > 1 and place not in evaluated
            falls = words.is_train(name) and goes_down(told, place)
            known = [one for _, one, _ in points[:i + 1]]
            outcome, kinds = (NOT_APPLICABLE, ()) if several else curve(limits(p, name), known, falls)
            out.append((place, Evaluation(unit(name, mode), outcome, step, kinds)))
    return [one for _, one in sorted(out, key=lambda pair: pair[0])]


def evaluate(p, history):
    return evaluate_tocsin(p, history) if p["preset"] == "tocsin" else evaluate_original(p, history)
