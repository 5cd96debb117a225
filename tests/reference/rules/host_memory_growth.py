"""43 host_memory_growth (detection quality, section 3; the page of the rule says the rest): the resident memory of a process,
averaged per evaluation period after `warm_up`, lies above `growth` times its first value and has risen in each of the last
`points` periods."""
from tests.reference import system
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation

DEFAULTS = {"growth": 1.3, "points": 10, "warm_up": 300, "scan_interval_us": 60_000_000}
TOCSIN = {}
CLOCK = True
NEW = True


def judge(p, points):
    if len(points) <= p["points"]:
        return INSUFFICIENT
    last = points[-p["points"] - 1:]
    rising = all(new > old for old, new in zip(last, last[1:]))
    return HIT if rising and points[-1] > p["growth"] * points[0] else OK


def evaluate(p, history):
    out = []
    for node, snapshots in system.snapshots(history).items():
        for pid, samples in system.series(snapshots, "processes").items():
            warm = [(time, size) for time, size in samples if time - samples[0][0] >= p["warm_up"] * 10**9]
            points = []
            period = p["scan_interval_us"] * 1000
            for end in sorted({(time // period + 1) * period for time, _ in warm}):
                points.append(system.mean(size for time, size in warm if end - period <= time < end))
                out.append(Evaluation((("device", f"process {pid}"), ("node", node)), judge(p, points), end))
    return sorted(out, key=lambda one: one.step)
