"""The trace of one rank, as far as its analysis needs it: operators, launches and the work of GPUs."""

import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

from .trace_parse import Opened, events

COMPUTE, COMMUNICATION, MEMORY = "compute", "communication", "memory"
_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
_RUNTIME = {"cuda_runtime", "cuda_driver", "Runtime", "hip_runtime", "xpu_runtime"}
_OPERATOR = {"cpu_op", "Operator"}
_BY_PROCESS = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}  # of traces without categories, by PyTorch without Kineto
_COLLECTIVE = re.compile(r"nccl|rccl|hccl|msccl|oneccl", re.IGNORECASE)
_STEP = re.compile(r"ProfilerStep#(\d+)")
_MARK = re.compile(r"tocsin step (\d+)")


class Work(NamedTuple):
    """Of a GPU. Times in microseconds."""
    name: str
    kind: str
    start: float
    end: float
    stream: int
    correlation: int  # 0: its launch is not known
    bytes: int


class Call(NamedTuple):
    """Of the CPU: an operator, or a call of the GPU's runtime."""
    name: str
    start: float
    end: float
    thread: int
    correlation: int
    runtime: bool


class RankTrace:
    """``work``, ``calls``: by their start. ``steps``: (number, start, end)."""

    def __init__(self, trace: Opened, place: int = 0) -> None:
        about: Dict[str, Any] = {}
        self.work: List[Work] = []
        self.calls: List[Call] = []
        self.steps: List[Tuple[int, float, float]] = []
        self.threads: Dict[int, int] = {}  # of steps: thread → how many
        marks: Dict[int, float] = {}
        numbers: Dict[Any, int] = {}
        for event in events(trace, about):
            if event.get("ph") == "X":
                self._take(event, numbers, marks)
        for number, end in sorted(marks.items()):
            if number - 1 in marks and not any(step == number for step, _, _ in self.steps):
                self.steps.append((number, marks[number - 1], end))
        self.work.sort(key=lambda one: (one.start, one.end))
        self.calls.sort(key=lambda one: (one.start, -one.end))
        self.steps.sort()
        told = (about.get("tocsin") or {}).get("rank", (about.get("distributedInfo") or {}).get("rank", place))
        self.rank = int(told)

    def _take(self, event: Dict[str, Any], numbers: Dict[Any, int], marks: Dict[int, float]) -> None:
        kind, name = str(event.get("cat") or _BY_PROCESS.get(str(event.get("pid")), "")), str(event.get("name", ""))
        start = float(event.get("ts", 0.0))
        end = start + max(0.0, float(event.get("dur", 0.0)))
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        correlation = _whole(args.get("correlation"))
        if kind.startswith("gpu_user"):
            return  # the CPU's annotations once more, where their work ran
        if kind in _DEVICE:
            self.work.append(Work(name, kind_of(kind, name), start, end, _whole(args.get("stream", event.get("tid"))), correlation, _whole(args.get("bytes"))))
            return
        thread = numbers.setdefault((event.get("pid"), event.get("tid")), len(numbers))
        step, mark = _STEP.fullmatch(name), _MARK.fullmatch(name)
        if step is not None:
            self.steps.append((int(step[1]), start, end))
        elif mark is not None:
            marks[int(mark[1])] = end
        elif kind in _RUNTIME or kind in _OPERATOR:
            self.calls.append(Call(name, start, end, thread, correlation if kind in _RUNTIME else 0, kind in _RUNTIME))
        if step is not None or mark is not None:
            self.threads[thread] = self.threads.get(thread, 0) + 1

    def launches(self) -> Dict[int, Call]:
        """By correlation."""
        return {call.correlation: call for call in self.calls if call.runtime and call.correlation}

    def streams(self) -> Dict[int, List[Work]]:
        out: Dict[int, List[Work]] = {}
        for one in self.work:
            out.setdefault(one.stream, []).append(one)
        return dict(sorted(out.items()))


def kind_of(category: str, name: str) -> str:
    if category.lower() != "kernel" or name.startswith(("Memcpy", "Memset")):
        return MEMORY
    return COMMUNICATION if _COLLECTIVE.search(name) else COMPUTE


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def union(spans: Iterable[Tuple[float, float]]) -> List[Tuple[float, float]]:
    """Intervals joined where they touch; by their start."""
    out: List[Tuple[float, float]] = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out


def length(spans: Iterable[Tuple[float, float]]) -> float:
    return sum(end - start for start, end in spans)


def common(one: List[Tuple[float, float]], other: List[Tuple[float, float]]) -> float:
    """How long both last at once; each is a union."""
    at, out = 0, 0.0
    for start, end in one:
        while at < len(other) and other[at][1] <= start:
            at += 1
        place = at
        while place < len(other) and other[place][0] < end:
            out += min(end, other[place][1]) - max(start, other[place][0])
            place += 1
    return out


def spans_of(work: Iterable[Work], *kinds: str) -> List[Tuple[float, float]]:
    """Their union; without kinds of all."""
    return union((one.start, one.end) for one in work if not kinds or one.kind in kinds)


def enclosing(calls: List[Call], start: float, end: float, thread: int) -> Optional[Call]:
    """The innermost operator of the thread around this time."""
    found = [call for call in calls if not call.runtime and call.thread == thread and call.start <= start and call.end >= end]
    return max(found, key=lambda call: call.start, default=None)
