"""8.1 HardwareUtilization: per node and resource (mean of its devices per snapshot), after more than patience samples, over
the last window: p95 < low_p95 (`under`), p50 > high_p50 (`over`)."""
from tests.reference import system
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation

DEFAULTS = {"resources": ("gpu", "gpu_memory", "cpu", "cpu_memory"), "low_p95": {}, "high_p50": {}, "window": 500,
            "patience": 1000, "scan_interval_us": 60_000_000}
TOCSIN = {}
CLOCK = True
UNIT = ("node",)  # how the resource is told is not laid down
KINDS = {"gpu": "gpus", "gpu_memory": "memory", "cpu": "cores", "cpu_memory": "node_memory", "io_wait": "waits"}
LOW = {"gpu": 30}
HIGH = {"cpu": 95, "cpu_memory": 95, "gpu_memory": 97, "io_wait": 50}


def judge(p, resource, values):
    if len(values) <= p["patience"]:
        return INSUFFICIENT, ()
    last = values[-p["window"]:]
    low = {**LOW, **p["low_p95"]}.get(resource)  # given keys replace single defaults; null removes one
    high = {**HIGH, **p["high_p50"]}.get(resource)
    kinds = (["under"] if low is not None and system.quantile(last, 0.95) < low else [])
    kinds += ["over"] if high is not None and system.quantile(last, 0.5) > high else []
    return (HIT, tuple(kinds)) if kinds else (OK, ())


def evaluate(p, history):
    out = []
    for node, snapshots in system.snapshots(history).items():
        for end, upto, fresh in system.intervals(snapshots, p["scan_interval_us"]):
            for resource in p["resources"]:
                kind = KINDS[resource]
                if any(getattr(one, kind) for one in fresh):
                    values = [system.mean(getattr(one, kind).values()) for one in upto if getattr(one, kind)]
                    outcome, kinds = judge(p, resource, values)
                    out.append(Evaluation((("device", resource), ("node", node)), outcome, end, kinds))
    return out
