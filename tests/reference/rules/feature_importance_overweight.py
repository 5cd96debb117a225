"""4.2 FeatureImportanceOverweight: of the importances of a step, divided by their sum, the nfeatures largest exceed the threshold
together; each worker on its own. Preset original: type weight, not where no more features are used than are added up.
Preset tocsin: type gain, the largest alone, from step 5 on (docs/rules/feature_importance_overweight.md). Both: modes global and train."""
import math
import re

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, wants

DEFAULTS = {"threshold": 0.8, "nfeatures": 3}
TOCSIN = {"nfeatures": 1, "start_step": 5}
UNIT = ("worker",)


def judge(p, importances):
    if not all(map(math.isfinite, importances)) or sum(importances) <= 0:
        return INSUFFICIENT
    if p["preset"] == "original" and sum(one != 0 for one in importances) <= p["nfeatures"]:
        return NOT_APPLICABLE  # the sum is 1 by construction
    largest = sorted(importances, reverse=True)[:p["nfeatures"]]
    return HIT if sum(largest) / sum(importances) > p["threshold"] else OK


def evaluate(p, history):
    original = p["preset"] == "original"
    pattern = (p["tensor_regex"] or (f".*feature_importance/{'weight' if original else 'gain'}",))[0]
    out = []
    for point in history.points():
        by_worker = {}
        for name, by_rank in sorted(point.values.items()):
            for _, row in by_rank:
                if row.scalar and re.search(pattern, name) and wants(p, row, TRAINING):
                    by_worker.setdefault(row.worker, []).append(row.columns["sum"])
        for worker, importances in sorted(by_worker.items()):
            out.append(Evaluation((("worker", worker),), judge(p, importances), point.step))
    return out
