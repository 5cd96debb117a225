"""A run of two real ranks with spans, a synthetic agent of a node with GPUs beside the real one, and the truth of all that out of the frames."""
import collections
import os
import subprocess
import sys
import textwrap
import time

import numpy

from tests.support import journal
from tests.support.hook_support import Telemetry, wire
from tests.support.program import BUILD, ROOT

AGENT = 0xFFFFFFFF
MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
NODE, CORES, GPUS, SWEEPS = "gpu-node-7", 8, ("GPU-aa-01", "GPU-aa-02"), 600

# Rank 1 takes longer in backward; an operator holds another one.
SCRIPT = """
import os, sys, time, numpy, tocsin
rank = int(os.environ["RANK"])
hook = tocsin.watch(run="r", job="profiled")
matrix = numpy.ones((64, 64))
for step in range(int(sys.argv[1])):
    with hook.phase("data_wait"): time.sleep(0.001)
    with hook.phase("forward"):
        with hook.span("linear", track="op.cpu"):
            time.sleep(0.0005)
            with hook.span("gemm", track="op.cpu"): matrix @ matrix
    with hook.phase("backward"): time.sleep(0.002 + 0.003 * rank)
    with hook.phase("communication"): time.sleep(0.001)
    hook.log(loss=1.0 / (step + 1))
    hook.step()
hook.close()
"""


