"""6.3 StepOutlier: per worker and mode with more than 100 step durations: more than n_outliers of the last `window` lie above
mean + stddev · σ. Judged per evaluation period of event time: a step belongs to the period of its end."""
import statistics

from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation

DEFAULTS = {"stddev": 3, "mode": None, "n_outliers": 10, "scan_interval_us": 60_000_000, "window": 1000}
TOCSIN = {"n_outliers": 5}
CLOCK = True
ENOUGH = 100


def outliers(p, durations):
    mean = sum(durations) / len(durations)
    sigma = statistics.pstdev(durations)
    return [one for one in durations if one > mean + p["stddev"] * sigma]


def judge(p, durations):
    """Seconds of all steps until now."""
    if len(durations) <= ENOUGH:
        return INSUFFICIENT
    last = durations[-p["window"]:] if p["window"] else durations
    return HIT if len(outliers(p, last)) > p["n_outliers"] else OK


def evaluate(p, history):
    if p["preset"] == "tocsin":
        raise ValueError("what the excess of preset tocsin is measured from is the implementation's own")
    period = p["scan_interval_us"] * 1000
    steps = {}
    for rank, mode, _, _, start, end, _ in history.ends:
        if p["mode"] is None or mode == p["mode"].lower():
            steps.setdefault((rank, mode), []).append((end, (end - start) / 1e9))
    out = []
    for (rank, mode), ended in steps.items():
        for limit in sorted({(end // period + 1) * period for end, _ in ended}):
            known = [seconds for end, seconds in ended if end < limit]
            out.append(Evaluation((("mode", mode), ("worker", f"worker_{rank}")), judge(p, known), limit))
    return sorted(out, key=lambda one: one.step)
