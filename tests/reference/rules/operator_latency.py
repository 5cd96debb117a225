"""8.3 TfOperatorTime: per worker, device and operator with enough calls in the last `window` profiled steps: too large a share
of the device's operator time (`dominant`), too slow (`slow`), slower than in the first full window (`regressed`)."""
import re

from tests.reference import system
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation

DEFAULTS = {"device": "any", "op_regex": (".*",), "max_share_percent": 50, "max_p95_us": None, "slowdown_factor": 3.0,
            "min_calls": 30, "window": 100}
TOCSIN = {}
UNIT = ("worker",)  # how operators and their devices are told is not laid down


def looks_at(p, track, name):
    if track != "op.cpu" and not track.startswith("op.gpu"):
        return False
    device = "cpu" if track == "op.cpu" else "gpu"
    return p["device"] in ("any", device) and any(re.search(pattern, name) for pattern in p["op_regex"])


def judge(p, calls, everything, first):
    """Durations (µs) of the operator in the window, of all operators on the device, and of the operator in the first full
    window (None: there was none yet)."""
    if len(calls) < p["min_calls"]:
        return INSUFFICIENT, ()
    kinds = []
    if 100 * sum(calls) / sum(everything) > p["max_share_percent"]:
        kinds.append("dominant")
    if p["max_p95_us"] is not None and system.quantile(calls, 0.95) > p["max_p95_us"]:
        kinds.append("slow")
    if first is not None and len(first) >= p["min_calls"]:
        if system.quantile(calls, 0.5) > p["slowdown_factor"] * system.quantile(first, 0.5):
            kinds.append("regressed")
    return (HIT, tuple(kinds)) if kinds else (OK, ())


def own_times(calls):
    """[(start, duration)] of calls on the host → what each took without those that it made: they begin after it and end within it;
    of several that hold a call the one that began last did, of those the shortest. Never less than nothing."""
    def holder(call):
        held = [other for other in range(len(calls)) if calls[other][0] < call[0] and sum(calls[other]) >= sum(call)]
        return max(held, key=lambda other: (calls[other][0], -calls[other][1], other)) if held else None

    own = [duration for _, duration in calls]
    for call in calls:
        if (at := holder(call)) is not None:
            own[at] -= call[1]
    return [max(one, 0) for one in own]


def evaluate(p, history):
    spans = {}  # (rank, mode, step) -> [(track, name, start, duration)]
    for rank, mode, name, track, start, duration, step in history.spans:
        if track == "op.cpu" or track.startswith("op.gpu"):
            spans.setdefault((rank, mode, step), []).append((track, name, start, duration))
    calls = {}  # (rank, mode) -> {step: {(track, name): [µs]}}
    for (rank, mode, step), made in spans.items():
        host = [one for one in made if one[0] == "op.cpu"]
        took = [(track, name, own) for (track, name, _, _), own in zip(host, own_times([one[2:] for one in host]))]
        took += [(track, name, duration) for track, name, _, duration in made if track != "op.cpu"]
        of = calls.setdefault((rank, mode), {}).setdefault(step, {})
        for track, name, duration in took:
            of.setdefault((track, name), []).append(duration / 1000)
    out = []
    for (rank, mode), steps in calls.items():
        order = sorted(steps)
        for i, step in enumerate(order):
            window = order[max(0, i + 1 - p["window"]):i + 1]
            first = order[:p["window"]] if i + 1 >= p["window"] else []
            for track, name in sorted({key for one in window for key in steps[one]}):
                if not looks_at(p, track, name):
                    continue
                of = [x for one in window for x in steps[one].get((track, name), ())]
                everything = [x for one in window for (t, _), xs in steps[one].items() if t == track for x in xs]
                began = [x for one in first for x in steps[one].get((track, name), ())] if first else None
                outcome, kinds = judge(p, of, everything, began)
                unit = (("device", track), ("metric", name), ("mode", mode), ("worker", f"worker_{rank}"))
                out.append(Evaluation(unit, outcome, step, kinds))
    return out
