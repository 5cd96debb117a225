"""Samples of nodes, and times of steps and phases, as rows by the original's names (PandasFrame), and figures over them.

Percent is 0 to 100, as the original's; ``ratio=True`` keeps 0 to 1. Times in microseconds are of UTC. Only ``PandasFrame`` needs pandas.
"""

import math
import re
from enum import Enum
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from tocsin.exceptions import NoMoreProfilerData
from .dataloader import findings
from .opening import create_trial
from .recorded import RecordedSource
from .selection import Query, query_of

Rows = List[Dict[str, Any]]
SYSTEM_COLUMNS = ("timestamp", "timestamp_us", "value", "system_metric", "dimension", "nodeID", "type")
FRAMEWORK_COLUMNS = ("start_time", "end_time", "start_time_us", "end_time_us", "tid", "pid", "framework_metric", "step", "bytes", "process", "node_id")
_SAMPLES = "start `tocsin collect` on the node of the job; it samples every 500 ms (docs/collectors/README.md)"
_SPANS = "the hook sends phases of the steps that it captures (docs/hook/phases.md); hook.span(\"name\") marks what is yours"


class Resource(Enum):
    CPU = "cpu"
    GPU = "gpu"
    IO = "i/o"
    NETWORK = "network"
    MEMORY = "memory"


class StatsBy(Enum):
    TRAINING_PHASE = "training_phase"
    FRAMEWORK_METRICS = "framework_metric"
    PROCESS = "process"


class _Dimension(NamedTuple):
    name: str
    type: str
    percent: bool
    counter: bool = False


_DIMENSIONS = {
    "system.cpu.utilization": _Dimension("CPUUtilization", "cpu", True), "system.memory.utilization": _Dimension("MemoryUsedPercent", "memory", True),
    "hw.gpu.utilization": _Dimension("GPUUtilization", "gpu", True), "hw.gpu.memory.utilization": _Dimension("GPUMemoryUtilization", "gpu", True),
    "system.disk.io": _Dimension("DiskBytesPerSecond", "i/o", False, True), "system.network.io": _Dimension("NetworkBytesPerSecond", "network", False, True)}


class NoProfilerData(NoMoreProfilerData):
    """The run has nothing of this kind; the text says how it is captured."""

    def __init__(self, what: str, how: str) -> None:
        super().__init__()
        self.args = (f"the run has no {what}: {how}",)


