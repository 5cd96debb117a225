"""What could be told in time at all: whether a faulty run's captured statistics leave those of the healthy runs of its job.

Knows more than any rule does: how other runs of the same job went at the same step. What it does not see, no rule of these statistics can tell;
what it sees, a rule that knows one run alone may not. Compared are, per saved step: the mean of each logged training value, mean and mean square
of inputs and labels, norms of weights, their updates and gradients. Not compared: activations, confusion, evaluations, states of modules."""
import collections
import math

from bench.detection.record import known
from bench.detection.report import beyond, delay, table
from tocsin import reading

LEAST = 8     # healthy runs that a statistic must be known of
WINDOW = 5    # saved steps


def _size(value):
    return math.log(max(abs(value), 1e-30)) if math.isfinite(value) else 99.0


def _statistics(row, every):
    """[((name, saved step), value)] of one row in training."""
    place = row["step"] // every
    if "value" in row:
        return [(("value " + row["name"], place), _size(row["value"]))]
    count, role = max(row["count"], 1), row.get("role")
    if role in ("input", "label"):
        mean = row["sum"] / count
        return [(("mean " + row["name"], place), mean if math.isfinite(mean) else 1e9),
                (("square " + row["name"], place), _size(row["sumsq"] / count)), (("count " + row["name"], place), count)]
    if role not in ("weight", "gradient"):
        return []
    out = [((role + " " + row["name"], place), _size(row["l2"] / math.sqrt(count)))]
    if role == "weight" and row.get("prev_l2"):
        gone = max(row["step"] - row["delta_from_step"], 1)
        out.append((("update " + row["name"], place), _size(row["delta_l2"] / row["prev_l2"] / gone)))
    return out


def _read(folder):
    """{run: {(name, saved step): mean value}}"""
    every = {note["run"]: note["every"] for note in known(folder)}
    sums = {run: collections.defaultdict(list) for run in every}
    for row in reading.Tensors(str(folder / "journal")).get():
        if row["mode"] != "eval" and row["run"] in every:
            for key, value in _statistics(row, every[row["run"]]):
                sums[row["run"]][key].append(value)
    return {run: {key: sum(values) / len(values) for key, values in found.items()} for run, found in sums.items()}


def _leaves(run, start, end, found, healthy):
    """Whether a statistic lies beyond those of the healthy runs by as much as these lie apart."""
    for key, value in found[run].items():
        others = [found[one][key] for one in healthy if one != run and key in found[one]] if start <= key[1] <= end else []
        if len(others) < LEAST:
            continue
        low, high = min(others), max(others)
        apart = max(high - low, 0.02 * max(abs(low), abs(high)), 1e-9)
        if not low - apart <= value <= high + apart:
            return True
    return False


def visible(folder, runs, default):
    """Table of the runs (report.Run) below a folder, and how many healthy ones leave the others (count, of)."""
    rows, alarmed, whole = collections.defaultdict(lambda: [0, 0, 0, 0, 0]), 0, 0
    twins = {(run.job, run.seed): run for run in runs if run.fault is None}
    for job in sorted({run.job for run in runs}):
        found = _read(folder / job)
        healthy = [run.run for run in runs if run.job == job and run.fault is None]
        for run in (one for one in runs if one.job == job):
            if run.fault is None:
                whole, alarmed = whole + 1, alarmed + _leaves(run.run, 0, WINDOW, found, healthy)
                continue
            if not run.came_about or (job, run.seed) not in twins:
                continue
            limit = max(WINDOW, 0.1 * run.steps / run.every) if run.slow else WINDOW
            first = run.onset // run.every
            told = beyond(run, twins[job, run.seed], "tocsin", default)
            quick = bool(told) and delay(run, told) <= limit
            seen = _leaves(run.run, first, first + int(limit), found, healthy)
            for at, one in enumerate((True, bool(told), quick, seen, seen or quick)):
                rows[run.fault][at] += one
    lines = [[f"`{fault}`", *counts] for fault, counts in sorted(rows.items())]
    lines.append(["all", *(sum(counts[at] for counts in rows.values()) for at in range(5))])
    return table(["Fault", "runs", "told", "told in time", "statistics leave the healthy ones' in time", "told in time, or could be"], lines), (alarmed, whole)
