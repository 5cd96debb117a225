"""What the receivers share: scripted answers, records as JSON lines, and running as a program.

A receiver answers `ok` until told otherwise. A test scripts its next answers by calling methods; a
program that runs the receiver as a child does the same by writing lines to its standard input:

    answer 503 2          the next two answers are 503
    hang 1                the next one never comes
    refuse / accept       close the listening socket / open it again on the same port
    quit
"""

import argparse
import collections
import contextlib
import datetime
import json
import os
import random
import socket
import stat
import sys
import threading
import time

from tests.support.patience import patience

OK, HANG = "ok", "hang"


def free_port():
    """A port that nobody listens on. It lies below the ephemeral range, so that no connection of a test beside this one takes it."""
    while True:
        port = random.SystemRandom().randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def wait_for(condition, timeout=10.0, what="condition"):
    """The first truthy value of `condition()`; AssertionError after `timeout` seconds."""
    deadline = time.monotonic() + patience(timeout)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"no {what} within {timeout:g} s")
        time.sleep(0.01)


class Script:
    """The answers to come; `ok` once they are used up. Thread-safe."""

    def __init__(self):
        self._answers, self._lock = collections.deque(), threading.Lock()

    def add(self, answer, times=1):
        with self._lock:
            self._answers.extend([answer] * times)

    def next(self):
        with self._lock:
            return self._answers.popleft() if self._answers else OK

    def clear(self):
        with self._lock:
            self._answers.clear()


class Receiver:
    """Base: subclasses listen in `accept()`, stop in `refuse()`, and call `record()` per request."""

    def __init__(self, port=0, on_record=None):
        self.port, self.records, self.script = port, [], Script()
        self._on_record, self._lock, self.released = on_record, threading.Lock(), threading.Event()

    # -- what happens next

    def answer(self, code, times=1, **detail):
        """Give this status to the next requests, e.g. answer(429, retry_after=2)."""
        self.script.add((int(code), detail), times)

    def hang(self, times=1):
        """Take the next requests and never answer (until the receiver is closed)."""
        self.script.add(HANG, times)

    def refuse(self):
        """Stop listening: connections are refused."""
        raise NotImplementedError

    def accept(self):
        """Listen, on the same port as before."""
        raise NotImplementedError

    # -- what happened

    def record(self, **fields):
        fields = {"at": datetime.datetime.now(datetime.timezone.utc).isoformat(), **fields}
        with self._lock:
            self.records.append(fields)
        if self._on_record:
            self._on_record(fields)

    def accepted(self):
        """Records of requests that were answered with success."""
        with self._lock:
            return [record for record in self.records if record["accepted"]]

    def wait(self, count=1, timeout=10.0):
        """The accepted records, as soon as there are `count`."""
        return wait_for(lambda: len(self.accepted()) >= count and self.accepted(), timeout,
                        f"{count} accepted by {type(self).__name__} (has {len(self.accepted())})")

    # -- life

    def close(self):
        self.released.set()
        self.refuse()

    def __enter__(self):
        self.accept()
        return self

    def __exit__(self, *_):
        self.close()


def ends_with_parent():
    """True when standard input is a pipe: its end is then the end of the program that started us."""
    return stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode)


def run_as_program(make, description, options=()):
    """Print `PORT=<port>`, then one JSON line per request, until standard input says so or a signal comes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--port", type=int, default=0, help="loopback port; 0 chooses a free one")
    for flags, settings in options:
        parser.add_argument(*flags, **settings)
    lock = threading.Lock()

    def show(fields):
        with lock:
            print(json.dumps(fields), flush=True)

    arguments = parser.parse_args()
    with make(arguments, show) as receiver, contextlib.suppress(KeyboardInterrupt):
        print(f"PORT={receiver.port}", flush=True)
        for line in sys.stdin:
            word, *rest = line.split() or [""]
            numbers = [int(number) for number in rest]
            if word == "answer":
                receiver.answer(*numbers)
            elif word == "hang":
                receiver.hang(*numbers)
            elif word in ("refuse", "accept"):
                getattr(receiver, word)()
            elif word == "quit":
                return
        while not ends_with_parent() and not receiver.released.wait(3600):
            pass  # started in the background: serve until a signal
