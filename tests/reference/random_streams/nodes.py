"""Random streams for the rules that look at nodes and at clocks."""
import math

from tests.reference import story

SECOND = story.SECOND


def stalled_training_rule(chance):
    threshold = chance.choice((5, 7, 30))
    scope = chance.choice(("run", "run", "worker"))
    world = 1 if scope == "run" and chance.random() < 0.5 else 2
    rules = [{"use": "stalled_training_rule", "with": {"threshold": threshold, "scope": scope}}]
    workers = []
    for rank in range(world):
        worker = story.Worker(rank, world, tick=0)
        worker.start()
        for _ in range(chance.randint(0, 15)):
            worker.now += chance.choice((SECOND // 7, SECOND, threshold * SECOND // 3, threshold * SECOND,
                                         threshold * SECOND + 1, 2 * threshold * SECOND))
            if chance.random() < 0.15:
                worker.heartbeat()
                continue
            worker.enter("train")
            if chance.random() < 0.7:
                worker.scalars(("loss", 1.0))
            worker.step_end()
        workers.append(worker)
    if scope == "worker":
        # One more goes on all the time, so that it is never the run that is silent.
        steady = story.Worker(world, world + 1, tick=0)
        for worker in workers:
            for record in worker.records:
                record["world"] = world + 1
        steady.start()
        until = max(worker.now for worker in workers) + 3 * threshold * SECOND
        while steady.now < until:
            steady.now += threshold * SECOND // 4 + 13
            steady.enter("train")
            steady.step_end()
        workers.append(steady)
    if chance.random() < 0.7:
        for worker in workers:
            worker.now += chance.choice((0, SECOND, 3 * threshold * SECOND)) if scope == "run" else 0
            worker.end()
    elif chance.random() < 0.5:
        workers[0].now += 3 * threshold * SECOND
        workers[0].heartbeat()
    return rules, story.interleave(workers)


def cpu_bottleneck(chance):
    parameters = {**paced(chance), "threshold": chance.choice((50, 25, 0))}
    if chance.random() < 0.4:
        parameters["cpu_aggregate"] = "mean"
    if chance.random() < 0.4:
        parameters["window"] = chance.choice((1, 3, 8))
    return item(chance, "cpu_bottleneck", parameters), play(chance)


def io_bottleneck(chance):
    parameters = {**paced(chance), "threshold": chance.choice((50, 25, 0))}
    if chance.random() < 0.4:
        parameters["window"] = chance.choice((1, 3, 8))
    return item(chance, "io_bottleneck", parameters), play(chance, waits=True)


def low_gpu_utilization(chance):
    parameters = {**paced(chance), "window": chance.choice((1, 3, 10)), "threshold_p95": chance.choice((70, 70, 90, 5))}
    return item(chance, "low_gpu_utilization", parameters), play(chance)


def gpu_memory_increase(chance):
    parameters = {**paced(chance), "window": chance.choice((1, 2, 5)), "increase": chance.choice((5, 20, 0))}
    return item(chance, "gpu_memory_increase", parameters), play(chance, memory=True)


def batch_size(chance):
    parameters = {**paced(chance), "window": chance.choice((1, 3, 8))}
    if chance.random() < 0.5:
        parameters["cpu_threshold_p95"] = 99
    return item(chance, "batch_size", parameters), play(chance, memory=True)


def load_balancing(chance):
    parameters = {**paced(chance, least=1), "threshold": chance.choice((0.5, 0.2, 0.8)), "scope": chance.choice(("job", "node"))}
    return item(chance, "load_balancing", parameters), play(chance, worlds=(1, 2, 3), steady=True)


def hardware_utilization(chance):
    parameters = {**paced(chance, least=1), "window": chance.choice((1, 3, 8))}
    if chance.random() < 0.5:
        parameters["resources"] = chance.sample(["gpu", "gpu_memory", "cpu", "cpu_memory", "io_wait"], 3)
    if chance.random() < 0.4:
        parameters["low_p95"] = {"cpu": 30, "gpu": None}
    if chance.random() < 0.4:
        parameters["high_p50"] = {"gpu": 50}
    return item(chance, "hardware_utilization", parameters), play(chance, memory=True, waits=True)


def cpu_utilization(chance):
    parameters = {**paced(chance, least=1), "window": chance.choice((1, 3, 8))}
    if chance.random() < 0.5:
        parameters["threshold_low_p95"] = 40
    if chance.random() < 0.5:
        parameters["core_imbalance"] = chance.choice((10, 60))
    return item(chance, "cpu_utilization", parameters), play(chance)


