"""4.1 Confusion: the matrix of a step (those of the workers added up): of a true class too few are right (`diagonal`), or too
many go to one other class (`off_diagonal`); normalised by rows, or by columns. From the vector `confusion`: label, prediction,
count, as triples."""
from tests.reference.judging import ALL_MODES, ERROR, HIT, INSUFFICIENT, OK, ROLES, Evaluation, wants

DEFAULTS = {"category_no": None, "labels": "labels", "predictions": "predictions", "labels_collection": "labels",
            "predictions_collection": "predictions", "min_diag": 0.9, "max_off_diag": 0.1, "normalize": "row", "min_support": 1,
            "decision_threshold": 0.5, "contrast": 0, "in_a_row": 1, "ignore_labels": ()}
TOCSIN = {"min_diag": 0.7, "max_off_diag": 0.3, "start_step": 10, "min_support": 10, "contrast": 0.7, "in_a_row": 3}
UNIT = ("mode",)


def stands_out(p, matrix, i, cells):
    """Whether the samples of the other classes are mostly right, and those of class i are not."""
    if p["contrast"] == 0:
        return True
    rest, good = sum(matrix.values()) - sum(cells), sum(count for (a, b), count in matrix.items() if a == b) - cells[i]
    return rest > 0 and good / rest >= p["min_diag"] and cells[i] / sum(cells) < p["contrast"] * (good / rest)


def judge(p, matrix, memory):
    """`matrix`: {(label, prediction): count}; `memory`: {class: shares right at the steps in a row at which it was mistaken}."""
    size = max(max(cell) for cell in matrix) + 1
    if p["category_no"] is not None and size > p["category_no"]:
        return ERROR, ()
    kinds, judged = set(), False
    for i in range(size):
        cells = [matrix.get((i, j) if p["normalize"] == "row" else (j, i), 0) for j in range(size)]
        if sum(cells) >= max(p["min_support"], 1):
            judged, found = True, set()
            if cells[i] / sum(cells) < p["min_diag"]:
                found.add("diagonal")
            if any(count / sum(cells) > p["max_off_diag"] for j, count in enumerate(cells) if j != i):
                found.add("off_diagonal")
            if not found or not stands_out(p, matrix, i, cells):
                memory.pop(i, None)
                continue
            memory[i] = [*memory.get(i, []), cells[i] / sum(cells)][-p["in_a_row"]:]
            if p["in_a_row"] == 1 or (len(memory[i]) == p["in_a_row"] and memory[i][-1] < memory[i][0] + 0.1):
                kinds |= found
    if not judged:
        return INSUFFICIENT, ()  # every class has too few samples
    return (HIT, tuple(sorted(kinds))) if kinds else (OK, ())


def belongs(p, row):
    """By name, or in one of the two collections: a built-in one by the role, any by what its producer says."""
    names = (p["labels_collection"], p["predictions_collection"])
    return (row.name in (p["labels"], p["predictions"])
            or any(row.known.role in ROLES.get(name, ()) or name in row.known.collections for name in names))


def triples_of(p, row):
    """None: the row has no matrix."""
    plain = row.vectors.get(("confusion", ()))
    return plain if p["decision_threshold"] == 0.5 else row.vectors.get(("confusion", (p["decision_threshold"],)), plain)


def rows_of(p, point):
    """(of each worker the row with a matrix: by name, else the first by name; whether there was any row)."""
    rows = [row for by_rank in point.values.values() for _, row in by_rank if wants(p, row, ALL_MODES) and belongs(p, row)]
    best = {}
    for row in rows:
        place = (0 if row.name == p["labels"] else 1 if row.name == p["predictions"] else 2, row.name)
        if triples_of(p, row) is not None and (row.worker not in best or place < best[row.worker][0]):
            best[row.worker] = place, row
    return [row for _, row in best.values()], bool(rows)


def evaluate(p, history):
    out, memories = [], {}
    for point in history.points():
        matrix = {}
        rows, heard = rows_of(p, point)
        for row in rows:
            triples = triples_of(p, row)
            for label, prediction, count in zip(triples[::3], triples[1::3], triples[2::3]):
                if label in p["ignore_labels"]:
                    continue
                cell = (int(label), int(prediction))
                matrix[cell] = matrix.get(cell, 0) + count
        if heard:
            outcome, kinds = judge(p, matrix, memories.setdefault(point.mode, {})) if matrix else (INSUFFICIENT, ())
            out.append(Evaluation((("mode", point.mode),), outcome, point.step, kinds))
    return out
