"""6.2 OverallFrameworkMetrics: never hits. Sums durations: steps by mode and the time between the steps of a worker (`others`), and
spans by track and name. Shares are of summed time; of operators, communication and data loading those at or below 2 % are left
out and the rest brought to 100."""
from tests.reference.judging import OK, Evaluation

DEFAULTS = {"scan_interval_us": 60_000_000}
TOCSIN = {}
CLOCK = True
UNIT = ()
ORDER = ("global", "train", "eval", "predict")


def evaluate(p, history):
    """Whether there was anything at all."""
    ended = [end for _, _, _, _, start, end, _ in history.ends if end > start]
    return [Evaluation((), OK, end) for end in (ended + [start + took for *_, start, took, _ in history.spans])[:1]]


def shares(found, least):
    """Empty without anything above `least` of the whole."""
    whole = sum(found.values())
    kept = {name: took for name, took in found.items() if took > least * whole}
    if not kept:
        return {}
    order = sorted(kept.items(), key=lambda pair: (-pair[1], pair[0]))
    return {"seconds": whole / 1e9, "percent": {name: 100 * took / sum(kept.values()) for name, took in order}}


def summary(history):
    steps, newest, out = {}, {}, {}
    for rank, mode, _, _, start, end, _ in history.ends:
        if end > start:
            steps[mode] = steps.get(mode, 0) + end - start
            if rank in newest and start > newest[rank]:
                steps["others"] = steps.get("others", 0) + start - newest[rank]
        newest[rank] = end
    if shares(steps, 0):
        out["steps"] = shares(steps, 0)
        if out["steps"]["percent"].get("others", 0) > 25:
            out["steps"]["means"] = "much of the time passes between steps"
    spans, tracks = {}, {}
    for _, _, name, track, _, took, _ in history.spans:
        of = spans.setdefault("dataloader" if track.startswith("dataloader/") else track, {})
        of[name] = of.get(name, 0) + took
    for track, found in sorted(spans.items()):
        told = shares(found, 0 if track == "phase" else 0.02)
        both = [found.get("forward", 0), found.get("backward", 0)]
        if track == "phase" and min(both) > 0 and max(both) > 0.7 * sum(both):
            told["means"] = (f"{'forward' if both[0] > both[1] else 'backward'} takes {100 * max(both) / sum(both):.3g} % of the time of forward and backward")
        if told:
            tracks[track] = told
    if tracks:
        out["tracks"] = tracks
    return out
