"""Traces of PyTorch's profiler, a file for each rank: where GPUs waited, which kernels took how long, and what bounds a step."""

import math
import os
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from .columns import INTEGER, REAL, TEXT
from .http import Server
from .made_frame import MadeFrame
from .profiles import NoProfilerData, percentile
from .trace_parse import NoTrace, Opened
from .trace_path import CriticalPath
from .trace_publish import summary_of, target_of
from .trace_rank import COMMUNICATION, COMPUTE, MEMORY, RankTrace, Work, common, length, spans_of
from .trace_sequences import sequences_of
from .trace_sources import traces_of

_CLOSE = 0.03  # microseconds between kernels that follow each other at once
_SLOW_CALL, _SLOW_LAUNCH = 50.0, 100.0  # microseconds
_HOW = "trace with ProfilerActivity.CUDA, or `tocsin capture RUN --trace 5` where the job uses a GPU"


class Traces:
    """Reads one rank at a time; a single one stays in memory. All times in microseconds, all shares in percent."""

    def __init__(self, files: Sequence[Opened]) -> None:
        if not files:
            raise NoTrace("no trace was given")
        self._files = list(files)
        self._kept: Optional[RankTrace] = None
        self.ranks: List[int] = []

    def _each(self) -> Iterator[RankTrace]:
        ranks = []
        for place, file in enumerate(self._files):
            trace = self._kept if self._kept is not None else RankTrace(file, place)
            if len(self._files) == 1:
                self._kept = trace
            if trace.rank in ranks:
                raise NoTrace(f"two traces are of rank {trace.rank}")
            ranks.append(trace.rank)
            yield trace
        self.ranks = ranks

    def _each_device(self) -> Iterator[RankTrace]:
        for trace in self._each():
            if not trace.work:
                raise NoProfilerData(f"work of a GPU in the trace of rank {trace.rank}", _HOW)
            yield trace

    def temporal(self) -> MadeFrame:
        """Of the time from the first to the last work of the GPU: computing, communication and memory that were not hidden behind what stands
        before them, and idle. They add up to the whole."""
        rows = []
        for trace in self._each_device():
            start, end = trace.work[0].start, max(one.end for one in trace.work)
            compute = length(spans_of(trace.work, COMPUTE))
            exchanged = length(spans_of(trace.work, COMPUTE, COMMUNICATION)) - compute
            busy = length(spans_of(trace.work))
            parts = (compute, exchanged, busy - compute - exchanged, end - start - busy)
            rows.append((trace.rank, end - start, *parts, *(100.0 * part / (end - start) if end > start else 0.0 for part in parts)))
        names = ("compute", "communication", "memory", "idle")
        return MadeFrame({"rank": INTEGER, "time": REAL, **dict.fromkeys(names, REAL), **{f"{name}_share": REAL for name in names}}, rows, "temporal breakdown")

    def overlap(self) -> MadeFrame:
        """How much of the communication computing went on in."""
        rows = []
        for trace in self._each_device():
            exchanged = spans_of(trace.work, COMMUNICATION)
            both = common(exchanged, spans_of(trace.work, COMPUTE))
            rows.append((trace.rank, length(exchanged), both, 100.0 * both / length(exchanged) if exchanged else None))
        return MadeFrame({"rank": INTEGER, "communication": REAL, "overlapped": REAL, "share": REAL}, rows, "overlap of communication and computing")

    def idle(self) -> MadeFrame:
        """Gaps of each stream: ``host_wait``, as the next kernel was launched after the one before had ended; ``kernel_wait``, as kernels follow
        each other at once (30 ns); ``other``, as it waited for something else; ``unknown``, as its launch is not in the trace."""
        rows = []
        for trace in self._each_device():
            launches = trace.launches()
            for stream, work in trace.streams().items():
                gaps = dict.fromkeys(("host_wait", "kernel_wait", "other", "unknown"), 0.0)
                end = work[0].end
                for one in work[1:]:
                    gap = one.start - end
                    if gap > 0:
                        launch = launches.get(one.correlation)
                        gaps["unknown" if launch is None else "host_wait" if launch.start > end else "kernel_wait" if gap <= _CLOSE else "other"] += gap
                    end = max(end, one.end)
                whole = math.fsum(gaps.values())
                rows.append((trace.rank, stream, whole, *gaps.values(), *(100.0 * gap / whole if whole else 0.0 for gap in gaps.values())))
        names = ("host_wait", "kernel_wait", "other", "unknown")
        return MadeFrame({"rank": INTEGER, "stream": INTEGER, "idle": REAL, **dict.fromkeys(names, REAL), **{f"{name}_share": REAL for name in names}}, rows,
                         "idle breakdown")

    def kernels(self, top: Optional[int] = None) -> MadeFrame:
        """For each kernel and rank; the one that took longest over all ranks first. ``outlier``: on this rank its mean is at least twice the
        median of the ranks' means."""
        by_name: Dict[Tuple[str, str], Dict[int, List[float]]] = {}
        busy: Dict[int, float] = {}
        for trace in self._each_device():
            for one in trace.work:
                by_name.setdefault((one.name, one.kind), {}).setdefault(trace.rank, []).append(one.end - one.start)
                busy[trace.rank] = busy.get(trace.rank, 0.0) + one.end - one.start
        order = sorted(by_name.items(), key=lambda one: (-math.fsum(math.fsum(times) for times in one[1].values()), one[0]))
        rows = []
        for (name, kind), ranks in order[:top]:
            middle = percentile([math.fsum(times) / len(times) for times in ranks.values()], 50)
            for rank, times in sorted(ranks.items()):
                whole = math.fsum(times)
                rows.append((name, kind, rank, len(times), whole, whole / len(times), min(times), max(times),
                             100.0 * whole / busy[rank] if busy[rank] else 0.0, int(len(ranks) > 1 and whole / len(times) >= 2 * middle > 0)))
        return MadeFrame({"name": TEXT, "kind": TEXT, "rank": INTEGER, "count": INTEGER, "time": REAL, "mean": REAL, "min": REAL, "max": REAL, "share": REAL,
                          "outlier": INTEGER}, rows, "kernels")

    def launches(self) -> MadeFrame:
        """For each launch: how long the call took on the CPU, the work on the GPU, and the delay between. ``short``: the work took less time
        than its launch; ``slow_call``: more than 50 us; ``delayed``: more than 100 us."""
        rows = []
        for trace in self._each_device():
            calls = trace.launches()
            for one in trace.work:
                call = calls.get(one.correlation)
                if call is not None:
                    took, worked, delay = call.end - call.start, one.end - one.start, max(0.0, one.start - call.end)
                    rows.append((trace.rank, one.name, one.stream, call.start, took, worked, delay, int(worked < took), int(took > _SLOW_CALL),
                                 int(delay > _SLOW_LAUNCH)))
        return MadeFrame({"rank": INTEGER, "name": TEXT, "stream": INTEGER, "time": REAL, "call": REAL, "work": REAL, "delay": REAL, "short": INTEGER,
                          "slow_call": INTEGER, "delayed": INTEGER}, rows, "launches")

    def queue(self) -> MadeFrame:
        """How much work was launched and had not ended, for each stream, at each moment at which that changed."""
        rows: List[Tuple[Any, ...]] = []
        for trace in self._each_device():
            calls = trace.launches()
            for stream, work in trace.streams().items():
                changes: Dict[float, int] = {}
                for one in work:
                    call = calls.get(one.correlation)
                    if call is not None:
                        changes[call.start] = changes.get(call.start, 0) + 1
                        changes[one.end] = changes.get(one.end, 0) - 1
                depth = 0
                for time, change in sorted(changes.items()):
                    depth += change
                    rows.append((trace.rank, stream, time, depth))
        return MadeFrame({"rank": INTEGER, "stream": INTEGER, "time": REAL, "depth": INTEGER}, rows, "queue of launches")

    def copies(self) -> MadeFrame:
        """Copies and fills by their kind; ``bandwidth`` in GB/s over the time in which they moved bytes."""
        rows = []
        for trace in self._each_device():
            of: Dict[str, List[Work]] = {}
            for one in trace.work:
                if one.kind == MEMORY:
                    of.setdefault(one.name, []).append(one)
            for name, works in sorted(of.items()):
                took, moved = math.fsum(one.end - one.start for one in works), sum(one.bytes for one in works)
                rows.append((trace.rank, name, len(works), took, moved, moved / took / 1e3 if took and moved else None))
        return MadeFrame({"rank": INTEGER, "name": TEXT, "count": INTEGER, "time": REAL, "bytes": INTEGER, "bandwidth": REAL}, rows, "copies")

    def operators(self) -> MadeFrame:
        """Operators of the CPU over all ranks; ``own``: without the operators inside them, as far as they are on the same thread."""
        return MadeFrame({"name": TEXT, "count": INTEGER, "time": REAL, "own": REAL},
                         [(name, *told) for name, told in sorted(self._operators().items(), key=lambda one: -one[1][2])], "operators")

    def _operators(self) -> Dict[str, Tuple[int, float, float]]:
        out: Dict[str, Tuple[int, float, float]] = {}
        for trace in self._each():
            open_: Dict[int, List[List[Any]]] = {}  # by thread: [call, time of those inside]

            def close(stack: List[List[Any]]) -> None:
                call, inside = stack.pop()
                took = call.end - call.start
                if stack:
                    stack[-1][1] += took
                count, time, own = out.get(call.name, (0, 0.0, 0.0))
                out[call.name] = (count + 1, time + took, own + max(0.0, took - inside))
            for call in trace.calls:
                if call.runtime:
                    continue
                stack = open_.setdefault(call.thread, [])
                while stack and stack[-1][0].end <= call.start:
                    close(stack)
                stack.append([call, 0.0])
            for stack in open_.values():
                while stack:
                    close(stack)
        return out

    def diff(self, other: "Traces", of: str = "operators") -> MadeFrame:
        """What differs in ``other``: operators, or ``of="kernels"``. ``state``: new, gone, slower, faster (by a tenth of the time of one), or
        same. The greatest difference first."""
        if of not in ("operators", "kernels"):
            raise ValueError(f"of={of!r}: expected operators or kernels")
        before, after = (one._totals(of) for one in (self, other))
        rows = []
        for name in before.keys() | after.keys():
            (count, time), (count2, time2) = before.get(name, (0, 0.0)), after.get(name, (0, 0.0))
            mean, mean2 = (whole / many if many else 0.0 for whole, many in ((time, count), (time2, count2)))
            state = "new" if not count else "gone" if not count2 else "slower" if mean2 > 1.1 * mean else "faster" if mean2 < 0.9 * mean else "same"
            rows.append((name, state, count, count2, time, time2, time2 - time))
        rows.sort(key=lambda row: (-abs(row[-1]), row[0]))
        return MadeFrame({"name": TEXT, "state": TEXT, "count": INTEGER, "count_after": INTEGER, "time": REAL, "time_after": REAL, "difference": REAL}, rows,
                         f"differences of {of}")

    def _totals(self, of: str) -> Dict[str, Tuple[int, float]]:
        if of == "operators":
            return {name: (count, time) for name, (count, time, _) in self._operators().items()}
        out: Dict[str, Tuple[int, float]] = {}
        for trace in self._each_device():
            for one in trace.work:
                count, time = out.get(one.name, (0, 0.0))
                out[one.name] = (count + 1, time + one.end - one.start)
        return out

    def steps(self) -> MadeFrame:
        """Steps that the traces hold."""
        return MadeFrame({"rank": INTEGER, "step": INTEGER, "start": REAL, "time": REAL},
                         [(trace.rank, number, start, end - start) for trace in self._each() for number, start, end in trace.steps], "steps")

    def critical_path(self, step: Optional[int] = None, rank: Optional[int] = None) -> MadeFrame:
        """The chain of work that bounds a step (None: the longest one) of a rank (None: the first), in the order of time. ``kind``: cpu, launch
        delay, kernel, communication, memory, synchronization, wait. The pieces add up to the step."""
        trace = next((one for one in self._each() if rank is None or one.rank == rank), None)
        if trace is None:
            raise ValueError(f"no trace of rank {rank}: there are {', '.join(map(str, self.ranks))}")
        if step is None:
            if not trace.steps:
                raise NoProfilerData(f"steps in the trace of rank {trace.rank}", "call profiler.step() once a step; `tocsin capture RUN --trace 5` marks them")
            step = max(trace.steps, key=lambda one: one[2] - one[1])[0]
        path = CriticalPath(trace, step)
        rows = [(trace.rank, step, piece.kind, piece.name, piece.start - path.start, piece.end - piece.start,
                 100.0 * (piece.end - piece.start) / (path.end - path.start), piece.where) for piece in path.pieces()]
        return MadeFrame({"rank": INTEGER, "step": INTEGER, "kind": TEXT, "name": TEXT, "start": REAL, "time": REAL, "share": REAL, "where": TEXT}, rows,
                         "critical path")

    def sequences(self, operator: Optional[str] = None, longest: int = 5, top: int = 10) -> MadeFrame:
        """Kernels that follow each other on a stream again and again, candidates to be fused: 2 to ``longest`` of them. ``operator``: only those
        that this operator launched. Those that take most time first."""
        found = sequences_of(self._each_device(), operator, longest)
        return MadeFrame({"sequence": TEXT, "length": INTEGER, "count": INTEGER, "time": REAL}, found[:top], "sequences of kernels")


def traces(given: Union[str, "os.PathLike[str]", Opened, Sequence[Any], Any], step: Optional[int] = None, run: Optional[str] = None,
           capture: Any = None, publish: Union[bool, str] = False, token: Optional[str] = None) -> Traces:
    """``given``: a trace file (``.json``, ``.json.gz``), several, a folder of them; or a trial, the directory of a run or its page at a server
    (``http://127.0.0.1:9760/runs/4e3046d4``) that sent traces (`tocsin capture RUN --trace 5`), of which ``step`` names one (None: the newest).
    ``capture``: as of :func:`tocsin.watch`, where raw tensors go to a store of their own.

    ``publish``: writes what was found as a note into the history of the run, where the page shows it: True where ``given`` is of a server,
    else the address of the run's page. ``token``: of the server; publishing needs the role ``operator``. ValueError: no run is named;
    :class:`ServerError`: the server refuses."""
    if isinstance(given, str) and given.startswith(("http://", "https://")):
        given = Server(given, token)
    target = target_of(given, publish, run, token) if publish else None
    found = Traces(traces_of(given, step, run, capture))
    if target is not None:
        target.write(summary_of(found))
    return found
