"""45 data_wait (detection quality, section 3): waiting for data takes more than half of the time of the last 50 steps of a
worker (above 80 % it is a warning, else info)."""
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation

DEFAULTS = {}
TOCSIN = {}
NEW = True
UNIT = ("worker",)
WINDOW, LIMIT = 50, 0.5


def evaluate(p, history):
    waits = {}
    for rank, mode, name, track, _, duration, step in history.spans:
        if track == "phase" and name == "data_wait":
            waits[rank, mode, step] = waits.get((rank, mode, step), 0) + duration
    steps, out = {}, []
    for rank, mode, step, _, start, end, _ in history.ends:
        if mode not in ("train", "global"):
            continue
        known = steps.setdefault((rank, mode), [])
        known.append((waits.get((rank, mode, step), 0), end - start))
        heard = any(key[:2] == (rank, mode) and key[2] <= step for key in waits)
        last = known[-WINDOW:]
        if len(last) < WINDOW or not heard:
            outcome = INSUFFICIENT
        else:
            outcome = HIT if sum(wait for wait, _ in last) > LIMIT * sum(took for _, took in last) else OK
        out.append(Evaluation((("mode", mode), ("worker", f"worker_{rank}")), outcome, step))
    return out
