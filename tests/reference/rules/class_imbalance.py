"""2.2 ClassImbalance, per mode over steps and workers, from the vectors class_counts and class_correct of the labels: the
largest class against the smallest (`imbalance`), and mispredictions of recent labels (`misprediction`). Preset tocsin
(detection quality, section 2): also `single_class`, when the labels are of one class: 80 of three steps, but not the label 1
that the hook has read from a gradient, nor while more than a twentieth of the newest sixty is predicted wrong. Ours beside: `imbalance`
from 100 labels on, where the smallest class has three deviations fewer than the limit allows; no `misprediction`; labels that
are more than the samples of the step's inputs, or than their own first dimension of several, are left out; and `sorted`, when too many of a training's latest steps are of one class."""
import math

from tests.reference.judging import ALL_MODES, HIT, INSUFFICIENT, OK, TRAINING, Evaluation, wants

DEFAULTS = {"threshold_imbalance": 10, "threshold_misprediction": 0.7, "samples": 500, "argmax": False, "labels_regex": ".*labels",
            "predictions_regex": ".*predictions", "num_classes": None, "misprediction_scope": "underrepresented",
            "ignore_labels": (), "min_class_samples": 10, "single_class": 0, "deviations": 0, "dense": True, "sorted": False}
TOCSIN = {"single_class": 80, "samples": 100, "deviations": 3, "threshold_misprediction": 1, "dense": False, "sorted": True}
UNIT = ("mode",)


def recent(p, steps):
    """(n_c, wrong_c) of the fewest latest steps that together hold enough labels with predictions."""
    n, wrong = {}, {}
    for _, predicted, correct in reversed(steps):
        if sum(n.values()) >= p["samples"]:
            break
        for c, count in predicted.items():
            n[c] = n.get(c, 0) + count
            wrong[c] = wrong.get(c, 0) + count - correct.get(c, 0)
    return n, wrong


def is_sorted(seen, steps):
    """Of the latest 20 steps with labels: three and half of those are of one class of which fewer than each twentieth would be by
    chance, and that all of them are is less likely than one in a million."""
    total, told, pure, chance = sum(seen.values()), 0, 0, 1.0
    for counts in [counts for counts, _, _ in steps if any(counts.values())][-20:]:
        size = sum(counts.values())
        one = sum((count / total) ** size for count in seen.values())
        if one > 0.05:
            continue
        told += 1
        if sum(count > 0 for count in counts.values()) == 1:
            pure += 1
            chance *= one
    return pure >= 3 and 2 * pure >= told and chance < 1e-6


def learned(steps):
    """Whether of the newest steps that hold sixty labels with predictions nineteen in twenty are right."""
    labels = right = 0
    for _, predicted, correct in reversed(steps):
        if labels < 60:
            labels, right = labels + sum(predicted.values()), right + sum(correct.get(c, 0) for c in predicted)
    return labels - right <= 0.05 * labels


def judge(p, steps, trains, read):
    """`steps`: {class: labels}, {class: labels with predictions}, {class: right} of all until now."""
    total = {}
    for counts, _, _ in steps:
        for c, count in counts.items():
            total[c] = total.get(c, 0) + count
    seen = {c: count for c, count in total.items() if count > 0}
    kinds = []
    single = p["single_class"] > 0 and len(seen) == 1 and not (read and 1 in seen) and sum(seen.values()) >= p["single_class"]
    if single and sum(any(counts.values()) for counts, _, _ in steps) >= 3 and learned(steps):
        kinds.append("single_class")
    if p["sorted"] and trains and len(seen) > 1 and is_sorted(seen, steps):
        kinds.append("sorted")
    if sum(seen.values()) < p["samples"]:
        return (HIT, tuple(kinds)) if kinds else (OK if single else INSUFFICIENT, ())
    largest = max(seen.values())
    unseen = p["num_classes"] is not None and len(seen) < p["num_classes"]
    ratio = math.inf if unseen else largest / min(seen.values())
    allowed = largest / p["threshold_imbalance"]
    fewer = allowed - (0 if unseen else min(seen.values()))
    if ratio > p["threshold_imbalance"] and largest >= p["threshold_imbalance"] * p["min_class_samples"] and \
            fewer >= p["deviations"] * math.sqrt(allowed):
        kinds.append("imbalance")
    n, wrong = recent(p, steps)
    scope = [c for c in n if p["misprediction_scope"] == "all" or seen.get(c, 0) <= largest / 2]
    if any(n[c] >= p["min_class_samples"] and wrong[c] / n[c] > p["threshold_misprediction"] for c in scope):
        kinds.append("misprediction")
    return (HIT, tuple(kinds)) if kinds else (OK, ())


def classes(p, vector):
    return {c: count for c, count in enumerate(vector) if c not in p["ignore_labels"]}


def samples(point):
    """How many the inputs of a step have: their first dimension, or the second where sequences come first."""
    shapes = [row.known.shape for by_rank in point.values.values() for _, row in by_rank if row.known.role == "input"]
    return max([max(shape[:2] if len(shape) == 3 else shape[:1]) for shape in shapes if shape], default=math.inf)


def evaluate(p, history):
    out, steps = [], {}
    for point in history.points():
        counts, predicted, correct = {}, {}, {}
        heard, read = False, True
        most = math.inf if p["dense"] else samples(point)
        for by_rank in point.values.values():
            for _, row in by_rank:
                vector = row.vectors.get(("class_counts", ()))
                if vector is None or not wants(p, row, ALL_MODES) or not (row.known.role == "label" or "labels" in row.name):
                    continue
                places = not p["dense"] and len(row.known.shape) > 1 and sum(vector) > row.known.shape[0]
                if sum(vector) > most or places:
                    continue
                read = read and row.name.endswith("binary_cross_entropy_with_logits_input_1")
                heard = heard or any(classes(p, vector).values())  # a step without labels is not judged
                for c, count in classes(p, vector).items():
                    counts[c] = counts.get(c, 0) + count
                right = row.vectors.get(("class_correct", ()))
                if right is not None:  # labels and predictions are paired by worker
                    for c, count in classes(p, vector).items():
                        predicted[c] = predicted.get(c, 0) + count
                    for c, count in classes(p, right).items():
                        correct[c] = correct.get(c, 0) + count
        if heard:
            known = steps.setdefault(point.mode, [])
            known.append((counts, predicted, correct))
            outcome, kinds = judge(p, known, point.mode in TRAINING, read)
            out.append(Evaluation((("mode", point.mode),), outcome, point.step, kinds))
    return out
