"""5.4 IOBottleneck: per node, the share of snapshots in which some GPU waits while some core waits for I/O."""
from tests.reference import system
from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation

DEFAULTS = {"threshold": 50, "gpu_threshold": 10, "io_threshold": 50, "patience": 1000, "scan_interval_us": 60_000_000,
            "window": 0}
TOCSIN = {}
CLOCK = True


def judge(p, snapshots):
    """`snapshots`: all so far that hold both a GPU and a core that says how long it waited."""
    if len(snapshots) <= p["patience"]:
        return INSUFFICIENT
    last = snapshots[-p["window"]:] if p["window"] else snapshots
    share = 100 * sum(any(gpu < p["gpu_threshold"] for gpu in one.gpus.values())
                      and any(wait > p["io_threshold"] for wait in one.waits.values()) for one in last) / len(last)
    return HIT if share > p["threshold"] else OK


def evaluate(p, history):
    out = []
    for node, snapshots in system.snapshots(history).items():
        for end, upto, fresh in system.intervals(snapshots, p["scan_interval_us"]):
            if not any(one.gpus for one in upto):
                outcome = NOT_APPLICABLE
            elif not any(one.gpus for one in fresh) or not any(one.waits for one in fresh):
                continue
            else:
                outcome = judge(p, [one for one in upto if one.gpus and one.waits])
            out.append(Evaluation((("node", node),), outcome, end))
    return out
