"""2.5 Overtraining. Preset original: neither the training loss nor the evaluation has improved by delta for so many points.
Preset tocsin (detection quality, section 2): the test of overfit with 5 % and 2 passes, when the best pass lies at least a
tenth of the run behind; the run so far is here its training steps."""
import math

from tests.reference import words
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation
from tests.reference.rules import overfit

DEFAULTS = {"patience_train": 5, "patience_validation": 10, "delta": 0.01, "require": "both"}
# An allowance for noise is the implementation's own; here there is none.
TOCSIN = {"noise_factor": 0}
RATIO, PASSES, BEHIND = 0.05, 2, 0.1


class Series:
    """Values of one series: the best of them, and how many came since."""

    def __init__(self, delta):
        self.delta, self.values, self.best, self.without = delta, [], None, 0

    def add(self, number):
        self.values.append(number)
        if math.isfinite(number) and (self.best is None or number < self.best - self.delta):
            self.best, self.without = number, 0
        else:
            self.without += 1

    def blind(self):
        """The latest three are not finite."""
        return len(self.values) >= 3 and not any(map(math.isfinite, self.values[-3:]))


def judge(p, training, validation):
    sides = [(training, p["patience_train"]), (validation, p["patience_validation"])]
    heard = [(series, patience) for series, patience in sides if series.values]
    if len(heard) < (2 if p["require"] == "both" else 1) or any(series.blind() for series, _ in heard):
        return INSUFFICIENT
    stalled = [series.without >= patience for series, patience in heard]
    return HIT if (all(stalled) if p["require"] == "both" else any(stalled)) else OK


def original(p, history):
    """Names pair up, as 2.4 says; where none of a point does, the mean over its losses goes with the mean of training."""
    out, training, validation = [], {}, {}
    names = {}  # evaluated name -> its metric
    trained = {}  # metric -> the name it is trained under
    for points in history.passes():
        sets = [overfit.sets_of({**p, "start_step": 0}, history, point) for point in points]
        steps = [tuple({name: number for name, number in side.items() if not overfit.grows(history, name)} for side in step)
                 for step in sets]
        fresh = set()
        for one, _ in steps:
            for name, number in one.items():
                training.setdefault(overfit.base(name), Series(p["delta"])).add(number)
                fresh.add(overfit.base(name))
                trained[overfit.base(name)] = name
            if one:
                training.setdefault(overfit.MEAN, Series(p["delta"])).add(overfit.finite_mean(one.values()))
                fresh.add(overfit.MEAN)
        evaluated = sorted({name for _, others in steps for name in others})
        paired = points[0].mode == "global" or any(overfit.base(name) in training for name in evaluated)
        if evaluated and not paired and overfit.MEAN in training:
            mean = overfit.finite_mean([overfit.finite_mean(others.values()) for _, others in steps if others])
            validation.setdefault(overfit.MEAN, Series(p["delta"])).add(mean)
            fresh.add(overfit.MEAN)
            evaluated = []
        elif points[0].mode != "global" and overfit.MEAN in training:
            evaluated = [name for name in evaluated if overfit.base(name) in training]
        for name in evaluated:
            names[name] = overfit.base(name)
            number = overfit.finite_mean([others[name] for _, others in steps if name in others])
            validation.setdefault(name, Series(p["delta"])).add(number)
            fresh.add(name)
        known = set(names.values())
        alone = overfit.MEAN not in validation
        for metric in sorted(fresh & set(training) - {overfit.MEAN}):
            if metric not in known and alone:
                out.append(unit(trained[metric], judge(p, training[metric], Series(0)), points[-1].step))
        for name, metric in sorted(names.items()):
            if name in fresh or metric in fresh:
                outcome = judge(p, training.get(metric, Series(0)), validation[name])
                out.append(unit(name, outcome, points[-1].step))
        if not alone and overfit.MEAN in fresh:
            out.append(unit(overfit.MEAN, judge(p, training[overfit.MEAN], validation[overfit.MEAN]), points[-1].step))
    return out


def unit(name, outcome, step):
    return Evaluation((("metric", name),), outcome, step)


def tocsin(p, history):
    out, best, row, gains = [], {}, {}, overfit.Gains(p, history)
    for points in history.passes():
        gaining = gains.take(points)
        sets = [overfit.sets_of({**p, "start_step": 0}, history, point) for point in points]
        trained = points[-1].step if points[0].mode == "global" else points[0].train_step
        for name in sorted({name for _, others in sets for name in others}):
            if words.counts_samples(name):
                continue
            sign = -1 if overfit.grows(history, name) else 1
            number = sign * overfit.finite_mean([others[name] for _, others in sets if name in others])
            if math.isnan(number):
                out.append(unit(name, INSUFFICIENT, points[-1].step))
                continue
            if name not in best or number < best[name][0]:
                best[name] = (number, trained)
            excess = (number - best[name][0]) / max(abs(best[name][0]), 1e-12)
            row[name] = row.get(name, 0) + 1 if excess > RATIO else 0
            behind = trained - best[name][1] >= BEHIND * trained and not (sign > 0 and words.data_set(name) in gaining)
            out.append(unit(name, HIT if row[name] >= PASSES and behind else OK, points[-1].step))
    return out


def evaluate(p, history):
    return original(p, history) if p["preset"] == "original" else tocsin(p, history)
