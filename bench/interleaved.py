"""Kinds of work measured in turns, in one process: what each costs above the bare one, and how sure that is.

A round runs one piece of every kind, in an order of chance. The figure of a kind on the training thread is the median over
rounds of its piece's processor time less the mean of the two bare pieces of the same round, with the 95 % interval of that median (by
order statistics: no assumption about the noise). Pieces are short, so that a machine that slows down hits all of a round.
What a kind leaves to other threads is measured beside that, in blocks of as many pieces without a pause as are given, at whose ends it
settles: the processor time of the whole process there less that of the training thread. `AGAIN` is the bare kind once more: what it
seems to cost beside the other is what this machine cannot tell apart from nothing.
"""
import math
import random
import statistics
import time

BARE, AGAIN = "bare", "bare again"
PAUSE = 0.03


def others(work, pieces, settle):
    """Seconds of all threads but this one, by piece, until all is settled."""
    began = time.process_time() - time.thread_time()
    for _ in range(pieces):
        work()
    settle()
    time.sleep(PAUSE)
    return (time.process_time() - time.thread_time() - began) / pieces


class Shares:
    """Extra times of the kinds, piece by piece."""

    def __init__(self, kinds, pieces, seed=1, settle=None):
        """`kinds`: name -> function that does a piece of work; `BARE` is among them. `pieces`: of a block. `settle`: name -> function,
        of those that have other threads."""
        self._kinds = dict(kinds)
        self._kinds[AGAIN] = self._kinds[BARE]
        self._pieces, self._settle = pieces, settle or {}
        self._chance = random.Random(seed)
        self._rounds = []
        self._others = {kind: [] for kind in self._settle}

    def run(self, rounds, warm=4):
        for number in range(rounds + warm):
            order = list(self._kinds)
            self._chance.shuffle(order)
            times = {kind: self._thread_time(self._kinds[kind]) for kind in order}
            if number < warm:  # the first rounds make names, pages and threads
                continue
            self._rounds.append(times)
            if (number - warm) % (2 * self._pieces) == 0:
                for kind, settle in self._settle.items():
                    settle()
                    self._others[kind].append(others(self._kinds[kind], self._pieces, settle))

    @staticmethod
    def _thread_time(work):
        began = time.thread_time()
        work()
        return time.thread_time() - began

    def bare(self):
        """Seconds of a bare piece."""
        return statistics.median(times[BARE] for times in self._rounds)

    def thread(self, kind):
        """(median, low, high) of what the kind adds to the training thread, as a share of a bare piece."""
        beside = (BARE,) if kind == AGAIN else (BARE, AGAIN)
        extra = [times[kind] - sum(times[one] for one in beside) / len(beside) for times in self._rounds]
        return tuple(value / self.bare() for value in median_and_interval(extra))

    def process(self, kind):
        """The same with the mean of its other threads."""
        more = statistics.mean(self._others.get(kind) or [0.0]) / self.bare()
        return tuple(value + more for value in self.thread(kind))


def median_and_interval(values):
    """(median, low, high): the median is between these with at least 95 %."""
    ordered = sorted(values)
    count = len(ordered)
    reach = math.ceil(0.98 * math.sqrt(count))
    low, high = max(count // 2 - reach, 0), min((count + 1) // 2 + reach, count) - 1
    return statistics.median(ordered), ordered[low], ordered[high]
