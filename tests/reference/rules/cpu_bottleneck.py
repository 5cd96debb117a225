"""5.2 CPUBottleneck: per node, the share of snapshots in which some GPU waits while some core (or their mean) is busy."""
from tests.reference import system
from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation

DEFAULTS = {"threshold": 50, "gpu_threshold": 10, "cpu_threshold": 90, "patience": 1000, "scan_interval_us": 60_000_000,
            "cpu_aggregate": "any_core", "window": 0}
TOCSIN = {}
CLOCK = True


def is_bottleneck(p, snapshot):
    busy = [sum(snapshot.cores.values()) / len(snapshot.cores)] if p["cpu_aggregate"] == "mean" else snapshot.cores.values()
    return (any(one < p["gpu_threshold"] for one in snapshot.gpus.values())
            and any(one > p["cpu_threshold"] for one in busy))


def judge(p, snapshots):
    """`snapshots`: all so far that hold both a GPU and a core."""
    if len(snapshots) <= p["patience"]:
        return INSUFFICIENT
    last = snapshots[-p["window"]:] if p["window"] else snapshots
    share = 100 * sum(is_bottleneck(p, one) for one in last) / len(last)
    return HIT if share > p["threshold"] else OK


def evaluate(p, history):
    out = []
    for node, snapshots in system.snapshots(history).items():
        for end, upto, fresh in system.intervals(snapshots, p["scan_interval_us"]):
            both = [one for one in upto if one.gpus and one.cores]
            if not any(one.gpus for one in upto):
                outcome = NOT_APPLICABLE
            elif not any(one.gpus for one in fresh) or not any(one.cores for one in fresh):
                continue  # lacks one of the inputs: not judged again
            else:
                outcome = judge(p, both)
            out.append(Evaluation((("node", node),), outcome, end))
    return sorted(out, key=lambda one: one.step)
