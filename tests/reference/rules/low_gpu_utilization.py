"""5.6 LowGPUUtilization: per GPU with more than patience samples, over the last window: p95 < threshold_p95
(`underutilized`; `unused` when all of its history is 0), or p95 ≥ threshold_p95 and p05 < threshold_p5 (`fluctuating`)."""
from tests.reference import system
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation

DEFAULTS = {"threshold_p95": 70, "threshold_p5": 10, "window": 500, "patience": 1000, "scan_interval_us": 60_000_000}
TOCSIN = {}
CLOCK = True


def judge(p, values):
    if len(values) <= p["patience"]:
        return INSUFFICIENT, ()
    last = values[-p["window"]:]
    if system.quantile(last, 0.95) < p["threshold_p95"]:
        return HIT, ("unused" if max(values) == 0 else "underutilized",)
    return (HIT, ("fluctuating",)) if system.quantile(last, 0.05) < p["threshold_p5"] else (OK, ())


def evaluate(p, history):
    out = []
    for node, snapshots in system.snapshots(history).items():
        for end, upto, fresh in system.intervals(snapshots, p["scan_interval_us"]):
            for gpu, samples in system.series(upto, "gpus").items():
                if any(gpu in one.gpus for one in fresh):
                    outcome, kinds = judge(p, [value for _, value in samples])
                    out.append(Evaluation((("device", gpu), ("node", node)), outcome, end, kinds))
    return out
