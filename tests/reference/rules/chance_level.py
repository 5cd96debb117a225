"""51 chance_level, ours, version 7: do the outputs of a loss call know their targets? Judged from the scalars `ledger/<call>/<field>`
(docs/ledger.md), added up over workers, per call and mode. Shares of pairs by products of likelihood ratios against the share that H0
holds, losses by Student's t of 32 blocks when their number has doubled. See docs/rules/chance_level.md."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, wants

DEFAULTS = {"skill": 0.02, "share": 0.55, "worse": 0.1, "alpha": 0.001}
TOCSIN = {}
NEW = True
UNIT = ("metric", "mode")
LEARNED, CARRIED, ARRIVAL = 0.5, 0.6, 0.01
FIELDS = ("samples", "loss", "trivial", "pairs", "wins", "straight", "crossed", "one_target", "no_targets", "calls", "output_spread",
          "target_spread", "right", "answers", "labels", "ceiling")


# --- evidence ------------------------------------------------------------------------------------

def evidence(wins, pairs, p, sign):
    """ln of the weighted mean of four products: alternatives 1, 2, 4, 8 times p - 0.5 below (sign -1) or above (1) p."""
    logs = []
    for margins, weight in ((1, 5 / 8), (2, 1 / 8), (4, 1 / 8), (8, 1 / 8)):
        q = min(max(p + sign * margins * (p - 0.5), 0.01), 0.99)
        logs.append(math.log(weight) + wins * math.log(q / p) + (pairs - wins) * math.log((1 - q) / (1 - p)))
    return log_sum(*logs)


def log_sum(*logs):
    most = max(logs)
    return most + math.log(sum(math.exp(log - most) for log in logs))


def tail(t, df):
    """P(T > t) of Student's distribution by Simpson's rule over the angle: cos^(df - 1)."""
    if t < 0:
        return 1 - tail(-t, df)
    angle, n = math.atan(t / math.sqrt(df)), 400
    def area(a, b):
        h = (b - a) / n
        return h / 3 * sum((1 if i in (0, n) else 4 if i % 2 else 2) * math.cos(a + i * h) ** (df - 1) for i in range(n + 1))
    return area(angle, math.pi / 2) / (2 * area(0, math.pi / 2))


QUANTILES = {}


def quantile(p, df):
    if (p, df) not in QUANTILES:
        low, high = 0.0, 100.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if tail(middle, df) > p else (low, middle)
        QUANTILES[p, df] = high
    return QUANTILES[p, df]


def blocks_of(entries):
    """Sums of (1, samples, difference, unit, place) of 64 blocks at most, of as many entries each, a power of 2."""
    length = 1
    while 64 * length < len(entries):
        length *= 2
    parts = [entries[i:i + length] for i in range(0, len(entries), length)]
    return [(len(part), *(sum(column) for column in zip(*part))) for part in parts]


def sums(blocks):
    """(samples, difference, unit)"""
    return tuple(sum(block[i] for block in blocks) for i in (1, 2, 3))


def skill_of(total):
    return total[1] / total[2] if total[2] > 0 else math.nan


class Mean:
    """Of (difference − margin · unit) per sample over blocks, and the straight line through them."""

    def __init__(self, blocks, margin):
        y = [(difference - margin * unit) / samples for _, samples, difference, unit, _ in blocks]
        x = [place / entries for entries, _, _, _, place in blocks]
        self.n = n = len(y)
        self.mean, self.middle = sum(y) / n, sum(x) / n
        y = [one - self.mean for one in y]
        xx = sum((one - self.middle) ** 2 for one in x)
        self.error = math.sqrt(widened(y) / (n - 1) / n)
        self.slope = sum((a - self.middle) * b for a, b in zip(x, y)) / xx
        rest = widened([b - self.slope * (a - self.middle) for a, b in zip(x, y)]) / (n - 2)
        self.slope_error, self.line_error = math.sqrt(rest / xx), math.sqrt(rest / n)
        self.length = (x[-1] - x[0]) * n / (n - 1)

    def bound(self, alpha, sign):
        return self.mean + sign * quantile(alpha, self.n - 1) * self.error

    def stays_below(self, end, margin, newest=None):
        """`newest`: of a run that has ended, whether its newest blocks are below the margin."""
        t, ahead = quantile(ARRIVAL, self.n - 2), end - self.middle
        at_end = self.mean + self.slope * ahead + (t * math.hypot(self.line_error, self.slope_error * ahead) if newest is None else 0)
        return at_end < 0 and newest is not False and (self.slope - t * self.slope_error) * self.length < margin


def widened(y):
    squares = sum(one * one for one in y)
    if squares <= 0:
        return 0
    n, alike = len(y), sum(a * b for a, b in zip(y, y[1:])) / squares
    alike = min(max(alike + (1 + 4 * alike) / n + 0.75 / math.sqrt(n), 0), 0.8)
    return squares * (1 + alike) / (1 - alike)


# --- a loss call ---------------------------------------------------------------------------------

def against_low(p, pairs):
    """Of [(wins, pairs)]: evidence against "at least p"."""
    return evidence(sum(w for w, _ in pairs), sum(n for _, n in pairs), p, -1)


class Course:
    def __init__(self):
        self.standing, self.knows = None, False
        self.bare = []                      # of each step: no target counts
        self.pairs, self.looked = [], []    # all steps (wins, pairs, tied); number of steps at each look
        self.entries = []                   # (samples, difference, unit, place)
        self.gains = []                     # the same, where the difference is what a target of one's own saves
        self.knowing, self.fall, self.fallen = [], [], []
        self.short_of = self.behind = False
        self.at, self.passes, self.learned_passes, self.looked_at = None, 0, 0, None
        self.still, self.still_now, self.unpaired = None, False, False

    def bare_now(self):
        share = sum(self.bare)
        return self.bare[-3:] == [True] * 3 or (len(self.bare) >= 20 and share > 0.2 * len(self.bare))

    def know(self):
        if not self.knows:
            self.fall, self.fallen = [], []
        self.knows, self.knowing = True, []
        if self.standing != "worse":
            self.standing = None

    def tell(self, kind, knows=False):
        if self.standing != kind:
            self.knowing = []
        self.standing, self.knows = kind, knows

    def stand(self, kind):
        if self.standing == "forgot" and kind != "worse":
            return
        if kind is None:
            self.standing = None
        else:
            self.tell(kind, self.knows)

    def newest(self, number=32):
        return blocks_of(self.entries)[-number:]

    def behind_rate(self, entries, since):
        """The newest blocks, from the first on that lies behind the largest rate."""
        blocks = blocks_of(entries)[-32:]
        while blocks and blocks[0][4] < since * blocks[0][0]:
            blocks = blocks[1:]
        return blocks

    def learned(self):
        total = self.newest(8)
        return sum(block[0] for block in total) >= 8 and skill_of(sums(total)) >= LEARNED

    def shows_nothing(self, p):
        since = self.looked[-1] if self.looked else 0
        window = self.pairs[since:]
        if not any(n for _, n, _ in window):
            return sum(tied for _, _, tied in window) >= 32
        both = log_sum(against_low(p["share"], [(w, n) for w, n, _ in self.pairs]) - math.log(2),
                       against_low(p["share"], [(w, n) for w, n, _ in window]) - (len(self.looked) + 2) * math.log(2))
        recent = self.pairs[self.looked[-2] if len(self.looked) > 1 else 0:]
        return both >= -math.log(p["alpha"]) and sum(w for w, _, _ in recent) / sum(n for _, n, _ in recent) < p["share"]

    def train(self, p, call, run):
        wins, pairs = call.get("wins", 0), call.get("pairs", 0)
        end = end_of(run)
        self.pairs.append((wins, pairs, pairs == 0 and call.get("crossed", 0) != 0))
        self.knowing.append((wins, pairs))
        if evidence(sum(w for w, _ in self.knowing), sum(n for _, n in self.knowing), p["share"], 1) >= -math.log(p["alpha"]):
            self.know()
        if call["comparable"]:
            entry = (call["samples"], call["trivial"] - call["loss"], call["trivial"], run["updates"])
            self.entries.append(entry)
            self.fallen.append(entry)
            if "crossed" in call:
                self.gains.append((call["samples"], call["crossed"] - call.get("straight", 0), call["trivial"], run["updates"]))
            doubled = len(self.entries) >= 64 and math.log2(len(self.entries)).is_integer()
            seen = sum(block[0] for block in self.newest()) >= 32
            if doubled or (seen and run["updates"] >= max(2 * (self.looked_at or 0), 128)):
                self.look(p, run, end)
        if (self.short_of and self.standing is None and not self.knows and self.shows_nothing(p)
                and skill_of(sums(self.newest())) < p["skill"]):
            self.stand("nothing")
        self.fall.append((wins, pairs))
        if against_low(p["share"], self.fall) <= 0:
            self.fall, self.fallen = [], []
        fallen = sum(entry[1] for entry in self.fallen), sum(entry[2] for entry in self.fallen)
        lost = fallen[1] > 0 and fallen[0] / fallen[1] < p["skill"]
        if self.knows and lost and against_low(p["share"], self.fall) >= math.log(max(end, 1) / p["alpha"]):
            self.tell("forgot")

    def look(self, p, run, end, over=False):
        looks, blocks = len(self.looked) + 1, self.newest()
        if sums(blocks)[2] > 0:
            spent = p["alpha"] * 2 ** -looks

            def below(entries, level, alpha):
                """(it is shown, and it stays so)"""
                warm = self.behind_rate(entries, run["rate_at"])
                mean = Mean(warm, level) if len(warm) >= 16 else None
                shown = mean is not None and mean.bound(alpha, 1) < 0
                # A rise is one of the whole window in units of its trivial loss, whichever series rises.
                own = sums(blocks_of(entries)[-32:])
                newest = skill_of(sums(self.newest(8))) < p["skill"] if over else None
                return shown, shown and mean.stays_below(end, p["skill"] * own[2] / own[0], newest)
            self.behind, stays = below(self.entries, p["skill"], spent / 2)
            self.short_of = stays or below(self.gains, p["skill"], spent / 2)[1]
            worse = below(self.entries, -p["worse"], spent)[1]
            if Mean(blocks, p["skill"]).bound(spent, -1) > 0:
                self.standing = None
                self.know()
            elif not self.knows and self.short_of and self.shows_nothing(p) and skill_of(sums(blocks)) < p["skill"]:
                self.stand("nothing")
            else:
                self.stand("worse" if worse else None)
        self.looked.append(len(self.pairs))
        self.looked_at = run["updates"]

    def end(self, p, run):
        """Nothing is learned any more. Whether it has a standing now."""
        if self.standing or self.knows:
            return False
        if self.passes:
            if not self.still_now or 2 * self.at < run["updates"]:
                return False
            self.tell("nothing")
            return True
        if self.unpaired or sum(block[0] for block in self.newest()) < 32:
            return False
        self.look(p, run, run["updates"], True)
        return self.standing is not None

    def settle(self, p, name, courses, updates):
        """A metric of a booster, `<data>-<metric>`: no pairs."""
        self.unpaired = True
        if self.looked_at != updates:
            return
        data, _, metric = name.partition("-")
        others = [(*other.partition("-")[::2], course) for other, course in courses.items() if other != name and "-" in other]
        if any(one == data and skill_of(sums(course.newest())) >= p["worse"] for one, _, course in others):
            self.standing = None
        elif self.standing is None and self.behind:
            if any(one != data and of == metric and course.learned() for one, of, course in others):
                self.tell("memorised")
            elif self.short_of:
                self.tell("nothing")

    def evaluate(self, p, call, updates, planned, course):
        learned = course is not None and course.learned()
        if self.at != updates:
            if not self.still_now:
                self.still = None
            self.still_now, self.at, self.passes = False, updates, self.passes + 1
            self.learned_passes += learned
            self.seen, self.total = [], []
        self.seen.append((call.get("wins", 0), call.get("pairs", 0)))
        if call["comparable"]:
            self.total.append((call["trivial"] - call["loss"], call["trivial"]))
        wins, pairs = sum(w for w, _ in self.seen), sum(n for _, n in self.seen)
        enough = -math.log(p["alpha"]) + math.log(self.passes * (self.passes + 1))
        if evidence(wins, pairs, p["share"], 1) >= enough:
            self.know()
            self.still = None
        if learned and self.learned_passes:
            if evidence(wins, pairs, CARRIED, -1) >= math.log(self.learned_passes * (self.learned_passes + 1) / p["alpha"]):
                return self.tell("memorised")
        unit = sum(one for _, one in self.total)
        now = sum(one for one, _ in self.total) / unit if unit > 0 else math.nan
        self.still_now = now < p["skill"] and evidence(wins, pairs, CARRIED, -1) >= enough
        if not self.still_now:
            return None
        if self.still is None:
            self.still = updates, now
        since, then = self.still
        if since <= 0 or updates - since < since:
            return None
        end = max(planned, updates) if planned > 0 else 2 * updates
        arrives = now + (now - then) / (updates - since) * (end - updates)
        if arrives < p["skill"] and self.standing != "memorised":
            self.tell("nothing")
        return None


def end_of(run):
    return max(run["planned"], run["updates"]) if run["planned"] > 0 else 2 * run["updates"]


# --- a run ---------------------------------------------------------------------------------------

def calls_of(rows):
    """{call: {field: sum}} of a step; what is planned."""
    out, counts, planned = {}, {}, None
    for row in rows:
        value = row.columns["sum"]
        if not row.name.startswith("ledger/") or "/" not in row.name[7:] or not math.isfinite(value):
            continue
        call, field = row.name[7:].rsplit("/", 1)
        if call == "plan":
            planned = value if field == "updates" else planned
        elif field in FIELDS:
            fields = out.setdefault(call, {})
            fields[field] = fields.get(field, 0) + value
            counts[call, field] = counts.get((call, field), 0) + 1
    for call, fields in out.items():
        number = counts.get((call, "loss"), 0)
        fields["comparable"] = (number > 0 and number == counts.get((call, "trivial"), 0) == counts.get((call, "samples"), 0)
                                and fields["samples"] > 0)
    return out, planned


def adversarial(call):
    return call.get("one_target", 0) > 0 and call.get("calls", 0) > 1


def learns_by_reward(name):
    from tests.reference.rules.reward import signal
    from tests.reference.words import words
    said, kind = set(words(name)), signal(name)
    if said & {"policy", "actor"}:
        return "loss" in said
    return kind == "reward" or (kind == "returns" and bool(said & {"reward", "rewards", "rew", "episode", "episodes", "ep", "episodic"}))


def answer(name, calls, courses, rewarded=False):
    others = [other for other in calls if other != name]
    course = courses[name]
    if course.bare_now() and not any(calls[other].get("samples", 0) > 0 for other in others):
        return HIT, ("no_targets",)
    if rewarded or adversarial(calls[name]):
        return NOT_APPLICABLE, ()
    others_know = any(courses[other].knows and calls[other].get("pairs", 0) > 0 for other in others)
    if course.standing and not others_know:
        return HIT, (course.standing,)
    return (OK if course.knows else INSUFFICIENT), ()


def evaluate(p, history):
    out, courses = [], {"train": {}, "eval": {}}
    run, rewarded, newest = {"updates": 0, "planned": 0, "rate": 0, "rate_at": 0}, False, {}
    for point in history.points():
        rows = [row for by_rank in point.values.values() for _, row in by_rank
                if row.scalar and wants(p, row, ("train", "eval")) and (row.known.role == "ledger" or row.name == "learning_rate" or learns_by_reward(row.name))]
        if not rows:
            continue
        rewarded = rewarded or any(learns_by_reward(row.name) and math.isfinite(row.columns["sum"]) for row in rows)
        calls, planned = calls_of(rows)
        run["planned"] = run["planned"] if planned is None else planned
        train = point.mode == "train"
        if train:
            run["updates"] = point.step + 1
            for rate in [row.columns["sum"] for row in rows if row.name == "learning_rate"]:
                if math.isfinite(rate) and rate > run["rate"]:
                    run.update(rate=rate, rate_at=run["updates"])
        mine = courses["train" if train else "eval"]
        for name, call in sorted(calls.items()):
            course = mine.setdefault(name, Course())
            course.bare.append(call.get("no_targets", 0) > 0 and call.get("samples", 0) == 0)
            if adversarial(call):
                continue
            if train:
                course.train(p, call, run)
            else:
                course.evaluate(p, call, point.train_step + 1, run["planned"], courses["train"].get(name))
        for name in sorted(calls):
            if train and "-" in name and "trivial" in calls[name] and not {"calls", "pairs"} & set(calls[name]):
                mine[name].settle(p, name, mine, run["updates"])
            outcome, kinds = answer(name, calls, mine, rewarded)
            out.append(Evaluation((("metric", name), ("mode", point.mode)), outcome, point.step, kinds))
        newest[point.mode] = point.step
    return out + (at_end(p, courses, run, newest) if not rewarded else [])


def at_end(p, courses, run, newest):
    """Nothing arrives any more."""
    out = []
    for mode, mine in courses.items():
        if mode == "train" and any(course.knows for course in mine.values()):
            continue
        for name in sorted(mine):
            if mine[name].end(p, run):
                out.append(Evaluation((("metric", name), ("mode", mode)), HIT, newest[mode], (mine[name].standing,)))
    return out
