"""4.8 Is any class left out? (docs/rules/left_out_class.md, docs/ledger.md). Rows of one name are added up over workers, and over a pass of evaluation."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation, selects, wants

DEFAULTS = {"lead": 0.33, "usual": 0.8, "samples": 50, "alpha": 0.0005}
TOCSIN = {}
UNIT = ("metric", "mode")
MODES = ("train", "eval")
FIELDS = ("labels", "answers", "right", "loss", "pairs", "wins")
KINDS = ("random_class", "never_answered", "never_seen", "rarely_seen")


def lower_median(values):
    return sorted(values)[(len(values) - 1) // 2] if values else 0


def share(wins, pairs):
    return wins / pairs if pairs else 0.5


def log_evidence(wins, pairs, limit):
    """ln of the weighted mean of four likelihood ratios, against "the share is at least limit"."""
    logs = []
    for weight, margins in ((0.625, 1), (0.125, 2), (0.125, 4), (0.125, 8)):
        q = min(max(limit - margins * (limit - 0.5) / 2, 0.01), 0.99)
        logs.append(math.log(weight) + wins * math.log(q / limit) + (pairs - wins) * math.log((1 - q) / (1 - limit)))
    return max(logs) + math.log(sum(math.exp(one - max(logs)) for one in logs))


def at_least(hits, trials, chance):
    """P(X >= hits) of a binomial X."""
    if hits <= trials * chance:
        return 1.0
    first = math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1) + hits * math.log(chance) + (trials - hits) * math.log1p(-chance)
    terms, at, ratio = [1.0], hits, chance / (1 - chance)
    while at < trials and terms[-1] > 0:
        terms.append(terms[-1] * (trials - at) / (at + 1) * ratio)
        at += 1
    return math.exp(first) * sum(terms)


class Window:
    """What is usual among the classes that are judged."""

    def __init__(self, p, sums):
        self.sums, classes = sums, sums["classes"]
        usual = lower_median([one["labels"] for one in classes.values() if one["labels"] >= p["samples"]])
        self.judged = [name for name, one in sorted(classes.items()) if one["labels"] >= max(p["samples"], usual / 20) and one["pairs"] >= p["samples"]]
        self.w = lower_median([share(classes[one]["wins"], classes[one]["pairs"]) for one in self.judged])
        self.right = lower_median([classes[one]["right"] / classes[one]["labels"] for one in self.judged])
        self.known = len(self.judged) >= 3 and self.w > p["usual"]
        self.whole = sums["count"] <= 64 * sums["senders"]
        self.tests = max(len(classes), 1) if self.whole else sums["count"]


class Course:
    """One call in one mode: windows in their order, each (updates, sums)."""

    def __init__(self, evaluation):
        self.evaluation, self.windows, self.known, self.looked = evaluation, [], [], []
        self.totals, self.needed = {}, None

    def brought(self, p, updates, sums, training):
        goes_on = self.windows and (self.windows[-1][0] == updates if self.evaluation else len(Window(p, self.windows[-1][1]).judged) < 3)
        if goes_on:
            before = self.windows[-1][1]
            for name in set(before["classes"]) | set(sums["classes"]):
                one, more = (which["classes"].get(name, {}) for which in (before, sums))
                merged = {field: one.get(field, 0) + more.get(field, 0) for field in FIELDS}
                merged["trained"] = more.get("trained", 0)
                merged["senders"] = max(one.get("senders", 0), more.get("senders", 0))
                before["classes"][name] = merged
            before["samples"] += sums["samples"]
            before["count"], before["senders"] = max(before["count"], sums["count"]), max(before["senders"], sums["senders"])
            before["trained"] = sums["trained"]
            self.windows[-1] = (updates, before)
            self.looked.pop()
        else:
            self.windows.append((updates, sums))
            self.known.append(False)
        window = Window(p, self.windows[-1][1])
        if not self.evaluation:
            for name, one in sums["classes"].items():
                self.totals[name] = self.totals.get(name, 0) + one["labels"]
            if self.needed is None and window.known:
                self.needed = lower_median([self.totals[one] for one in window.judged])
        self.known[-1] = self.known[-1] or window.known
        so, kinds = self.look(p, window, training), []
        previous = self.looked[-1] if self.looked else {kind: {} for kind in KINDS}
        since = {kind: {name: previous[kind][name] if previous[kind].get(name, 0) > 0 else updates for name in so[kind]} for kind in KINDS}
        for kind in KINDS:
            told = [name for name in so[kind] if kind == "never_seen" or (
                name in previous[kind] and (not self.evaluation or (since[kind][name] > 0 and updates >= 2 * since[kind][name])))]
            if told:
                kinds.append(kind)
        self.looked.append(since)
        return kinds, window.known

    def look(self, p, window, training):
        out, classes, samples = {kind: [] for kind in KINDS}, window.sums["classes"], window.sums["samples"]

        def late(name):
            return training is not None and (training.needed is None or training.totals.get(name, -1) < 0.5 * training.needed)

        if window.known:
            looks = sum(self.known)
            log_alpha = math.log(p["alpha"] / (looks * (looks + 1)))
            limit = 0.5 + p["lead"] * (window.w - 0.5)
            logs = {one: log_evidence(classes[one]["wins"], classes[one]["pairs"], limit) for one in window.judged}
            ranked = sorted(logs, key=lambda one: -logs[one])
            named = max((k for k in range(1, len(ranked) + 1) if logs[ranked[k - 1]] >= math.log(window.tests / k) - log_alpha), default=0)
            out["random_class"] = [one for one in ranked[:named] if not late(one)]
            for one in window.judged:
                part = classes[one]["labels"] / samples if samples else 1
                if window.right < 0.5 or classes[one]["answers"] > 0 or part >= 1 or late(one):
                    continue
                if samples * math.log1p(-part) + math.log(window.tests) <= log_alpha and \
                        classes[one]["loss"] >= 0.98 * classes[one]["labels"] * -math.log(part):
                    out["never_answered"].append(one)
        trained = window.sums["trained"]
        if self.evaluation and trained > 0 and samples > 0:
            passes = len(self.windows)
            log_alpha = math.log(p["alpha"] / (passes * (passes + 1))) - math.log(window.tests)
            for name, one in classes.items():
                if one["labels"] <= 0 or (not window.whole and one["senders"] < window.sums["senders"]):
                    continue
                if one["trained"] == 0:
                    if one["labels"] * math.log(samples / (samples + trained)) <= log_alpha:
                        out["never_seen"].append(name)
                elif len(window.judged) >= 3 and window.right >= 0.5 and one["labels"] >= p["samples"] and 2 * (one["right"] / one["labels"]) < window.right:
                    if at_least(one["labels"], one["labels"] + one["trained"], samples / (samples + trained / 4)) <= math.exp(log_alpha):
                        out["rarely_seen"].append(name)
        return out


def evaluate(p, history):
    out, courses = [], {}
    for point in history.points():
        calls = {}
        for name, by_rank in point.values.items():
            numbers = [row.columns["sum"] for _, row in by_rank if row.scalar and math.isfinite(row.columns["sum"]) and row.columns["sum"] >= 0
                       and wants(p, row, MODES) and ("/class_" in name if not p["collection_names"] and not p["tensor_regex"] else selects(p, row))]
            parts = name.split("/")
            if not numbers or parts[0] != "ledger" or len(parts) < 3 or not any(part.startswith("class_") for part in parts[2:]):
                continue
            call = calls.setdefault(parts[1], {"samples": 0, "count": 0, "trained": 0, "senders": 0, "classes": {}})
            field = parts[2][len("class_"):]
            if len(parts) == 3:
                if field in call:
                    call[field] += sum(numbers)
                if field == "count":
                    call["senders"] += len(numbers)
            else:
                one = call["classes"].setdefault(int(parts[3]), {**dict.fromkeys(FIELDS, 0), "trained": 0, "senders": 0})
                one[field] += sum(numbers)
                one["senders"] += len(numbers) if field == "labels" else 0
        for name, sums in sorted(calls.items()):
            updates = (point.step if point.mode == "train" else max(point.train_step, -1)) + 1
            course = courses.setdefault((point.mode, name), Course(point.mode == "eval"))
            kinds, known = course.brought(p, updates, sums, courses.get(("train", name)))
            outcome = HIT if kinds else OK if known else INSUFFICIENT
            out.append(Evaluation((("metric", f"ledger/{name}"), ("mode", point.mode)), outcome, point.step, tuple(kinds) or ("",), point.mode))
    return out
