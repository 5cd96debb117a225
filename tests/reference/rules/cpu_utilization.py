"""8.2 CPUUtilization: per node with more than patience snapshots, over the last window: p50 of the core mean above
threshold_high_p50 (`saturated`), p95 of it below threshold_low_p95 (`idle`), the busiest core's mean more than core_imbalance
points above the median core's (`imbalanced`; 0 turns it off)."""
from tests.reference import system
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation

DEFAULTS = {"threshold_high_p50": 90.0, "threshold_low_p95": 0.0, "core_imbalance": 0.0, "window": 500, "patience": 1000,
            "scan_interval_us": 60_000_000}
TOCSIN = {}
CLOCK = True


def judge(p, snapshots):
    if len(snapshots) <= p["patience"]:
        return INSUFFICIENT, ()
    last = snapshots[-p["window"]:]
    means = [system.mean(one.cores.values()) for one in last]
    cores = [system.mean(value for _, value in samples) for samples in system.series(last, "cores").values()]
    kinds = []
    if system.quantile(means, 0.5) > p["threshold_high_p50"]:
        kinds.append("saturated")
    if system.quantile(means, 0.95) < p["threshold_low_p95"]:
        kinds.append("idle")
    if p["core_imbalance"] > 0 and max(cores) - system.quantile(cores, 0.5) > p["core_imbalance"]:
        kinds.append("imbalanced")
    return (HIT, tuple(kinds)) if kinds else (OK, ())


def evaluate(p, history):
    out = []
    for node, snapshots in system.snapshots(history).items():
        for end, upto, fresh in system.intervals(snapshots, p["scan_interval_us"]):
            if any(one.cores for one in fresh):
                outcome, kinds = judge(p, [one for one in upto if one.cores])
                out.append(Evaluation((("node", node),), outcome, end, kinds))
    return out
