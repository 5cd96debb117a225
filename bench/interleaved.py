"""Kinds of work measured in turns, in one process: what each costs above the bare one, and how sure that is.

A round runs every kind once, in an order of chance, each in a block of its own that ends with a pause, before which a kind may
settle: what it has left to other threads is done there and counts as that block's. The figure of a kind is the median over rounds of its block's time less
that of the bare kind's block of the same round, with the 95 % interval of that median (by order statistics: no assumption about
the noise). `AGAIN` is the bare kind once more: what it seems to cost is what this machine cannot tell apart from nothing.
"""
import math
import random
import statistics
import time

BARE, AGAIN = "bare", "bare again"
PAUSE = 0.03
CLOCKS = ("wall", "thread", "process")


def _now():
    return time.perf_counter(), time.thread_time(), time.process_time()


def block(work, settle=None):
    """Seconds of `work()` by each clock; of the process's, with `settle()` and the pause behind it."""
    wall, thread, process = _now()
    work()
    wall_end, thread_end, _ = _now()
    if settle is not None:
        settle()
    time.sleep(PAUSE)
    return wall_end - wall, thread_end - thread, time.process_time() - process


class Shares:
    """Extra times of the kinds, block by block."""

    def __init__(self, kinds, seed=1, settle=None):
        """`kinds`: name -> function that does a block's work; `BARE` is among them. `settle`: name -> function, of some of them."""
        self._kinds = dict(kinds)
        self._kinds[AGAIN] = self._kinds[BARE]
        self._settle = settle or {}
        self._chance = random.Random(seed)
        self._rounds = []

    def run(self, rounds, warm=2):
        for number in range(rounds + warm):
            order = list(self._kinds)
            self._chance.shuffle(order)
            times = {kind: block(self._kinds[kind], self._settle.get(kind)) for kind in order}
            if number >= warm:  # the first rounds make names, pages and threads
                self._rounds.append(times)

    def bare(self, clock="thread"):
        """Seconds of a bare block."""
        return statistics.median(times[BARE][CLOCKS.index(clock)] for times in self._rounds)

    def share(self, kind, clock):
        """(median, low, high) of what the kind adds to a bare block, as a share of it."""
        at = CLOCKS.index(clock)
        extra = [times[kind][at] - times[BARE][at] for times in self._rounds]
        return tuple(value / self.bare(clock) for value in median_and_interval(extra))


def median_and_interval(values):
    """(median, low, high): the median is between these with at least 95 %."""
    ordered = sorted(values)
    count = len(ordered)
    reach = math.ceil(0.98 * math.sqrt(count))
    low, high = max(count // 2 - reach, 0), min((count + 1) // 2 + reach, count) - 1
    return statistics.median(ordered), ordered[low], ordered[high]
