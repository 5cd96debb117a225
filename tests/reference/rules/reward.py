"""4.11 reward (detection principles): do returns rise, do values predict them, does what should vary vary, does what should lag
lag, is what is drawn fresh? Judged from logged scalars by their names, and from `ledger/reward/…` and `ledger/target/…`. Everything is kept;
each look computes from the whole history. See docs/rules/reward.md."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, OK, TRAINING, Evaluation, selects, wants
from tests.reference.rules.chance_level import Mean, blocks_of, quantile, sums
from tests.reference.words import OTHERS, words

DEFAULTS = {"margin": 0.5, "transitions": 1000, "updates": 10000, "patience": 100000, "alpha": 0.0005}
TOCSIN = {}
NEW = True
UNIT = ("metric", "mode")
SETTINGS = set("std var variance dev norm max min median coef coefficient bonus beta scale target grad cross running smoothed ema decay".split())
ANSWERS = set("completion completions response responses answer answers generation generations generated".split())
NO_LENGTH = set("clip clipped ratio terminated reward rewards penalty".split())
WHOLE = set("episode episodic episodes ep mean avg average total sum cumulative".split())


def signal(name):
    """What a logged name says."""
    said = set(words(name))
    if name.startswith("ledger/") or said & OTHERS:
        return None
    if "explained" in said and said & {"variance", "var"}:
        return "explained"
    if said & SETTINGS:
        return None
    if said & {"epsilon", "exploration"}:
        return "exploration"
    if said & ANSWERS and said & {"length", "lengths", "len"}:
        return None if said & NO_LENGTH else "length"
    if "entropy" in said:
        return "entropy"
    if said & {"loss", "error"}:
        return None
    if said & {"advantage", "advantages", "adv"}:
        return "advantage"
    if said & {"priority", "priorities"}:
        return "priority"
    if said & {"importance", "is"} and said & {"weight", "weights"}:
        return "weight"
    if "return" in said or ("returns" in said and said & WHOLE):
        return "returns"
    if said & {"reward", "rewards", "rew"}:
        return "returns" if said & WHOLE else "reward"
    return None


class Run:
    def __init__(self):
        self.updates, self.planned, self.planned_transitions, self.environments = 0, 0, 0, 1
        self.transitions = self.ends = 0
        self.explored = []  # (share of random actions, updates)

    def share(self):
        return max(self.updates / self.planned if self.planned > 0 else 0,
                   self.transitions / self.planned_transitions if self.planned_transitions > 0 else 0)

    def end(self):
        return self.updates / min(self.share(), 1) if self.share() > 0 else 2 * self.updates

    def fell_at(self):
        """When the share of random actions was lower than ever before for the last time."""
        fell = [at for i, (value, at) in enumerate(self.explored) if i == 0 or value < min(one for one, _ in self.explored[:i])]
        return fell[-1] if fell else 0


def is_look(entries):
    return len(entries) >= 64 and math.log2(len(entries) / 64) == int(math.log2(len(entries) / 64))


class Returns:
    def __init__(self):
        self.entries = []  # (episodes, Σ, Σ², updates)
        self.exact, self.better, self.told, self.fallen = True, False, False, False
        self.grown = None  # to more than three times the first, of lengths; None: no look has said so

    def episodes(self):
        return sum(entry[0] for entry in self.entries)

    def varied(self):
        means = [total / number for number, total, _, _ in self.entries]
        spread = any(squares - total / number * total > 1e-9 * squares for number, total, squares, _ in self.entries)
        return spread or any(a != b for a, b in zip(means, means[1:]))

    def add(self, p, entry, exact, run):
        self.entries.append((*entry, run.updates))
        self.exact = self.exact and exact
        if is_look(self.entries):
            self.look(p, run, math.log2(len(self.entries) / 64) + 1, run.end())

    def at_end(self, p, run):
        if self.told:
            self.look(p, run, math.floor(math.log2(len(self.entries) / 64)) + 2, run.updates)

    def look(self, p, run, number_of_look, end):
        self.told = self.fallen = False
        self.grown = None
        blocks = blocks_of(self.entries)
        length = int(blocks[0][0])
        wanted, first = max(20, 0.05 * self.episodes(), 2 * run.environments), []
        while len(first) < len(blocks) and sum(block[1] for block in first) < wanted:
            first = blocks[:len(first) + 1]
        number, total, squares = sums(first)
        if len(first) > 32 or number < 2:
            return
        begun = total / number
        apart = max(0, squares - total * begun)
        deviation, effective = math.sqrt(apart / (number - 1)), number
        if not self.exact and apart > 0:
            of_first = self.entries[:len(first) * length]
            jumps = sum((b[1] / b[0] - a[1] / a[0]) ** 2 for a, b in zip(of_first, of_first[1:]))
            alike = min(max(1 - jumps / (2 * apart) + 1 / math.sqrt(number), 0), 0.98)
            effective = number * (1 - alike) / (1 + alike)
        if effective < 2 or deviation == 0:
            return
        mean = Mean(blocks[-32:], 0)
        first_error = deviation / math.sqrt(effective)
        error, freedom = math.hypot(first_error, mean.error), min(mean.n - 1, int(effective) - 1)
        if freedom <= 2:
            return
        spent, gain, margin = p["alpha"] * 2 ** -number_of_look, mean.mean - begun, p["margin"] * deviation
        width = quantile(spent, freedom) * error
        if begun > 0:
            self.grown = mean.mean - quantile(spent, freedom) * math.hypot(mean.error, 3 * first_error) > 3 * begun
        self.better = self.better or gain - width > 0
        if self.better or run.fell_at() > blocks[-32][4] / blocks[-32][0] or gain + width >= margin:
            return
        ahead = end - mean.middle
        reach = math.sqrt(mean.line_error ** 2 + (mean.slope_error * ahead) ** 2 + first_error ** 2)
        self.told = gain + mean.slope * ahead + quantile(0.01, max(freedom - 1, 1)) * reach < margin
        self.fallen = gain + width < -margin


class Explained:
    def __init__(self):
        self.entries, self.told, self.fine = [], False, False

    def add(self, p, value, run):
        self.entries.append((1, min(max(value, -1), 1), 1, run.updates))
        if not is_look(self.entries):
            return
        mean, spent = Mean(blocks_of(self.entries)[-32:], 0), p["alpha"] * 2 ** -(math.log2(len(self.entries) / 64) + 1)
        ahead = run.end() - mean.middle
        arrives = mean.mean + mean.slope * ahead + quantile(0.01, 30) * math.hypot(mean.line_error, mean.slope_error * ahead)
        self.fine = mean.bound(spent, -1) > 0
        self.told = mean.bound(spent, 1) < 0 and arrives < 0


class Job:
    def __init__(self):
        self.run, self.returns, self.explained = Run(), {}, {}
        self.rewards, self.lengths = {}, {}  # name -> Returns
        self.signals = {}   # name -> [(kind, seen, changes, ones, value)]
        self.targets = {}   # name -> [{field: value}]
        self.memory, self.drawn = [], []  # words; of each window (made, drawn, fresh)

    def episodes(self):
        return max((one.episodes() for one in self.returns.values()), default=0)

    def any_better(self):
        return any(one.better for one in self.returns.values())

    def late(self, p, seen, over):
        return self.run.share() >= 0.5 if self.run.share() > 0 else over or seen >= p["patience"]

    # --- what is said

    def log(self, p, name, value):
        kind = signal(name)
        if kind == "exploration":
            self.run.explored.append((value, self.run.updates))
        elif kind == "returns":
            self.returns.setdefault(name, Returns()).add(p, (1, value, value * value), False, self.run)
        elif kind == "explained":
            self.explained.setdefault(name, Explained()).add(p, value, self.run)
        elif kind == "length":
            self.lengths.setdefault(name, Returns()).add(p, (1, value, value * value), False, self.run)
        elif kind is not None:
            if kind == "reward":
                self.rewards.setdefault(name, Returns()).add(p, (1, value, value * value), False, self.run)
            past = self.signals.setdefault(name, [])
            past.append((kind, 1, int(bool(past) and past[-1][4] != value), 0, value))
        return kind not in (None, "exploration")

    def take(self, p, told):
        run = self.run
        run.transitions += told.get("transitions", 0)
        run.ends += told.get("ends", 0)
        run.planned_transitions = told.get("planned", run.planned_transitions)
        run.environments = told.get("environments", run.environments)
        if told.get("episodes", 0) > 0:
            entry = told["episodes"], told.get("returns", 0), told.get("squares", 0)
            self.returns.setdefault("episode returns", Returns()).add(p, entry, True, run)
        for field in told:
            if field.startswith("seen/"):
                name = field[5:]
                self.signals.setdefault("transition/" + name, []).append(
                    (name, told[field], told.get("changes/" + name, 0), told.get("ones/" + name, 0), None))
        if "made" in told or "drawn" in told:
            drawn = told.get("drawn", 0)
            if self.memory or drawn > 0:
                self.memory.append((told.get("made", 0), drawn, told.get("fresh", 0)))
            draws, before = sum(word[1] for word in self.memory), sum(window[1] for window in self.drawn)
            if draws >= max(1000, 2 * before):
                past = [sum(column) for column in zip(*self.drawn)] or [0, 0, 0]
                self.drawn.append(tuple(sum(word[i] for word in self.memory) - past[i] for i in range(3)))

    # --- what it comes to

    def of_returns(self, p, name, over):
        one, kinds = self.returns[name], []
        entropies = [past for past in self.signals.values() if past[0][0] == "entropy" and past[0][4] is not None and len(past) >= 64]
        undecided = any(abs(past[-1][4] - past[0][4]) <= 0.05 * abs(past[0][4]) for past in entropies)
        random = bool(self.run.explored) and self.run.explored[0][0] >= 0.5
        late = self.run.share() >= 0.5 if self.run.share() > 0 else over or self.run.updates >= p["updates"]
        if late and one.told and not self.any_better() and (one.fallen or random or undecided):
            kinds.append("no_better")
        known = max(self.run.transitions, one.episodes())
        rewards = any(past[0][0] == "reward" for past in self.signals.values())
        if not one.varied() and one.episodes() >= 20 and known >= p["transitions"] and not rewards and self.late(p, known, over):
            kinds.append("flat")
        return kinds, one.better

    def of_length(self, name):
        one = self.lengths[name]
        grew = self.any_better() or any(reward.better for reward in self.rewards.values())
        return ["length"] * bool(one.grown and grew), one.grown is False

    def of_signal(self, p, name, over):
        past = self.signals[name]
        kind, seen, changes, ones = past[0][0], *(sum(word[i] for word in past) for i in (1, 2, 3))
        if name == "transition/done":
            long = self.episodes() >= 20 and self.run.transitions >= 2 * self.episodes()
            flat = seen >= p["transitions"] and (self.run.ends >= 20 if ones == 0 else ones == seen and long)
            return ["flat"] * flat, 0 < ones < seen
        late = self.late(p, seen, over)
        ill = {"observation": self.run.transitions >= 2 * self.episodes(), "ratio": ones == 0, "priority": True,
               "weight": any(other[0][0] == "priority" and sum(word[2] for word in other) > 0 for other in self.signals.values()),
               "reward": self.episodes() >= 20 and not any(one.varied() for one in self.returns.values()) and late}
        fruitless = self.episodes() >= 20 and not self.any_better() and late
        flat = seen >= p["transitions"] and changes == 0 and ill.get(kind, fruitless)
        return ["flat"] * flat, changes > 0

    def of_target(self, name, over):
        words_of = self.targets[name]
        total = {field: sum(word.get(field, 0) for word in words_of) for field in ("updates", "looks", "moves", "changes", "equal")}
        newest = max((i for i, word in enumerate(words_of) if word.get("changes", 0) > 0), default=-1)
        changed_at = sum(word.get("updates", 0) for word in words_of[:newest + 1])
        moved = sum(word.get("moves", 0) for word in words_of[newest + 1:])
        share = self.run.share()
        hit = total["moves"] >= 64 and total["looks"] >= 64 and total["equal"] == total["looks"]
        if total["changes"] == 0 and total["moves"] > 0 and total["equal"] > 0:
            hit = hit or (share >= 0.5 if share > 0 else total["updates"] >= 20000 or (over and total["updates"] >= 256))
        if total["changes"] >= 4 and moved > 0:
            hit = hit or total["updates"] - changed_at >= 10 * changed_at / total["changes"]
        return ["lag"] * hit, total["changes"] > 0 and total["equal"] < total["looks"]

    def of_memory(self):
        made, drawn, fresh = self.drawn[-1]
        expected = made * drawn / (made + drawn) if made + drawn > 0 else 0
        return ["fresh"] * (expected >= 100 and fresh < 0.1 * expected), expected >= 100

    def judged(self, p, over, touched=None, told=False, targets=()):
        """[(name, kinds of a hit, whether it is fine)] of what this step says something of; touched None: of all."""
        def asked(name):
            return touched is None or told or name in touched or name in targets
        out = [(name, *self.of_returns(p, name, over)) for name in sorted(self.returns) if asked(name)]
        out += [(name, ["value"] * one.told, one.fine) for name, one in sorted(self.explained.items()) if asked(name)]
        out += [(name, *self.of_length(name)) for name in sorted(self.lengths) if asked(name)]
        out += [(name, *self.of_signal(p, name, over)) for name in sorted(self.signals) if asked(name)]
        out += [(name, *self.of_target(name, over)) for name in sorted(self.targets) if asked(name)]
        if self.drawn and asked("memory"):
            out.append(("memory", *self.of_memory()))
        return out


def evaluate(p, history):
    out, job, newest = [], Job(), None

    def put(judged, mode, step):
        for name, kinds, fine in judged:
            outcome = HIT if kinds else OK if fine else INSUFFICIENT
            out.append(Evaluation((("metric", name), ("mode", mode)), outcome, step, tuple(kinds)))

    for point in history.points():
        rows = sorted((row for by_rank in point.values.values() for _, row in by_rank if row.scalar and wants(p, row, (*TRAINING, "eval"))
                       and (row.mode != "eval" or row.name.startswith("ledger/reward/")) and (selects(p, row) if p["collection_names"] or p["tensor_regex"] else
                            signal(row.name) or row.name.startswith(("ledger/reward/", "ledger/target/")) or row.name == "ledger/plan/updates")),
                      key=lambda row: row.rank)
        if not rows:
            continue
        newest = point.mode, point.step
        job.run.updates = (max(point.train_step, -1) if point.mode == "eval" else point.step) + 1
        told, targets, touched = {}, {}, set()
        for row in rows:
            value = row.columns["sum"]
            if not math.isfinite(value):
                continue
            if row.name == "ledger/plan/updates":
                job.run.planned = value
            elif row.name.startswith("ledger/reward/"):
                told[row.name[14:]] = told.get(row.name[14:], 0) + value
            elif row.name.startswith("ledger/target/"):
                name, _, field = row.name[14:].rpartition("/")
                word = targets.setdefault(name, {})
                word[field] = word.get(field, 0) + value
            elif job.log(p, row.name, value):
                touched.add(row.name)
        job.take(p, told)
        for name, word in targets.items():
            job.targets.setdefault(name, []).append(word)
        put(job.judged(p, False, touched, bool(told), targets), point.mode, point.step)
    if newest:  # also of a run that is given up
        for one in job.returns.values():
            one.at_end(p, job.run)
        put(job.judged(p, True), *newest)
    return out
