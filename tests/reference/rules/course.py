"""4.5 course (detection principles): is the course of a loss normal for its own noise? Training losses in means of eight values, in units of
the noise of such means, with a CUSUM of Bennett's bound; by looks at doubled numbers of values; evaluations by passes. See docs/rules/course.md."""
import math
import re

from tests.reference import words
from tests.reference.history import mean, value
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation, selects
from tests.reference.rules import chance_level

DEFAULTS = {"skill": 0.02, "gain": 0.1, "back": 0.5, "jump": 0.25, "turn": 0.1, "alpha": 0.0003, "train_set": ""}
TOCSIN = {}
NEW = True
CHUNK, KNOWN, ARRIVAL, MOST_CALLS = 8, 8, 0.01, 8
BETS, MOST = (0.125, 0.25, 0.5), 8
LEDGER = re.compile(r"^ledger/([^/]+/(samples|loss|trivial|pairs|wins|straight|crossed|one_target|calls)|plan/updates)$")
REWARDS = re.compile(r"(?i)(^|[^a-z])(rewards?|rew|returns?|policy|actor)($|[^a-z])")


# --- a training loss in chunks -------------------------------------------------------------------

class Above:
    """Evidence that chunks lie above a limit."""

    def __init__(self):
        self.logs, self.numbers = [0.0] * 3, []

    def add(self, x):
        self.numbers.append(x)
        self.logs = [min(max(log + bet * min(x, MOST) - (math.exp(bet * MOST) - 1 - bet * MOST) / MOST ** 2, 0), 40)
                     for log, bet in zip(self.logs, BETS)]
        if not any(self.logs):
            self.numbers = []

    def holds(self, enough, x, chunks):
        """Long enough, and not on its way back."""
        return (chance_level.log_sum(*self.logs) - math.log(3) >= enough and lasts(len(self.numbers), chunks)
                and x >= mean(self.numbers) - 1)


def lasts(number, chunks):
    return number >= 3 and number * 8 >= chunks - number


class Levels:
    def __init__(self):
        self.values, self.levels, self.variances = [], [], []
        self.best, self.trivial_then, self.restarts = math.inf, 0, 0
        self.lost, self.rise, self.row = Above(), Above(), []
        self.gained, self.limit, self.known = 0, 0, False

    def restart(self, rises):
        self.best, self.restarts = math.inf, rises
        self.lost, self.rise, self.row = Above(), Above(), []

    def first(self):
        return self.levels[0]

    def judge(self, p, end, updates, trivial):
        chunk = self.values[-CHUNK:]
        level = sum(chunk) / CHUNK
        variance = sum((b - a) ** 2 for a, b in zip(chunk, chunk[1:])) / 2 / (CHUNK - 1)
        before, variances = self.levels, (self.variances + [variance])
        kinds, pairs = [], len(before) - 1
        self.known = pairs >= KNOWN
        if self.known:
            noise = math.sqrt(max(sum((b - a) ** 2 / 2 for a, b in zip(before, before[1:])) / pairs, sum(variances[-4:]) / 4 / CHUNK))
            noise = max(noise * (1 + 1 / math.sqrt(pairs)), 1e-6 * (abs(before[0]) + abs(level)))
            kinds = self.compare(p, level, noise, variances, len(before) * end / updates, trivial)
        self.levels, self.variances = before + [level], variances
        if len(before) and max(level, before[-1]) < self.best:  # of two neighbours the upper one
            self.best, self.trivial_then = max(level, before[-1]), trivial if trivial > 0 else 0
        return kinds

    def compare(self, p, level, noise, variances, planned, trivial):
        first, number = self.levels[0], len(self.levels)
        error = noise * math.sqrt(2 * math.log(number / p["alpha"]))
        self.gained = max(0, first - self.best - 2 * error) if math.isfinite(self.best) else 0
        self.limit = self.best + error + p["back"] * self.gained
        above = first + error + max(self.gained, 8 * noise * math.sqrt(CHUNK), first if min(self.values) > 0 else 0)
        if trivial > 0:
            above = max(first + error, 1.1 * trivial)
        enough, kinds = math.log(max(planned, 2) / p["alpha"]), []
        if self.gained > 0:
            x = (level - self.limit) / noise
            self.lost.add(x)
            if self.lost.holds(enough, x, number + 1):
                kinds.append("lost")
        else:
            self.lost = Above()
        x = (level - above) / noise
        self.rise.add(x)
        if self.rise.holds(enough, x, number + 1):
            kinds.append("rise")
        if self.jumps(p, level, noise, number + 1):
            kinds.append("spike")
        older = number + 1 - 4
        if self.gained > 0 and older >= KNOWN and self.levels[-1] <= self.limit:
            least = min(variances[-4:])
            if least > 100 * (sum(variances[:-4]) / older) and math.sqrt(least) >= p["jump"] * self.gained:
                kinds.append("spread")
        return kinds

    def jumps(self, p, level, noise, chunks):
        if not self.row:
            self.usual = sum(self.levels[-4:]) / 4
        if self.gained == 0 or level <= self.usual + max(8 * noise, p["jump"] * self.gained) or len(self.row) >= 32:
            self.row = []
            return False
        self.row.append(level)
        return lasts(len(self.row), chunks) and level >= mean(self.row) - noise

    def holds(self):
        return self.gained > 0 and self.levels[-1] < self.limit


