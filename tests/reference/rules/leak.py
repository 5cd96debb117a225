"""4.2 Is it too good to be true? (docs/rules/leak.md, docs/ledger.md). Calls: sums over all steps of a mode, numbers of all workers added up.
Data sets: of several workers the first that sends a number. Gains: added up over workers."""
import math

from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, selects, wants

DEFAULTS = {"fit": 0.995, "strong_fit": 0.97, "overlap": 0.01}
TOCSIN = {}
UNIT = ("metric", "mode")
MODES = ("global", "train", "eval")
GAIN = "feature_importance/total_gain/"
HALF_ALPHA = 0.0005


def binomial_tail(hits, trials, share):
    """P(X >= hits)."""
    if hits <= 0 or share >= 1:
        return 1.0
    if share <= 0:
        return 0.0
    total = 0.0
    for i in range(int(hits), int(trials) + 1):
        total += math.exp(math.lgamma(trials + 1) - math.lgamma(i + 1) - math.lgamma(trials - i + 1)
                          + i * math.log(share) + (trials - i) * math.log1p(-share))
    return total


def upper_share(hits, trials, alpha):
    """Where trials · KL(hits/trials ‖ share) reaches ln 1/alpha."""
    if trials <= 0:
        return 1.0
    seen = min(hits / trials, 1.0)

    def cost(share):
        return trials * ((seen * math.log(seen / share) if seen > 0 else 0.0)
                         + ((1 - seen) * math.log((1 - seen) / (1 - share)) if seen < 1 else 0.0))

    low, high = seen, 1.0
    for _ in range(100):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if cost(middle) <= -math.log(alpha) else (low, middle)
    return low


def best(p, fits, shifts, equals, shuffled=False, others=None):
    """(how bad, fit, name) of the column that is told of: 3 a copy, 2 above fit, 1 above strong_fit. Of shuffled batches the next
    best column has to leave ten times as much as well, unless this one leaves nothing."""
    ranks = []
    for name, fit in fits.items():
        rank, own = 0, 1 - shifts.get(name, 0) > 10 * (1 - fit)
        if shuffled and fit <= 1 - 1e-6:
            following = max([value for other, value in (others or fits).items() if other != name] + [0])
            own = own and 1 - following > 10 * (1 - fit)
        if equals.get(name, 0) >= 0.99:
            rank = 3
        elif own and fit > p["fit"]:
            rank = 2
        elif own and fit > p["strong_fit"]:
            rank = 1
        ranks.append((rank, fit, name))
    return max(ranks, default=(0, 0, ""))


def columns(p, data):
    fits = data.get("column_fit", {})
    if data["read"] < 200 or not fits:
        return INSUFFICIENT
    return HIT if best(p, fits, data.get("shifted_fit", {}), data.get("column_equal", {}), "batches" in data)[0] else OK


def overlap(p, data):
    rows, train, repeats = data["compared"], data.get("train_compared", 0), data.get("train_repeats", 0)
    if "early" not in data:
        natural = upper_share(repeats, train, HALF_ALPHA) if repeats > 0 else 0
        if data.get("same", 0) > 0 or natural >= 1 - p["overlap"]:
            return NOT_APPLICABLE
        if rows < 1 or train < 1:
            return INSUFFICIENT
        return HIT if binomial_tail(data.get("seen", 0), rows, p["overlap"] + natural) <= HALF_ALPHA else OK
    # A network trains pass after pass, and is evaluated again and again: look k has 2^-k of alpha, each of two comparisons half of it.
    # Each: (rows found, share of them that may be there, rows that are natural, of how many).
    alpha = HALF_ALPHA * 2 ** -data.get("look", 1) / 2
    part = data["early"] / max(data.get("train_distinct", 0), 1)
    comparisons = [(data.get("seen", 0), p["overlap"], repeats, train), (data.get("early_seen", 0), p["overlap"] * part, data.get("repeats", 0), rows)]
    answers = []
    for found, allowed, natural_rows, among in comparisons:
        natural = upper_share(natural_rows, among, alpha)
        if natural < 1 - p["overlap"]:
            answers.append(binomial_tail(found, rows, allowed + natural) <= alpha)
    if data.get("same", 0) > 0 or not answers:
        return NOT_APPLICABLE
    if rows < 1 or train < 1:
        return INSUFFICIENT
    return HIT if any(answers) else OK


class Gains:
    def __init__(self):
        self.history, self.features = [], set()

    def judge(self, gains, classes, named, ordered, skill):
        total, largest = sum(gains.values()), sorted(gains.items(), key=lambda pair: (-pair[1], pair[0]))
        self.features |= set(gains)
        name, most = largest[0] if largest[0][1] > 0 else ("", 0)
        following = max([value for _, value in largest[1:]] + [0]) if name else max(value for _, value in largest)
        large = most > total / 2 and most > 5 * following if classes > 2 else most > 0.95 * total and following < 0.01 * total
        alone = total > 0 and large and skill > 0.9
        self.history.append((name, alone))
        if total <= 0 or named or name in ordered or len(self.features) < 2:
            return NOT_APPLICABLE
        if not alone:
            return OK
        return HIT if len(self.history) >= 3 and all(one == (name, True) for one in self.history[-3:]) else INSUFFICIENT


