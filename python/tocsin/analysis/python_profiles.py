"""Profiles of Python functions that a run has sent (``with hook.python_profile(): …``), with the original's names."""

import gzip
import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from tocsin.reading.raw import NoRawTensor, RawTensors
from .columns import INTEGER, TEXT
from .made_frame import MadeFrame
from .opening import create_trial
from .profiles import NoProfilerData
from .recorded import RecordedSource
from .selection import query_of
from .trace_sources import sent_at

_HOW = "`with hook.python_profile(\"{}\"):` around the steps captures them"
_NAME = "profiler/python/"
_SORTED = {"own": "own", "tottime": "own", "cumulative": "cumulative", "cumtime": "cumulative", "primitive_calls": "primitive_calls", "pcalls": "primitive_calls",
           "calls": "calls", "ncalls": "calls"}


class FunctionStats(NamedTuple):
    """Seconds of one function: ``own`` without what it called."""
    file: str
    line: int
    name: str
    primitive_calls: int
    calls: int
    own: float
    cumulative: float
    callers: Tuple[Tuple[str, int, str, int], ...]  # file, line, name, how often

    @property
    def function_name(self) -> str:
        return f"{self.file}:{self.line}({self.name})"


class cProfileStats:  # noqa: N801 - the original's name
    """Functions of one or several profiles together."""

    def __init__(self, functions: Sequence[FunctionStats]) -> None:
        self.function_stats_list = list(functions)

    def top(self, by: str = "own", n: int = 10) -> List[FunctionStats]:
        """``by``: own, cumulative, primitive_calls or calls, or as pstats says it (tottime, cumtime, pcalls, ncalls)."""
        by = getattr(by, "value", by)
        if by not in _SORTED:
            raise ValueError(f"by={by!r}: expected one of {', '.join(_SORTED)}")
        return sorted(self.function_stats_list, key=lambda one: (-getattr(one, _SORTED[by]), one.function_name))[:n]

    def print_top_n_functions(self, by: str = "own", n: int = 10) -> None:
        rows = [("calls", "primitive", "own s", "cumulative s", "function")]
        rows += [(str(one.calls), str(one.primitive_calls), f"{one.own:.6f}", f"{one.cumulative:.6f}", one.function_name) for one in self.top(by, n)]
        wide = [max(len(row[place]) for row in rows) for place in range(4)]
        for row in rows:
            print("  ".join([*(text.rjust(width) for text, width in zip(row, wide)), row[4]]))


class PyinstrumentStats:
    """One profile of pyinstrument. ``json_stats``: its session as pyinstrument's JSON."""

    def __init__(self, session: Dict[str, Any]) -> None:
        self.json_stats = session

    def tree(self, least: float = 0.01) -> str:
        """Calls as lines, indented, with seconds and percent; those with less than this share of all are left out."""
        root = self.json_stats.get("root_frame") or {}
        whole = float(root.get("time") or 0.0)
        lines: List[str] = []
        stack = [(root, 0)]
        while stack:
            frame, depth = stack.pop()
            seconds = float(frame.get("time") or 0.0)
            if not frame or (whole and seconds < least * whole):
                continue
            lines.append(f"{'  ' * depth}{seconds:.3f} s {100 * seconds / whole if whole else 0:.0f} % {frame.get('function', '?')} "
                         f"({frame.get('file_path_short') or frame.get('file_path') or '?'}:{frame.get('line_no', '?')})")
            stack += [(one, depth + 1) for one in sorted(frame.get("children") or [], key=lambda one: float(one.get("time") or 0.0))]
        return "\n".join(lines)


