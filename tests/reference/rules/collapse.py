"""4.3 does the output depend on the input? Judged from the scalars `ledger/<call>/<field>` (docs/ledger.md), added up over workers, per call
and mode. See docs/rules/collapse.md."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, wants
from tests.reference.rules import chance_level as pairing

DEFAULTS = {"spread": 1e-6, "share": 0.55, "skill": 0.02, "alpha": 0.001}
TOCSIN = {}
NEW = True
UNIT = ("metric", "mode")


def betting(factors):
    """ln of the mean of four products of 1 + bet · factor."""
    return pairing.log_sum(*(sum(math.log1p(bet * x) for x in factors) for bet in (0.1, 0.2, 0.45, 0.9))) - math.log(4)


def too_low(shares, p):
    return betting([(p - share) / (1 - p) for share in shares])


def too_high(shares, p):
    return betting([(share - p) / p for share in shares])


def shares_of(steps):
    return [step["wins"] / step["pairs"] for step in steps if step["pairs"] > 0]


def alike(steps):
    """Other answers are a hundredth of other labels at most."""
    labels = sum(step["other_labels"] for step in steps)
    return labels > 0 and sum(step["other_answers"] for step in steps) <= 0.01 * labels


def one_answer(steps, alpha):
    return alike(steps) and sum(step["other_labels"] for step in steps) * 0.94394829814 >= -math.log(alpha)


def pairs_of(steps):
    return sum(step["wins"] for step in steps), sum(step["pairs"] for step in steps)


def skill_of(steps):
    """Of the steps whose loss can be compared; NaN where there is none."""
    return pairing.skill_of((0, sum(step["gain"] for step in steps if "gain" in step), sum(step["unit"] for step in steps if "unit" in step)))


def answers_of(call, updates):
    if "answers" not in call or "labels" not in call or call.get("samples", 0) <= 0:
        return None
    pairs = call.get("pairs", 0)
    out = {"pairs": pairs, "wins": min(call.get("wins", 0), pairs), "other_answers": max(0, call["samples"] - call["answers"]),
           "other_labels": max(0, call["samples"] - call["labels"])}
    if call["comparable"]:
        out.update(gain=call["trivial"] - call["loss"], unit=call["trivial"], samples=call["samples"], at=updates)
    return out


def end_of(run, updates):
    return max(run["planned"], updates) if run["planned"] > 0 else 2 * updates


class Answers:
    """Of one call in training."""

    def __init__(self):
        self.steps, self.looks = [], [0]        # looks: steps at each
        self.standing = self.knows = self.short_of = False
        self.ordered, self.fall, self.unbroken, self.told = [], [], [], []

    def add(self, p, call, run):
        step = answers_of(call, run["updates"])
        if step is None:
            return
        self.steps.append(step)
        self.unbroken.append(step)
        if not alike(self.unbroken):
            self.unbroken = []
        self.fall.append(step)
        self.ordered.append(step)
        if step["pairs"] > 0 and too_high(shares_of(self.ordered), p["share"]) >= -math.log(p["alpha"]):
            if not self.knows:
                self.fall = [{key: step[key] for key in ("gain", "unit") if key in step} | {"pairs": 0, "wins": 0}]
            self.knows, self.standing, self.ordered = True, False, []
        compared = [one for one in self.steps if "gain" in one]
        if "gain" in step and len(compared) >= 64 and math.log2(len(compared)) % 1 == 0:
            self.look(p, compared, run)
        if self.standing:
            self.told.append(step)
            self.standing = alike(self.told)
        elif self.is_still_without_order(p, compared):
            self.tell(self.steps[self.looks[-2] if len(self.looks) > 1 else 0:])
        elif (self.knows and one_answer(self.unbroken, p["alpha"]) and skill_of(self.fall) < p["skill"]
              and too_low(shares_of(self.fall), p["share"]) >= math.log(max(end_of(run, run["updates"]), 1) / p["alpha"])):
            self.tell(self.unbroken)
        if too_low(shares_of(self.fall), p["share"]) <= 0:
            self.fall = []

    def tell(self, steps):
        self.standing, self.knows, self.told, self.ordered = True, False, list(steps), []

    def look(self, p, compared, run):
        blocks = pairing.blocks_of([(one["samples"], one["gain"], one["unit"], one["at"]) for one in compared])[-32:]
        samples, _, unit = pairing.sums(blocks)
        number = math.log2(len(compared) / 64) + 1
        self.short_of = False
        if unit > 0:
            mean = pairing.Mean(blocks, p["skill"])
            warm = blocks[0][4] / blocks[0][0] >= run["rate_at"]
            self.short_of = (warm and mean.bound(p["alpha"] * 2 ** -number, 1) < 0
                             and mean.stays_below(end_of(run, run["updates"]), p["skill"] * unit / samples))
        # What came with the look belongs to the window before it but for its own pairs: the step is counted once.
        self.looks.append(len(self.steps))

    def is_still_without_order(self, p, compared):
        since = self.steps[self.looks[-2] if len(self.looks) > 1 else 0:]
        if not self.short_of or self.knows or not one_answer(since, p["alpha"]):
            return False
        number = len(self.looks) - 1
        evidence = pairing.log_sum(too_low(shares_of(self.steps), p["share"]) - math.log(2),
                                   too_low(shares_of(self.steps[self.looks[-1]:]), p["share"]) - (number + 2) * math.log(2))
        wins, pairs = pairs_of(since)
        blocks = pairing.blocks_of([(one["samples"], one["gain"], one["unit"], one["at"]) for one in compared])[-32:]
        return evidence >= -math.log(p["alpha"]) and pairs > 0 and wins / pairs < p["share"] and pairing.skill_of(pairing.sums(blocks)) < p["skill"]


class Passes:
    """The same of one call in evaluation."""

    def __init__(self):
        self.standing = self.knows = self.still_now = False
        self.at, self.number, self.still, self.seen = None, 0, None, []
        self.told = False

    def add(self, p, call, updates, planned):
        step = answers_of(call, updates)
        if step is None:
            return
        if self.at != updates:
            self.still = self.still if self.still_now else None
            self.still_now, self.at, self.number, self.seen = False, updates, self.number + 1, []
        self.seen.append(step)
        enough = -math.log(p["alpha"]) + math.log(self.number * (self.number + 1))
        wins, pairs = pairs_of(self.seen)
        now = skill_of(self.seen)
        if pairing.evidence(wins, pairs, p["share"], 1) >= enough:
            self.knows, self.standing = True, False
        self.still_now = one_answer(self.seen, p["alpha"]) and now < p["skill"] and pairing.evidence(wins, pairs, p["share"], -1) >= enough
        if not alike(self.seen):
            self.standing = False
        if not self.still_now:
            return
        self.still = self.still or (updates, now)
        since, then = self.still
        if since <= 0 or updates < 2 * since:
            return
        if now + (now - then) / (updates - since) * (end_of({"planned": planned}, updates) - updates) < p["skill"]:
            self.standing, self.knows = True, False

    @property
    def steps(self):
        return self.seen


class Outputs:
    """Whether the outputs of one call differ."""

    def __init__(self):
        self.standing = False
        self.seen = []                     # of each step that compares: differs, flat or narrow; its samples
        self.look = (0, 0.0)               # updates, ratio
        self.widest = 0.0
        self.at, self.still, self.still_now, self.now = None, None, False, []

    def kind_of(self, p, call):
        if "output_spread" not in call or call.get("target_spread", 0) <= 0 or call.get("crossed", 0) == 0:
            return None
        if call.get("pairs", 0) > 0:
            return "differs"
        return "flat" if call["output_spread"] < p["spread"] * call["target_spread"] else "narrow"

    def differed(self):
        return any(kind == "differs" for kind, _ in self.seen)

    def add(self, p, call, run):
        kind = self.kind_of(p, call)
        if kind is None:
            return
        self.seen.append((kind, call.get("samples", 0)))
        ratio = math.sqrt(max(0, call["output_spread"]) / call["target_spread"])
        self.widest = max(self.widest, ratio)
        if kind != "flat":
            self.standing = False
            return
        number, row = len(self.seen), []
        for one in reversed(self.seen):
            if one[0] != "flat":
                break
            row.append(one[1])
        if len(row) < number:
            if len(row) >= 3 and sum(row) >= 32 and ratio <= math.sqrt(p["spread"]) * self.widest:
                self.standing = True
            return
        if number < 16 or math.log2(number) % 1:
            return
        at, before = self.look
        then = ratio + max(0, (ratio - before) / max(run["updates"] - at, 1)) * (end_of(run, run["updates"]) - run["updates"])
        if number >= 32 and at >= run["rate_at"] and then < math.sqrt(p["spread"]):
            self.standing = True
        self.look = run["updates"], ratio

    def evaluate(self, p, call, updates, planned, trained):
        if self.at != updates:
            self.still = self.still if self.still_now else None
            self.still_now, self.at, self.now = False, updates, []
        kind = self.kind_of(p, call)
        if kind is None:
            return
        self.seen.append((kind, 0))
        self.now.append((kind, max(call.get("calls", 0), 1), call.get("samples", 0)))
        if kind != "flat":
            self.standing = self.still_now = False
            return
        flat = [one for one in self.now if one[0] == "flat"]
        self.still_now = len(flat) == len(self.now) and sum(calls for _, calls, _ in flat) >= 3 and sum(samples for *_, samples in flat) >= 32
        if not self.still_now:
            return
        if self.still is None:
            self.still = updates
        late = planned > 0 and 2 * updates >= planned and trained is not None and trained.differed() and not trained.standing
        if (self.still > 0 and updates >= 2 * self.still) or late:
            self.standing = True


class Call:
    def __init__(self, train):
        self.outputs, self.answers = Outputs(), Answers() if train else Passes()
        self.any_answers = False

    def answer(self, p):
        if self.outputs.standing:
            return HIT, ("constant",)
        if self.answers.standing:
            return HIT, ("one_answer",)
        if not self.outputs.differed():
            return INSUFFICIENT, ()
        if not self.any_answers or self.answers.knows:
            return OK, ()
        recent = self.answers.steps
        if isinstance(self.answers, Answers):
            recent = recent[self.answers.looks[-2] if len(self.answers.looks) > 1 else 0:]
        vary = not alike(recent) and 0.94394829814 * sum(step["other_labels"] for step in recent) >= -math.log(p["alpha"])
        return (OK if vary else INSUFFICIENT), ()


FIELDS = ("rows", "alike", "farthest", "directions")


def embeddings_of(rows):
    """{name: (rows, mean cosine, least cosine with the mean direction, participation ratio)}; None: a field is missing of a worker."""
    sums, counts = {}, {}
    for row in rows:
        value = row.columns["sum"]
        name, _, field = row.name[7:].rpartition("/")
        if row.name.startswith("ledger/embedding/") and name.startswith("embedding/") and field in FIELDS and math.isfinite(value):
            fields = sums.setdefault(name, dict.fromkeys(FIELDS, 0.0))
            fields[field] += value
            counts[name, field] = counts.get((name, field), 0) + 1
    out = {}
    for name, fields in sums.items():
        whole = fields["rows"] > 0 and len({counts.get((name, field), 0) for field in FIELDS}) == 1
        out[name] = [fields[field] / fields["rows"] for field in FIELDS[1:]] if whole else None
    return out


class Rows:
    """One embedding."""

    def __init__(self):
        self.standing = self.first = None
        self.looks, self.look_at, self.window = 0, 32, []

    def add(self, numbers, run, alone):
        if numbers is None:
            return
        if run["updates"] >= self.look_at:
            self.look(run)
            while self.look_at <= run["updates"]:
                self.look_at *= 2
            self.window = []
        alike, farthest, directions = numbers
        self.first = self.first or numbers
        self.window.append((run["updates"], alike, farthest, directions, alone))
        if (self.standing == "direction" and alike < 0.9) or (self.standing == "line" and directions > 4):
            self.standing = None

    def look(self, run):
        n = len(self.window)
        if n < 6:
            return
        self.looks += 1
        at, alike, farthest, directions, alone = zip(*self.window)
        middle, mean = sum(at) / n, sum(alike) / n
        spread = sum((x - middle) ** 2 for x in at)
        slope = sum((x - middle) * (y - mean) for x, y in zip(at, alike)) / spread if spread > 0 else 0
        then = mean + min(slope, 0) * (end_of(run, run["updates"]) - middle)
        warm = at[0] >= run["rate_at"]
        self.standing = None
        if warm and self.first[0] < 0.9 and min(alike) > 0.98 and min(farthest) > 0.9 and then > 0.98:
            self.standing = "direction"
        elif warm and self.first[2] >= 4 and max(directions) < 1.5 and all(alone):
            self.standing = "line"

    def answer(self):
        if self.standing:
            return HIT, ("embedding",)
        return (OK if self.looks else INSUFFICIENT), ()


def samples_of(rows):
    """{name: (Σ ln of directions of samples, of data, words of each)}"""
    out = {}
    for row in rows:
        value, (name, _, field) = row.columns["sum"], row.name[7:].rpartition("/")
        if row.name.startswith("ledger/samples/") and name.startswith("samples/") and math.isfinite(value) and value >= 1:
            sums = out.setdefault(name, {"made": [], "data": []})
            if field in sums:
                sums[field].append(math.log(value))
    return out


class Generated:
    """What one generator makes, beside the data."""

    def __init__(self):
        self.words, self.hit, self.fine = [], False, False

    def add(self, p, sums, run):
        made, data = sums["made"], sums["data"]
        if not made or len(made) != len(data):
            return
        self.words.append((1, sum(made) / len(made) - sum(data) / len(data), 1, run["updates"]))
        number = math.log2(len(self.words) / 64) if len(self.words) >= 64 else 0.5
        if number % 1:
            return
        blocks = pairing.blocks_of(self.words)[-32:]
        mean, spent, half = pairing.Mean(blocks, 0), p["alpha"] * 2 ** -(number + 1), math.log(0.5)
        ahead = end_of(run, run["updates"]) - mean.middle
        arrives = mean.mean + mean.slope * ahead + pairing.quantile(0.01, 30) * math.hypot(mean.line_error, mean.slope_error * ahead)
        warm = blocks[0][4] / blocks[0][0] >= run["rate_at"]
        self.fine = mean.bound(spent, -1) > half
        self.hit = warm and mean.bound(spent, 1) < half and arrives < half


def each_sample_is_a_class(calls):
    return any("labels" in call and 0 < call.get("calls", 0) and call["labels"] <= call["calls"] and call.get("samples", 0) >= 8 * call["calls"]
               for call in calls.values())


def evaluate(p, history):
    out, all_calls = [], {"train": {}, "eval": {}}
    embeddings, generators = {}, {}
    run = {"updates": 0, "planned": 0, "rate": 0, "rate_at": 0}
    for point in history.points():
        rows = [row for by_rank in point.values.values() for _, row in by_rank
                if row.scalar and wants(p, row, ("train", "eval")) and (row.known.role == "ledger" or row.name == "learning_rate")]
        if not rows:
            continue
        calls, planned = pairing.calls_of(rows)
        run["planned"] = run["planned"] if planned is None else planned
        train = point.mode == "train"
        if train:
            run["updates"] = point.step + 1
            for rate in [row.columns["sum"] for row in rows if row.name == "learning_rate"]:
                if math.isfinite(rate) and rate > run["rate"]:
                    run.update(rate=rate, rate_at=run["updates"])
        mine = all_calls["train" if train else "eval"]
        for name, call in sorted(calls.items()):
            course = mine.setdefault(name, Call(train))
            unit = (("metric", name), ("mode", point.mode))
            if call.get("one_target", 0) > 0 and call.get("calls", 0) > 1:
                out.append(Evaluation(unit, NOT_APPLICABLE, point.step, ()))
                continue
            course.any_answers = course.any_answers or answers_of(call, 0) is not None
            if train:
                course.outputs.add(p, call, run)
                course.answers.add(p, call, run)
            else:
                trained = all_calls["train"].get(name)
                course.outputs.evaluate(p, call, point.train_step + 1, run["planned"], trained and trained.outputs)
                course.answers.add(p, call, point.train_step + 1, run["planned"])
            outcome, kinds = course.answer(p)
            out.append(Evaluation(unit, outcome, point.step, kinds))
        for name, numbers in sorted(embeddings_of(rows).items() if train else ()):
            one = embeddings.setdefault(name, Rows())
            one.add(numbers, run, each_sample_is_a_class(calls))
            outcome, kinds = one.answer()
            out.append(Evaluation((("metric", name), ("mode", "train")), outcome, point.step, kinds))
        for name, sums in sorted(samples_of(rows).items() if train else ()):
            one = generators.setdefault(name, Generated())
            one.add(p, sums, run)
            outcome = HIT if one.hit else OK if one.fine else INSUFFICIENT
            out.append(Evaluation((("metric", name), ("mode", "train")), outcome, point.step, ("mode",) if one.hit else ()))
    return out