class Call:
    def __init__(self):
        self.places, self.early, self.window = [], [], 1

    def judge(self, fields, mode, updates, planned, epochs):
        """(outcome, kinds), or None: nothing is said of it."""
        kinds, judged = [], False
        if "input_places" in fields and "labels" in fields:
            self.places.append([fields.get(name, 0) for name in ("input_places", "same_as_input", "same_by_chance")])
            places, same, chance = (sum(column) for column in zip(*self.places))
            judged = places > 200
            if judged and same >= 0.99 * places and chance < 0.5 * places:
                kinds.append("target_is_input")
        one_pass = planned / epochs if epochs > 0 else 0
        if mode == "eval":
            until = max(0.01 * planned, one_pass) if epochs >= 3 else 0.01 * planned
        else:  # each sample is new
            until = min(0.01 * planned, one_pass)
        if "trivial" in fields and updates <= until:
            if mode != "eval" and updates >= 2 * self.window:
                self.early, self.window = [], updates
            self.early.append([fields.get(name, 0) for name in ("samples", "loss", "trivial")])
            samples, loss, trivial = (sum(column) for column in zip(*self.early))
            if samples >= 200 and trivial > 0:
                judged = True
                if loss < 0.01 * trivial:
                    kinds.append("too_fast")
        if "input_places" not in fields and "trivial" not in fields:
            return None
        return (HIT if kinds else OK if judged else INSUFFICIENT), tuple(kinds)


def evaluate(p, history):
    out, calls, gains, planned, epochs, classes, named, ordered = [], {}, Gains(), 0, 0, 0, False, ()
    for point in history.points():
        by_call, sets, gained = {}, {}, {}
        for name, by_rank in point.values.items():
            numbers = [row.columns["sum"] for _, row in by_rank if row.scalar and math.isfinite(row.columns["sum"]) and wants(p, row, MODES)
                       and (name.startswith(("ledger/", GAIN)) if not p["collection_names"] and not p["tensor_regex"] else selects(p, row))]
            if not numbers:
                continue
            parts = name.split("/")
            if name.startswith(GAIN):
                gained[name[len(GAIN):]] = sum(numbers)
            elif parts[:2] == ["ledger", "plan"]:
                planned = numbers[-1] if parts[2:] == ["updates"] else planned
                epochs = numbers[-1] if parts[2:] == ["epochs"] else epochs
            elif parts[:2] == ["ledger", "data"]:
                data = sets.setdefault(parts[2], {})
                if len(parts) == 4:
                    data[parts[3]] = numbers[0]
                else:
                    data.setdefault(parts[3], {})["/".join(parts[4:])] = numbers[0]
            elif parts[0] == "ledger":
                by_call.setdefault("/".join(parts[1:-1]), {})[parts[-1]] = sum(numbers)
        for call, fields in sorted(by_call.items()):
            updates = max((point.train_step if point.mode == "eval" else point.step) + 1, 0)
            answer = calls.setdefault((point.mode, call), Call()).judge(fields, point.mode, updates, planned, epochs)
            if answer:
                out.append(Evaluation((("metric", f"ledger/{call}"), ("mode", point.mode)), answer[0], point.step, answer[1] or ("",), point.mode))
        for name, data in sorted(sets.items()):
            unit = (("metric", f"ledger/data/{name}"), ("mode", point.mode))
            if name == "train":
                classes = data.get("classes", 0)
                if "read" in data:
                    outcome = columns(p, data)
                    named = outcome == HIT
                    ordered = [column for column, fit in data.get("column_fit", {}).items() if fit > p["strong_fit"]
                               and not best(p, {column: fit}, data.get("shifted_fit", {}), data.get("column_equal", {}), "batches" in data,
                                            data["column_fit"])[0]]
                    out.append(Evaluation(unit, outcome, point.step, ("target_in_input",), point.mode))
            elif "compared" in data:
                out.append(Evaluation(unit, overlap(p, data), point.step, ("overlap",), point.mode))
        if gained:
            unit = (("metric", GAIN.rstrip("/")), ("mode", point.mode))
            skills = [1 - fields["loss"] / fields["trivial"] for fields in by_call.values() if fields.get("trivial", 0) > 0 and "loss" in fields]
            out.append(Evaluation(unit, gains.judge(gained, classes, named, ordered, min(skills, default=1)), point.step, ("one_column",), point.mode))
    return out