class PythonProfileAnalysis:
    """Finds profiles by step, time, mode or part of the job. ``path``: the directory of the run, or a trial of one. ``capture``: as of
    :func:`tocsin.watch`, where raw tensors go to a store of their own."""

    profiler = ""  # any

    def __init__(self, path: Any, run: Optional[str] = None, capture: Any = None) -> None:
        self._capture = capture
        trial = path if hasattr(path, "series") else create_trial(str(path), run=run)
        if not isinstance(trial.source, RecordedSource):
            raise ValueError("a server keeps no profiles: open the directory of the run")
        self._source: RecordedSource = trial.source
        self._found = self._source.run_of(run if run is not None else trial._wanted)
        self.profiles: List[Dict[str, Any]] = []
        self.refresh()

    def refresh(self) -> None:
        """What was sent meanwhile is read too."""
        self._source.index.update()
        names = sorted(name for name in self._source.index.names.values() if name.startswith(_NAME))
        out = []
        if self._found is not None and names:
            with RawTensors(run=self._found[0], out=os.path.dirname(self._source.index.path) or ".", capture=self._capture) as raw:
                for name in names:
                    for worker, mode, step in sent_at(self._source, name, self._found):
                        try:
                            told = json.loads(gzip.decompress(raw.value(name, step, mode=mode, worker=worker).tobytes()))
                        except (NoRawTensor, OSError, EOFError, ValueError):
                            continue  # it was not captured, or is no profile
                        if isinstance(told, dict) and self.profiler in ("", told.get("profiler")):
                            out.append({**told, "worker": worker})
        self.profiles = sorted(out, key=lambda one: one["start"]["time_us"])

    def list_profile_stats(self) -> MadeFrame:
        """A row for each profile."""
        rows = [(one["profiler"], one["timer"], one["worker"], one["phase"], *(one[end].get(name) for name in ("time_us", "mode", "step") for end in ("start", "end")),
                 len(one.get("functions", ()))) for one in self.profiles]
        return MadeFrame({"profiler": TEXT, "timer": TEXT, "node_id": TEXT, "phase": TEXT, "start_time_us": INTEGER, "end_time_us": INTEGER,
                          "start_mode": TEXT, "end_mode": TEXT, "start_step": INTEGER, "end_step": INTEGER, "functions": INTEGER}, rows, "profiles")

    def list_available_node_ids(self) -> List[str]:
        return sorted({one["worker"] for one in self.profiles})

    def fetch_profile_stats_by_step(self, start_step: int, end_step: Optional[int] = None, mode: Any = "train", phase: Optional[str] = None,
                                    node_id: str = "any") -> Any:
        """Of profiles that began at ``start_step`` or later and ended at ``end_step`` (None: one further) at the latest."""
        end = start_step + 1 if end_step is None else end_step
        name = str(getattr(mode, "name", mode)).lower()
        return self._told([one for one in self.profiles if one["start"].get("mode") == one["end"].get("mode") == name and start_step <= one["start"]["step"]
                           and one["end"]["step"] <= end and phase in (None, one["phase"])], node_id, f"between the steps {start_step} and {end} of {name}")

    def fetch_profile_stats_by_time(self, start_time_since_epoch_in_secs: float, end_time_since_epoch_in_secs: float, node_id: str = "any") -> Any:
        return self._told([one for one in self.profiles if one["start"]["time_us"] >= start_time_since_epoch_in_secs * 1e6
                           and one["end"]["time_us"] <= end_time_since_epoch_in_secs * 1e6], node_id, "in this time")

    def fetch_profile_stats_between_modes(self, start_mode: Any, end_mode: Any, node_id: str = "any") -> Any:
        modes = [str(getattr(mode, "name", mode)).lower() for mode in (start_mode, end_mode)]
        return self._told([one for one in self.profiles if [one["start"].get("mode"), one["end"].get("mode")] == modes], node_id,
                          f"from mode {modes[0]} to mode {modes[1]}")

    def fetch_pre_step_zero_profile_stats(self, node_id: str = "any") -> Any:
        """Of profiles that ended before a step had."""
        return self._told([one for one in self.profiles if one["end"].get("steps") == 0], node_id, "before the first step")

    def fetch_post_hook_close_profile_stats(self, node_id: str = "any") -> Any:
        raise NoProfilerData("profile from behind the end of the hook", "it sends nothing then; profile before hook.close()")

    def fetch_profile_stats_by_training_phase(self, node_id: str = "any") -> Dict[Tuple[str, str], Any]:
        """By (mode at the begin, mode at the end)."""
        keys = sorted({(str(one["start"].get("mode")), str(one["end"].get("mode"))) for one in self._of_node(self.profiles, node_id, "")})
        return {key: self.fetch_profile_stats_between_modes(*key, node_id=node_id) for key in keys}

    def fetch_profile_stats_by_job_phase(self, node_id: str = "any") -> Dict[str, Any]:
        """``initialization``: before the first step; ``finalization``: behind the last one, but for a step that the end of the hook itself ends;
        ``training_loop``: the others."""
        ends: Dict[str, List[int]] = {}
        table = self._source.table(_steps_of(self._found))
        for row in range(len(table["time"])):
            ends.setdefault(table["worker"].value(row), []).append(int(table["time"].data[row]))
        parts: Dict[str, List[Dict[str, Any]]] = {}
        for one in self._of_node(self.profiles, node_id, ""):
            later = [end for end in ends.get(one["worker"], ()) if end > one["start"]["time_us"]]
            behind = len(later) <= 1 and one["start"].get("steps") == one["end"].get("steps")
            part = "initialization" if one["end"].get("steps") == 0 else "finalization" if behind else "training_loop"
            parts.setdefault(part, []).append(one)
        return {part: self._made(found) for part, found in parts.items()}

    def _of_node(self, found: List[Dict[str, Any]], node_id: str, where: str) -> List[Dict[str, Any]]:
        of_node = [one for one in found if node_id in ("any", one["worker"])]
        if not of_node:
            kind = self.profiler or "cprofile"
            raise NoProfilerData(f"profile of Python functions{' by ' + self.profiler if self.profiler else ''}{' ' + where if where else ''}", _HOW.format(kind))
        return of_node

    def _told(self, found: List[Dict[str, Any]], node_id: str, where: str) -> Any:
        return self._made(self._of_node(found, node_id, where))

    def _made(self, found: List[Dict[str, Any]]) -> Any:
        return found


