"""Rules of the user's own a second time, from what docs/custom-rules.md says: rows with windows and folds, one after another,
one and not another, fired(), other(), and pieces of steps folded over workers. Everything is computed from the whole history."""
import math

from tests.reference.judging import ALL_MODES, HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation, settle

TRAINING = ("train", "global")


class Axis:
    """Where steps stand on the axis of training: (train step, 0), behind it what is evaluated: (train step, 1)."""

    def __init__(self, history):
        trained, self.behind, self.ended = {}, {}, {}
        for rank, mode, step, *_ in history.ends:
            self.ended.setdefault((mode, step), set()).add(rank)
            if mode == "train":
                trained[rank] = step
            elif mode != "global":
                after = trained.get(rank, -math.inf)
                self.behind[mode, step] = max(self.behind.get((mode, step), -math.inf), after)
        self.clock = next((mode for mode in TRAINING if any(one == mode for one, _ in self.ended)), None)
        self.settled = sorted(step for mode, step in self.ended if mode == self.clock)

    def place(self, mode, step):
        return (step, 0) if mode in TRAINING else (self.behind[mode, step], 1) if (mode, step) in self.behind else None


def row_evaluations(rule, history):
    """A condition over one row: `above` a limit."""
    return [Evaluation((("metric", row.name), ("mode", row.mode), ("worker", row.worker)),
                       INSUFFICIENT if math.isnan(row.columns["sum"]) else HIT if row.columns["sum"] > rule["above"] else OK,
                       row.step)
            for row in history.rows if row.scalar and row.name == rule["metric"]]


def hits(rule, history):
    """[(mode, step, unit)] at which it would report: `for` hits in a row."""
    out, row = [], {}
    for one in row_evaluations(rule, history):
        if one.outcome == OK:
            row[one.unit] = 0
        elif one.outcome == HIT:
            row[one.unit] = row.get(one.unit, 0) + 1
            if row[one.unit] >= rule["for"]:
                out.append((dict(one.unit)["mode"], one.step, dict(one.unit)))
    return out


def by_place(rules, name, by, axis, history):
    """{unit: {place: first (mode, step) there}} of the hits of a rule."""
    out = {}
    for mode, step, labels in hits(rules[name], history):
        place = axis.place(mode, step)
        unit = tuple(labels[label] for label in by)
        if place is not None:
            places = out.setdefault(unit, {})
            order = ALL_MODES.index(mode)
            places[place] = min(places.get(place, (9, 0)), (order, step))
    return out


def chain(links, broken, within, last):
    """Whether some hits of `links` one after another end at the place `last`, begin at most `within` before it, and have no
    hit of `broken` behind the first and up to the last."""
    if last not in links[-1]:
        return False

    def complete(number, behind, first):
        if number == len(links) - 1:
            return behind < last and last[0] - first[0] <= within and not any(first < one <= last for one in broken)
        return any(complete(number + 1, place, first if number else place) for place in links[number]
                   if place < last and (number == 0 or place > behind))
    return complete(0, (-math.inf, -1), None)


def sequence_evaluations(rules, rule, history):
    axis = Axis(history)
    by = rule.get("by", [])
    of = {name: by_place(rules, name, by, axis, history) for name in {*rule["sequence"], *rule["without"]}}
    ends = [((step, 0), axis.clock, step) for step in axis.settled]
    everything = [place for units in of.values() for places in units.values() for place in places]
    if ends and any(place > ends[-1][0] for place in everything):
        # What was evaluated behind the last training step is judged with the end of the input, where its newest hit is.
        newest = max(at for units in of.values() for places in units.values() for place, at in places.items()
                     if place == max(everything))
        ends.append((max(everything), None, newest[1]))
    units = sorted({unit for found in of.values() for unit in found})
    out = []
    for unit in units:
        links = [sorted(of[name].get(unit, ())) for name in rule["sequence"]]
        broken = [place for name in rule["without"] for place in of[name].get(unit, ())]
        labels = tuple(zip(by, unit))
        before, held = (-math.inf, -1), None
        began = min(place for found in of.values() for place in found.get(unit, ()))
        for place, mode, step in ends:
            if place < began and place[0] < began[0]:
                before = place
                continue
            if len(links) == 1:
                pending = [a for a in links[0] if a <= place and not any(a < one <= place for one in broken)]
                met = bool(pending) and place[0] - min(pending)[0] >= rule["within"]
                at = mode, step
            else:
                met, at = False, (mode, step)
                for last in [one for one in links[-1] if before < one <= place]:
                    whole = chain(links, broken, rule["within"], last)
                    if whole or (held is not None):
                        held, met, at = last, True, where_last(of, rule, unit, last)
                if held is not None and place[0] - held[0] > rule["within"]:
                    held = None
            out.append(Evaluation(labels, HIT if met else OK, at[1], mode=at[0]))
            before = place
    return out


def where_last(of, rule, unit, place):
    """Mode and step that a hit of the last rule stands at. Other rules of the same place may stand at an earlier one."""
    order, step = min(at for name in {*rule["sequence"], *rule["without"]} for one, at in of[name].get(unit, {}).items() if one == place)
    return ALL_MODES[order], step


