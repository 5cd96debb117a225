"""Random streams for the rules that look at how long things take."""
from tests.reference import story, tables
from tests.reference.random_streams import nodes

MS = 10**6


def timed(chance, world, steps, took, spans=None, mode="train"):
    """Workers whose steps take `took(rank, step)` nanoseconds; `spans(worker, step, start, ns)` says what happened in it."""
    workers = []
    for rank in range(world):
        worker = story.Worker(rank, world, tick=0)
        worker.start()
        for _ in range(steps):
            worker.tick = 0
            step = worker.enter(mode)
            worker.tick = took(rank, step)
            worker.now += worker.tick
            if spans:
                spans(worker, step, worker.now - worker.tick, worker.tick)
            worker.step_end()
        worker.end()
        workers.append(worker)
    return story.interleave(workers, chance if chance.random() < 0.5 else None)


def step_outlier(chance):
    parameters = {"n_outliers": chance.choice((1, 3, 10)), "stddev": chance.choice((1, 2, 3)), "window": chance.choice((0, 101, 150)),
                  "scan_interval_us": chance.choice((100_000, 1_000_000))}
    if chance.random() < 0.3:
        parameters["mode"] = chance.choice(("TRAIN", "GLOBAL"))
    often = chance.choice((0.01, 0.05, 0.1))

    def took(rank, step):
        return chance.choice((9, 10, 11)) * MS * (10 if chance.random() < often else 1)

    mode = chance.choice(("train", "train", "global"))
    preset = "original"
    if chance.random() < 0.5:
        preset = "tocsin"
        parameters.update({"every": chance.choice((20, 50)), "median_factor": chance.choice((2, 3)),
                           "min_excess_seconds": chance.choice((0, 0.05, 0.0895, 0.0955)), "min_excess_percent": chance.choice((5, 20))})
    return ([{"use": "step_outlier", "preset": preset, "with": parameters}],
            timed(chance, chance.choice((1, 2)), chance.randint(90, 250), took, mode=mode))


def straggler(chance):
    slow = chance.choice((1.0, 1.4, 1.6, 3.0))
    world = chance.choice((1, 2, 3, 4))
    since = chance.randint(0, 80)

    def took(rank, step):
        return int(chance.choice((9, 10, 11)) * MS * (slow if rank == world - 1 and step >= since else 1))

    return [{"use": "straggler", "with": {}}], timed(chance, world, chance.randint(60, 180), took)


def data_wait(chance):
    share = chance.choice((0.1, 0.45, 0.55, 0.9))
    phases = chance.random() < 0.9

    def spans(worker, step, start, took):
        if phases:
            worker.spans(("phase", "data_wait", start, int(took * share * chance.choice((0.9, 1.0, 1.1)))),
                         ("phase", "forward", start, took // 20))

    return [{"use": "data_wait", "with": {}}], timed(chance, chance.choice((1, 2)), chance.randint(40, 120),
                                                     lambda rank, step: chance.choice((9, 10, 11)) * MS, spans)


def operator_latency(chance):
    parameters = {"window": chance.choice((3, 10)), "min_calls": chance.choice((1, 5)), "max_share_percent": chance.choice((50, 70, 90))}
    if chance.random() < 0.4:
        parameters["max_p95_us"] = 1500
    if chance.random() < 0.3:
        parameters["device"] = chance.choice(("cpu", "gpu"))
    if chance.random() < 0.2:
        parameters["op_regex"] = ["conv"]
    slower = chance.choice((1, 2, 5))
    since = chance.randint(5, 30)
    nested = chance.random() < 0.5

    def spans(worker, step, start, took):
        profiled = chance.random() < 0.7
        rows = [(track, name, start + nested * chance.choice((0, 100, 200, 350)) * 1000,
                 chance.choice((300, 500, 1000)) * 1000 * (slower if step >= since and name == "conv" else 1))
                for track in ("op.cpu", "op.gpu/0") for name in ("conv", "matmul", "add") for _ in range(chance.randint(0, 2))]
        if rows and profiled:
            worker.spans(*rows)

    return ([{"use": "operator_latency", "preset": chance.choice(("tocsin", "original")), "with": parameters}],
            timed(chance, chance.choice((1, 2)), chance.randint(10, 50), lambda rank, step: 10 * MS, spans))


def max_initialization_time(chance):
    worker = story.Worker(tick=0)
    worker.start()
    for _ in range(chance.randint(1, 8)):
        worker.now += chance.choice((10, 20, 45)) * story.SECOND
        worker.heartbeat()
        if chance.random() < 0.15:
            worker.enter(chance.choice(("train", "eval", "global")))
            if chance.random() < 0.5:
                worker.scalars(("loss", 1.0))
            else:
                worker.step_end()
    if chance.random() < 0.5:
        worker.end()
    return [{"use": "max_initialization_time", "with": {"threshold": chance.choice((1, 2))}}], story.interleave([worker])


def host_memory_growth(chance):
    parameters = {"points": chance.choice((2, 3)), "warm_up": chance.choice(("0s", "2s")), "growth": chance.choice((1.1, 1.3)),
                  "scan_interval_us": 1_000_000}
    if chance.random() < 0.3:
        parameters["clear_after"] = 1
    node = story.Node("node-a")
    time = story.START
    sizes = {pid: 100.0 for pid in range(100, 100 + chance.choice((1, 2)))}
    for _ in range(chance.randint(5, 40)):
        time += chance.choice((250, 500, 500, 1000)) * MS
        for pid in sizes:
            sizes[pid] *= chance.choice((1.0, 1.05, 1.05, 1.2, 0.9 if chance.random() < 0.2 else 1.0))
        node.samples(time, {f"process.memory.usage{{process.pid={pid}}}": size for pid, size in sizes.items()})
    worker = story.Worker()
    worker.start()
    worker.enter("train")
    worker.step_end()
    records = story.interleave([worker, node])
    worker.now = records[-1]["time"]
    return nodes.item(chance, "host_memory_growth", parameters), [*records, {**worker.end(), "at": records[-1]["at"]}]



def dataloader(chance):
    parameters = {"patience": chance.choice((0, 3)), "scan_interval_us": chance.choice((1_000_000, 2_500_000))}
    cores = chance.randint(1, 8)
    stretches = [[1, cores, chance.choice((0, 1, cores, 2 * cores, 3 * cores))] for _ in range(chance.randint(2, 15))]
    return [{"use": "dataloader", "preset": chance.choice(("tocsin", "original")), "with": parameters}], tables.loading(stretches)


def overall_framework_metrics(chance):
    idle = chance.choice((0.0, 0.1, 0.5))
    tracks = {"phase": ("forward", "backward", "data_wait"), "op.cpu": ("conv", "relu", "add"), "op.gpu/0": ("kernel",),
              "dataloader/7": ("fetch",), "dataloader/8": ("fetch", "collate")}

    def took(rank, step):
        return chance.choice((1, 10, 11)) * MS

    def spans(worker, step, start, ns):
        some = [(track, name, start, chance.choice((1, 100, 5000)) * 1000) for track, names in tracks.items() for name in names
                if chance.random() < 0.5]
        if some:
            worker.spans(*some)
        if chance.random() < idle:
            worker.now += 20 * MS  # the step begins later

    return ([{"use": "overall_framework_metrics", "with": {"scan_interval_us": chance.choice((10_000, 1_000_000))}}],
            timed(chance, chance.choice((1, 2)), chance.randint(1, 40), took, spans, chance.choice(("train", "global"))))
