"""2.4 Overfit. Preset original: the evaluation's mean above the training's mean, at points of comparison. Preset tocsin
(detection quality, section 2): the evaluation above its own best. Ours beside: one point less is enough while it rises, 5 % above
the best and at twice the training loss, and where 0.15 of what was gained since the first value is given back while training goes on
to gain, and it rises or lies at twice the training loss; and where every step is evaluated, half of what was gained must be lost, or less than a
tenth gained of what training gains (1 % of its first value at least), one point less in a row than `patience`. Of rounds also, `patience` of
them in a row: the same from 0.3 % on, and 0.15 of the gain given back while training has come to 0.7 of what it was at the best; one more of what
grows to 1 beside a loss, where that gains nothing.

A point of comparison is the end of an evaluation pass, in mode `global` every step; pairs may also stand in one training
step (Keras).
"""
import math

from tests.reference import words
from tests.reference.history import mean, value
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation, selects

DEFAULTS = {"start_step": 0, "patience": 1, "ratio_threshold": 0.1}
# An allowance for noise is the implementation's own; here there is none.
TOCSIN = {"noise_factor": 0, "patience": 3, "ratio_threshold": 0.02, "steep_threshold": 0.05, "round_share": 0.5,
          "gain_share": 0.1, "back_share": 0.15}
MODES = ("train", "eval", "global")
MEAN = "losses"  # the label of the mean over losses whose names do not pair up


def finite_mean(terms):
    """Non-finite values are left out; NaN when none is finite."""
    kept = [one for one in terms if math.isfinite(one)]
    return mean(kept) if kept else math.nan


def sets_of(p, history, point, beside=False):
    """({name: value} of training, {name: value} of other sets) of one step, of the selected series. What a name says
    decides; without a word of a data set, the mode. `beside`: of mode train what grows to 1 beside a loss."""
    training, others = {}, {}
    workers = [one for one in p["workers"] if one != "all"]
    alone = p["preset"] == "tocsin" and point.mode == "train" and not any(
        row.known.role == "loss" and selects(p, row, {"loss"}) and (not workers or row.worker in workers)
        for by_rank in point.values.values() for _, row in by_rank)
    if beside and (alone or point.mode != "train" or p["collection_names"] or p["tensor_regex"]):
        return {}, {}
    for name, by_rank in point.values.items():
        if beside and not (words.data_set(name) and words.grows(name) and grows(history, name)):
            continue
        # In mode train the metrics of a set that grow by their name, where no loss is beside them.
        metrics = point.mode == "global" or alone and words.data_set(name) and words.grows(name) and grows(history, name)
        roles = {"metric"} if beside else {"loss", "metric"} if metrics else {"loss"}
        rows = [(rank, row) for rank, row in by_rank if row.mode in (p["modes"] or MODES)
                and (not workers or row.worker in workers) and selects(p, row, roles)]
        if rows:
            other = not words.is_train(name) or (point.mode == "eval" and not words.data_set(name))
            (others if other else training)[name] = value(rows)
    # The wrapper for scikit-learn numbers its sets in the order of eval_set, the training data first.
    numbered = {}
    for name in others:
        data = words.data_set(name)
        if len(data) == 2 and data[0] == "validation":
            numbered.setdefault(base(name), []).append((int(data[1]), name))
    for metric, found in numbered.items():
        if len(found) > 1 and metric not in {base(name) for name in training}:
            training[min(found)[1]] = others.pop(min(found)[1])
    return training, others


def base(name):
    """What is measured, whatever the set: `loss` of `val_loss`."""
    return "/".join(words.metric(name))


def grows(history, name):
    known = history.names.get(name)
    return words.grows(name, known.direction if known else None)


class Strikes:
    """Points in a row above the limit, per series."""

    def __init__(self, p):
        self.p, self.row, self.out = p, {}, []

    def point(self, name, step, training_step, excess):
        """`excess` NaN: insufficient, which leaves the strikes."""
        outcome = INSUFFICIENT
        if not math.isnan(excess):
            self.row[name] = self.row.get(name, 0) + 1 if excess > self.p["ratio_threshold"] else 0
            enough = self.row[name] >= self.p["patience"] and training_step >= self.p["start_step"]
            outcome = HIT if enough else OK
        self.out.append(Evaluation((("metric", name),), outcome, step))


def gap(validation, training):
    """q of the original."""
    if not math.isfinite(validation) or not math.isfinite(training):
        return math.nan
    return (validation - training) / max(abs(training), 1e-12)


