"""4.2 FeatureImportanceOverweight, preset original: of the importances of a step, divided by their sum, the nfeatures largest
exceed the threshold together. Mode global; each worker on its own."""
import math
import re

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, wants

DEFAULTS = {"threshold": 0.8, "nfeatures": 3}
TOCSIN = {}
UNIT = ("worker",)


def judge(p, importances):
    if not all(map(math.isfinite, importances)) or sum(importances) == 0:
        return INSUFFICIENT
    if sum(one != 0 for one in importances) <= p["nfeatures"]:
        return NOT_APPLICABLE  # the sum is 1 by construction
    largest = sorted(importances, reverse=True)[:p["nfeatures"]]
    return HIT if sum(largest) / sum(importances) > p["threshold"] else OK


def evaluate(p, history):
    if p["preset"] == "tocsin":
        raise ValueError("what preset tocsin looks at is open")
    pattern = (p["tensor_regex"] or (".*feature_importance/weight",))[0]
    out = []
    for point in history.points():
        by_worker = {}
        for name, by_rank in sorted(point.values.items()):
            for _, row in by_rank:
                if row.scalar and re.search(pattern, name) and wants(p, row, ("global",)):
                    by_worker.setdefault(row.worker, []).append(row.columns["sum"])
        for worker, importances in sorted(by_worker.items()):
            out.append(Evaluation((("worker", worker),), judge(p, importances), point.step))
    return out
