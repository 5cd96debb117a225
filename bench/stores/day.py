#!/usr/bin/env python3
"""A day of 64 nodes and 8 runs beside 50 streams: memory of the program; then slow downloads while it goes on: the write-ahead log.

usage: PYTHONPATH=python:. python3 bench/stores/day.py [--full] [--folder FOLDER]
The day is written into a journal as fast as the program reads it (day_feed.cc); by itself 2 hours of it, with --full 24, which wants 5 GB in
FOLDER. A table of every value is then taken by ten readers, 64 KiB a second each, while two more hours (or one) come: what a log
can grow by is what is written while somebody reads, so an hour of values within a minute is as hard on it as the hour. Exit code 1: a target was missed.
"""
import argparse
import contextlib
import json
import selectors
import socket
import sys
import threading
import time
import urllib.parse

from bench.stores.measure import Place, by_thread, cpu_seconds, get, line, load, missed, program, quantile, resident_mib

STREAMS, READERS = 50, 10
MEMORY, FLAT, LOG = 450, 5, 256  # MiB, percent, MiB
SLICE = 1800                     # simulated seconds that are written at once
SLOW = 64 * 1024                 # bytes of a second of a download
STEP = 20                        # seconds of a step


class Feed:
    """The day, as far as it was asked for."""

    def __init__(self, journal, begin):
        self.writer = program("day_feed", journal, int(begin), STEP, stdin=-1, stdout=-1)
        self.numbers, self.seconds = 0.0, 0

    def go(self, seconds):
        self.writer.stdin.write(f"{seconds}\n")
        self.writer.stdin.flush()
        self.numbers += float(self.writer.stdout.readline())
        self.seconds += seconds

    def end(self):
        self.writer.stdin.close()
        self.writer.wait(60)


