"""5.7 OverallSystemUsage: never hits. Per node and metric min, p50, p95, p99 and max since the start, of the mean over the node's
devices in each snapshot. Quantiles are those of values that were brought to half a percent, as a bounded history keeps them."""
import math

from tests.reference import system
from tests.reference.judging import OK, Evaluation

DEFAULTS = {"scan_interval_us": 60_000_000}
TOCSIN = {}
CLOCK = True
METRICS = {"gpu": "gpus", "gpu_memory": "memory", "cpu": "cores", "cpu_memory": "node_memory", "io_wait": "waits"}


def values(snapshots, kind):
    return [system.mean(value for _, value in sorted(getattr(one, kind).items())) for one in snapshots if getattr(one, kind)]


def evaluate(p, history):
    return [Evaluation((("node", node),), OK, end) for node, snapshots in system.snapshots(history).items()
            for end, _, fresh in system.intervals(snapshots, p["scan_interval_us"])
            if any(getattr(one, kind) for one in fresh for kind in METRICS.values())]


def quantile(numbers, q):
    rounded = [math.floor(number * 2 + 0.5) / 2 for number in numbers]
    return system.quantile([min(max(number, min(numbers)), max(numbers)) for number in rounded], q)


def hint(found):
    if "gpu" not in found:
        return ""
    if quantile(found["gpu"], 0.5) > 70:
        return "well used"
    if "cpu" not in found or quantile(found["gpu"], 0.95) >= 70:
        return ""
    busy = quantile(found["cpu"], 0.95)
    if busy < 70:
        return "too little work: a smaller machine is enough"
    return "the processors probably hold the GPUs back" if busy > 70 else ""


def summary(history):
    """What the rule tells at the end of the run; empty: nothing."""
    nodes = {}
    for node, snapshots in sorted(system.snapshots(history).items()):
        found = {metric: values(snapshots, kind) for metric, kind in METRICS.items() if values(snapshots, kind)}
        if found:
            nodes[node] = {metric: {"min": min(numbers), "p50": quantile(numbers, 0.5), "p95": quantile(numbers, 0.95),
                                    "p99": quantile(numbers, 0.99), "max": max(numbers), "unit": "%"}
                           for metric, numbers in found.items()}
            if hint(found):
                nodes[node]["means"] = hint(found)
    return {"nodes": nodes} if nodes else {}
