"""5.1 BatchSize: per node and GPU, the 95 % quantiles of the mean core, the GPU and its memory all lie below their limits."""
from tests.reference import system
from tests.reference.judging import HIT, INSUFFICIENT, NOT_APPLICABLE, OK, Evaluation

DEFAULTS = {"cpu_threshold_p95": 70, "gpu_threshold_p95": 70, "gpu_memory_threshold_p95": 70, "patience": 1000, "window": 500,
            "scan_interval_us": 60_000_000}
TOCSIN = {}
CLOCK = True


def judge(p, cpu, gpu, memory):
    if len(cpu) <= max(p["window"], p["patience"]) or len(gpu) <= p["window"] or len(memory) <= p["window"]:
        return INSUFFICIENT
    below = [system.quantile(values[-p["window"]:], 0.95) < limit
             for values, limit in ((cpu, p["cpu_threshold_p95"]), (gpu, p["gpu_threshold_p95"]),
                                   (memory, p["gpu_memory_threshold_p95"]))]
    return HIT if all(below) else OK


def evaluate(p, history):
    out = []
    for node, snapshots in system.snapshots(history).items():
        for end, upto, fresh in system.intervals(snapshots, p["scan_interval_us"]):
            cpu = [system.mean(one.cores.values()) for one in upto if one.cores]
            gpus, memory = system.series(upto, "gpus"), system.series(upto, "memory")
            if not gpus:
                out.append(Evaluation((("node", node),), NOT_APPLICABLE, end))
            for gpu, samples in gpus.items():
                if (any(one.cores for one in fresh) and any(gpu in one.gpus for one in fresh)
                        and any(gpu in one.memory for one in fresh)):
                    outcome = judge(p, cpu, [value for _, value in samples], [value for _, value in memory[gpu]])
                    out.append(Evaluation((("device", gpu), ("node", node)), outcome, end))
    return out
