"""4.9 ranks (detection principles): fingerprints of the batches of data-parallel ranks are different. Two ranks with the same
one in three steps in a row have a sampler without rank; a fingerprint that is that of the rank's step before tells nothing."""
from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, wants

DEFAULTS = {"steps": 3}
TOCSIN = {}
NEW = True
NAME = "ledger/ranks/batch"
UNIT = ("mode",)


def evaluate(p, history):
    out, seen = [], {}
    for point in history.points():
        batches = {rank: row.columns["sum"] for rank, row in point.values.get(NAME, ()) if row.scalar and wants(p, row, TRAINING)
                   and row.columns["nan"] == row.columns["posinf"] == row.columns["neginf"] == 0}
        if not batches:
            continue
        unit = (("mode", point.mode),)
        if len(batches) < 2:
            out.append(Evaluation(unit, NOT_APPLICABLE, point.step, ("same_batches",)))
            continue
        steps = seen.setdefault(point.mode, [])
        steps.append(batches)

        def twin(at, rank):
            """The lowest rank with the same batch, where that is another than in the step before."""
            if at < 0 or rank not in steps[at]:
                return None
            lowest = min(other for other, batch in steps[at].items() if batch == steps[at][rank])
            fresh = at == 0 or steps[at - 1].get(rank) != steps[at][rank]
            return lowest if lowest != rank and fresh else None

        newest = len(steps) - 1
        alike = [rank for rank in batches if twin(newest, rank) is not None]
        told = any(all(twin(newest - back, rank) == twin(newest, rank) for back in range(p["steps"])) for rank in alike)
        out.append(Evaluation(unit, HIT if told else INSUFFICIENT if alike else OK, point.step, ("same_batches",)))
    return out
