"""A training job by its name, its readers, and its merged time line."""

import json
import math
import os
import re
import time
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from tocsin.exceptions import NoMoreProfilerData
from .opening import create_trial
from .profiles import PandasFrame, Profile, Rows

_LOW_GPU, _AROUND = 85.0, 20_000  # %, us: the original's
_ORDER = ("Step:", "forward", "backward", "data_wait", "dataloader")


class MetricsReader:
    """Rows of one kind, by time (UTC us) or step."""

    def __init__(self, trial: Any, kind: str) -> None:
        self.trial, self._kind = trial, kind

    def _rows(self) -> Rows:
        profile = Profile(self.trial)
        return profile.system() if self._kind == "system" else profile.framework()

    def refresh_event_file_list(self) -> None:
        """Everything is read anew at each call."""

    def get_events(self, start_time: Optional[float] = None, end_time: Optional[float] = None, unit: str = "us") -> Rows:
        """From, up to without, UTC, in ``us`` or ``s``."""
        by = {"us": 1.0, "microseconds": 1.0, "s": 1e6, "seconds": 1e6}[unit]
        begin = "timestamp_us" if self._kind == "system" else "start_time_us"
        return [row for row in self._rows() if (start_time is None or row[begin] >= start_time * by) and (end_time is None or row[begin] < end_time * by)]

    def get_events_by_step(self, start_step: int, end_step: int) -> Rows:
        return [row for row in self._rows() if row.get("step") is not None and start_step <= row["step"] < end_step]

    def get_timestamp_of_latest_available_file(self) -> int:
        """UTC us of the newest one; 0: there is none."""
        return max((row.get("timestamp_us", row.get("end_time_us", 0)) for row in self._rows()), default=0)


class TrainingJob:
    """``TrainingJob(name, region)`` of the original. ``source``: the directory that the job writes to, or its cluster; without it ``name`` is that directory.
    With it, the newest run of the job of this name. Raises ValueError."""

    def __init__(self, training_job_name: str, region: Optional[str] = None, *, source: Optional[str] = None) -> None:
        del region  # a cloud's
        self.name = training_job_name
        self.path = str(source if source is not None else training_job_name)
        run = None
        if source is not None:
            if self.path.startswith(("http://", "https://", "s3://")):
                raise ValueError(f"source: expected the directory that the job writes to, or kafka://host:9092, got {self.path}")
            index = create_trial(self.path).source.index
            newest = index.newest(job=training_job_name)
            if newest is None:
                raise ValueError(f"there is no job {training_job_name} in {self.path}: it has {', '.join(sorted(set(index.jobs.values()))) or 'none'}")
            run = newest[0]
        self.trial = create_trial(self.path, run=run)

    def describe_training_job(self) -> Dict[str, Any]:
        start, end = Profile(self.trial).lifetime()
        return {"TrainingJobName": self.trial.job, "run": self.trial.run, "TrainingJobStatus": "Completed" if self.trial.loaded_all_steps else "InProgress",
                "TrainingStartTime": start, "TrainingEndTime": end, "workers": self.trial.workers(), "path": self.path}

    def describe(self) -> Dict[str, Any]:
        """The same, under the estimator's name for it."""
        return self.describe_training_job()

    def latest_job_debugger_artifacts_path(self) -> str:
        """What ``create_trial`` opens. A run has one recording: tensors, samples and spans lie in it together."""
        return self.path

    def latest_job_profiler_artifacts_path(self) -> str:
        return self.path

    def latest_job_tensorboard_artifacts_path(self) -> str:
        """Raises ValueError: event files are written by ``export``, wherever it is told."""
        raise ValueError(f'a recording holds no event files: tocsin.analysis.export("{self.path}", to="tensorboard", path="events") writes them')

    def get_systems_metrics_reader(self) -> MetricsReader:
        return MetricsReader(self.trial, "system")

    def get_framework_metrics_reader(self) -> MetricsReader:
        return MetricsReader(self.trial, "framework")

    def wait_for_sys_profiling_data_to_be_available(self, timeout: float = 60.0) -> None:
        self._wait(self.get_systems_metrics_reader(), timeout)

    def wait_for_framework_profiling_data_to_be_available(self, timeout: float = 60.0) -> None:
        self._wait(self.get_framework_metrics_reader(), timeout)

    def _wait(self, reader: MetricsReader, timeout: float) -> None:
        from tocsin.rules.changes import Changes
        end = time.monotonic() + timeout
        with Changes(os.path.dirname(self.trial.source.index.path) or ".") as changes:
            while not reader.get_events():
                self.trial.refresh()
                left = end - time.monotonic()
                if self.trial.loaded_all_steps or left <= 0:
                    raise NoMoreProfilerData()
                changes.wait(min(left, 0.5))


