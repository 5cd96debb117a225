"""39 replica_divergence (detection quality, section 3): at a step the digests of a weight differ among the workers of a
data-parallel group, here all of them."""
from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, selects, wants

DEFAULTS = {}
TOCSIN = {}
NEW = True
UNIT = ("tensor", "mode")


def evaluate(p, history):
    out = []
    for point in history.points():
        for name, by_rank in sorted(point.values.items()):
            rows = [row for _, row in by_rank if not row.scalar and wants(p, row, TRAINING) and selects(p, row, roles={"weight"})]
            if not rows:
                continue
            digests = [row.statistics[("digest", ())] for row in rows if ("digest", ()) in row.statistics]
            if len(rows) < 2:
                outcome = NOT_APPLICABLE
            elif len(digests) < 2:
                outcome = INSUFFICIENT
            else:
                outcome = HIT if len(set(digests)) > 1 else OK
            out.append(Evaluation((("mode", point.mode), ("tensor", name)), outcome, point.step))
    return out
