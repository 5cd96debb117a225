"""5.5 LoadBalancing: the distance of Jensen and Shannon between the utilisation histograms of any two GPUs of the job (or
node). Kind `unused` for pairs with a GPU that was never used, `imbalanced` for the others."""
import itertools
import math

from tests.reference import system
from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation

DEFAULTS = {"threshold": 0.5, "patience": 1000, "scan_interval_us": 60_000_000, "scope": "job"}
TOCSIN = {}
CLOCK = True
MOST_PAIRS = 64


def histogram(values):
    """50 bins of width 2 over 0 … 100, the last one closed, normalised to 1."""
    bins = [0] * 50
    for value in values:
        bins[min(int(value // 2), 49)] += 1
    return [count / len(values) for count in bins]


def divergence(p, m):
    return sum(a * math.log(a / b) for a, b in zip(p, m) if a > 0)


def distance(p, q):
    m = [(a + b) / 2 for a, b in zip(p, q)]
    return math.sqrt(max(divergence(p, m) / 2 + divergence(q, m) / 2, 0))


def silence(samples):
    """How long a device may say nothing: ten periods of 500 ms, or ten times the least distance of samples that are taken rarely."""
    nearest = min((b[0] - a[0] for a, b in zip(samples, samples[1:])), default=0)
    return 10 * min(nearest, 60 * 10**9) if nearest >= 2 * 10**9 else system.SILENT


def judge(p, gpus, end):
    """`gpus`: {name: [(time, percent)]} of all that are compared."""
    if len(gpus) < 2:
        return NOT_APPLICABLE, ()
    heard = {name: [value for _, value in samples] for name, samples in gpus.items()
             if len(samples) > p["patience"] and end - samples[-1][0] <= silence(samples)}
    if len(heard) < 2:
        return INSUFFICIENT, ()
    kinds = set()
    for a, b in itertools.combinations(heard.values(), 2):
        if distance(histogram(a), histogram(b)) > p["threshold"]:
            kinds.add("unused" if max(a) == 0 or max(b) == 0 else "imbalanced")
    return (HIT, tuple(sorted(kinds))) if kinds else (OK, ())


def evaluate(p, history):
    by_node = system.snapshots(history)
    groups = [({node: by_node[node]}, (("node", node),)) for node in by_node] if p["scope"] == "node" else [(by_node, ())]
    out = []
    for nodes, unit in groups:
        everything = sorted((one for known in nodes.values() for one in known), key=lambda one: one.time)
        for end, _, fresh in system.intervals(everything, p["scan_interval_us"]):
            if any(one.gpus for one in fresh):
                gpus = {(node, gpu): samples for node, known in nodes.items()
                        for gpu, samples in system.series([one for one in known if one.time < end], "gpus").items()}
                outcome, kinds = judge(p, gpus, end)
                out.append(Evaluation(unit, outcome, end, kinds))
    return out
