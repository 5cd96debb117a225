"""46 update_large (detection quality, section 3): a weight matrix moves by more than 0.3 of its norm per step, twice in a
row, after two warm-up steps: mode steps 0 and 1. Modes train and global. Ours beside: by more than its norm per step at once, both
where its elements are 0.005 on average (a layer that starts at nothing grows many times over), and by more than 0.9 of its norm
between two saves, four times what it had moved by before. Of the moves before the largest counts, each save back 0.7 of it. And by three times the
pace of late per step (0.85 of it each save back; 1e-6 at least), also relative to the learning rate, twice in a row, of 16 elements or more. And
where 16 elements or more have less than a tenth of the largest norm that they ever had, or have lost 0.5 % of it per step between saves four
times in a row and a fifth in all, whatever else is known. The moves are insufficient while the worker's training loss has surely fallen since
they began."""
import math

from tests.reference import columns, losses
from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, TRAINING, Evaluation, row_unit, selects, wants

DEFAULTS = {"threshold": 0.3, "updates": 2, "once": 1, "replaced": 0.9, "faster": 3, "withered": 0.1, "shrinks": 0.005, "warmup_steps": 2, "while_falling": False}
TOCSIN = {}
NEW = True  # no counterpart in the original


def measured(p, row):
    """(delta, before, steps), or why there are none."""
    if row.columns["count"] == 0 or len(row.known.shape) < 2:
        return NOT_APPLICABLE
    found = [row.statistics.get((name, ())) for name in ("delta_l2", "prev_l2", "delta_from_step")]
    if None in found or row.step < p["warmup_steps"]:
        return INSUFFICIENT
    delta, before, since = found
    if math.isnan(delta) or math.isnan(before):
        return INSUFFICIENT
    return delta, before, row.step - since


def moves(history):
    """Shares of its norm that it moved by between two saves, where they are numbers."""
    return [delta / before for delta, before, _ in history if before != 0 and math.isfinite(delta / before)]


def goes(p, norms, row, learning_since):
    """`norms`: (step, norm) of the tensor so far; this row's is added. Whether next to nothing of it is left, or it goes that way."""
    norm = columns.l2(row.columns)
    if not math.isfinite(norm) or row.columns["count"] < 16:
        return False
    norms.append((row.step, norm))
    if norm < p["withered"] * max(one for _, one in norms):
        return True
    falls = 0
    while p["shrinks"] > 0 and falls < len(norms) - 1:
        (since, before), (step, after) = norms[-falls - 2], norms[-falls - 1]
        if not after < before * (1 - p["shrinks"]) ** (step - since):
            break
        falls += 1
    since, before = norms[-falls - 1]
    return falls >= 4 and norm < 0.8 * before and not learning_since(since)


def judge(p, known, norms, pace, row, history):
    """What the moves come to, and what is left of the tensor."""
    def learning_since(step):
        return not p["while_falling"] and losses.fallen_since(losses.before(history, row), step)

    outcome, since = moved(p, known, pace, row)
    if outcome == HIT and learning_since(since):
        outcome = INSUFFICIENT
    return HIT if outcome != NOT_APPLICABLE and goes(p, norms, row, learning_since) else outcome


class Pace:
    """How fast a tensor moved of late, and since when it has been far faster."""

    def __init__(self):
        self.plain, self.rated, self.share, self.moves, self.since = 0, 0, 0, 0, []

    def speeds(self, p, row, delta, before, steps):
        now = 1 if not row.largest_rate else row.learning_rate / row.largest_rate
        share, self.share = max(now, self.share), now
        self.moves += before != 0 and math.isfinite(delta / before)
        if p["faster"] == 0 or row.columns["count"] < 16 or not (before and share and math.isfinite(delta / before / steps / share)):
            return False
        pace = delta / before / steps
        # the move itself is not among those that are known
        known = self.moves - 1 >= 4
        if known and self.plain >= 1e-6 and starts_at_something(before, row) and pace > p["faster"] * self.plain and pace / share > p["faster"] * self.rated:
            self.since.append(row.step - steps)
            return len(self.since) >= p["updates"]
        self.since = []
        self.plain, self.rated = max(pace, 0.85 * self.plain), max(pace / share, 0.85 * self.rated)
        return False


def starts_at_something(before, row):
    return before / math.sqrt(row.columns["count"]) >= 0.005


def moved(p, known, pace, row):
    """(outcome, step from which on it moved so). `known`: what was measured of the tensor before, in order; this row is added."""
    now = measured(p, row)
    if not isinstance(now, tuple):
        return now, None
    delta, before, steps = now
    earlier = moves(known)
    usual = max((share * 0.7 ** back for back, share in enumerate(reversed(earlier))), default=0)
    replaced = p["replaced"] > 0 and len(earlier) >= 4 and delta > p["replaced"] * before and 4 * usual * before < delta
    ordinary = starts_at_something(before, row)
    once = p["once"] > 0 and ordinary and delta > p["once"] * before * steps
    known.append(now)
    faster = pace.speeds(p, row, delta, before, steps)
    newest = known[-p["updates"]:]
    again = len(newest) == p["updates"] and all(
        starts_at_something(b, row) and d > p["threshold"] * b * s for d, b, s in newest)
    if not again:
        if faster and not (replaced or once):
            return HIT, pace.since[0]
        return (HIT if replaced or once else OK), row.step - steps
    row_of = 0  # of moves that are too large
    while row_of < len(known) and starts_at_something(known[-row_of - 1][1], row) and \
            known[-row_of - 1][0] > p["threshold"] * known[-row_of - 1][1] * known[-row_of - 1][2]:
        row_of += 1
    return HIT, row.step - sum(s for _, _, s in known[-row_of:])


def evaluate(p, history):
    known, norms, paces = {}, {}, {}
    return [Evaluation(row_unit(row), judge(p, known.setdefault(row_unit(row), []), norms.setdefault(row_unit(row), []),
                                              paces.setdefault(row_unit(row), Pace()), row, history), row.step)
            for row in history.rows
            if not row.scalar and selects(p, row, roles={"weight"}) and wants(p, row, TRAINING)]
