"""4.7 Does evaluation see the same world? Boosters: ledger/data/…, of several workers the first that sends a number. Other jobs:
ledger/world/… and loss calls, added up (docs/rules/parity.md, docs/ledger.md)."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, selects, wants
from tests.reference.rules.chance_level import widened

DEFAULTS = {"margin": 0.05, "errors": 8, "moved": 0.1, "loss": 0.25, "shifted": False}
TOCSIN = {}
UNIT = ("metric", "mode")
MODES = ("global", "train", "eval")
HEAD = ("batches", "weights", "rows")
FIELDS = (*HEAD, "mean", "square", "mean_squared", "mean_lagged", "square_squared", "square_lagged")


def unlike(p, distance, drift, n, m, cases, log_noise):
    """Whether two samples of n and m lie further apart than allowed, at 0.0005 for so many cases."""
    if n <= 0 or m <= 0:
        return False
    noise = math.sqrt((log_noise + math.log(20)) / (2 * 0.16 * n))
    beyond = distance - p["margin"] - 2 * max(0.0, drift - noise)
    return beyond > 0 and cases - 2 * beyond ** 2 * n * m / (n + m) <= math.log(0.0005)


def judge(p, name, data):
    training = name == "train" or data.get("same", 0) > 0
    columns = data.get("column_distance", {})
    kinds = []
    if training:
        if "stops" not in data:
            return NOT_APPLICABLE, ()
        return (HIT, ("stops_on_training",)) if data["stops"] > 0 else (OK, ())
    if "target_distance" in data:
        classes = data.get("target_classes", 0)
        cases = classes * math.log(2) if classes > 0 else 1
        if unlike(p, data["target_distance"], data.get("target_drift", 0), data.get("target_train", 0), data.get("target_read", 0), cases, cases):
            kinds.append("targets")
    if columns:
        worst = min(columns, key=lambda column: (-columns[column], column))
        if unlike(p, columns[worst], data.get("column_drift", {}).get(worst, 0), data.get("column_train", 0), data.get("column_read", 0),
                  1 + math.log(max(data.get("columns", 0), 1)), 1):
            kinds.append("inputs")
    if "target_distance" not in data and not columns:
        return INSUFFICIENT, ()
    return (HIT, tuple(kinds)) if kinds and not p["shifted"] else (OK, ())


# --- training and evaluation by batches ------------------------------------------------------------

def group_of(unit):
    return "/".join(unit.split("/")[:2])


def block_mean(entries, column):
    """(mean, its error, weight) of the newer half of the entries (weight, mean, square), in 32 blocks; None: fewer than 32."""
    length = 1
    while 64 * length < len(entries):
        length *= 2
    blocks = [entries[i:i + length] for i in range(0, len(entries), length)][-32:]
    if len(blocks) < 32:
        return None
    y = [sum(entry[column] for entry in block) / sum(entry[0] for entry in block) for block in blocks]
    mean = sum(y) / 32
    return mean, math.sqrt(widened([one - mean for one in y]) / 31 / 32), sum(entry[0] for block in blocks for entry in block)


class Unit:
    def __init__(self):
        self.entries, self.batches, self.rows = [], 0, 0
        self.seen = dict.fromkeys(FIELDS, 0.0)
        self.gap = None  # (mean, errors, deviation, errors) or None

    def errors(self, difference, known, field):
        if difference == 0:
            return 0
        _, error, weight = known
        seen, batches = self.seen, self.seen["batches"]
        n = max(batches ** 2 / seen["weights"] if seen["weights"] > 0 else batches, 1)
        rows, usual = seen["rows"] / batches, self.rows / self.batches
        other = error ** 2 * weight / n * max(usual / rows if rows > 0 else 1, 1 / 32 if n < 8 else 1)
        if n >= 8:
            mean = seen[field] / batches
            spread = seen[field + "_squared"] / batches - mean ** 2
            if spread > 0:
                alike = (seen[field + "_lagged"] / batches - mean ** 2) / spread
                alike = min(max(alike + (1 + 4 * alike) / n + 0.75 / math.sqrt(n), 0), 0.9)
                other = max(other, spread * (1 + alike) / (1 - alike) / (n - 1))
        both = math.sqrt(error ** 2 + other)
        return min(1e6, abs(difference) / both) if both > 0 else 1e6

    def compare(self, label):
        self.gap = None
        means, squares, batches = block_mean(self.entries, 1), block_mean(self.entries, 2), self.seen["batches"]
        if means is None or not batches > 0:
            return
        at, there = self.seen["mean"] / batches, self.seen["square"] / batches
        if label:
            self.gap = at - means[0], self.errors(at - means[0], means, "mean"), 1, 0
            return
        deviation = math.sqrt(max(0.0, squares[0] - means[0] ** 2))
        if deviation > 1e-6 * abs(means[0]):
            self.gap = ((at - means[0]) / deviation, self.errors(at - means[0], means, "mean"),
                        math.sqrt(max(0.0, there - at ** 2)) / deviation, self.errors(there - squares[0], squares, "square"))
        elif squares[0] <= 0 and there <= 0:
            self.gap = 0, 0, 1, 0


def moved(p, gap, times):
    return gap[1] > p["errors"] and abs(gap[0]) > times * p["moved"]


def scaled(p, gap, times):
    return gap[3] > p["errors"] and abs(gap[2] - 1) > times * p["moved"]


def size(p, gap):
    """How far a unit is off, to find the worst of its group."""
    return max(abs(gap[0]) if moved(p, gap, 1) else 0, abs(math.log(gap[2])) if scaled(p, gap, 1) and gap[2] > 0 else
               math.inf if scaled(p, gap, 1) else 0)


class Loss:
    """Of one call: (samples, loss, trivial) per step."""

    def __init__(self):
        self.steps, self.seen = [], (0, 0, 0)
        self.passes, self.worse, self.waits, self.first_epoch, self.reversed = 0, 0, 0, False, False

    def around(self):
        newest = self.steps[-32:]
        samples = sum(one[0] for one in newest)
        mean = sum(one[1] for one in newest) / samples
        wide = widened([(one[1] - mean * one[0]) / (samples / 32) for one in newest]) / 31
        return mean, math.sqrt(wide / 32), sum(one[2] for one in newest) / samples, wide * samples / 32

    def judge(self, p, first_epoch):
        samples, loss, trivial = self.seen
        if not samples > 0 or len(self.steps) < 32:
            return
        mean, error, constant, variance = self.around()
        here, constant = loss / samples, max(constant, trivial / samples)
        error = math.sqrt(error ** 2 + variance / samples)
        highest = max(sum(one[1] for one in self.steps[i:i + 32]) / sum(one[0] for one in self.steps[i:i + 32])
                      for i in range(0, len(self.steps) - 31, 32))
        far = (here - mean > p["errors"] * error and here - mean > p["loss"] * constant and here > constant
               and here > max(highest, 0))
        self.passes += 1
        self.worse = self.worse + 1 if far and (first_epoch or self.worse) else 0
        if self.passes > 1 and not self.worse:
            return
        self.first = here, error, mean, constant
        if self.passes == 1:
            self.first_epoch, self.waits = first_epoch, 32

    def follow(self, p, times):
        """Whether it is known from this step on what training had behind the first evaluation."""
        if not self.waits:
            return False
        self.waits -= 1
        if self.waits or not self.first_epoch:
            return False
        here, error, before, constant = self.first
        least = min(before, self.around()[0])
        self.reversed = least - here > p["errors"] * error and least - here > p["loss"] * constant and 2 * times * here < least
        return True

    def answer(self, averages):
        if self.worse >= (2 if averages else 1):
            return HIT, ("loss",)
        if self.reversed:
            return HIT, ("reversed",)
        return (OK if self.passes and self.first_epoch else INSUFFICIENT), ()


class Run:
    def __init__(self, p):
        self.p, self.units, self.losses = p, {}, {}
        self.passes, self.averages, self.repeats = [], False, False  # passes: [(updates, how many)]
        self.at, self.open = None, False

    def times(self):
        return 1 if self.repeats else 3

    def first_epoch(self):
        """At the newest evaluation."""
        second = [updates for updates, number in self.passes if number > 1]
        return any(number > 0 for _, number in self.passes) and (not second or second[0] > self.at)

    def judge_pass(self):
        """[(metric, outcome, kinds)]"""
        p, out, groups = self.p, [], {}
        self.open = False
        for name, unit in self.units.items():
            unit.compare(name.startswith("class/"))
            groups.setdefault(group_of(name), []).append(unit)
        alike = True
        for name in sorted(groups):
            units = groups[name]
            known = [unit.gap for unit in units if unit.gap is not None]
            if not any(unit.seen["batches"] > 0 for unit in units):
                continue
            if name.startswith("class/"):
                far = sum(abs(gap[0]) for gap in known) / 2 > p["moved"] and max(gap[1] for gap in known) > p["errors"] if known else False
            else:
                times = 1 if name.startswith("target/") else self.times()
                worst = max(known, key=lambda gap: size(p, gap), default=None)
                far = worst is not None and (moved(p, worst, times) or scaled(p, worst, times))
            kind = "inputs" if name.startswith("input/") else "targets"
            if kind == "inputs":
                alike = alike and bool(known) and not far
            out.append((f"ledger/world/{name}", INSUFFICIENT if not known else HIT if far else OK, (kind,) if far else ()))
        for call in sorted(self.losses):
            loss = self.losses[call]
            if loss.seen[0] > 0:
                loss.judge(p, alike and self.first_epoch())
                out.append((call, *loss.answer(self.averages)))
        return out

    def train(self, units, calls, more, updates):
        out = self.judge_pass() if self.open else []
        self.passes.append((updates, more.get("passes", 0)))
        self.averages = self.averages or more.get("averages", 0) > 0
        for name, sums in sorted(units.items()):
            if name not in self.units and len(self.units) == 64:
                continue
            unit = self.units.setdefault(name, Unit())
            if sums["batches"] > 0:
                unit.batches += sums["batches"]
                unit.rows += sums["rows"]
                unit.entries.append((sums["batches"], sums["mean"], sums["square"]))
        for name, call in sorted(calls.items()):
            loss = self.losses.setdefault(name, Loss())
            loss.steps.append(call)
            if loss.follow(self.p, self.times()):
                out.append((name, *loss.answer(self.averages)))
        return out

    def evaluate(self, units, calls, more, at, whole):
        out = []
        if at != self.at:
            out += self.judge_pass() if self.open else []
            for unit in self.units.values():
                unit.seen = dict.fromkeys(FIELDS, 0.0)
            for loss in self.losses.values():
                loss.seen = (0, 0, 0)
            self.at = at
        for name, sums in units.items():
            if name in self.units:
                self.open = True
                for field in FIELDS:
                    self.units[name].seen[field] += sums[field]
        for name, call in calls.items():
            if name in self.losses:
                self.open = True
                self.losses[name].seen = tuple(a + b for a, b in zip(self.losses[name].seen, call))
        out += self.judge_pass() if self.open and whole else []
        self.passes.append((at + 1, more.get("passes", 0)))
        return out


def read(rows):
    """({unit: {field: sum}}, {call: (samples, loss, trivial)}, {name: number}, whether the step holds a whole pass)"""
    units, heads, calls, more, told, whole = {}, {}, {}, {}, set(), False
    for rank, row in rows:
        value = row.columns["sum"]
        if not row.name.startswith("ledger/") or not math.isfinite(value):
            continue
        path, _, field = row.name[7:].rpartition("/")
        if field == "calls":
            whole = whole or (row.name, rank) in told
            told.add((row.name, rank))
        if path == "world":
            more[field] = max(more.get(field, 0), value)
        elif path.startswith("world/") and field in FIELDS:
            sums = (heads if field in HEAD else units).setdefault(path[6:], dict.fromkeys(FIELDS, 0.0))
            sums[field] += value
        elif path and field in ("samples", "loss", "trivial"):
            numbers = calls.setdefault(path, {}).setdefault(field, [])
            numbers.append(value)
    for unit, sums in units.items():
        for field in HEAD:
            sums[field] += heads.get(group_of(unit), {}).get(field, 0.0)
    known = {}
    for call, fields in calls.items():
        count = {len(fields.get(field, ())) for field in ("samples", "loss", "trivial")}
        if len(count) == 1 and count != {0} and sum(fields["samples"]) > 0:
            known[call] = tuple(sum(fields[field]) for field in ("samples", "loss", "trivial"))
    return units, known, more, whole


def evaluate(p, history):
    out, run = [], Run(p)
    for point in as_judged(history.points()):
        rows = [(rank, row) for _, by_rank in sorted(point.values.items()) for rank, row in by_rank
                if row.scalar and wants(p, row, MODES) and (
                    (row.name.startswith("ledger/data/") or row.known.role == "ledger")
                    if not p["collection_names"] and not p["tensor_regex"] else selects(p, row))]
        if not rows:
            continue
        said = []
        if point.mode != "eval":
            said += boosters(p, rows, run)
        if not p["shifted"] and point.mode in ("train", "eval"):
            units, calls, more, whole = read(rows)
            if point.mode == "train":
                said += run.train(units, calls, more, point.step + 1)
            else:
                said += run.evaluate(units, calls, more, point.train_step + 1, whole)
        out += [Evaluation((("metric", metric), ("mode", point.mode)), outcome, point.step, kinds or ("",)) for metric, outcome, kinds in said]
    return out


def as_judged(points):
    """An evaluation is complete when the training step behind it is."""
    out, waiting = [], []
    for point in points:
        if point.mode == "train":
            out += [point, *waiting]
            waiting = []
        else:
            waiting.append(point)
    return out + waiting


def boosters(p, rows, run):
    sets = {}
    for _, row in rows:
        parts, value = row.name.split("/"), row.columns["sum"]
        if parts[:2] != ["ledger", "data"] or len(parts) < 4 or not math.isfinite(value):
            continue
        data = sets.setdefault(parts[2], {})
        if len(parts) == 4:
            data.setdefault(parts[3], value)
        else:
            data.setdefault(parts[3], {}).setdefault("/".join(parts[4:]), value)
    for data in sets.values():
        if data.get("train_compared", 0) > 0 and data.get("train_repeats", 0) >= 0.9 * data["train_compared"]:
            run.repeats = True
    return [(f"ledger/data/{name}", *judge(p, name, data)) for name, data in sorted(sets.items())]