def percentile(values: Sequence[float], percent: float) -> float:
    """Between two values linearly, as NumPy's default does. NaN of none."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    at = (len(ordered) - 1) * percent / 100.0
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


class Profile:
    """What was measured beside the tensors of one run. ``source``: a directory, or a trial of one. Samples are those of the time from the
    run's first to its last record."""

    def __init__(self, source: Any, run: Optional[str] = None, ratio: bool = False) -> None:
        self._trial = source if hasattr(source, "series") else create_trial(str(source), run=run)
        if not isinstance(self._trial.source, RecordedSource):
            raise ValueError("a server keeps no samples and spans: open the directory of the run")
        self.source: RecordedSource = self._trial.source
        self._wanted, self._ratio = run if run is not None else self._trial._wanted, ratio

    def _rows(self, query: str) -> Rows:
        found = self.source.run_of(self._wanted)
        asked: Query = query_of(query)
        if found is not None:
            asked = asked._replace(run=found[0], attempt=found[1])
        table = self.source.table(asked)
        return [dict(zip(table, row)) for row in zip(*([column.value(row) if name != "time" and name != "start" else int(column.data[row])
                                                        for row in range(len(column))] for name, column in table.items()))]

    def lifetime(self) -> Tuple[Optional[int], Optional[int]]:
        """When its first process started and its last one ended, UTC us; None: that was not said."""
        found = self.source.run_of(self._wanted)
        events = [(head, event) for head, event in self.source.index.events if found is not None and (head.run, head.attempt) == found]
        return (min((head.time // 1000 for head, event in events if event.get("event") == "start"), default=None),
                max((head.time // 1000 for head, event in events if event.get("event") == "end"), default=None))

    def system(self, selected: Sequence[str] = ()) -> Rows:
        """``selected``: expressions of dimensions. Counters come as what was added per second, from their second sample on."""
        start, end = self.lifetime()
        out: Rows = []
        before: Dict[Tuple[str, str], Tuple[int, float]] = {}
        for row in sorted(self._rows('system(".*")'), key=lambda one: one["time"]):
            base, _, attributes = row["name"].partition("{")
            of = _DIMENSIONS.get(base, _Dimension(base, "other", base.endswith("utilization")))
            value, key = row["value"], (row["worker"], row["name"])
            if of.counter:
                last = before.get(key)
                before[key] = (row["time"], value)
                if last is None or row["time"] <= last[0] or value < last[1]:
                    continue  # the first one, or it began anew
                value = (value - last[1]) / ((row["time"] - last[0]) / 1e6)
            elif of.percent and not self._ratio:
                value *= 100.0
            if (start is not None and row["time"] < start) or (end is not None and row["time"] > end):
                continue
            out.append({"timestamp": row["time"] / 1e6, "timestamp_us": row["time"], "value": value, "system_metric": _metric(attributes, base),
                        "dimension": of.name, "nodeID": row["worker"], "type": of.type})
        return [row for row in out if not selected or any(re.search(one, row["dimension"]) for one in selected)]

    def framework(self, selected: Sequence[str] = ()) -> Rows:
        """Steps (``Step:ModeKeys.TRAIN``) and spans by their names."""
        out = [_interval(row, f"Step:ModeKeys.{row['mode'].upper()}", row["start"], "step") for row in self._rows("step()")]
        out += [_interval(row, row["name"], row["time"], row["track"]) for row in self._rows('span(".*")') if row["seconds"] >= 0]
        out.sort(key=lambda row: (row["start_time_us"], row["end_time_us"]))
        return [row for row in out if not selected or row["framework_metric"] in selected]


def _metric(attributes: str, base: str) -> str:
    values = [part.split("=", 1)[-1] for part in attributes.rstrip("}").split(",") if part]
    return "/".join(values) or base


def _interval(row: Dict[str, Any], name: str, start: int, track: str) -> Dict[str, Any]:
    end = start + round(row["seconds"] * 1e6)
    return {"start_time": start / 1e6, "end_time": end / 1e6, "start_time_us": start, "end_time_us": end, "tid": track, "pid": row["rank"],
            "framework_metric": name, "step": row["step"], "bytes": 0, "process": row["worker"], "node_id": row["worker"]}


def _data_frame(rows: Rows, columns: Sequence[str]) -> Any:
    from .frame import _library
    return _library("pandas", "PandasFrame").DataFrame(rows, columns=list(columns))


class PandasFrame:
    """``smdebug.profiler.analysis.utils.profiler_data_to_pandas.PandasFrame``. Raises NoProfilerData where nothing was captured."""

    def __init__(self, path: Any, use_in_memory_cache: bool = False, scan_interval: int = 5000000000, run: Optional[str] = None,
                 ratio: bool = False) -> None:
        del use_in_memory_cache, scan_interval  # of the original's files
        self.profile = Profile(path, run, ratio)
        self.start_time = self.profile.lifetime()[0] or 0

    def system_rows(self, selected: Sequence[str] = ()) -> Rows:
        rows = self.profile.system(selected)
        if not rows:
            raise NoProfilerData("samples of the system" + (f" of {', '.join(selected)}" if selected else ""), _SAMPLES)
        return rows

    def framework_rows(self, selected: Sequence[str] = ()) -> Rows:
        rows = self.profile.framework(selected)
        if not rows:
            raise NoProfilerData("times of steps and spans" + (f" of {', '.join(selected)}" if selected else ""), _SPANS)
        return rows

    def get_all_system_metrics(self, selected_system_metrics: Sequence[str] = ()) -> Any:
        return _data_frame(self.system_rows(selected_system_metrics), SYSTEM_COLUMNS)

    def get_all_framework_metrics(self, selected_framework_metrics: Sequence[str] = ()) -> Any:
        return _data_frame(self.framework_rows(selected_framework_metrics), FRAMEWORK_COLUMNS)

    def get_profiler_data_by_time(self, start_time_us: int, end_time_us: int, cache_metrics: bool = False, selected_framework_metrics: Sequence[str] = (),
                                  selected_system_metrics: Sequence[str] = (), get_framework_metrics: bool = True,
                                  get_system_metrics: bool = True) -> Tuple[Any, Any]:
        """(samples, intervals): samples from, up to without; intervals that touch the range."""
        del cache_metrics
        system = [row for row in self.profile.system(selected_system_metrics) if start_time_us <= row["timestamp_us"] < end_time_us] \
            if get_system_metrics else []
        framework = [row for row in self.profile.framework(selected_framework_metrics)
                     if row["start_time_us"] < end_time_us and row["end_time_us"] > start_time_us] if get_framework_metrics else []
        return _data_frame(system, SYSTEM_COLUMNS), _data_frame(framework, FRAMEWORK_COLUMNS)

    def get_profiler_data_by_step(self, start_step: int, end_step: int, cache_metrics: bool = False, mode: Any = "train",
                                  selected_framework_metrics: Sequence[str] = (), selected_system_metrics: Sequence[str] = ()) -> Tuple[Any, Any]:
        """The time from the begin of ``start_step`` to the begin of ``end_step`` (or to the end of the last one before it)."""
        name = f"Step:ModeKeys.{str(getattr(mode, 'name', mode)).upper()}"
        steps = [row for row in self.framework_rows() if row["framework_metric"] == name and start_step <= row["step"] < end_step]
        if not steps:
            raise NoProfilerData(f"steps {start_step} to {end_step} of {name}", _SPANS)
        return self.get_profiler_data_by_time(min(row["start_time_us"] for row in steps), max(row["end_time_us"] for row in steps),
                                              cache_metrics, selected_framework_metrics, selected_system_metrics)

    def dataloader_rows(self) -> Rows:
        rows = [row for row in self.profile.framework() if str(row["tid"]).startswith("dataloader/") or row["framework_metric"] == "data_wait"]
        if not rows:
            raise NoProfilerData("times of a data loader", _SPANS)
        return rows

    def get_dataloader_metrics(self) -> Any:
        return _data_frame(self.dataloader_rows(), FRAMEWORK_COLUMNS)


def rows_of(given: Any) -> Rows:
    """Of rows, or of a pandas frame."""
    return list(given.to_dict("records")) if hasattr(given, "to_dict") else list(given)


class PandasFrameAnalysis:
    """``smdebug.profiler.analysis.utils.pandas_data_analysis.PandasFrameAnalysis``: of two frames, or ``PandasFrameAnalysis.of(path)``."""

    def __init__(self, system_df: Any, framework_df: Any, lifetime: Tuple[Optional[int], Optional[int]] = (None, None)) -> None:
        self.system, self.framework, self._lifetime = rows_of(system_df), rows_of(framework_df), lifetime

    @classmethod
    def of(cls, path: Any, run: Optional[str] = None, ratio: bool = False) -> "PandasFrameAnalysis":
        profile = Profile(path, run, ratio)
        return cls(profile.system(), profile.framework(), profile.lifetime())

    def _steps(self) -> Rows:
        return [row for row in self.framework if row["framework_metric"].startswith("Step:")]

    def get_job_statistics(self) -> Dict[str, Any]:
        """Times in UTC us, from the first to the last thing that the run said."""
        times = [row["timestamp_us"] for row in self.system] + [row[end] for row in self.framework for end in ("start_time_us", "end_time_us")]
        if not times:
            raise NoProfilerData("samples, steps or spans", f"{_SAMPLES}; {_SPANS}")
        start, end = min(times), max(times)  # the first step may begin before the process has said that it started
        start = start if self._lifetime[0] is None else min(start, self._lifetime[0])
        end = end if self._lifetime[1] is None else max(end, self._lifetime[1])
        duration = (end - start) / 1e6
        out: Dict[str, Any] = {"start_time": start, "end_time": end, "job_duration": duration}
        steps = self._steps()
        if not steps:
            return out
        first, last = min(row["start_time_us"] for row in steps), max(row["end_time_us"] for row in steps)
        parts = {"initialization": (first - start) / 1e6, "training_loop": (last - first) / 1e6, "finalization": (end - last) / 1e6}
        out.update({"training_loop_start": first, "training_loop_end": last, "training_loop_duration": parts["training_loop"],
                    "initialization": parts["initialization"], "finalization": parts["finalization"],
                    **{f"{name}_%": 100.0 * seconds / duration if duration else math.nan for name, seconds in parts.items()}})
        return out

    def get_step_statistics(self, by: Union[StatsBy, str] = StatsBy.TRAINING_PHASE) -> Rows:
        """Duration in us, by training phase (steps of a mode), framework metric, or process."""
        by = by if isinstance(by, StatsBy) else StatsBy(by)
        groups: Dict[str, List[float]] = {}
        for row in self.framework if by is StatsBy.FRAMEWORK_METRICS else self._steps():
            key = row["process"] if by is StatsBy.PROCESS else row["framework_metric"]
            groups.setdefault(str(key), []).append(row["end_time_us"] - row["start_time_us"])
        if not groups:
            raise NoProfilerData("times of steps", _SPANS)
        return [{by.value: key, "duration_mean_in_us": math.fsum(times) / len(times), "duration_min_in_us": min(times), "duration_max_in_us": max(times),
                 "duration_p50_in_us": percentile(times, 50), "duration_p95_in_us": percentile(times, 95), "duration_p99_in_us": percentile(times, 99)}
                for key, times in sorted(groups.items())]

    def get_utilization_stats(self, resource: Union[None, Resource, str, Iterable[Any]] = None, by: Any = None,
                              phase: Optional[Iterable[str]] = None) -> Rows:
        """By node and dimension: max, p99, p95, p50, min, mean. ``by="training_phase"``: apart within the intervals of each ``phase`` (names of
        framework metrics; all steps where none is given)."""
        wanted = None if resource is None else {Resource(one).value for one in ([resource] if isinstance(resource, (str, Resource)) else resource)}
        within = {"": None} if by is None else {name: self.get_training_phase_intervals(name)
                                                for name in (phase or sorted({row["framework_metric"] for row in self._steps()}))}
        groups: Dict[Tuple[str, str, str, str], List[float]] = {}
        for name, intervals in within.items():
            for row in self.system:
                if (wanted is None or row["type"] in wanted) and (intervals is None or _inside(row["timestamp_us"], intervals)):
                    groups.setdefault((name, str(row["nodeID"]), row["dimension"], row["type"]), []).append(row["value"])
        if not groups:
            raise NoProfilerData("samples of " + (", ".join(sorted(wanted)) if wanted else "the system"), _SAMPLES)
        return [{**({"training_phase": name} if by is not None else {}), "nodeID": node, "dimension": dimension, "type": type_, "max": max(values),
                 "p99": percentile(values, 99), "p95": percentile(values, 95), "p50": percentile(values, 50), "min": min(values),
                 "mean": math.fsum(values) / len(values), "count": len(values)} for (name, node, dimension, type_), values in sorted(groups.items())]

    def get_device_usage_stats(self, device: Union[None, Resource, str, Iterable[Any]] = None,
                               utilization_ranges: Sequence[Tuple[float, float]] = ((90, 100), (10, 90), (0, 10))) -> Rows:
        """How many samples of utilization lie in each band, (from, to]; the lowest has its lower end too."""
        wanted = {"cpu", "gpu"} if device is None else {Resource(one).value for one in ([device] if isinstance(device, (str, Resource)) else device)}
        lowest = min(low for low, _ in utilization_ranges)
        counts: Dict[Tuple[str, str], List[int]] = {}
        for row in self.system:
            if row["type"] in wanted and row["dimension"] in ("CPUUtilization", "GPUUtilization"):
                bands = counts.setdefault((str(row["nodeID"]), row["type"]), [0] * len(utilization_ranges))
                for place, (low, high) in enumerate(utilization_ranges):
                    bands[place] += low < row["value"] <= high or low == lowest == row["value"]
        if not counts:
            raise NoProfilerData("samples of " + ", ".join(sorted(wanted)), _SAMPLES)
        return [{"nodeID": node, "type": type_, **{f"{low:g}-{high:g}": count for (low, high), count in zip(utilization_ranges, bands)}}
                for (node, type_), bands in sorted(counts.items())]

    def get_dataloader_findings(self, factor: float = 2.0) -> Rows:
        """For each worker and loading process: how many batches, median and longest, the time between batches, and the outliers of at least
        ``factor`` medians, the longest first."""
        found = findings(self.framework, percentile, factor)
        if not found:
            raise NoProfilerData("times of a data loader", _SPANS)
        return found

    def get_training_phase_intervals(self, phase: Union[str, Sequence[str]]) -> List[Tuple[int, int]]:
        """(start, end) in us, joined where they touch. ``phase``: a framework metric; or (X, Y): from the end of each X to the begin of the
        next Y."""
        if isinstance(phase, str):
            return _joined(sorted((row["start_time_us"], row["end_time_us"]) for row in self.framework if row["framework_metric"] == phase))
        first, second = phase
        starts = sorted(row["start_time_us"] for row in self.framework if row["framework_metric"] == second)
        found = []
        for row in self.framework:
            if row["framework_metric"] == first:
                following = next((start for start in starts if start >= row["end_time_us"]), None)
                if following is not None:
                    found.append((row["end_time_us"], following))
        return _joined(sorted(found))


def _inside(time: int, intervals: Sequence[Tuple[int, int]]) -> bool:
    return any(start <= time <= end for start, end in intervals)


def _joined(intervals: List[Tuple[int, int]]) -> List[Tuple[int, int]]:
    out: List[Tuple[int, int]] = []
    for start, end in intervals:
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return out