class MergedTimeline:
    """Steps, phases and samples of a run as one trace for Perfetto or chrome://tracing. ``path``: the directory of the run."""

    def __init__(self, path: str, file_suffix_filter: Any = None, output_directory: Optional[str] = None, run: Optional[str] = None) -> None:
        del file_suffix_filter  # of the original's files
        self._frames = PandasFrame(path, run=run)
        self._out = output_directory or os.path.dirname(self._frames.profile.source.index.path) or "."

    def merge_timeline(self, start: Optional[int] = None, end: Optional[int] = None, unit: str = "time",
                       sys_metrics_filter: Optional[Iterable[str]] = None) -> str:
        """Writes ``merged_timeline.json`` and returns its name. ``unit``: ``time`` (UTC us) or ``step`` (of the mode train). ``sys_metrics_filter``:
        expressions of dimensions; None: all. A counter stands for each series of samples; where the GPU was below 85 %, a marker."""
        spans = self._frames.framework_rows()
        if unit == "step":
            start, end = _time_of_steps(spans, start, end)
        elif unit != "time":
            raise ValueError(f"unit {unit}: expected time or step")
        low, high = -math.inf if start is None else start, math.inf if end is None else end
        spans = [row for row in spans if row["end_time_us"] > low and row["start_time_us"] < high]
        samples = [row for row in self._frames.profile.system(list(sys_metrics_filter or ())) if low <= row["timestamp_us"] < high]
        path = os.path.join(self._out, "merged_timeline.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": [*_spans(spans), *_counters(samples)], "displayTimeUnit": "ms"}, file)
        return path


def _time_of_steps(spans: Rows, first: Optional[int], last: Optional[int]) -> Tuple[int, int]:
    steps = [row for row in spans if row["framework_metric"] == "Step:ModeKeys.TRAIN" and (first is None or row["step"] >= first)
             and (last is None or row["step"] < last)]
    return min((row["start_time_us"] for row in steps), default=0), max((row["end_time_us"] for row in steps), default=0)


def _rank(name: str) -> int:
    return next((place for place, word in enumerate(_ORDER) if re.match(word, name)), len(_ORDER))


def _spans(rows: Rows) -> List[Dict[str, Any]]:
    """A process for each rank; inside, a row for each metric, in the order of a step."""
    out: List[Dict[str, Any]] = []
    for rank in sorted({row["pid"] for row in rows}):
        of_rank = [row for row in rows if row["pid"] == rank]
        out.append({"ph": "M", "name": "process_name", "pid": rank, "tid": 0, "args": {"name": f"rank {rank} ({of_rank[0]['process']})"}})
        names = sorted({str(row["tid"]) if str(row["tid"]).startswith(("dataloader/", "op.", "communication")) else row["framework_metric"] for row in of_rank},
                       key=lambda name: (_rank(name), name))
        for place, name in enumerate(names):
            out.append({"ph": "M", "name": "thread_name", "pid": rank, "tid": place, "args": {"name": name}})
            out.append({"ph": "M", "name": "thread_sort_index", "pid": rank, "tid": place, "args": {"sort_index": place}})
        for row in of_rank:
            tid = names.index(str(row["tid"]) if str(row["tid"]) in names else row["framework_metric"])
            out.append({"ph": "X", "name": row["framework_metric"], "pid": rank, "tid": tid, "ts": row["start_time_us"],
                        "dur": row["end_time_us"] - row["start_time_us"], "args": {"step": row["step"]}})
    return out


def _counters(rows: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
    nodes = sorted({row["nodeID"] for row in rows})
    out: List[Dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 1_000_000 + place, "tid": 0, "args": {"name": f"node {node}"}}
                                 for place, node in enumerate(nodes)]
    marked: Dict[int, int] = {}
    for row in sorted(rows, key=lambda one: one["timestamp_us"]):
        pid = 1_000_000 + nodes.index(row["nodeID"])
        out.append({"ph": "C", "name": f"{row['dimension']} {row['system_metric']}", "pid": pid, "ts": row["timestamp_us"], "args": {"value": row["value"]}})
        if row["dimension"] == "GPUUtilization" and row["value"] < _LOW_GPU and row["timestamp_us"] - marked.get(pid, -1 << 60) > _AROUND:
            marked[pid] = row["timestamp_us"]
            out.append({"ph": "i", "s": "p", "name": "GPU below 85 %", "pid": pid, "tid": 0, "ts": row["timestamp_us"], "args": {"value": row["value"]}})
    return out