def original(p, history):
    strikes = Strikes(p)
    since = []    # of each training step since the previous pass ended: {name: value}
    last = {}     # label -> the T of the newest point that had values of it
    trained = set()
    for points in history.passes():
        first, sets = points[0], [sets_of(p, history, point) for point in points]
        since += [training for training, _ in sets if training]
        trained |= {base(name) for training, _ in sets for name in training}
        names = {name for _, others in sets for name in others}
        if first.mode != "eval" and not names:
            continue
        # T of this point: of each metric, and of the mean over the losses of each step.
        for metric in {base(name) for step in since for name in step}:
            last[metric] = finite_mean([number for step in since for name, number in step.items() if base(name) == metric])
        if since:
            last[MEAN] = finite_mean([finite_mean(step.values()) for step in since])
        since = []
        if first.mode == "global":
            [(training, others)] = sets
            of_metric = {base(name): number for name, number in training.items()}
            for name, number in others.items():
                if base(name) in of_metric and not grows(history, name):
                    strikes.point(name, first.step, first.step, gap(number, of_metric[base(name)]))
            continue
        paired = sorted(name for name in names if base(name) in trained)
        for name in paired:
            if not grows(history, name):
                validation = finite_mean([others[name] for _, others in sets if name in others])
                strikes.point(name, points[-1].step, first.train_step, gap(validation, last.get(base(name), math.nan)))
        if names and not paired:
            validation = finite_mean([finite_mean(others.values()) for _, others in sets if others])
            strikes.point(MEAN, points[-1].step, first.train_step, gap(validation, last.get(MEAN, math.nan)))
    return strikes.out


def means_of_training(history, p):
    """Of each point of comparison: (its points, their sets, {metric: mean of its training since the point before}). A mean of
    nothing finite is kept as NaN; where there is nothing at all, the one before stays."""
    since, last = [], {}
    for points in history.passes():
        sets = [sets_of(p, history, point) for point in points]
        first = points[0]
        if first.mode == "global":
            [(training, _)] = sets
            yield points, sets, {base(name): number for name, number in training.items()}
            continue
        since += [training for training, _ in sets if training]
        if first.mode != "eval" and not any(others for _, others in sets):
            continue
        for metric in {base(name) for step in since for name in step}:
            last[metric] = finite_mean([number for step in since for name, number in step.items() if base(name) == metric])
        since = []
        yield points, sets, dict(last)


class Course:
    """What preset tocsin knows of a series; less is better."""

    def __init__(self, first, training, up, bounded):
        self.up, self.bounded = up, bounded
        self.first = self.best = first
        self.training = training
        self.values, self.step, self.strikes, self.steep, self.apart, self.back = [], None, 0, 0, 0, 0
        self.useless = self.returned = 0
        self.at_best = training

    def judge(self, p, step, each_step, loss, training, alone, beside=False):
        rises = bool(self.values) and loss > self.values[-1]
        each_step = each_step and self.step is not None and step - self.step == 1
        self.values.append(loss)
        self.step, self.best = step, min(self.best, loss)
        if loss == self.best:
            self.at_best = training
        excess = (loss - self.best) / max(abs(self.best), 1e-12)
        above = excess > p["ratio_threshold"]
        if each_step and loss - self.best <= p["round_share"] * (self.first - self.best):
            above = False
        # Training must not share a fifth of the rise; and of negative losses, which are no errors, the best is not the first.
        if not self.up and loss > self.best and (
                (self.best < 0 and self.best == self.first) or training - self.at_best >= 0.2 * (loss - self.best)):
            above = False
        self.strikes = self.strikes + 1 if above and not alone else 0
        far = not self.up and math.isfinite(training) and training > 0 and loss > 2 * training
        steep = p["steep_threshold"] > 0 and above and rises and not each_step and excess > p["steep_threshold"] and far
        self.steep = self.steep + 1 if steep else 0
        highest = self.first if math.isnan(self.training) else max(self.first, self.training)
        given_back = p["back_share"] > 0 and not each_step and not self.up and highest > self.best and excess > p["ratio_threshold"] and \
            loss - self.best > p["back_share"] * (highest - self.best) and 0 < training < 0.9 * self.at_best and loss > training
        self.back = self.back + 1 if given_back else 0
        back = self.back if rises or (far and self.best < self.first) else 0
        learned = (-1 if self.up else 1) * (self.training - training)  # NaN where there is no training loss of the metric
        # What grows to 1 is behind what training had at first, and never gained twice the share.
        enough = self.bounded and learned > 0.05 and -loss < self.training and self.first - self.best < 2 * p["gain_share"] * learned \
            if self.up else learned > 0.01 * abs(self.training)
        apart = each_step and enough and self.first - loss < p["gain_share"] * learned
        self.apart = self.apart + 1 if apart else 0
        behind = self.bounded and learned > 0.05 and -loss < self.training and self.first - self.best < 2 * p["gain_share"] * learned
        nothing = (beside and behind if self.up else learned > 0.003 * abs(self.training)) and self.first - loss < p["gain_share"] * learned
        self.useless = self.useless + 1 if each_step and p["gain_share"] > 0 and nothing else 0
        returned = p["back_share"] > 0 and each_step and not self.up and not alone and excess > p["ratio_threshold"] and \
            loss - self.best > p["back_share"] * (highest - self.best) and 0 < training < 0.7 * self.at_best and loss > training
        self.returned = self.returned + 1 if returned else 0
        rounds = self.useless >= p["patience"] + beside or self.returned >= p["patience"]
        if beside or rounds:
            return rounds
        most = max(self.steep, back, self.apart)
        return self.strikes >= p["patience"] or (most > 0 and most + 1 >= p["patience"])