# --- its looks -----------------------------------------------------------------------------------

class Looks:
    def __init__(self):
        self.entries, self.fell = [], False
        self.falls = self.stands = self.short_of = self.compared = False

    def take(self, p, number, step, target, constant, margin, warm, end):
        self.entries.append((1, -number, 1, step))
        looks = math.log2(len(self.entries) / 64) + 1
        if looks < 1 or looks != int(looks):
            return
        blocks = chance_level.blocks_of(self.entries)
        spent, newest = p["alpha"] * 2 ** -looks, blocks[-32:]
        now = chance_level.Mean(newest, 0)
        t = chance_level.quantile(spent / 4, 30)
        part = {name: sum(b[2] for b in blocks[a:z]) / sum(b[1] for b in blocks[a:z]) for name, a, z in (("start", 0, 8), ("eighth", 8, 16), ("quarter", 16, 32))}

        def lower(later, n, earlier, m):
            return later - earlier > max(t * now.line_error * math.sqrt(32 * (1 / n + 1 / m)), 1e-6 * (abs(later) + abs(earlier)))

        self.falls = (lower(now.mean, 32, part["quarter"], 16) or lower(now.mean, 32, part["eighth"], 8)
                      or lower(part["quarter"], 16, part["eighth"], 8))
        self.fell = self.fell or self.falls or lower(now.mean, 32, part["start"], 8)
        self.stands = not self.falls and newest[0][4] / newest[0][0] >= warm
        self.compared, self.short_of = constant, False
        if self.stands and not math.isnan(target) and (constant or not self.fell):
            lacks = chance_level.Mean(newest, -target)
            ahead, t = end - lacks.middle, chance_level.quantile(ARRIVAL * 2 ** -looks, 30)
            at_end = lacks.mean + lacks.slope * ahead + t * math.hypot(lacks.line_error, lacks.slope_error * ahead)
            rises = (lacks.slope - t * lacks.slope_error) * lacks.length
            self.short_of = lacks.bound(spent, 1) < 0 and at_end < 0 and rises < margin


# --- an evaluation -------------------------------------------------------------------------------

