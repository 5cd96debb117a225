"""4.1 Confusion: the matrix of a step (those of the workers added up): of a true class too few are right (`diagonal`), or too
many go to one other class (`off_diagonal`); normalised by rows, or by columns. From the vector `confusion`: label, prediction,
count, as triples."""
from tests.reference.judging import ALL_MODES, ERROR, HIT, INSUFFICIENT, OK, Evaluation, wants

DEFAULTS = {"category_no": None, "labels": "labels", "predictions": "predictions", "labels_collection": "labels",
            "predictions_collection": "predictions", "min_diag": 0.9, "max_off_diag": 0.1, "normalize": "row", "min_support": 1,
            "decision_threshold": 0.5}
TOCSIN = {"min_diag": 0.7, "max_off_diag": 0.3, "start_step": 10, "min_support": 10}
UNIT = ("mode",)


def judge(p, matrix):
    """`matrix`: {(label, prediction): count}."""
    size = max(max(cell) for cell in matrix) + 1
    if p["category_no"] is not None and size > p["category_no"]:
        return ERROR, ()
    kinds, judged = set(), False
    for i in range(size):
        cells = [matrix.get((i, j) if p["normalize"] == "row" else (j, i), 0) for j in range(size)]
        if sum(cells) >= max(p["min_support"], 1):
            judged = True
            if cells[i] / sum(cells) < p["min_diag"]:
                kinds.add("diagonal")
            if any(count / sum(cells) > p["max_off_diag"] for j, count in enumerate(cells) if j != i):
                kinds.add("off_diagonal")
    if not judged:
        return INSUFFICIENT, ()  # every class has too few samples
    return (HIT, tuple(sorted(kinds))) if kinds else (OK, ())


def evaluate(p, history):
    out = []
    for point in history.points():
        matrix, heard = {}, False
        for by_rank in point.values.values():
            for _, row in by_rank:
                if wants(p, row, ALL_MODES) and (row.name == p["labels"] or row.known.role == "label"):
                    heard = True
                    triples = row.vectors.get(("confusion", ()), ())
                    for label, prediction, count in zip(triples[::3], triples[1::3], triples[2::3]):
                        cell = (int(label), int(prediction))
                        matrix[cell] = matrix.get(cell, 0) + count
        if heard:
            outcome, kinds = judge(p, matrix) if matrix else (INSUFFICIENT, ())
            out.append(Evaluation((("mode", point.mode),), outcome, point.step, kinds))
    return out