class cProfileAnalysis(PythonProfileAnalysis):  # noqa: N801 - the original's name
    """Profiles of cProfile; what is fetched is one :class:`cProfileStats` over all profiles that fit."""

    profiler = "cprofile"

    def _made(self, found: List[Dict[str, Any]]) -> cProfileStats:
        sums: Dict[Tuple[str, int, str], List[float]] = {}
        callers: Dict[Tuple[str, int, str], Dict[Tuple[str, int, str], int]] = {}
        for profile in found:
            for one in profile["functions"]:
                key = (one["file"], one["line"], one["name"])
                told = sums.setdefault(key, [0, 0, 0.0, 0.0])
                for place, name in enumerate(("primitive_calls", "calls", "own", "cumulative")):
                    told[place] += one[name]
                for file, line, name, count in one["callers"]:
                    of = callers.setdefault(key, {})
                    of[file, line, name] = of.get((file, line, name), 0) + count
        return cProfileStats([FunctionStats(*key, int(primitive), int(calls), own, cumulative, tuple((*who, count) for who, count in callers.get(key, {}).items()))
                              for key, (primitive, calls, own, cumulative) in sums.items()])


class PyinstrumentAnalysis(PythonProfileAnalysis):
    """Profiles of pyinstrument; what is fetched is a list of :class:`PyinstrumentStats`."""

    profiler = "pyinstrument"

    def _made(self, found: List[Dict[str, Any]]) -> List[PyinstrumentStats]:
        return [PyinstrumentStats(one.get("session") or {}) for one in found]


def _steps_of(found: Optional[Tuple[str, int]]) -> Any:
    asked = query_of("step()")
    return asked if found is None else asked._replace(run=found[0], attempt=found[1])