def overall_system_usage(chance):
    return (item(chance, "overall_system_usage", {"scan_interval_us": 1_000_000}),
            play(chance, memory=True, waits=True, worlds=(1, 2, 3)))


def profiler_report(chance):
    parameters = {"scan_interval_us": 1_000_000}
    for rule in chance.sample(("CPUBottleneck", "io_bottleneck", "LowGPUUtilization", "BatchSize", "GPUMemoryIncrease"), 3):
        for name, value in {"patience": chance.choice((0, 2, 5)), "scan_interval_us": chance.choice((1_000_000, 2_500_000))}.items():
            parameters[f"{rule}_{name}"] = value
    rules = [{"use": "profiler_report", "preset": "original", "with": parameters}]
    return rules, play(chance, memory=True, waits=True)


def item(chance, rule, parameters):
    return [{"use": rule, "preset": chance.choice(("tocsin", "original")), "with": parameters}]


def paced(chance, least=0):
    """Patience and period, and some of what all rules share."""
    out = {"patience": chance.choice((least, 2, 5)), "scan_interval_us": chance.choice((1_000_000, 2_500_000))}
    if chance.random() < 0.3:
        out["min_hits"] = 2
    if chance.random() < 0.3:
        out["clear_after"] = 1
    return out


def play(chance, memory=False, waits=False, worlds=(1, 1, 2), steady=False):
    """Samples of some nodes with devices that are busy, idle or both by turns, that fall silent, or that say nonsense.
    `steady`: every 500 ms, where a rule looks at how long a device has been silent."""
    nodes = [node(chance, name, memory, waits, steady) for name in ("node-a", "node-b", "node-c")[:chance.choice(worlds)]]
    worker = story.Worker(0, 1)
    worker.start()
    worker.enter("train")
    worker.step_end()
    records = story.interleave([worker, *nodes])
    worker.now = records[-1]["time"]
    return [*records, {**worker.end(), "at": records[-1]["at"]}]


def node(chance, name, memory, waits, steady):
    out = story.Node(name)
    gpus, cores = chance.choice((0, 1, 2, 2)), chance.choice((0, 1, 4))
    time = story.START + chance.randint(0, 10**9)
    busy = chance.random()
    silent = chance.random() < 0.3
    never = chance.random() < 0.2  # the last GPU is never used
    used = 0.2
    for _ in range(chance.randint(2, 40)):
        time += 5 * 10**8 if steady else chance.choice((10**8, 3 * 10**8, 5 * 10**8, 2 * 10**9))
        if chance.random() < 0.1:
            busy = chance.random()
        if chance.random() < 0.1:
            used = chance.choice((0.2, 0.26, 0.5, 0.98))
        values = {}
        without = silent and chance.random() < 0.5
        for gpu in range(0 if without else gpus):
            ratio = odd(chance, 0.05 if chance.random() < busy else 0.9)
            values[f"hw.gpu.utilization{{hw.id={gpu}}}"] = 0.0 if never and gpu == gpus - 1 else ratio
            if memory and chance.random() < 0.9:
                values[f"hw.gpu.memory.utilization{{hw.id={gpu}}}"] = odd(chance, used)
        for core in range(cores):
            idle = odd(chance, 0.02 if chance.random() < busy else 0.75)
            values[f"system.cpu.utilization{{cpu.logical_number={core},cpu.mode=idle}}"] = idle
            if waits and chance.random() < 0.9:
                ratio = odd(chance, 0.6 if chance.random() < busy else 0.01)
                values[f"system.cpu.utilization{{cpu.logical_number={core},cpu.mode=iowait}}"] = ratio
        if memory and chance.random() < 0.5:
            values["system.memory.utilization{system.memory.state=used}"] = odd(chance, chance.choice((0.5, 0.97)))
        if not values:
            continue
        if len(values) > 1 and not steady and chance.random() < 0.3:  # one snapshot in two sweeps
            names = list(values)
            out.samples(time, {one: values[one] for one in names[:1]})
            out.samples(time + chance.choice((1, 20 * 10**6)), {one: values[one] for one in names[1:]})
        else:
            out.samples(time, values)
    return out


def odd(chance, ratio):
    if chance.random() < 0.03:
        return chance.choice((math.nan, -0.1, 1.5))
    return ratio

