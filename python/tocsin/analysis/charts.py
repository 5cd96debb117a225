"""Charts of a profile, with the original's names and arguments. Each is a :class:`Chart` once it is plotted."""

import math
import re
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import chart
from .chart import Chart, Panel, number
from .profiles import PandasFrame, Profile, Rows, percentile

_NEWEST = 1000  # samples that a line or a row shows
_ANY = (".*",)


class _Reader:
    """What a chart reads: a directory, a trial of one, a Profile, a PandasFrame, or a reader of TrainingJob."""

    def __init__(self, given: Any) -> None:
        if isinstance(given, PandasFrame):
            self.frames = given
        else:
            self.frames = PandasFrame(getattr(given, "trial", given)) if not isinstance(given, Profile) else _of(given)

    def samples(self, starttime: float, endtime: Optional[float], dimensions: Sequence[str], events: Sequence[str]) -> Dict[Tuple[str, str, str], Rows]:
        """By node, dimension and event; times in seconds since the first sample."""
        rows = self.frames.system_rows()
        begin = min(row["timestamp_us"] for row in rows)
        out: Dict[Tuple[str, str, str], Rows] = {}
        for row in sorted(rows, key=lambda one: one["timestamp_us"]):
            at = (row["timestamp_us"] - begin) / 1e6
            if at >= starttime and (endtime is None or at < endtime) and any(re.search(one, row["dimension"]) for one in dimensions) \
                    and any(re.search(one, row["system_metric"]) for one in events):
                out.setdefault((row["nodeID"], row["dimension"], row["system_metric"]), []).append({**row, "at": at})
        return dict(sorted(out.items()))


def _of(profile: Profile) -> PandasFrame:
    out = PandasFrame.__new__(PandasFrame)
    out.profile, out.start_time = profile, profile.lifetime()[0] or 0
    return out


def _with_totals(samples: Dict[Tuple[str, str, str], Rows]) -> Dict[Tuple[str, str, str], Rows]:
    """``total``: the mean over cores or devices at one time, where there are several."""
    out = dict(samples)
    for node, dimension in sorted({key[:2] for key in samples}):
        members = [rows for key, rows in samples.items() if key[:2] == (node, dimension)]
        if len(members) < 2:
            continue
        at: Dict[float, List[float]] = {}
        for rows in members:
            for row in rows:
                at.setdefault(row["at"], []).append(row["value"])
        out[node, dimension, "total"] = [{"at": when, "value": math.fsum(values) / len(values)} for when, values in sorted(at.items())]
    return out


class _Chart(Chart):
    def __init__(self, reader: Any) -> None:
        super().__init__(type(self).__name__, "not plotted yet: call plot()", None, [])
        self._reader = _Reader(reader)

    def _show(self, title: str, sentence: str, data: Any, panels: Sequence[Panel]) -> "_Chart":
        self.title, self.sentence, self.data, self._panels = title, sentence, data, list(panels)
        return self


class MetricsHistogram(_Chart):
    """How often which utilization was sampled: 50 bins of width 2, for each node, dimension and event, and their mean."""

    def plot(self, starttime: float = 0, endtime: Optional[float] = None, select_dimensions: Sequence[str] = _ANY,
             select_events: Sequence[str] = _ANY) -> "MetricsHistogram":
        """Times in seconds since the first sample. ``data``: {(node, dimension, event): counts}."""
        found = {key: rows for key, rows in _with_totals(self._reader.samples(starttime, endtime, select_dimensions, select_events)).items()
                 if key[1].endswith("Utilization") or key[1] == "MemoryUsedPercent"}
        data = {key: counted([row["value"] for row in rows], 0.0, 2.0, 50) for key, rows in found.items()}
        edges = [2.0 * place for place in range(51)]
        busiest = max(found.items(), key=lambda one: math.fsum(row["value"] for row in one[1]) / len(one[1]), default=None)
        told = ""
        if busiest is not None:
            mean = math.fsum(row["value"] for row in busiest[1]) / len(busiest[1])
            told = f"; the busiest is {' '.join(busiest[0])}, {number(mean)} % on average"
        self._show("Utilization", f"{sum(map(sum, data.values()))} samples of {len(data)} series{told}.", data,
                   [chart.Bars(" ".join(key), edges, counts, "utilization in %", "samples") for key, counts in data.items()])
        return self


def counted(values: Sequence[float], low: float, width: float, bins: int) -> List[int]:
    """The last bin has its upper end too; what lies outside is not counted."""
    out = [0] * bins
    for value in values:
        place = math.floor((value - low) / width) if width else 0
        place = bins - 1 if value == low + width * bins else place
        if 0 <= place < bins:
            out[place] += 1
    return out


class StepHistogram(_Chart):
    """How long steps took: 50 bins from the shortest to the median + 2 standard deviations; the last, which may be unfinished, is left out."""

    def plot(self, starttime: float = 0, endtime: Optional[float] = None, select_metrics: Sequence[str] = ("Step:", "^forward$", "^backward$"),
             show_workers: bool = True) -> "StepHistogram":
        """``data``: {metric: {"edges": ms, "counts": …, "durations": ms}}; with ``show_workers`` apart by worker, ``metric worker``."""
        data: Dict[str, Any] = {}
        for name, rows in _intervals(self._reader, starttime, endtime, select_metrics, show_workers).items():
            durations = [row["ms"] for row in rows[:-1]]
            if durations:
                middle, mean = percentile(durations, 50), math.fsum(durations) / len(durations)
                spread = math.sqrt(math.fsum((one - mean) ** 2 for one in durations) / len(durations))
                low, high = min(durations), max(middle + 2 * spread, min(durations))
                width = (high - low) / 50 or 1e-9
                data[name] = {"edges": [low + width * place for place in range(51)], "counts": counted(durations, low, width, 50), "durations": durations}
        told = "; ".join(f"{name}: median {number(percentile(one['durations'], 50))} ms, longest {number(max(one['durations']))} ms of {len(one['durations'])}"
                         for name, one in data.items())
        self._show("Step times", (told or "No steps") + ".", data,
                   [chart.Bars(name, one["edges"], one["counts"], "ms", "steps") for name, one in data.items()])
        return self