class Turn:
    def __init__(self):
        self.values, self.best, self.best_at, self.then, self.row = [], math.inf, 0, math.nan, 0

    def take(self, p, number, training):
        """Whether it has turned. `training`: (first, newest)."""
        self.values.append(number)
        if number < self.best:
            self.best, self.best_at, self.then = number, len(self.values), training[1]
        bends = [abs(c - 2 * b + a) for a, b, c in zip(self.values, self.values[1:], self.values[2:])][-9:]
        self.spread = sorted(bends)[(len(bends) - 1) // 3] / 0.94 if len(bends) > 1 else 0
        rise, learned = number - self.best, training[0] - training[1]
        scale = max(self.values[0] - self.best, learned if math.isfinite(learned) else 0)
        self.rise = rise
        self.row = self.row + 1 if rise > 4 * self.spread and rise > p["turn"] * scale else 0
        behind = len(self.values) - self.best_at
        return self.row >= 3 and behind >= 0.25 * len(self.values) and (math.isnan(self.then) or training[1] < self.then)

    def well(self):
        return len(self.values) - self.best_at < 0.25 * len(self.values) or self.rise <= 4 * self.spread

    def gained(self):
        return len(self.values) >= 3 and self.values[0] - self.best > 4 * self.spread


def keeps(values):
    """A growing metric gains, or keeps what it has gained."""
    best = max(values)
    return len(values) >= 3 and best > values[0] and best - values[-1] <= 0.1 * (best - values[0])


# --- a run ---------------------------------------------------------------------------------------

class Series:
    """A scalar of a step or pass."""

    def __init__(self, name, rows_by_step):
        row = rows_by_step[0][0][1]
        self.name, self.role = name, row.known.role
        by_step = [value(rows) for rows in rows_by_step]
        self.value = mean(by_step)
        kept = [one for one in by_step if math.isfinite(one)]
        self.finite = mean(kept) if kept else math.nan
        self.workers = len(rows_by_step[0])
        self.grows = words.grows(name, row.known.direction)
        self.set, self.metric = words.data_set(name), words.metric(name)


def scalars(p, points):
    found = {}
    workers = [one for one in p["workers"] if one != "all"]
    for point in points:
        for name, by_rank in point.values.items():
            rows = [(rank, row) for rank, row in by_rank
                    if row.mode in (p["modes"] or ("train", "eval", "global")) and p["start_step"] <= row.step
                    and (p["end_step"] is None or row.step < p["end_step"]) and (not workers or row.worker in workers)
                    and (selects(p, row, {"loss", "metric"}) or name == "learning_rate" or LEDGER.match(name) or REWARDS.search(name))]
            if rows:
                found.setdefault(name, []).append(rows)
    return [Series(name, rows) for name, rows in found.items()]


class Run:
    def __init__(self):
        self.times = {"updates": 0, "planned": 0, "rate": 0, "rate_at": 0}
        self.rate, self.rises, self.rewarded = 0, 0, False
        self.calls, self.known, self.said, self.logged = {}, 0, 0, 0
        self.averaged = 0
        self.levels, self.looks, self.turns = {}, {}, {}
        self.newest, self.changes, self.values = None, 0, 0
        self.training, self.trained, self.held, self.evaluation_gained = (math.nan, math.nan), {}, {}, False

    def end(self):
        planned, updates = self.times["planned"], self.times["updates"]
        return max(planned, updates) if planned > 0 else 2 * updates

    def trivial(self):
        same = abs(self.said - self.logged) <= 0.1 * max(abs(self.said), abs(self.logged))
        return self.known if self.averaged and len(self.calls) == 1 and self.known > 0 and same else math.nan

    def hear(self, mode, step, series):
        """What is no row of the ledger."""
        trains, rest, calls, counts = mode != "eval", [], {}, {}
        if trains:
            self.times["updates"] = step + 1
        for one in sorted(series, key=lambda one: one.name == "learning_rate"):
            if not one.name.startswith("ledger/"):
                rest.append(one)
                if not math.isfinite(one.value):
                    continue
                self.rewarded = self.rewarded or chance_level.learns_by_reward(one.name)
                if one.name == "learning_rate":
                    self.rises += one.value > self.rate
                    self.rate = one.value
                    if one.value > self.times["rate"]:
                        self.times.update(rate=one.value, rate_at=self.times["updates"])
            elif trains and math.isfinite(one.value):
                call, field = one.name[7:].rsplit("/", 1)
                if call == "plan":
                    self.times["planned"] = one.value
                else:
                    calls.setdefault(call, {})[field] = one.value * one.workers
                    counts[call, field] = one.workers
        for name, call in calls.items():
            call["comparable"] = ((name, "loss") in counts and counts[name, "loss"] == counts.get((name, "trivial"))
                                  == counts.get((name, "samples")) and call["samples"] > 0)
            if not chance_level.adversarial(call) and (name in self.calls or len(self.calls) < MOST_CALLS):
                self.calls.setdefault(name, chance_level.Course()).train(chance_level.DEFAULTS, call, self.times)
        losses = [one for one in rest if one.role == "loss" and math.isfinite(one.value)]
        if len(calls) == 1 and call["comparable"] and len(losses) == 1:
            self.averaged = min(self.averaged + 1, 64)
            said = call["trivial"] / call["samples"], call["loss"] / call["samples"], losses[0].value
            self.known, self.said, self.logged = (old + (new - old) / self.averaged for old, new in zip((self.known, self.said, self.logged), said))
        return rest

    def train(self, p, one, mode, step):
        """(outcome, kinds) at the end of a chunk."""
        key = one.name, mode
        self.changes += self.values > 0 and self.newest != one.name
        self.newest, self.values = one.name, self.values + 1
        levels, looks = self.levels.setdefault(key, Levels()), self.looks.setdefault(key, Looks())
        levels.values.append(one.value)
        trivial, end, updates = self.trivial(), self.end(), step + 1
        target, margin = math.nan, 0
        if trivial > 0:
            target, margin = (1 - p["skill"]) * trivial, p["skill"] * trivial
        elif levels.levels and levels.first() > 0 and min(levels.values) > 0:
            target, margin = (1 - p["gain"]) * levels.first(), p["gain"] * levels.first()
        looks.take(p, one.value, updates, target, trivial > 0, margin, self.times["rate_at"], end)
        if len(levels.values) % CHUNK:
            return None
        other = levels.trivial_then > 0 and trivial > 0 and abs(trivial - levels.trivial_then) > 0.1 * levels.trivial_then
        if levels.restarts != self.rises or other:
            levels.restart(self.rises)
        kinds = levels.judge(p, end, updates, trivial)
        if self.changes * 8 > self.values:
            return None
        self.training = levels.first(), levels.levels[-1]
        compared = [call for call in self.calls.values() if call.entries]
        knows = any(call.knows for call in compared)
        if looks.compared:
            stuck = looks.short_of
        elif compared:
            stuck = looks.stands and any(call.short_of for call in compared)
        else:
            stuck = looks.short_of and not self.evaluation_gained
        if stuck and not knows:
            kinds = kinds + ["stuck"]
        if kinds:
            return HIT, tuple(kinds)
        return (OK if levels.holds() or looks.falls or (knows and levels.known) else INSUFFICIENT), ()

    def compare(self, p, mode, series, trains):
        """[(name, outcome)] of evaluations."""
        out = []
        for one in series:
            if one.grows and not trains[one.name] and (mode == "eval" or one.set) and math.isfinite(one.finite):
                self.held.setdefault(one.name, []).append(one.finite)
            if trains[one.name] and one.set and math.isfinite(one.finite):
                self.trained.setdefault(one.metric, []).append(-one.finite if one.grows else one.finite)
        losses = any(one.role == "loss" for one in series)
        for one in series:
            alone = one.set and one.grows and words.grows(one.name) and mode == "train" and not losses
            if (trains[one.name] or words.counts_samples(one.name) or not (one.set or mode == "eval")
                    or not (one.role == "loss" or mode == "global" or alone) or not math.isfinite(one.finite)):
                continue
            booster = mode == "global" and one.set and "-" in one.name
            training = (math.nan, math.nan) if mode == "global" else self.training
            if one.set and self.trained.get(one.metric) and (booster or one.grows):
                training = self.trained[one.metric][0], self.trained[one.metric][-1]
            turn = self.turns.setdefault(one.name, Turn())
            turned = turn.take(p, -one.finite if one.grows else one.finite, training)
            held = not one.grows and any(keeps(self.held[other.name]) for other in series
                                         if other.grows and not trains[other.name] and math.isfinite(other.finite)
                                         and (mode == "eval" or (other.set and other.set == one.set)))
            self.evaluation_gained = self.evaluation_gained or turn.gained()
            if turned and not held:
                out.append((one.name, HIT))
            else:
                out.append((one.name, OK if len(turn.values) >= 3 and (turn.well() or held) else INSUFFICIENT))
        return out


def which_train(mode, series):
    trains = {one.name: words.is_train(one.name) if one.set else mode != "eval" for one in series}
    numbered = {}
    for one in series:
        if len(one.set) == 2 and one.set[0] == "validation":
            numbered.setdefault(one.metric, []).append((int(one.set[1]), one.name))
    for metric, found in numbered.items():
        if len(found) > 1 and not any(trains[one.name] for one in series if one.metric == metric):
            trains[min(found)[1]] = True
    return trains


def evaluate(p, history):
    out, run = [], Run()
    for points in history.passes():
        mode, step, series = points[0].mode, points[-1].step, scalars(p, points)
        if not series:
            continue
        rest = run.hear(mode, step, series)
        if run.rewarded:
            continue
        trains = which_train(mode, rest)
        training = [one for one in rest if mode != "eval" and trains[one.name] and not one.grows and one.role == "loss"
                    and not (mode == "global" and one.set and "-" in one.name)]
        if len(training) == 1 and math.isfinite(training[0].value):
            answer = run.train(p, training[0], mode, step)
            if answer:
                out.append(Evaluation((("metric", training[0].name), ("mode", mode)), answer[0], step, answer[1]))
        for name, outcome in run.compare(p, mode, rest, trains):
            out.append(Evaluation((("metric", name),), outcome, step, ("turned",)))
    return out
