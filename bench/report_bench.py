#!/usr/bin/env python3
"""What the report of one hour on 8 GPUs costs: seconds, memory, and the size of the page, beside a plain read of the same records.

usage: PYTHONPATH=python:. python3 bench/report_bench.py [HOURS]. TOCSIN_BINARY names the program. Exit code 1: a target was missed (10 s, 5 MiB, 300 MiB
of memory, for one hour). The recording is synthetic: 8 ranks with a step each half second, 6 scalars and 4 phases a step, 120 tensors every 20 steps,
and a node that samples 8 GPUs, 32 cores and its memory each second. Two spikes, one NaN, and a rank that is late make rules speak.
"""
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time

from tests.support.written_journal import WrittenJournal

SECOND = 1_000_000_000
BEGIN = 1_760_000_000 * SECOND
RANKS, PACE, BATCH, EVERY = 8, SECOND // 2, 400, 20
NAMES = ["loss", "accuracy", "lr", "grad_norm", "tokens_per_second", "loss/auxiliary"]
TENSORS = [f"{kind}layer{number}.weight" for number in range(60) for kind in ("gradient/", "")]
PHASES = (("data_wait", 0.0, 0.1), ("forward", 0.1, 0.3), ("backward", 0.4, 0.5), ("optimizer", 0.9, 0.1))
TARGETS = {"seconds": 10.0, "MiB of page": 5.0, "MiB of memory": 300.0}


def steps_of(run, chance, first, count):
    for rank in range(RANKS):
        late = 1.3 if rank == 5 else 1.0
        starts = [BEGIN + (step * PACE) for step in range(first, first + count)]
        run.now = lambda: starts[-1] + PACE
        scalars, spans = [], []
        for step, start in zip(range(first, first + count), starts):
            loss = 2.0 / (1 + step / 500) + chance.gauss(0, 0.02) + (5.0 if step in (1000, 4000) else 0.0)
            values = (loss, 1 - loss / 3, 1e-3, abs(chance.gauss(1, 0.1)), 5e4, loss / 10)
            scalars += [(name, step, value, 5) for name, value in zip(NAMES, values)]
            spans += [(name, "phase", start + int(at * PACE), int(part * PACE * (late if name == "forward" else 1)), step) for name, at, part in PHASES]
            run.step_end(rank, step, start=start, end=start + int(PACE * 0.98))
        run.scalars(rank, scalars)
        run.spans(rank, spans)
        for step in range(first, first + count, EVERY):
            rows = {}
            for name in TENSORS:
                value = 10 ** chance.uniform(-4, 1)
                rows[name] = {"count": 1000, "sum": value, "sumsq": value * value * 1000, "m2": value, "min": -value, "max": value, "abs_sum": value * 900,
                              "nan": int(step == 5000 and name == TENSORS[0])}
            run.summary(rank, step, rows)


def samples_of(run, chance, second):
    at = BEGIN + second * SECOND
    run.now = lambda: at
    rows = [(f"hw.gpu.utilization{{hw.id=G{gpu}}}", at, min(1.0, abs(chance.gauss(0.8, 0.1)))) for gpu in range(8)]
    rows += [(f"hw.gpu.memory.utilization{{hw.id=G{gpu}}}", at, 0.7) for gpu in range(8)]
    rows += [(f"system.cpu.utilization{{cpu={core}}}", at, chance.random()) for core in range(32)]
    run.samples("node-1", rows + [("system.memory.utilization", at, 0.5)])


def written(folder, hours):
    chance = random.Random(5)
    run = WrittenJournal(folder, world=RANKS, names=(*NAMES, *TENSORS), now=lambda: BEGIN)
    run.held = []
    for rank in range(RANKS):
        run.event(rank, "start", launch="k", job="hour")
    steps, seconds = int(hours * 3600 * SECOND / PACE), 0
    for first in range(0, steps, BATCH):
        steps_of(run, chance, first, min(BATCH, steps - first))
        while seconds * SECOND < (first + BATCH) * PACE and seconds < hours * 3600:
            samples_of(run, chance, seconds)
            seconds += 1
        run.release()
        run.held = []
    run.now = lambda: BEGIN + steps * PACE
    for rank in range(RANKS):
        run.event(rank, "end", outcome="completed")
    run.sealed()


def main():
    hours = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    program = os.environ.get("TOCSIN_BINARY") or os.path.join(os.environ.get("TOCSIN_BUILD", "build/release"), "app", "tocsin")
    with tempfile.TemporaryDirectory(prefix="tocsin-report-") as folder:
        began = time.perf_counter()
        written(folder, hours)
        wrote = time.perf_counter() - began
        began = time.perf_counter()
        size = sum(len(value) for (value,) in sqlite3.connect(f"{folder}/telemetry.db").execute("SELECT value FROM telemetry"))
        read = time.perf_counter() - began
        page = f"{folder}/page.html"
        began = time.perf_counter()
        done = subprocess.run([program, "report", "--from", folder, "--judge", "--html", page], capture_output=True, text=True)
        took = time.perf_counter() - began
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return 2
        use = resource.getrusage(resource.RUSAGE_CHILDREN)
        found = {"seconds": took, "MiB of page": os.path.getsize(page) / 2**20,
                 "MiB of memory": use.ru_maxrss / 1024}
        print(f"# report of {hours:g} h, 8 GPUs: {size / 2**20:.0f} MiB of records, written in {wrote:.0f} s; {done.stderr.strip().rsplit(': ', 1)[-1]}")
        for name, (value, unit, target, ratio) in {
                "report_time": (took, "s", TARGETS["seconds"] * max(1.0, hours), f"{took / read:.0f}x a plain read; CPU {use.ru_utime + use.ru_stime:.1f} s"),
                "report_page": (found["MiB of page"], "MiB", TARGETS["MiB of page"], "-"),
                "report_memory": (found["MiB of memory"], "MiB", TARGETS["MiB of memory"], "-")}.items():
            print(f"{name:14} {value:8.2f} {unit:4} {ratio:36} <= {target:g}  {'pass' if value <= target else 'miss'}")
        return int(hours >= 1 and any(value > TARGETS[name] * (max(1.0, hours) if name == "seconds" else 1) for name, value in found.items()))


if __name__ == "__main__":
    sys.exit(main())
