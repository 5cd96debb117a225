"""52 tree_without_split, ours: none of the first `rounds` rounds that tell a depth (the scalar `trees/depth` or `trees/leaves`, a leaf more,
or the statistic `depth`; of several the deepest) has a tree of more than a leaf. Modes train and global, each worker on its own; once a tree has split never again."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, OK, TRAINING, Evaluation, selects, wants
from tests.reference.rules.tree_depth import depths

DEFAULTS = {"rounds": 5}
TOCSIN = {}
NEW = True
UNIT = ("worker",)


def evaluate(p, history):
    out, told = [], {}
    for point in history.points():
        by_worker = {}
        for by_rank in point.values.values():
            for _, row in by_rank:
                if (selects(p, row, {"tree"}) or row.name in ("trees/depth", "trees/leaves")) and wants(p, row, TRAINING):
                    leaves = [row.columns["sum"] - 1] if row.scalar and row.name == "trees/leaves" else []
                    by_worker.setdefault(row.worker, []).extend(depths(row) + leaves)
        for worker, found in sorted(by_worker.items()):
            known = told.setdefault((worker, point.mode), [])
            numbers = [one for one in found if not math.isnan(one)]
            if numbers:
                known.append(max(numbers))
            if any(known):
                outcome = OK if numbers else INSUFFICIENT
            else:
                outcome = HIT if numbers and len(known) >= p["rounds"] else INSUFFICIENT
            out.append(Evaluation((("mode", point.mode), ("worker", worker)), outcome, point.step))
    return out
