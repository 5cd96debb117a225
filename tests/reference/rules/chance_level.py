"""51 chance_level, ours: per mode (train and global) over steps and workers, from the vector `confusion` of the labels or, of a
squared error, the values of the targets, and the training loss: no more is told than by one answer for all samples, and the loss
does not fall. The window is the fewest latest steps with labels that are enough, since the learning rate was larger than ever; where it tells nothing
one with twice as many labels, and so on. Labels of two dimensions stand at places of a sample: of those it is also told, however
unequal, when the loss is what guessing by frequency costs, their entropy, and no more are right than chance makes (1.5 deviations)."""
import math
import statistics

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, selects, wants
from tests.reference.words import is_train

DEFAULTS = {"steps": 10, "quantity_steps": 12, "labels": 250, "share": 0.1, "ignore_labels": ()}
TOCSIN = {}
NEW = True
UNIT = ("tensor", "mode")


def error(values):
    return math.sqrt(statistics.variance(values) / len(values))


def falls(earlier, later):
    fall = statistics.fmean(earlier) - statistics.fmean(later)
    return fall > 1.5 * math.hypot(error(earlier), error(later)) and fall > 0.003 * abs(statistics.fmean(earlier))


def judge(p, steps, targets, places):
    first, most = judge_window(p, steps, targets, places, p["labels"]), p["labels"]
    while most <= sum(held for _, held, _ in steps):
        outcome = judge_window(p, steps, targets, places, most)
        if outcome[0] == HIT:
            return outcome
        most *= 2
    return first


def judge_window(p, steps, targets, places, most):
    """`steps`: (cells, number of labels, losses since the step before), latest last; `targets`: of a
    squared error (number of values, their sum, their squared deviations from their mean) of all steps."""
    window, held = [], 0
    enough = p["steps"] if steps[-1][0] else p["quantity_steps"]
    for step in reversed(steps):
        if len(window) >= enough and held >= most:
            break
        window.insert(0, step)
        held += step[1]
    if len(window) < enough or held < most:
        return INSUFFICIENT, ()
    half = len(window) // 2
    earlier = [loss for _, _, losses in window[:half] for loss in losses]
    later = [loss for _, _, losses in window[half:] for loss in losses]
    if len(earlier) < 2 or len(later) < 2:
        return INSUFFICIENT, ()
    labels, said, right = {}, {}, 0
    for cells, _, _ in window:
        for (label, prediction), count in cells.items():
            labels[label] = labels.get(label, 0) + count
            said[prediction] = said.get(prediction, 0) + count
            right += count if label == prediction else 0
    if labels:
        shares = [count / held for count in labels.values()]
        entropy = -sum(share * math.log(share) for share in shares)
        even = len(shares) > 1 and entropy >= 0.9 * math.log(len(shares))
        if not even and (not places or len(shares) < 2):
            return NOT_APPLICABLE, ()
        if falls(earlier, later):
            return OK, ()
        by_chance = sum(count * said.get(label, 0) for label, count in labels.items()) / held
        left = held - by_chance
        below = right + 2 * math.sqrt(by_chance * left / held) < by_chance + p["share"] * left
        if even and below:
            return HIT, ("classes",)
        least = statistics.fmean(earlier + later) - 2 * error(earlier + later)
        guess = least >= 0.95 * entropy and statistics.fmean(earlier + later) <= 1.1 * entropy
        tells = right > by_chance + 1.5 * math.sqrt(by_chance * left / held)
        return (HIT, ("entropy",)) if places and guess and not tells else (OK, ())
    number = sum(n for n, _, _ in targets)
    middle = sum(total for _, total, _ in targets) / number
    variance = sum(m2 + n * (total / n - middle) ** 2 for n, total, m2 in targets) / number
    if statistics.fmean(earlier + later) > 3 * variance:
        return NOT_APPLICABLE, ()
    least = statistics.fmean(earlier + later) - 2 * error(earlier + later)
    above = least >= (1 - p["share"]) * variance * (1 + math.sqrt(2 / number))
    return (HIT, ("quantity",)) if above and not falls(earlier, later) else (OK, ())


def is_loss(row):
    return row.scalar and row.known.role == "loss" and is_train(row.name)


def evaluate(p, history):
    out, modes = [], {}
    for point in history.points():
        known = modes.setdefault(point.mode, {"steps": [], "losses": [], "targets": [], "rate": None})
        rows = [row for by_rank in point.values.values() for _, row in by_rank
                if wants(p, row, TRAINING) and (selects(p, row, {"label", "loss"}) or row.name == "learning_rate")]
        for row in rows:
            rate = row.columns["sum"]
            if row.scalar and row.name == "learning_rate" and math.isfinite(rate) and (known["rate"] is None or rate > known["rate"]):
                known.update(rate=rate, steps=[], losses=[])
        losses = [row for row in rows if is_loss(row)]
        if len({row.name for row in losses}) == 1 and all(math.isfinite(row.columns["sum"]) for row in losses):
            known["losses"].append(statistics.fmean(row.columns["sum"] for row in losses))
        cells, held, name, places = {}, 0, None, False
        for row in rows:
            if row.scalar or row.known.role != "label":
                continue
            if row.name.endswith("MSELoss_input_1"):
                count = row.columns["count"]
                if count and math.isfinite(row.columns["m2"]):
                    name, held = row.name, held + count
                    known["targets"].append((count, row.columns["sum"], row.columns["m2"]))
                continue
            triples = row.vectors.get(("confusion", ()))
            if triples is not None:
                name, places = row.name, len(row.known.shape) > 1
                for label, prediction, count in zip(triples[::3], triples[1::3], triples[2::3]):
                    if count and label not in p["ignore_labels"]:
                        cells[int(label), int(prediction)] = cells.get((int(label), int(prediction)), 0) + count
                        held += count
        if held:
            known["steps"] = [*known["steps"], (cells, held, known["losses"])][-64:]
            known["losses"] = []
            outcome, kinds = judge(p, known["steps"], known["targets"], places)
            out.append(Evaluation((("mode", point.mode), ("tensor", name)), outcome, point.step, kinds))
    return out
