"""4.3 TreeDepth: the deepest tree of a round, as the scalar `trees/depth` or the statistic `depth` says, is deeper than
`depth`. Modes global and train, in which the XGBoost callback counts rounds; each worker on its own."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, OK, TRAINING, Evaluation, wants

DEFAULTS = {"depth": 4}
TOCSIN = {}
UNIT = ("worker",)


def depths(row):
    if row.scalar and row.name == "trees/depth":
        return [row.columns["sum"]]
    return [value for (name, _), value in row.statistics.items() if name == "depth"]


def evaluate(p, history):
    out = []
    for point in history.points():
        by_worker = {}
        for by_rank in point.values.values():
            for _, row in by_rank:
                if wants(p, row, TRAINING):
                    by_worker.setdefault(row.worker, []).extend(depths(row))
        for worker, found in sorted(by_worker.items()):
            if found:
                deepest = max(found)
                outcome = INSUFFICIENT if math.isnan(sum(found)) else HIT if deepest > p["depth"] else OK
                out.append(Evaluation((("mode", point.mode), ("worker", worker)), outcome, point.step))
    return out