def train(folder, where, steps):
    path = folder / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    base = {**os.environ, "TOCSIN_OUT": str(where), "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29555", "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
    ranks = [subprocess.Popen([sys.executable, path, str(steps)], env={**base, "RANK": str(rank), "LOCAL_RANK": str(rank)}, cwd=folder) for rank in range(2)]
    for rank in ranks:
        assert rank.wait(120) == 0


def sample_node(where, uid):
    """600 sweeps of 500 ms that end now: eight cores, two GPUs, counters of which one is reset."""
    begin = time.time_ns() // 10**9 * 10**9 - SWEEPS * 500_000_000
    chance = numpy.random.default_rng(5)
    names, records, sequence = set(), [], 0

    def put(frame):
        records.append(("telemetry", wire.route_key(uid), frame))

    def head(at):
        nonlocal sequence
        sequence += 1
        return wire.header(uid, worker=NODE, rank=AGENT, mode=0, incarnation=3, time=at, sequence=sequence)
    for sweep in range(SWEEPS):
        at = begin + sweep * 500_000_000
        rows = []
        for core in range(CORES):
            shares = chance.dirichlet(numpy.array([4, 1, 1, 1 + core * 2, 0.5 + (sweep > 150) * 4, 0.2, 0.2, 0.2]))
            rows += [(f"system.cpu.utilization{{cpu.logical_number={core},cpu.mode={mode}}}", share, 0) for mode, share in zip(MODES, shares)]
        for which, gpu in enumerate(GPUS):
            rows += [(f"hw.gpu.utilization{{hw.id={gpu}}}", 0.1 if which == 1 and 100 < sweep < 140 else 0.9 + 0.05 * chance.random(), 0),
                     (f"hw.gpu.memory.utilization{{hw.id={gpu}}}", 0.5 + 0.1 * which, 0), (f"hw.power{{hw.id={gpu},hw.type=gpu}}", 250 + 50 * chance.random(), 0)]
        rows += [("system.memory.utilization{system.memory.state=used}", 0.3 + sweep / 1000, 0)]
        count = (sweep - 200 if sweep >= 200 else sweep) ** 2 * 1000  # made anew at 200
        rows += [("system.network.io{network.interface.name=eth0,network.io.direction=receive}", count, 1),
                 ("system.network.io{network.interface.name=eth0,network.io.direction=transmit}", sweep * 5000, 1),
                 ("system.disk.io{disk.io.direction=read,system.device=nvme0n1}", sweep * 4096, 1)]
        fresh = [name for name, _, _ in rows if name not in names]
        if fresh:
            put(wire.encode_dictionary(head(at), [{"type": 5, "name": NODE}, *({"type": 3, "name": name} for name in fresh)]))
            names.update(fresh)
        for part in (rows[:37], rows[37:]):  # a core's modes stand in two frames
            put(wire.encode_frame(head(at), wire.SYSTEM, [{"series": wire.xxh64(name), "time": at, "value": float(value), "meta": meta} for name, value, meta in part]))
    journal.append(where, *records)
    return begin // 10**6, (begin + (SWEEPS - 1) * 500_000_000) // 10**6


class SampleTruth:
    """{node: {series: (milliseconds, values)}}, folded by hand out of the frames of all agents."""

    def __init__(self, where):
        telemetry = Telemetry(where)
        sweeps = collections.defaultdict(lambda: collections.defaultdict(dict))
        counters = set()
        for frame in telemetry.of_kind(wire.SYSTEM):
            node = telemetry.names[frame.header["worker"]]
            for row in frame.rows:
                sweeps[node][row["time"] // 10**6][telemetry.names[row["series"]]] = row["value"]
                if row["meta"] & 1:
                    counters.add(telemetry.names[row["series"]])
        self.nodes = {}
        for node, times in sweeps.items():
            out, before, since = collections.defaultdict(list), {}, {}
            for at, values in sorted(times.items()):
                cores = {name.split("logical_number=")[1].split(",")[0] for name in values if name.startswith("system.cpu.utilization{")}
                busy, wait, network, rates = [], [], [], []
                for core in sorted(cores, key=int):
                    mode = {one: values[f"system.cpu.utilization{{cpu.logical_number={core},cpu.mode={one}}}"] for one in ("idle", "iowait")}
                    busy.append(max(0.0, 1 - mode["idle"] - mode["iowait"]))
                    wait.append(mode["iowait"])
                    out[f"system.cpu.busy{{cpu.logical_number={core}}}"].append((at, busy[-1]))
                    out[f"system.cpu.iowait{{cpu.logical_number={core}}}"].append((at, wait[-1]))
                for name, value in values.items():
                    if name.startswith("system.cpu.utilization{"):
                        continue
                    if name in counters:
                        grown = value - before.get(name, numpy.inf)
                        before[name] = value
                        held = (at - since.get(name, at)) / 1000
                        since[name] = at
                        if not 0 <= grown < numpy.inf:
                            continue
                        value = grown
                        if name.startswith("system.network.io{"):
                            network.append(value)
                            rates.append(value / held)
                        if name.startswith(("system.network.io{", "system.disk.io{")):
                            out[name.replace(".io{", ".io.rate{")].append((at, value / held))
                    out[name].append((at, value))
                means = {"system.cpu.busy{mean}": busy, "system.cpu.iowait{mean}": wait}
                for metric in ("hw.gpu.utilization", "hw.gpu.memory.utilization"):
                    means[f"{metric}{{mean}}"] = [value for name, value in values.items() if name.startswith(metric + "{")]
                for name, some in means.items():
                    if some:
                        out[name].append((at, numpy.mean(some)))
                if network:
                    out["system.network.io{total}"].append((at, sum(network)))
                    out["system.network.io.rate{total}"].append((at, sum(rates)))
            self.nodes[node] = {name: tuple(numpy.array(column) for column in zip(*rows)) for name, rows in out.items()}


def union(parts):
    """Length of what at least one of the (start, end) covers."""
    total, end = 0, -numpy.inf
    for low, high in sorted(parts):
        total += max(0, high - max(low, end))
        end = max(end, high)
    return total


class SpanTruth:
    """spans: [(rank, track, name, start ns, end ns, step)]; steps: {rank: {step: (start ns, end ns)}}."""

    def __init__(self, where):
        telemetry = Telemetry(where)
        self.spans = [(frame.header["rank"], telemetry.names[row["track"]], telemetry.names[row["name"]], row["start"], row["start"] + row["duration"], row["step"])
                      for frame in telemetry.of_kind(wire.SPAN) for row in frame.rows if row["duration"] >= 0]
        self.steps = collections.defaultdict(dict)
        for frame in telemetry.of_kind(wire.STEP_END):
            for row in frame.rows:
                self.steps[frame.header["rank"]][row["step"]] = (row["start"], row["end"])

    def of(self, rank, track, step=None):
        return [(name, start, end) for of, on, name, start, end, at in self.spans if of == rank and on == track and step in (None, at)]

    def times(self, rank, step):
        """Seconds of communication, data_wait, compute, other and idle of a step: each what those before it have left."""
        begin, end = self.steps[rank][step]
        kinds = {"communication": 0, "data_wait": 1, "forward": 2, "backward": 2, "optimizer": 2}
        taken, out, before = [], [], 0
        for kind in range(4):
            taken += [(max(start, begin), min(stop, end)) for name, start, stop in self.of(rank, "phase", step) if kinds.get(name, 3) == kind and max(start, begin) < min(stop, end)]
            out.append((union(taken) - before) / 1e9)
            before = union(taken)
        return [*out, max(0, end - begin - before) / 1e9]
