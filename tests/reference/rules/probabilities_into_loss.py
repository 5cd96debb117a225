"""Probabilities into a loss that expects logits (ours), per tensor, mode and worker: at `samples` saved steps in a row all
values lie in 0 … 1 and the rows, which run along axis 1, sum to 1 within `tolerance`. A value that is not finite leaves the
row of steps as it is. All modes. Where the ledger of a worker and mode ever had a ceiling, its calls are judged in the place of tensors."""
import math
import re

from tests.reference.judging import ALL_MODES, HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, row_unit, selects, wants

DEFAULTS = {"samples": 3, "tolerance": 1e-3}
TOCSIN = {}
NEW = True  # no counterpart in the original
LOGITS = r"(?i)cross_?entropy[^/]*_input(_0)?$"


def looks_at(p, row):
    own = not p["collection_names"] and not p["tensor_regex"] and re.search(LOGITS, row.name)
    return own or selects(p, row)


def looks_like(p, row):
    """None: nobody can tell. Otherwise whether the rows look like probabilities."""
    if row.columns["nan"] + row.columns["posinf"] + row.columns["neginf"] > 0:
        return None
    shape = row.known.shape
    classes = shape[0] if len(shape) == 1 else shape[1]
    mean_of_rows = row.columns["sum"] * classes / row.columns["count"]
    return row.columns["min"] >= 0 and row.columns["max"] <= 1 and abs(mean_of_rows - 1) <= p["tolerance"]


def judge(p, rows):
    """The newest of `rows`, all that came of one unit."""
    newest = rows[-1]
    if not has_classes(newest):
        return NOT_APPLICABLE
    answers = [answer for answer in (looks_like(p, row) for row in rows if has_classes(row)) if answer is not None]
    if looks_like(p, newest) is None:
        return INSUFFICIENT
    if not answers[-1]:
        return OK
    last = answers[-p["samples"]:]
    return HIT if len(last) == p["samples"] and all(last) else INSUFFICIENT


def has_classes(row):
    shape = row.known.shape
    return row.columns["count"] > 0 and bool(shape) and (shape[0] if len(shape) == 1 else shape[1]) >= 2


def ledger_name(row):
    """(call, field), or nothing."""
    found = re.fullmatch(r"ledger/(.+)/(ceiling|samples|trivial)", row.name)
    return found and found.groups()


def of_ledger(p, history):
    """Evaluations of calls, by the last row of their steps; the steps of (worker, mode) in which a ceiling stands first."""
    steps, out, first = {}, [], {}
    for row in history.rows:
        name = row.scalar and wants(p, row, ALL_MODES) and ledger_name(row)
        if name and name[0] != "plan" and math.isfinite(row.columns["sum"]):
            steps.setdefault((row.worker, row.mode, name[0]), {}).setdefault(row.step, {})[name[1]] = row.columns["sum"]
    for (worker, mode, call), rows in steps.items():
        in_a_row, known = 0, False
        for step, fields in rows.items():
            such = "ceiling" in fields
            if fields.get("samples", 0) <= 0 or not (such or known):
                continue
            known, in_a_row = True, in_a_row + 1 if such else 0
            first[worker, mode] = min(step, first.get((worker, mode), step))
            outcome = OK if not such else HIT if in_a_row >= p["samples"] else INSUFFICIENT
            out.append(Evaluation((("metric", call), ("mode", mode), ("worker", worker)), outcome, step))
    return out, first


def evaluate(p, history):
    own = not p["collection_names"] and not p["tensor_regex"]
    out, first = of_ledger(p, history) if own else ([], {})
    seen = {}
    for row in history.rows:
        if row.scalar or not looks_at(p, row) or not wants(p, row, ALL_MODES):
            continue
        if row.step >= first.get((row.worker, row.mode), math.inf):
            continue
        known = seen.setdefault(row_unit(row), [])
        known.append(row)
        out.append(Evaluation(row_unit(row), judge(p, known), row.step))
    return out
