"""System samples (built-in rules, section 5, common part): snapshots of a node and evaluation periods of event time."""
import dataclasses
import math

WIDTH = 20 * 10**6  # of a snapshot, ns
SILENT = 10 * 500 * 10**6  # ns without a sample that leave a device out of comparisons: ten periods of 500 ms
METRICS = ("hw.gpu.utilization", "hw.gpu.memory.utilization", "system.cpu.utilization", "system.memory.utilization",
           "process.memory.usage")


@dataclasses.dataclass
class Snapshot:
    time: int
    gpus: dict = dataclasses.field(default_factory=dict)       # device -> percent
    memory: dict = dataclasses.field(default_factory=dict)     # device -> percent of its memory
    cores: dict = dataclasses.field(default_factory=dict)      # core -> percent busy
    waits: dict = dataclasses.field(default_factory=dict)      # core -> percent waiting for I/O
    modes: dict = dataclasses.field(default_factory=dict)      # core -> {cpu.mode: ratio}
    node_memory: dict = dataclasses.field(default_factory=dict)  # "" -> percent used
    processes: dict = dataclasses.field(default_factory=dict)  # pid -> resident bytes


def percent(ratio):
    return math.floor(ratio * 1e8 + 0.5) / 1e6


def attributes(series):
    metric, _, inside = series.partition("{")
    return metric, dict(pair.partition("=")[::2] for pair in inside.rstrip("}").split(",") if pair)


def snapshots(history):
    """{node: [Snapshot]}: it starts with the first sample that no earlier one holds and takes all up to 20 ms later. NaN and
    negative readings are discarded, percentages above 100 cut."""
    out = {}
    for node, series, time, ratio, _ in history.samples:
        metric, labels = attributes(series)
        if math.isnan(ratio) or ratio < 0 or metric not in METRICS:
            continue
        known = out.setdefault(node, [])
        if not known or time - known[-1].time > WIDTH:
            known.append(Snapshot(time))
        here = known[-1]
        if metric == "hw.gpu.utilization":
            here.gpus[labels["hw.id"]] = min(percent(ratio), 100.0)
        elif metric == "hw.gpu.memory.utilization":
            here.memory[labels["hw.id"]] = min(percent(ratio), 100.0)
        elif metric == "system.memory.utilization":
            here.node_memory[""] = min(percent(ratio), 100.0)
        elif metric == "process.memory.usage":
            here.processes[labels["process.pid"]] = ratio
        elif metric == "system.cpu.utilization":
            here.modes.setdefault(labels["cpu.logical_number"], {})[labels["cpu.mode"]] = ratio
    for known in out.values():
        for here in known:
            for core, modes in here.modes.items():
                # A core is busy when it is neither idle nor waiting; where idle is not sent, for its other modes.
                busy = 1 - modes["idle"] - modes.get("iowait", 0) if "idle" in modes else sum(
                    share for mode, share in modes.items() if mode != "iowait")
                here.cores[core] = min(max(percent(busy), 0.0), 100.0)
                if "iowait" in modes:
                    here.waits[core] = min(percent(modes["iowait"]), 100.0)
    return out


def quantile(values, q):
    """Linear between sorted neighbours, at (n − 1)q."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * q
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def series(snapshots, kind):
    """{device: [(time, percent)]} of one kind of reading."""
    out = {}
    for one in snapshots:
        for device, value in getattr(one, kind).items():
            out.setdefault(device, []).append((one.time, value))
    return out


def intervals(known, scan_interval_us):
    """(end, all snapshots until then, those of the interval) of each period in which a snapshot starts. Time is cut at the
    multiples of the period."""
    period = scan_interval_us * 1000
    ends = sorted({(one.time // period + 1) * period for one in known})
    for end in ends:
        yield end, [one for one in known if one.time < end], [one for one in known if end - period <= one.time < end]
