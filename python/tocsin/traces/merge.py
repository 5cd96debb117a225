"""Traces of several ranks as one, for Perfetto or chrome://tracing: the processes of each rank, on one clock.

The clocks of two machines differ by more than what a trace is looked at for. Each rank marks where its steps end
(``tocsin step 41``); a rank's clock is moved so that, of the steps that both have, the middle one of the differences to
the first rank's marks is zero. What a rank is late by in single steps stays. Ranks of one machine have one clock, and
are not moved.
"""

import gzip
import json
import re
from statistics import median
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

MARK = "tocsin step "  # and its number: the name of an event of no length at the end of a step
ABOUT = "tocsin"  # of the trace's metadata: whose it is
_OF_FLOWS = "stfbneNODP"  # phases of events whose id ties them to others
_PROCESSES = 1000  # of one rank


class Merged(NamedTuple):
    data: bytes  # JSON, compressed by gzip
    ranks: List[int]
    moved: Dict[int, float]  # by rank: microseconds; only those whose clock is another machine's
    apart: Dict[int, float]  # by rank: how far the ends of its steps lie from the first one's at most, once moved


class _Trace:
    """Of one rank."""

    def __init__(self, data: bytes, place: int) -> None:
        whole = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        self.whole: Dict[str, Any] = whole if isinstance(whole, dict) else {"traceEvents": whole}
        about = self.whole.get(ABOUT) or {}
        told = about.get("rank", (self.whole.get("distributedInfo") or {}).get("rank", place))
        self.rank = int(told)
        self.worker = str(about.get("worker", ""))
        self.host = str(about.get("host", ""))
        # Some versions count from a time of the process.
        self.base = int(self.whole.get("baseTimeNanoseconds", 0))
        self.events: List[Dict[str, Any]] = self.whole.get("traceEvents", [])

    def marks(self) -> Dict[int, float]:
        """Ends of steps, in microseconds by the clock of its machine less its base."""
        found = ((re.fullmatch(MARK + r"(\d+)", str(event.get("name", ""))), event) for event in self.events
                 if event.get("ph") == "X")
        return {int(match[1]): float(event["ts"]) for match, event in found if match}


def merge(traces: Sequence[bytes]) -> Merged:
    """``traces``: Chrome traces of PyTorch's profiler, compressed or not. ``ValueError``: one is none, two are of one rank,
    or clocks cannot be told from each other."""
    if not traces:
        raise ValueError("no trace to merge")
    try:
        read = sorted((_Trace(data, place) for place, data in enumerate(traces)), key=lambda one: one.rank)
    except (OSError, EOFError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"not a Chrome trace: {error}") from error
    ranks = [one.rank for one in read]
    if len(set(ranks)) < len(ranks):
        raise ValueError(f"two traces are of one rank: {ranks}")
    first = read[0]
    moved: Dict[int, float] = {}
    apart: Dict[int, float] = {}
    events: List[Dict[str, Any]] = []
    for one in read:
        by = (one.base - first.base) / 1000.0
        if one is not first:
            away, spread = _clock(first, one, by)
            if away is not None:
                moved[one.rank] = away
                by += away
            if spread is not None:
                apart[one.rank] = spread
        events += _of_rank(one, by)
    out = {name: value for name, value in first.whole.items() if name not in ("traceEvents", ABOUT, "distributedInfo")}
    out[ABOUT] = {"ranks": ranks, "clocks_moved_us": moved}
    out["traceEvents"] = events
    return Merged(gzip.compress(json.dumps(out).encode("utf-8"), 5), ranks, moved, apart)


def _clock(first: _Trace, one: _Trace, by: float) -> Tuple[Optional[float], Optional[float]]:
    """(what its clock is moved by, beside ``by``; how far its marks are then apart from the first's); None: unknown."""
    theirs, ours = first.marks(), one.marks()
    differences = [theirs[step] - (ours[step] + by) for step in theirs.keys() & ours.keys()]
    if first.host and first.host == one.host:
        return None, max((abs(each) for each in differences), default=None)
    if not differences:
        raise ValueError(f"ranks {first.rank} and {one.rank} have no step in common: their clocks cannot be told from each other")
    away = median(differences)
    return away, max(abs(each - away) for each in differences)


def _of_rank(trace: _Trace, by: float) -> List[Dict[str, Any]]:
    """Its events with processes of their own, named after the rank."""
    processes: Dict[str, int] = {}

    def process(told: Any) -> int:
        return trace.rank * _PROCESSES + processes.setdefault(str(told), len(processes))

    name = f"rank {trace.rank}" + (f" ({trace.worker})" if trace.worker else "")
    out: List[Dict[str, Any]] = []
    named = set()
    for event in trace.events:
        event = dict(event)
        if "pid" in event:
            event["pid"] = process(event["pid"])
        if "ts" in event:
            event["ts"] = float(event["ts"]) + by
        if event.get("ph") in _OF_FLOWS and "id" in event:
            event["id"] = f"{trace.rank}/{event['id']}"
        if event.get("ph") == "M" and event.get("name") == "process_name":
            named.add(event["pid"])
            event["args"] = {"name": f"{name}: {(event.get('args') or {}).get('name', '')}"}
        elif event.get("ph") == "M" and event.get("name") == "process_sort_index":
            event["args"] = {"sort_index": event["pid"]}
        out.append(event)
    out += [{"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
            for pid in sorted({process(one) for one in processes} - named)]
    return out