class Streams:
    """Readers of the stream of events, who take whatever comes."""

    def __init__(self, base, count):
        where = urllib.parse.urlsplit(base)
        self.picked, self.taken, self.ended = selectors.DefaultSelector(), 0, False
        for _ in range(count):
            one = socket.create_connection((where.hostname, where.port))
            one.sendall(f"GET /api/v1/stream HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
            one.setblocking(False)
            self.picked.register(one, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        while not self.ended:
            for key, _ in self.picked.select(0.5):
                with contextlib.suppress(BlockingIOError):
                    self.taken += len(key.fileobj.recv(1 << 16))

    def end(self):
        self.ended = True
        self.thread.join()


class SlowDownload(threading.Thread):
    """Takes a table at a rate until it ends or is told to."""

    def __init__(self, base, path):
        super().__init__(daemon=True)
        where = urllib.parse.urlsplit(base)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 * 1024)
        self.socket.connect((where.hostname, where.port))
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n".encode())
        self.taken, self.open, self.ended = 0, True, False
        self.start()

    def run(self):
        while not self.ended:
            part = self.socket.recv(SLOW // 4)
            if not part:
                self.open = False
                return
            self.taken += len(part)
            time.sleep(0.25)
        self.socket.close()


class Watch(threading.Thread):
    """The most that was seen of some figure."""

    def __init__(self, measure):
        super().__init__(daemon=True)
        self.measure, self.most, self.ended = measure, 0.0, False
        self.start()

    def run(self):
        while not self.ended:
            self.most = max(self.most, self.measure())
            time.sleep(0.05)

    def end(self):
        self.ended = True
        self.join()
        return self.most


def stored(base, uid, step):
    """Whether the curves know the step, of the last of the ranks."""
    answer = json.loads(get(base, f"/api/v1/runs/{uid}/series?name=metric_9&from={max(0, step - 2)}&points=100"))
    steps = [one["x0"][-1] for one in answer["series"] if one["x0"]]
    return bool(steps) and max(steps) >= step


def looks(base, uids):
    """What open views ask from time to time."""
    for uid in uids:
        for path in ("series?name=metric_.&points=500", "names?limit=100", "heatmap?columns=500&rows=500", "ranks", "nodes"):
            with contextlib.suppress(OSError):
                get(base, f"/api/v1/runs/{uid}/{path}")


def a_day(place, hours):
    """Figures of memory; the server, its address, the feed and the runs go on."""
    server, base = place.serve()
    server.wait_for("ready")
    pid = server.process.pid
    empty = resident_mib(pid)
    feed = Feed(place.journal, time.time() - hours * 3600 - 8 * 3600)
    streams = Streams(base, STREAMS)
    memory, uids, begun = [], [], time.perf_counter()
    most = Watch(lambda: resident_mib(pid))
    while feed.seconds < hours * 3600:
        feed.go(SLICE)
        while not uids:
            time.sleep(0.2)
            found = [run["uid"] for run in json.loads(get(base, "/api/v1/runs"))["items"]]
            uids = found if len(found) == 8 else []
        while not stored(base, uids[-1], feed.seconds // STEP - 1):
            time.sleep(0.1)
        looks(base, uids[:2])
        memory.append(resident_mib(pid))
    took = time.perf_counter() - begun
    peak = most.end()
    streams.end()
    third = memory[len(memory) * 2 // 3:]
    middle = sum(third) / len(third)
    swing = max(abs(value - middle) for value in third) / middle * 100
    print(f"{hours} hours, {feed.numbers / 1e6:.0f} million numbers, {took:.0f} s, load {load()}; streams took {streams.taken / 1024:.0f} KiB; "
          f"memory at each half of an hour: {' '.join(f'{value:.0f}' for value in memory)}", flush=True)
    print("processor time by thread: " + ", ".join(f"{name} {seconds:.0f} s" for name, seconds in by_thread(pid)[:6]))
    line("a day: memory at most", peak, "MiB", empty, MEMORY)
    line("a day: swing of memory in the last third", swing, "%", None, FLAT)
    line("a day: memory of the last third, beside the middle one", middle, "MiB", quantile(memory[len(memory) // 3:len(memory) * 2 // 3], 0.5), None)
    line("a day: numbers of a processor second, the whole program (million)", feed.numbers / 1e6 / cpu_seconds(pid), "M/s", None, None, 2)
    return server, base, feed, uids


def downloads(place, base, feed, uids, hours):
    log, = place.journal.rglob("curves.db-wal")
    size = lambda: log.stat().st_size / 2**20
    before = size()
    numbers, hour = feed.numbers, feed.seconds
    readers = [SlowDownload(base, f"/api/v1/runs/{uids[at % len(uids)]}/series?stat=l2&format=csv&name=.*") for at in range(READERS)]
    most = Watch(size)
    for _ in range(hours * 3600 // SLICE):
        feed.go(SLICE)
        while not stored(base, uids[-1], feed.seconds // STEP - 1):
            time.sleep(0.1)
    peak = most.end()
    still = sum(one.open and one.taken > 0 for one in readers)
    for one in readers:
        one.ended = True
    for one in readers:
        one.join(5)
    print(f"{still} of {READERS} downloads were still going after {(feed.seconds - hour) / 3600:.0f} hours of values, {(feed.numbers - numbers) / 1e6:.1f} million numbers, "
          f"{min(one.taken for one in readers) / 2**20:.1f} MiB taken by the slowest; load {load()}", flush=True)
    assert still == READERS, "a download that has ended holds nothing"
    line("write-ahead log beside ten slow downloads, at most", peak, "MiB", before, LOG)


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--full", action="store_true", help="24 hours, and 2 beside the downloads")
    asked.add_argument("--folder", help="where journal and store are written; its parent must be there")
    asked = asked.parse_args()
    place = Place(asked.folder)
    try:
        server, base, feed, uids = a_day(place, 24 if asked.full else 3)
        downloads(place, base, feed, uids, 2 if asked.full else 1)
        feed.end()
        server.kill()
    finally:
        place.remove()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