def fired_evaluations(rules, rule, history):
    """value > above and fired(rule, steps)."""
    axis = Axis(history)
    places = [axis.place(mode, step) for mode, step, _ in hits(rules[rule["fired"]], history)]
    places = [place for place in places if place is not None]
    out = []
    for row in history.rows:
        if not row.scalar or row.name != rule["metric"]:
            continue
        place = axis.place(row.mode, row.step)
        if place is None:
            continue
        value = row.columns["sum"]
        lately = any(one <= place and (rule["steps"] is None or place[0] - one[0] <= rule["steps"]) for one in places)
        unit = (("metric", row.name), ("mode", row.mode), ("worker", row.worker))
        known = not math.isnan(value)
        outcome = OK if not lately or (known and value <= rule["above"]) else HIT if known else INSUFFICIENT
        out.append((place, row.rank, Evaluation(unit, outcome, row.step)))
    return [one for _, _, one in sorted(out, key=lambda item: item[:2])]


def other_evaluations(rule, history):
    """value > factor * other(run, value)."""
    theirs, newest, over = {}, {}, False
    if history.other is not None:
        theirs = {(row.rank, row.mode, row.step): row.columns["sum"] for row in history.other.rows if row.name == rule["metric"]}
        over = history.other.ended_at is not None
        for rank, mode, step, *_ in history.other.ends:
            newest[rank, mode] = max(newest.get((rank, mode), -math.inf), step)
    mine = {}
    for rank, mode, step, *_ in history.ends:
        mine[rank, mode] = max(mine.get((rank, mode), -math.inf), step)
    out = []
    for row in history.rows:
        if not row.scalar or row.name != rule["metric"]:
            continue
        there = history.other is not None and (over or newest.get((row.rank, row.mode), -math.inf) >= row.step)
        here = history.ended_at is not None or mine.get((row.rank, row.mode), -math.inf) >= row.step
        if not there or not here:
            continue
        unit = (("metric", row.name), ("mode", row.mode), ("worker", row.worker))
        value, other = row.columns["sum"], theirs.get((row.rank, row.mode, row.step))
        if other is None:
            out.append(Evaluation(unit, NOT_APPLICABLE, row.step))
        elif math.isnan(value) or math.isnan(other):
            out.append(Evaluation(unit, INSUFFICIENT, row.step))
        else:
            out.append(Evaluation(unit, HIT if value > rule["factor"] * other else OK, row.step))
    return out


def piece_evaluations(rule, history):
    """across(max, mean(value)) > above, every so many steps, over the workers that had something in the piece."""
    out, open_pieces = [], {}

    def judge(unit, step):
        _, values = open_pieces.pop(unit)
        means = [sum(finite) / len(finite) for finite in ([one for one in own if math.isfinite(one)] for own in values.values()) if finite]
        out.append(Evaluation(unit, INSUFFICIENT if not means else HIT if max(means) > rule["above"] else OK, step))

    for point in history.points():
        if rule["metric"] not in point.values:
            continue
        unit = (("metric", rule["metric"]), ("mode", point.mode))
        late = unit in open_pieces and point.step >= open_pieces[unit][0]
        if late:
            judge(unit, point.step)
        end, values = open_pieces.setdefault(unit, ((point.step // rule["every"] + 1) * rule["every"], {}))
        for rank, row in point.values[rule["metric"]]:
            values.setdefault(rank, []).append(row.columns["sum"])
        if not late and point.step == end - 1:
            judge(unit, point.step)
    return out


KINDS = {"pieces": lambda rules, rule, history: piece_evaluations(rule, history),
         "row": lambda rules, rule, history: row_evaluations(rule, history), "sequence": sequence_evaluations,
         "fired": fired_evaluations, "other": lambda rules, rule, history: other_evaluations(rule, history)}


def judge(rules, name, history):
    """(episodes, whether there was one) of one of the rules."""
    rule = rules[name]
    p = {"min_hits": rule["for"], "clear_after": rule["clear_after"], "max_open_units": 20}
    return settle(name, p, KINDS[rule["kind"]](rules, rule, history))[0]


def spelled(name, rule, run):
    """The rule as an item of `rules:`."""
    out = {"name": name, "for": rule["for"], "clear_after": rule["clear_after"]}
    if rule["kind"] == "sequence":
        out.update({"sequence": rule["sequence"], "within": f"{rule['within']} steps"})
        out.update({"without": rule["without"]} if rule["without"] else {})
        out.update({"by": rule["by"]} if rule.get("by") else {})
        return out
    if rule["kind"] == "pieces":
        return {**out, "select": f"metric(\"{rule['metric']}\")", "by": ["metric"], "window": f"every {rule['every']} steps",
                "when": f"across(max, mean(value)) > {rule['above']}"}
    when = f"value > {rule['above']}" if "above" in rule else f"value > {rule['factor']} * other(\"{run}\", value)"
    if rule["kind"] == "fired":
        steps = "" if rule["steps"] is None else f", {rule['steps']} steps"
        when += f" and fired(\"{rule['fired']}\"{steps})"
    return {**out, "select": f"metric(\"{rule['metric']}\")", "when": when}
