"""2.6 SimilarAcrossRuns: tensors and scalars of equal name, mode, mode step and worker in two runs. A step is judged when it is
over in both; what the other run has not reached when this one ends is not judged."""
import math

from tests.reference.judging import ALL_MODES, HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, row_unit, selects, wants

DEFAULTS = {"other_trials": "", "rtol": 1e-5, "atol": 1e-8, "equal_nan": True, "missing": "ignore"}
TOCSIN = {}


def steps(p, history):
    """{(rank, mode, step): {name: row}} of what is selected."""
    out = {}
    for row in history.rows:
        if selects(p, row) and wants(p, row, ALL_MODES):
            out.setdefault((row.rank, row.mode, row.step), {})[row.name] = row
    return out


def over(history, rank, mode, step):
    """Place of the record with which the worker ended the step, at the latest that with which the run ended."""
    ended = [place for who, what, number, place in history.end_places if (who, what) == (rank, mode) and number >= step]
    return min([*ended, history.over])


def numbers(row):
    c = row.columns
    n = c["count"]
    return {"min": c["min"], "max": c["max"], "mean": c["sum"] / n, "std": math.sqrt(c["m2"] / n) if c["m2"] >= 0 else math.nan,
            "l2": math.sqrt(c["sumsq"])} if n else {}


def likeness(p, here, there):
    """same (proven), similar (by the statistics), different."""
    a = here.columns
    digests = [row.statistics.get(("digest", ())) for row in (here, there)]
    if differs(p, here, there):
        return "different"
    return "same" if a["count"] == 1 or (None not in digests and digests[0] == digests[1]) else "similar"


def differs(p, here, there):
    a, b = here.columns, there.columns
    if a["count"] != b["count"] or (here.known.shape and there.known.shape and here.known.shape != there.known.shape):
        return True
    if a["nan"] != b["nan"] or (a["nan"] and not p["equal_nan"]) or (a["posinf"], a["neginf"]) != (b["posinf"], b["neginf"]):
        return True
    digests = [row.statistics.get(("digest", ())) for row in (here, there)]
    if None not in digests and digests[0] == digests[1]:
        return False
    if None not in digests and p["rtol"] == p["atol"] == 0 and here.dtype == there.dtype:
        return True
    other = numbers(there)
    for name, x in numbers(here).items():
        y = other[name]
        if x == y or (math.isnan(x) and math.isnan(y)):
            continue
        if not math.isfinite(x) or not math.isfinite(y):
            if math.isnan(x) or math.isnan(y):
                continue  # a number is missing, not different: the counts above have said so
            return True
        if abs(x - y) > p["atol"] + p["rtol"] * abs(y):
            return True
    return False


def evaluate(p, history):
    if history.other is None:
        return []
    mine, theirs, out = steps(p, history), steps(p, history.other), []
    for key, rows in mine.items():
        rank, mode, step = key
        when = max(over(history, *key), over(history.other, *key))
        if when > history.over or when == math.inf:
            out.append((math.inf, step, Evaluation((), INSUFFICIENT, step)))
            continue
        if key not in theirs:
            out.append((when, step, Evaluation((), NOT_APPLICABLE, step)))
            continue
        for name, row in rows.items():
            if name in theirs[key]:
                hit = differs(p, row, theirs[key][name])
                out.append((when, step, Evaluation(row_unit(row), HIT if hit else OK, step)))
        alone = [row for name, row in rows.items() if name not in theirs[key]] + [
            row for name, row in theirs[key].items() if name not in rows]
        for row in alone:
            hit = p["missing"] == "hit"
            out.append((when, step, Evaluation(row_unit(row), HIT if hit else NOT_APPLICABLE, step, ("missing",))))
    return [one for _, _, one in sorted(out, key=lambda entry: entry[:2])]


def tells(p, history):
    if history.other is None:
        return {}
    mine, theirs = steps(p, history), steps(p, history.other)
    reached = {key for key in mine if max(over(history, *key), over(history.other, *key)) <= history.over}
    both = reached & set(theirs)
    out = {"steps_compared": len(both), "steps_only_here": len(reached - set(theirs)), "steps_not_reached": len(set(mine) - reached)}
    for kind in ("same", "similar", "different"):
        out[kind] = sum(likeness(p, row, theirs[key][name]) == kind for key in both for name, row in mine[key].items()
                        if name in theirs[key])
    out["in_one_run_only"] = sum(len(set(mine[key]) ^ set(theirs[key])) for key in both)
    only = 0
    for rank, mode in {key[:2] for key in reached}:
        own = [key[2] for key in reached if key[:2] == (rank, mode)]
        only += sum(min(own) <= key[2] <= max(own) and key not in both for key in theirs if key[:2] == (rank, mode))
    out["steps_only_there"] = only
    return out
