"""5.3 GPUMemoryIncrease: per GPU, at each sample after more than max(patience, 2 · window): the mean of the last window lies
more than `increase` percentage points above that of the window before it."""
from tests.reference import system
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation

DEFAULTS = {"increase": 5, "patience": 1000, "window": 10, "scan_interval_us": 60_000_000}
TOCSIN = {}
CLOCK = True


def judge(p, values):
    w = p["window"]
    if len(values) <= max(p["patience"], 2 * w):
        return INSUFFICIENT
    return HIT if system.mean(values[-w:]) - system.mean(values[-2 * w:-w]) > p["increase"] else OK


def evaluate(p, history):
    out = []
    for node, snapshots in system.snapshots(history).items():
        for gpu, samples in system.series(snapshots, "memory").items():
            for i, (time, _) in enumerate(samples):
                out.append(Evaluation((("device", gpu), ("node", node)), judge(p, [value for _, value in samples[:i + 1]]), time))
    return sorted(out, key=lambda one: one.step)
