"""6.4 Dataloader: per node and second the number of data-loading processes with an event that starts in it; the whole part of
the median against the node's cores: `too_few`, `too_many`. Judged per evaluation period of event time."""
import math
import statistics

from tests.reference import system
from tests.reference.judging import HIT, INSUFFICIENT, OK, Evaluation

DEFAULTS = {"min_threshold": 70, "max_threshold": 200, "patience": 10, "scan_interval_us": 60_000_000}
TOCSIN = {}
CLOCK = True
SECONDS = 1000


def judge(p, bins, cores):
    """`bins`: {second: set of processes}."""
    if len(bins) <= p["patience"] or cores == 0:
        return INSUFFICIENT, ()
    counts = [len(bins[second]) for second in sorted(bins)[-SECONDS:]]
    k = math.floor(statistics.median(counts))
    if k < cores * p["min_threshold"] / 100:
        return HIT, ("too_few",)
    return (HIT, ("too_many",)) if k > cores * p["max_threshold"] / 100 else (OK, ())


def evaluate(p, history):
    nodes = {record["rank"]: record["body"].get("node") or record["body"].get("host") for record in history.records
             if record["kind"] == "lifecycle" and record["body"]["event"] == "start"}
    events = {}
    for rank, _, _, track, start, _, _ in history.spans:
        if track.startswith("dataloader/"):
            events.setdefault(nodes[rank], []).append((start, (rank, track)))
    period = p["scan_interval_us"] * 1000
    out = []
    for node, known in events.items():
        snapshots = system.snapshots(history).get(node, [])
        for end in sorted({(start // period + 1) * period for start, _ in known}):
            fresh = [one for one in snapshots if end - period <= one.time < end and one.cores]
            if not fresh:
                continue  # no new sample of the cores
            bins = {}
            for start, process in known:
                if start < end:
                    bins.setdefault(start // 10**9, set()).add(process)
            cores = len({core for one in snapshots if one.time < end for core in one.cores})
            outcome, kinds = judge(p, bins, cores)
            out.append(Evaluation((("node", node),), outcome, end, kinds))
    return sorted(out, key=lambda one: one.step)
