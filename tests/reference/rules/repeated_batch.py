"""52 repeated_batch, ours, per worker: the statistics of its inputs are the same, to the last bit, at `repeats` saved train steps in
a row. `stuck`: at this distance of steps they had changed three times. `one_batch`: from the start, and an evaluation step, or two in a
row that differ, hold more than twice as many elements, and the losses between the saves do not return with their distance."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, selects, wants
from tests.reference.words import is_train

DEFAULTS = {"repeats": 3}
TOCSIN = {}
NEW = True
UNIT = ("mode", "worker")
MODES = ("train", "global", "eval")
NUMBERS = ("global", "train", "eval", "predict")  # of modes on the wire: the order in which a run's end closes them


class Batch:
    """The inputs of one step."""

    def __init__(self, rows):
        columns = [row.columns for row in rows]
        self.numbers = [tuple(one[name] for name in ("count", "sum", "sumsq", "min", "max", "zero", "negative")) for one in columns]
        self.elements = sum(one["count"] for one in columns)
        self.finite = all(one["nan"] + one["posinf"] + one["neginf"] == 0 and math.isfinite(one["sumsq"]) for one in columns)
        self.varies = any(one["min"] != one["max"] for one in columns)
        self.level = (sum(one["sum"] for one in columns) / self.elements, sum(one["sumsq"] for one in columns) / self.elements)


def returns(losses, since, newest, distance):
    """None: too few tell. `losses`: {step: loss}."""
    def bend(step):
        return losses[step] - (losses[step - 1] + losses[step + 1]) / 2

    def known(step):
        return all(one in losses for one in (step - 1, step, step + 1))
    steps = [step for step in range(since + distance + 1, newest) if known(step) and known(step - distance)]
    if len(steps) < 4:
        return None
    now, before = sum(bend(step) ** 2 for step in steps), sum(bend(step - distance) ** 2 for step in steps)
    both = sum(bend(step) * bend(step - distance) for step in steps)
    went = sum((losses[step] - losses[step - distance]) ** 2 for step in steps)
    return both > 0.5 * math.sqrt(now * before) and now > 0.05 ** 2 * went


def judge(p, trained, held, levels, losses):
    """`trained`: (step, batch), newest last; `held`: batches of evaluation steps but those that were the training batch; `levels`:
    of all inputs so far."""
    step, newest = trained[-1]
    row, since = 1, step
    for before, batch in reversed(trained[:-1]):
        if not newest.finite or batch.numbers != newest.numbers:
            break
        row, since = row + 1, before
    if not newest.finite:
        return INSUFFICIENT, ()
    if not newest.varies:
        return NOT_APPLICABLE, ()
    if row == 1:
        return OK, ()
    if row < p["repeats"]:
        return INSUFFICIENT, ()
    steps = [at for at, _ in trained]
    gaps = [after - at for at, after in zip([steps[0], *steps], steps)]
    moves, at = 0, len(steps) - 1
    while at > 0 and gaps[at] == gaps[-1]:
        before, after = trained[at - 1][1], trained[at][1]
        moves += not after.finite or before.numbers != after.numbers
        at -= 1
    if moves >= 3:
        return HIT, ("stuck",)
    most = max([one.elements for one in held] +
               [one.elements + other.elements for one, other in zip(held, held[1:]) if one.numbers != other.numbers], default=0)
    differ = any(abs(a - b) > 1e-9 * max(abs(a), abs(b)) for level in levels for a, b in zip(level, levels[0]))
    if not differ or most <= 2 * newest.elements:
        return NOT_APPLICABLE, ()
    if gaps[-1] == 1:
        return HIT, ("one_batch",)
    round_ = returns(losses, since, step, gaps[-1])
    return (INSUFFICIENT, ()) if round_ is None else (OK, ()) if round_ else (HIT, ("one_batch",))


def in_order(history, rows):
    """(rank, mode, step) as each worker's steps are judged: all up to one that ends, in its mode; at the end the rest."""
    waiting = sorted({(row.rank, row.mode, row.step) for row in rows}, key=lambda one: (one[0], NUMBERS.index(one[1]), one[2]))
    for rank, mode, step, _ in sorted(history.end_places, key=lambda end: end[3]):
        due = [one for one in waiting if one[:2] == (rank, mode) and one[2] <= step]
        waiting = [one for one in waiting if one not in due]
        yield from due
    yield from waiting


def evaluate(p, history):
    rows = [row for row in history.rows if wants(p, row, MODES) and (row.known.role == "loss" or selects(p, row, {"input"}))]
    out, workers = [], {}
    for rank, mode, step in in_order(history, rows):
        known = workers.setdefault(rank, {"trained": [], "held": [], "levels": [], "losses": {}})
        here = sorted((row for row in rows if (row.rank, row.mode, row.step) == (rank, mode, step)), key=lambda row: row.name)
        losses = [row.columns["sum"] for row in here if row.scalar and row.known.role == "loss" and is_train(row.name)]
        if mode != "eval" and losses and all(math.isfinite(one) for one in losses):
            known["losses"][step] = sum(losses) / len(losses)
        inputs = [row for row in here if not row.scalar and row.known.role != "loss" and row.columns["count"] > 0]
        if not inputs:
            continue
        batch = Batch(inputs)
        if batch.finite:
            known["levels"].append(batch.level)
        if mode == "eval":
            newest = known["trained"][-1][1].numbers if known["trained"] else None
            if batch.finite and batch.numbers != newest:
                known["held"].append(batch)
            continue
        known["trained"].append((step, batch))
        outcome, kinds = judge(p, known["trained"], known["held"], known["levels"], known["losses"])
        out.append(Evaluation((("mode", mode), ("worker", f"worker_{rank}")), outcome, step, kinds))
    return out
