#!/usr/bin/env python3
"""Times of reads while 50 runs start and 50 end each second, beside the same reads of the same store at rest.

usage: PYTHONPATH=python:. python3 bench/stores/creation.py [SECONDS]     60 if not given
Three readers ask for the list, one run and the names of one, again and again. Exit code 1: a read failed or took longer than 200 ms.
"""
import json
import sys
import threading
import time

from bench.stores.measure import Place, cpu_seconds, get, line, load, missed, program, quantile, timed

RATE, READERS, SLOWEST = 50, 3, 200  # runs a second, threads, ms


class Reader(threading.Thread):
    """Asks until it is told to end; keeps the milliseconds of each answer and the failures."""

    def __init__(self, base, paths):
        super().__init__(daemon=True)
        self.base, self.paths, self.times, self.failures, self.ended = base, paths, [], [], False
        self.start()

    def run(self):
        while not self.ended:
            for path in self.paths:
                try:
                    self.times.append((timed(self.base, path), path))
                except OSError as error:
                    self.failures.append(f"{path}: {error}")
                time.sleep(0.01)


def read_for(base, paths, wait):
    """Milliseconds of all reads until `wait` returns."""
    readers = [Reader(base, paths) for _ in range(READERS)]
    wait()
    for one in readers:
        one.ended = True
    for one in readers:
        one.join()
    failures = [text for one in readers for text in one.failures]
    return [entry for one in readers for entry in one.times], failures


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    place = Place()
    server, base = place.serve()
    try:
        server.wait_for("ready")
        feed = program("runs_feed", place.journal, RATE, 4)
        feed.wait()
        while len(found := json.loads(get(base, "/api/v1/runs?limit=1000"))["items"]) < 4 * RATE:
            time.sleep(0.1)
        uid = found[0]["uid"]
        paths = ["/api/v1/runs?order=trouble&limit=50", "/api/v1/runs?order=trouble&limit=50&q=team-3", f"/api/v1/runs/{uid}", "/api/v1/nodes"]
        feed = program("runs_feed", place.journal, RATE, seconds)
        busy, failures = read_for(base, paths, feed.wait)
        while json.loads(get(base, "/api/v1/runs?order=trouble&limit=1"))["total"] < RATE * seconds:
            time.sleep(0.1)
        rest, more = read_for(base, paths, lambda: time.sleep(min(20, seconds)))
        cpu = cpu_seconds(server.process.pid)
    finally:
        server.kill()
        place.remove()
    of = lambda entries, share: quantile([took for took, _ in entries], share)
    print(f"{RATE * seconds} runs, {len(busy)} and {len(rest)} reads, load {load()}; the slowest was {max(busy)[1]}; processor time {cpu:.1f} s")
    line("reads while runs are created, 99th percentile", of(busy, 0.99), "ms", of(rest, 0.99), None)
    line("reads while runs are created, the slowest", of(busy, 1), "ms", of(rest, 1), SLOWEST)
    line("reads that failed", len(failures + more), "", None, 0)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