class Gains:
    """Of rounds: growing metrics of data sets, and whether they still gain: a new best within the newest tenth of three values or more, of
    which a tenth of the gain was not given back."""

    def __init__(self, p, history):
        self.p, self.history, self.values = p, history, {}

    def take(self, points):
        """{data set} of which a metric gains in this round."""
        out = set()
        workers = [one for one in self.p["workers"] if one != "all"]
        for point in points:
            if point.mode == "eval":
                continue
            for name, by_rank in point.values.items():
                rows = [(rank, row) for rank, row in by_rank if row.mode in (self.p["modes"] or MODES)
                        and (not workers or row.worker in workers) and selects(self.p, row, {"loss", "metric"})]
                if not rows or not words.data_set(name) or not grows(self.history, name) or not math.isfinite(value(rows)):
                    continue
                known = self.values.setdefault(name, [])
                known.append(value(rows))
                best = max(known)
                late = known.index(best) + 1 >= 0.9 * len(known)
                if len(known) >= 3 and best > known[0] and late and best - known[-1] <= 0.1 * (best - known[0]):
                    out.add(words.data_set(name))
        return out


def beside_losses(p, history, point, courses):
    """What grows to 1, and has a value of training in the same step."""
    training, others = sets_of(p, history, point, beside=True)
    of_metric = {base(name): number for name, number in training.items()}
    for name in sorted(others):
        if base(name) not in of_metric:
            continue
        loss, beside = -others[name], of_metric[base(name)]
        outcome = INSUFFICIENT
        if math.isfinite(loss):
            course = courses.setdefault(name, Course(loss, beside if math.isfinite(beside) else math.nan, True, True))
            hit = course.judge(p, point.step, True, loss, beside, True, beside=True)
            outcome = HIT if hit and point.train_step >= p["start_step"] else OK
        yield Evaluation((("metric", name),), outcome, point.step)


def tocsin(p, history):
    out, courses, gains, gaining = [], {}, Gains(p, history), {}
    for points in history.passes():
        gaining[points[0].mode, points[0].step] = gains.take(points)
        for point in points:
            out += beside_losses(p, history, point, courses)
    for points, sets, training in means_of_training(history, p):
        for name in sorted({name for _, others in sets for name in others}):
            if words.counts_samples(name):
                continue
            up = grows(history, name)  # direction decides
            loss = (-1 if up else 1) * finite_mean([others[name] for _, others in sets if name in others])
            step, mode = points[-1].step, points[0].mode
            trained = step if mode == "global" else points[0].train_step
            outcome = INSUFFICIENT
            if not math.isnan(loss):
                mean_loss = training.get(base(name), math.nan)
                mean_loss = mean_loss if math.isfinite(mean_loss) else math.nan
                course = courses.setdefault(name, Course(loss, mean_loss, up, words.grows(name)))
                known = history.names.get(name)
                chosen = bool(p["collection_names"] or p["tensor_regex"])
                alone = mode != "global" and known is not None and known.role == "metric" and not chosen
                hit = course.judge(p, step, mode != "eval", loss, mean_loss, alone)
                still = not up and words.data_set(name) in gaining[points[0].mode, points[0].step]
                outcome = HIT if hit and not still and trained >= p["start_step"] else OK
            out.append(Evaluation((("metric", name),), outcome, step))
    return out


def evaluate(p, history):
    return original(p, history) if p["preset"] == "original" else tocsin(p, history)
