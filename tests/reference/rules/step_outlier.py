"""6.3 StepOutlier: per worker and mode with more than 100 step durations: more than n_outliers of the last `window` lie above
mean + stddev · σ. Judged per evaluation period of event time: a step belongs to the period of its end. Preset tocsin judges
every 50 steps, wants a step to be longer than 3 medians and by 0.1 s, and all of them to take 20 % of all time beyond the median."""
import statistics

from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation

DEFAULTS = {"stddev": 3, "mode": None, "n_outliers": 10, "scan_interval_us": 60_000_000, "window": 1000, "every": 0,
            "median_factor": 0, "min_excess_seconds": 0, "min_excess_percent": 0}
TOCSIN = {"n_outliers": 5, "every": 50, "median_factor": 3, "min_excess_seconds": 0.1, "min_excess_percent": 20}
CLOCK = True
ENOUGH = 100


def outliers(p, durations):
    mean = sum(durations) / len(durations)
    sigma, median = statistics.pstdev(durations), statistics.median(durations)
    return [one for one in durations if one > mean + p["stddev"] * sigma and one > p["median_factor"] * median
            and (p["min_excess_seconds"] == 0 or one > median + p["min_excess_seconds"])]


def judge(p, durations):
    """Seconds of all steps until now."""
    if len(durations) <= ENOUGH:
        return INSUFFICIENT
    last = durations[-p["window"]:] if p["window"] else durations
    long = outliers(p, last)
    beyond = 100 * sum(one - statistics.median(last) for one in long) / sum(last)
    slow = p["min_excess_percent"] == 0 or beyond > p["min_excess_percent"]
    return HIT if len(long) > p["n_outliers"] and slow else OK


def by_steps(p, history):
    """Every `every` steps of a worker, and what is left at the end of the run: when the newest of them ended."""
    steps, out = {}, []
    for rank, mode, _, _, start, end, _ in history.ends:
        if p["mode"] is None or mode == p["mode"].lower():
            steps.setdefault((rank, mode), []).append((end, (end - start) / 1e9))
    for (rank, mode), ended in steps.items():
        counts = [n for n in range(1, len(ended) + 1) if n % p["every"] == 0 or n == len(ended)]
        for n in counts:
            known = [seconds for _, seconds in ended[:n]]
            out.append(Evaluation((("mode", mode), ("worker", f"worker_{rank}")), judge(p, known), ended[n - 1][0]))
    return sorted(out, key=lambda one: one.step)


def evaluate(p, history):
    if p["every"] != 0:
        return by_steps(p, history)
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
