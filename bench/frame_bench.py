#!/usr/bin/env python3
"""Rows a second that a frame of a recording decodes, beside the reference codec (plain struct) over the same records in the same run.

usage: PYTHONPATH=python:. python3 bench/frame_bench.py [ROWS]. Prints a line for each shape of recording. The frame's time holds everything: the
heads of all frames, the launches, the names, and the columns. Both leave the sum of a frame (CRC) unchecked, so that the ratio is of decoding.
"""
import sqlite3
import sys
import tempfile
import time

from tests.support.written_run import WrittenRun
from tocsin import wire
from tocsin.analysis import create_trial

NAMES = [f"gradient/layer{number}.weight" for number in range(50)]


def scalars(run, rows):
    for first in range(0, rows, 500):
        run.scalars(0, [("loss", step, 1.0 / (1 + step), 5) for step in range(first, first + 500)])


def summaries(run, rows):
    for step in range(rows // len(NAMES)):
        run.summary(0, step, {name: {"count": 9, "sum": 1.0, "sumsq": 2.0} for name in NAMES})


def by_struct(folder, kind, wanted, check=wire.crc32c):
    """(seconds, values): every record decoded, rows of the name kept."""
    wire.crc32c = lambda data, previous=0: int.from_bytes(records[at][20:24], "little")
    records, at, values = [], 0, []
    began = time.perf_counter()
    try:
        records = [value for (value,) in sqlite3.connect(f"{folder}/telemetry.db").execute("SELECT value FROM telemetry ORDER BY id")]
        for at in range(len(records)):
            frame = wire.decode_frame(records[at])
            if frame.kind == kind:
                values += [row["value" if kind == wire.SCALAR else "sum"] for row in frame.rows if row["name"] in wanted]
    finally:
        wire.crc32c = check
    return time.perf_counter() - began, values


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    for shape, fill, query, stat, names in (("scalars, 500 a frame", scalars, "loss", None, ["loss"]),
                                            ("50 tensors a step, all of them", summaries, 'tensor("gradient/.*")', "sum", NAMES),
                                            ("50 tensors a step, one of them", summaries, f'tensor("{NAMES[7]}")', "sum", NAMES[7:8])):
        with tempfile.TemporaryDirectory() as folder:
            run = WrittenRun(folder, names=["loss", *NAMES])
            run.held, check = [], wire.crc32c
            wire.crc32c = lambda data, previous=0: 0  # to write quickly; nobody checks it below
            fill(run, rows)
            wire.crc32c = check
            run.release()
            best = min(_timed(lambda: create_trial(folder).series(query, stat=stat)[stat or "value"]) for _ in range(3))
            plain, values = by_struct(folder, wire.SCALAR if fill is scalars else wire.SUMMARY, {wire.xxh64(name) for name in names})
            found = create_trial(folder).series(query, stat=stat)[stat or "value"]
            assert found.tolist() == values
            print(f"{shape}: {rows / best / 1e6:.2f} M rows/s read, {plain / best:.0f} times as fast as struct ({rows / plain / 1e6:.3f} M rows/s)")


def _timed(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
