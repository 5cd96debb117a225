"""4.10 precision (detection principles): do updates survive the precision in which weights are stored. Of the elements with a
gradient, u = the share that updates left unchanged; `swallowed` u > 0.9 over 64 updates, and as many were changed by none of them.
`skipped`: a loss scaler left out more than a fifth of 100 updates, the first 100 apart."""
from tests.reference.judging import HIT, INSUFFICIENT, OK, TRAINING, Evaluation, selects, wants

DEFAULTS = {"share": 0.9, "updates": 64, "skipped": 0.2, "attempts": 100, "zeros": 0.5}
TOCSIN = {}
NEW = True
ROOM = "ledger/precision/"


class Worker:
    """One rank in one mode: what was said since the last judgement of either kind."""

    def __init__(self):
        self.updates, self.attempts, self.settled = [], [], False
        self.words = {}  # tensor -> (share of zeros, loss scale) at its words


def judge(p, state, said):
    """[(what is judged, its outcome, the kind of a hit)]"""
    out = []
    if {"elements", "swallowed"} <= set(said):
        state.updates.append((said["elements"], said["swallowed"]))
    if {"window", "unmoved"} <= set(said):
        elements, swallowed = map(sum, zip(*state.updates)) if state.updates else (0, 0)
        if len(state.updates) < p["updates"] or elements <= 0 or said["window"] <= 0:
            out.append(("weights", INSUFFICIENT, "swallowed"))
        else:
            lost = swallowed > p["share"] * elements and said["unmoved"] > p["share"] * said["window"]
            out.append(("weights", HIT if lost else OK, "swallowed"))
            state.updates = []
    if "scaled" in said:
        state.attempts.append((said["scaled"], said.get("left_out", 0)))
        asked, left_out = map(sum, zip(*state.attempts))
        if asked >= p["attempts"]:
            if state.settled:
                out.append(("loss_scale", HIT if left_out > p["skipped"] * asked else OK, "skipped"))
            state.attempts, state.settled = [], True
    if "scale" in said:
        for name in sorted(said):
            if name.startswith("underflow/") and (name in state.words or len(state.words) < 32):
                state.words.setdefault(name, []).append((said[name], said["scale"]))
        for name, words in sorted(state.words.items()):
            lost = len(words) >= 3 and all(zeros > p["zeros"] and scale <= 1 for zeros, scale in words[-3:])
            out.append((name[len("underflow/"):], HIT if lost else OK, "underflow"))
        if not state.words:
            out.append(("gradients", OK if said.get("scale_tensors", -1) > 0 else INSUFFICIENT, "underflow"))
    return out


def evaluate(p, history):
    out, states = [], {}
    for point in history.points():
        said = {}  # worker -> field -> value
        for name, by_rank in point.values.items():
            for _, row in by_rank:
                chosen = selects(p, row) if p["collection_names"] or p["tensor_regex"] else True
                if row.scalar and chosen and name.startswith(ROOM) and wants(p, row, TRAINING) and row.columns["sum"] >= 0:
                    said.setdefault(row.worker, {})[name[len(ROOM):]] = row.columns["sum"]
        for worker, fields in sorted(said.items()):
            state = states.setdefault((worker, point.mode), Worker())
            for metric, outcome, kind in judge(p, state, fields):
                unit = (("metric", metric), ("mode", point.mode), ("worker", worker))
                out.append(Evaluation(unit, outcome, point.step, (kind,)))
    return out
