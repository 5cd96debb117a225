"""Kernels that follow each other again and again."""

import bisect
from typing import Dict, Iterable, List, Optional, Tuple

from .trace_rank import MEMORY, Call, RankTrace, Work


def sequences_of(ranks: Iterable[RankTrace], operator: Optional[str], longest: int) -> List[Tuple[str, int, int, float]]:
    """(names joined by " → ", how many, how often, microseconds of the GPU); at least twice. Occurrences of one sequence do not overlap."""
    if longest < 2:
        raise ValueError("longest: expected at least 2")
    found: Dict[Tuple[str, ...], List[float]] = {}
    for trace in ranks:
        for row in _rows(trace, operator):
            for size in range(2, min(longest, len(row)) + 1):
                _count(row, size, found)
    out = [(" → ".join(names), len(names), int(told[0]), told[1]) for names, told in found.items() if told[0] > 1]
    return sorted(out, key=lambda one: (-one[3], -one[1], one[0]))


def _count(row: List[Work], size: int, found: Dict[Tuple[str, ...], List[float]]) -> None:
    names = [work.name for work in row]
    until: Dict[Tuple[str, ...], int] = {}
    for at in range(len(row) - size + 1):
        key = tuple(names[at:at + size])
        if until.get(key, 0) > at:
            continue
        until[key] = at + size
        told = found.setdefault(key, [0, 0.0])
        told[0] += 1
        told[1] += sum(work.end - work.start for work in row[at:at + size])


def _rows(trace: RankTrace, operator: Optional[str]) -> List[List[Work]]:
    """Kernels in the order of their stream; of an operator those of each call of it."""
    if operator is None:
        return [[work for work in stream if work.kind != MEMORY] for stream in trace.streams().values()]
    calls = [call for call in trace.calls if not call.runtime and call.name == operator]
    starts: Dict[int, List[float]] = {}
    of_thread: Dict[int, List[Call]] = {}
    for call in calls:
        starts.setdefault(call.thread, []).append(call.start)
        of_thread.setdefault(call.thread, []).append(call)
    launches = trace.launches()
    rows: Dict[Call, List[Work]] = {}
    for work in trace.work:
        launch = launches.get(work.correlation)
        if launch is None or work.kind == MEMORY or launch.thread not in starts:
            continue
        place = bisect.bisect_right(starts[launch.thread], launch.start)
        if place and of_thread[launch.thread][place - 1].end >= launch.end:
            rows.setdefault(of_thread[launch.thread][place - 1], []).append(work)
    return list(rows.values())
