"""4.4 movement (detection principles): does what may move move, and does it go down the loss. Mean cosines by products of
1 + stake · gain against the mean that H0 holds, the mean of four stakes; a loss that is no better than a constant and will not be as
chance_level has it. See docs/rules/movement.md."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, OK, TRAINING, Evaluation, wants
from tests.reference.rules import chance_level

DEFAULTS = {"uphill": 0.0, "against": 0.3, "along": 0.9, "still": 0.001, "alpha": 0.0005}
TOCSIN = {}
NEW = True
UNIT = ("metric", "mode")
ROOM = "ledger/movement/"
STAKES = (0.1, 0.2, 0.45, 0.9)
MOST_CALLS = 8


def rejects(p, numbers, most):
    """Whether they speak against a mean of at most `most`."""
    logs = [math.fsum(math.log1p(stake * max(-1.0, (x - most) / (1 + most))) for x in numbers) - math.log(len(STAKES)) for stake in STAKES]
    return chance_level.log_sum(*logs) >= -math.log(p["alpha"])


def within(x):
    return min(max(x, -1.0), 1.0)


class Run:
    """In one mode."""

    def __init__(self):
        self.cosines, self.turns, self.climbed = [], [], 0.0
        self.zero, self.rate, self.calls, self.judged = 0, 0.0, {}, 0
        self.slow, self.paid = {}, []  # name -> shares at its words; (loss, pay, updates)
        self.times = {"updates": 0, "planned": 0, "rate": 0, "rate_at": 0}

    def learns_nothing(self):
        return not any(call.knows for call in self.calls.values()) and any(call.short_of for call in self.calls.values())


def pays(p, run):
    """Whether updates pay, at a look of the losses that were looked at; None: not known. Lines through 32 blocks of the newer half."""
    entries, look = run.paid, math.log2(len(run.paid) / 64) + 1
    losses, promises = ([(1, entry[i], 1, entry[2]) for entry in entries] for i in (0, 1))
    line = chance_level.Mean(chance_level.blocks_of(losses)[-32:], 0)
    spent = p["alpha"] * 2 ** -look
    places = [block[4] / block[0] for block in chance_level.blocks_of(losses)[-32:]]
    length = (places[-1] - places[0]) * len(places) / (len(places) - 1)
    promised = -chance_level.Mean(chance_level.blocks_of(promises)[-32:], 0).bound(spent, 1) * length
    if promised <= max(10, 2 * chance_level.quantile(spent, 30)) * line.slope_error * length:
        return None
    return -line.slope * length >= 0.01 * promised


def answers(p, run, fields, counts, rates, words):
    """[(what is judged, its outcome, the kind of a hit)] of a step."""
    out = []
    if "trainable" in counts:
        run.zero = fields.get("zero", 0)
        out.append(("parameters", HIT if run.zero > 0 else OK, "never"))
    if "stands_for" in counts or any(rate < 0 for rate in rates[:1]):
        up = run.rate < 0 or (run.climbed > 0 and rejects(p, run.cosines, p["uphill"]))
        down = run.climbed < 0 and rejects(p, [-x for x in run.cosines], -p["uphill"])
        out.append(("updates", HIT if up else OK if down else INSUFFICIENT, "uphill"))
    if "turned" in counts:
        back = [-x for x in run.turns]
        if run.learns_nothing() and rejects(p, back, p["against"]):
            out.append(("gradients", HIT, "oscillates"))
        elif run.learns_nothing() and rejects(p, run.turns, p["along"]):
            out.append(("gradients", HIT, "crawls"))
        else:
            well = rejects(p, run.turns, -p["against"]) and rejects(p, back, -p["along"])
            out.append(("gradients", OK if well else INSUFFICIENT, "oscillates"))
    if "compared" in counts:
        for name, share in words:
            if name in run.slow or len(run.slow) < 32:
                run.slow.setdefault(name, []).append(share)
        for name, shares in sorted(run.slow.items()):
            out.append((name, HIT if len(shares) >= 3 and all(share < p["still"] for share in shares[-3:]) else OK, "still"))
        if not run.slow:
            out.append(("tensors", OK if fields["compared"] > 0 else INSUFFICIENT, "still"))
    if len(run.paid) >= 64 and len(run.paid) != run.judged and math.log2(len(run.paid) / 64) == int(math.log2(len(run.paid) / 64)):
        run.judged, paid = len(run.paid), pays(p, run)
        none = paid is False and run.learns_nothing()
        out.append(("pay", HIT if none else OK if paid else INSUFFICIENT, "no_pay"))
    return out


def take(run, fields, counts):
    gradient, update, along = (fields.get(name, 0) for name in ("gradient", "update", "along"))
    if counts.get("stands_for") and gradient > 0 and update > 0:
        run.cosines.append(within(along / math.sqrt(gradient) / math.sqrt(update)))
        run.climbed += along * max(1.0, fields["stands_for"] / counts["stands_for"])
    if counts.get("turned"):
        run.turns.append(within(fields["turned"] / counts["turned"]))


def evaluate(p, history):
    out, runs = [], {}
    for point in history.points():
        rows = [row for by_rank in point.values.values() for _, row in by_rank
                if row.scalar and wants(p, row, TRAINING) and (row.known.role == "ledger" or row.name == "learning_rate")]
        if not rows:
            continue
        run = runs.setdefault(point.mode, Run())
        fields, counts, words = {}, {}, []
        for row in rows:
            value = row.columns["sum"]
            if row.name.startswith(ROOM) and math.isfinite(value):
                field = row.name[len(ROOM):]
                if field.startswith("slow/"):
                    words.append((field[len("slow/"):], value))
                fields[field], counts[field] = fields.get(field, 0) + value, counts.get(field, 0) + 1
        calls, planned = chance_level.calls_of(rows)
        run.times["planned"] = run.times["planned"] if planned is None else planned
        run.times["updates"] = point.step + 1
        rates = sorted((row.columns["sum"] for row in rows if row.name == "learning_rate" and math.isfinite(row.columns["sum"])), reverse=True)
        if rates:
            run.rate = rates[0]
            if run.rate > run.times["rate"]:
                run.times.update(rate=run.rate, rate_at=run.times["updates"])
        for name, call in sorted(calls.items()):
            if not chance_level.adversarial(call) and (name in run.calls or len(run.calls) < MOST_CALLS):
                run.calls.setdefault(name, chance_level.Course()).train(chance_level.DEFAULTS, call, run.times)
        told = [call for call in calls.values() if call.get("samples", 0) > 0 and "loss" in call]
        if counts.get("pays", 0) >= max(1, counts.get("turned", 0)) and len(told) == 1:
            run.paid.append((told[0]["loss"] / told[0]["samples"], fields["pays"], point.step + 1))
        take(run, fields, counts)
        for metric, outcome, kind in answers(p, run, fields, counts, rates, words):
            out.append(Evaluation((("metric", metric), ("mode", point.mode)), outcome, point.step, (kind,)))
    return out
