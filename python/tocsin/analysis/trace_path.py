"""The critical path of a step: from its end backwards, what each piece of work had waited for.

Work of a GPU waits for its launch, and for the work before it on its stream; where it begins later than both, for the work of another
stream that ended last. A call that synchronizes waits for the work that ended last inside it. A thread that did nothing waits for the
thread that went on. What is between two such ends is the step's time, piece by piece: the pieces add up to it."""

import bisect
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from .trace_rank import Call, RankTrace, Work

CPU, KERNEL, LAUNCH, SYNCHRONIZE, WAIT = "cpu", "kernel", "launch delay", "synchronization", "wait"
_SYNCHRONIZES = re.compile(r"Synchronize|Free$", re.IGNORECASE)
_COPIES = re.compile(r"Memcpy", re.IGNORECASE)  # waits for its own copy, where that ended inside the call
_NEAR = 1e-6  # microseconds: the same moment
_MOST = 1_000_000  # turns


class Piece(NamedTuple):
    kind: str
    name: str
    start: float
    end: float
    where: str  # thread 0, stream 7


class _Thread:
    """Calls of one thread as pieces of time that do not overlap: the innermost one counts."""

    def __init__(self, calls: List[Call]) -> None:
        self.leaves: List[Tuple[float, float, Call]] = []
        open_: List[Call] = []
        at = 0.0
        for call in calls:
            while open_ and open_[-1].end <= call.start:
                at = self._leaf(at, open_[-1].end, open_.pop())
            if open_:
                self._leaf(at, call.start, open_[-1])
            at = call.start
            open_.append(call)
        while open_:
            at = self._leaf(at, open_[-1].end, open_.pop())
        self._starts = [leaf[0] for leaf in self.leaves]

    def _leaf(self, start: float, end: float, call: Call) -> float:
        if end > start:
            self.leaves.append((start, end, call))
        return max(start, end)

    def before(self, at: float) -> Optional[Tuple[float, float, Call]]:
        """The last piece that begins before this moment."""
        place = bisect.bisect_left(self._starts, at - _NEAR)
        return self.leaves[place - 1] if place else None


class CriticalPath:
    def __init__(self, trace: RankTrace, step: int) -> None:
        found = next(((start, end) for number, start, end in trace.steps if number == step), None)
        if found is None:
            known = ", ".join(str(number) for number, _, _ in trace.steps[:20]) or "none"
            raise ValueError(f"no step {step} in the trace of rank {trace.rank}: it has {known}")
        self.start, self.end = found
        threads: Dict[int, List[Call]] = {}
        for call in trace.calls:
            if call.end > self.start and call.start < self.end:
                threads.setdefault(call.thread, []).append(call)
        self._threads = {name: _Thread(calls) for name, calls in threads.items()}
        self._work = sorted((one for one in trace.work if one.end > self.start and one.start < self.end), key=lambda one: one.end)
        self._ends = [one.end for one in self._work]
        self._before: Dict[Work, Work] = {}
        for of_stream in trace.streams().values():
            self._before.update(zip(of_stream[1:], of_stream))
        self._launches = trace.launches()
        self._launched = {one.correlation: one for one in self._work if one.correlation}
        self._main = max(trace.threads, key=lambda name: trace.threads[name], default=None)
        self._out: List[Piece] = []

    def pieces(self) -> List[Piece]:
        """In the order of time. Their lengths add up to that of the step."""
        at, thread = self.end, self._main if self._main is not None else next(iter(self._threads), 0)
        on: Optional[Work] = None
        for _ in range(_MOST):
            if at <= self.start + _NEAR:
                break
            if on is not None:
                at, on, thread = self._on_device(on, at, thread)
            else:
                at, on, thread = self._on_cpu(at, thread)
        return self._out[::-1]

    def _add(self, kind: str, name: str, start: float, end: float, where: str) -> float:
        start = max(start, self.start)
        if end > start:
            self._out.append(Piece(kind, name, start, end, where))
        return min(start, end)

    def _ended_before(self, at: float) -> Optional[Work]:
        place = bisect.bisect_right(self._ends, at + _NEAR)
        return self._work[place - 1] if place else None

    def _on_device(self, work: Work, at: float, thread: int) -> Tuple[float, Optional[Work], int]:
        where = f"stream {work.stream}"
        at = self._add(work.kind if work.kind != "compute" else KERNEL, work.name, work.start, at, where)
        before, launch = self._before.get(work), self._launches.get(work.correlation)
        before_end = before.end if before is not None and before.end <= at + _NEAR else self.start
        launched = launch.end if launch is not None and launch.end <= at + _NEAR else launch.start if launch is not None else self.start
        latest = max(before_end, launched)
        other = self._ended_before(at)
        if other is not None and other is not work and other.stream != work.stream and other.end > latest + _NEAR:
            return self._add(WAIT, "another stream", other.end, at, where), other, thread
        if launch is not None and launched >= before_end:
            return self._add(LAUNCH, launch.name, launched, at, where), None, launch.thread
        if before is not None and before_end > self.start:
            return self._add(WAIT, "the stream", before_end, at, where), before, thread
        return self._add(WAIT, "what came before the step", self.start, at, where), None, thread

    def _on_cpu(self, at: float, thread: int) -> Tuple[float, Optional[Work], int]:
        lane = self._threads.get(thread)
        leaf = lane.before(at) if lane is not None else None
        if leaf is None or leaf[1] < at - _NEAR:
            return self._idle(at, thread, leaf)
        start, _, call = leaf
        where = f"thread {thread}"
        work = self._waited_for(call, at) if call.runtime else None
        if work is not None:
            return self._add(SYNCHRONIZE, call.name, work.end, at, where), work, thread
        return self._add(CPU, call.name, start, at, where), None, thread

    def _waited_for(self, call: Call, at: float) -> Optional[Work]:
        if _COPIES.search(call.name):
            own = self._launched.get(call.correlation)
            return own if own is not None and own.end <= at + _NEAR else None
        last = self._ended_before(at) if _SYNCHRONIZES.search(call.name) else None
        return last if last is not None and last.end > call.start else None

    def _idle(self, at: float, thread: int, leaf: Optional[Tuple[float, float, Call]]) -> Tuple[float, Optional[Work], int]:
        """The thread did nothing that was traced before this moment."""
        since = leaf[1] if leaf is not None else self.start
        others = [(min(one[1], at), name) for name, lane in self._threads.items() if name != thread for one in (lane.before(at),) if one is not None]
        end, other = max(others, default=(self.start, thread))
        if end > since + _NEAR:
            return self._add(CPU, "outside of operators", end, at, f"thread {thread}"), None, other
        return self._add(CPU, "outside of operators", since, at, f"thread {thread}"), None, thread