def _intervals(reader: _Reader, starttime: float, endtime: Optional[float], metrics: Sequence[str], by_worker: bool) -> Dict[str, Rows]:
    rows = reader.frames.framework_rows()
    begin = min(row["start_time_us"] for row in rows)
    workers = {row["process"] for row in rows}
    out: Dict[str, Rows] = {}
    for row in rows:
        at = (row["start_time_us"] - begin) / 1e6
        if at >= starttime and (endtime is None or at < endtime) and any(re.search(one, row["framework_metric"]) for one in metrics):
            name = row["framework_metric"] + (f" {row['process']}" if by_worker and len(workers) > 1 else "")
            out.setdefault(name, []).append({"at": at, "ms": (row["end_time_us"] - row["start_time_us"]) / 1e3, "step": row["step"]})
    return dict(sorted(out.items()))


class StepTimelineChart(_Chart):
    """How long each step took, over time; the newest 1000."""

    def plot(self, starttime: float = 0, endtime: Optional[float] = None, select_metrics: Sequence[str] = ("Step:",)) -> "StepTimelineChart":
        """``data``: {metric: [(seconds, ms, step)]}."""
        found = _intervals(self._reader, starttime, endtime, select_metrics, True)
        data = {name: [(row["at"], row["ms"], row["step"]) for row in rows[-_NEWEST:]] for name, rows in found.items()}
        longest = max(((ms, name, step) for name, points in data.items() for _, ms, step in points), default=None)
        told = f"The longest step is {longest[2]} of {longest[1]}: {number(longest[0])} ms." if longest else "No steps."
        self._show("Steps over time", told, data, [chart.Lines("Steps", {name: [point[:2] for point in points] for name, points in data.items()},
                                                                "seconds", "ms", dots=True)])
        return self


class TimelineCharts(_Chart):
    """Samples over time: a chart for each node, dimension and event. ``select(a, b)`` says what the framework did in that time."""

    def plot(self, starttime: float = 0, endtime: Optional[float] = None, select_dimensions: Sequence[str] = _ANY,
             select_events: Sequence[str] = _ANY) -> "TimelineCharts":
        """``data``: {(node, dimension, event): [(ms since the first sample, value)]}."""
        found = self._reader.samples(starttime, endtime, select_dimensions, select_events)
        data = {key: [(row["at"] * 1e3, row["value"]) for row in rows] for key, rows in found.items()}
        percent = {key for key in data if key[1].endswith("Utilization") or key[1] == "MemoryUsedPercent"}
        self._show("Samples over time", f"{sum(map(len, data.values()))} samples of {len(data)} series.", data,
                   [chart.Lines(" ".join(key), {"": points}, "ms", "%" if key in percent else "value", (0.0, 102.0) if key in percent else None)
                    for key, points in data.items()])
        return self

    def select(self, start_ms: float, end_ms: float) -> Rows:
        """Cumulative time of framework metrics in a range (ms since the first sample), the longest first."""
        begin = min(row["timestamp_us"] for row in self._reader.frames.system_rows())
        low, high = begin + start_ms * 1e3, begin + end_ms * 1e3
        totals: Dict[str, float] = {}
        for row in self._reader.frames.framework_rows():
            inside = min(high, row["end_time_us"]) - max(low, row["start_time_us"])
            if inside > 0:
                totals[row["framework_metric"]] = totals.get(row["framework_metric"], 0.0) + inside / 1e3
        return [{"framework_metric": name, "cumulative_ms": total} for name, total in sorted(totals.items(), key=lambda one: -one[1])]


class Heatmap(_Chart):
    """Samples as colours: a row for each dimension, event and node, and their totals; the newest 1000 samples."""

    def plot(self, starttime: float = 0, endtime: Optional[float] = None, select_dimensions: Sequence[str] = _ANY,
             select_events: Sequence[str] = _ANY) -> "Heatmap":
        """``data``: {row: values 0 to 100}; what is no percent is scaled to its own maximum. None: no sample at that time."""
        found = _with_totals(self._reader.samples(starttime, endtime, select_dimensions, select_events))
        times = sorted({row["at"] for rows in found.values() for row in rows})[-_NEWEST:]
        place = {at: number_ for number_, at in enumerate(times)}
        data: Dict[str, List[Optional[float]]] = {}
        for (node, dimension, event), rows in found.items():
            percent = dimension.endswith("Utilization") or dimension == "MemoryUsedPercent"
            top = max((row["value"] for row in rows), default=0.0)
            line: List[Optional[float]] = [None] * len(times)
            for row in rows:
                if row["at"] in place:
                    line[place[row["at"]]] = row["value"] if percent else 100.0 * row["value"] / top if top > 0 else 0.0
            data[f"{dimension}_{event}_{node}"] = line
        self._show("Utilization over time", f"{len(data)} rows of {len(times)} samples.", data, [chart.Grid("Utilization", data, "samples")])
        return self
