"""A directory that a hook has written, as a trial: no server, standard library only."""

import json
import os
import sqlite3
import time
from typing import Any, Dict, List, Optional, Tuple

from tocsin import wire
from tocsin.exceptions import IndexReaderException, MissingCollectionFiles, StepNotYetAvailable
from tocsin.reading import records
from tocsin.reading.launches import Launches
from tocsin.reading.raw import RawTensors
from tocsin.reading.tensors import _ROLES, _STATISTICS, MODES
from .changes import Changes
from .completeness import Completeness
from .trial import ModeKeys, Row, SavedStep, StepState, Trial, mode_of

_COLUMNS = ("count", "sum", "sumsq", "m2", "abs_sum", "min", "max", "nan", "posinf", "neginf", "zero", "negative")
_MODE_NUMBERS = {mode_of(name): number for number, name in MODES.items()}
_SILENCE = 60.0  # seconds; a run that lives writes a heartbeat every 5 s
_UNSCALED = 1 << 18
_LOSS_SCALE = wire.xxh64(b"loss_scale")


def create_trial(path: str, name: Optional[str] = None, profiler: bool = False, output_dir: Optional[str] = None,
                 range_steps: Optional[Tuple[int, int]] = None, run: Optional[str] = None) -> Trial:
    """What a run has saved to a directory. ``run``: uid or the beginning of one; None: the newest run in it.
    ``range_steps``: global steps from, up to without. Raises MissingCollectionFiles (a FileNotFoundError) where there is no recording."""
    del output_dir  # of the original's profiler
    if profiler:
        raise ValueError("a trial has tensors and scalars; tocsin.analysis.PandasFrame has samples and spans")
    if "://" in path:
        raise ValueError(f"{path} is no directory: tocsin.trials.create_trial opens it")
    directory = directory_of(path)
    return RecordedTrial(directory, name or os.path.basename(os.path.normpath(directory)), range_steps, run)


def directory_of(path: str) -> str:
    """Of a directory, or of the file in it."""
    return (os.path.dirname(path) or ".") if os.path.basename(path) == "telemetry.db" else path


class RecordedTrial(Trial):
    def __init__(self, directory: str, name: str, range_steps: Optional[Tuple[int, int]], run: Optional[str],
                 read: bool = True, until: Optional[int] = None) -> None:
        """``until``: a moment, UTC ns; what was sent after it is as if it were not there."""
        super().__init__(name)
        self._until = until
        self._directory = directory
        self._path = os.path.join(directory, "telemetry.db")
        self._range = range_steps
        self._wanted = run
        self._next = 0
        self._names: Dict[int, Dict[str, Any]] = {}
        self._roles: Dict[int, str] = {}
        self._runs: Dict[str, Dict[Tuple[ModeKeys, int], SavedStep]] = {}  # newest last
        self._launches: Dict[str, Launches] = {}  # by uid
        self._complete: Dict[str, Completeness] = {}  # by run
        self._heard = 0  # the newest record's time, UTC ns
        self._jobs: Dict[str, str] = {}
        self._scale: Dict[Tuple[str, int], float] = {}
        if not os.path.exists(self._path):
            raise MissingCollectionFiles(f"there is no recording in {directory}: {self._path} is missing")
        if read:
            self._fill_what_is_new()

    def refresh(self) -> None:
        self._fill_what_is_new()

    def _fill_what_is_new(self) -> None:
        before = self._next
        try:
            for number, value in records.since(self._path, self._next):
                self._next = number + 1
                self._take(value)
        except sqlite3.DatabaseError as error:
            raise IndexReaderException(f"{self._path} cannot be read: {error}") from error
        if self._next != before:
            self._fill()

    def complete(self, saved: SavedStep) -> bool:
        return self.loaded_all_steps or self._complete[self.run].complete(_MODE_NUMBERS[saved.mode], saved.step)

    def missing_workers(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> List[str]:
        """Who has not passed this step yet: names of workers, and ``rank 3`` of those that were never heard."""
        self.maybe_refresh()
        saved = self._by_step.get((mode_of(mode), step))
        if self.loaded_all_steps or saved is None:
            return []
        names, ranks = self._complete[self.run].behind(_MODE_NUMBERS[saved.mode], saved.step)
        return sorted(map(self._name, names)) + [f"rank {rank}" for rank in ranks]

    def wait_for_steps(self, required_steps: List[int], mode: ModeKeys = ModeKeys.GLOBAL,
                       timeout: Optional[float] = None) -> None:
        """Returns when all workers have passed these steps. Sleeps until the run writes. StepUnavailable: it was not saved, and a later
        one was; NoMoreData: the run ended before it; StepNotYetAvailable: not within ``timeout`` seconds, or nobody writes any more
        (a run that lives writes every 5 s; after 60 s of silence it counts as lost)."""
        if any(self.has_passed_step(step, mode) is StepState.NOT_YET_AVAILABLE for step in required_steps):
            end = None if timeout is None else time.monotonic() + timeout
            with Changes(self._directory) as changes:
                for step in required_steps:
                    self._wait_for(step, mode, end, changes)
        super().wait_for_steps(required_steps, mode)

    def _wait_for(self, step: int, mode: ModeKeys, end: Optional[float], changes: Changes) -> None:
        pause = 0.01  # a commit shows a moment after the write that the kernel tells of, and nobody tells of that
        while True:
            self._fill_what_is_new()  # also within no_refresh: waiting means to read
            if self.has_passed_step(step, mode) is not StepState.NOT_YET_AVAILABLE:
                return
            left = self._heard / 1e9 + _SILENCE - time.time()
            if end is not None:
                left = min(left, end - time.monotonic())
            if left <= 0:
                raise StepNotYetAvailable(step, mode_of(mode))
            pause = 0.01 if changes.wait(min(left, pause)) else min(2 * pause, 1.0)

    def _take(self, value: Optional[bytes]) -> None:
        try:
            frame = wire.decode_frame(value or b"")
        except wire.WireError:
            return  # JSON of another producer, or damaged: the server says so
        if self._until is not None and frame.header["time"] > self._until and frame.kind != wire.DICTIONARY:
            return
        self._heard = max(self._heard, frame.header["time"])
        uid = str(frame.header["run"])
        run = f"{uid}/{self._launches.setdefault(uid, Launches()).attempt_of(frame)}"
        self._complete.setdefault(run, Completeness()).hear(frame)
        for entry in frame.entries:
            self._names[entry["hash"]] = entry
        if frame.kind == wire.LIFECYCLE:
            self._jobs.setdefault(run, frame.lifecycle.get("job", ""))
        if frame.kind in (wire.SUMMARY, wire.SCALAR):
            steps = self._runs.setdefault(run, {})
            for number, row in enumerate(frame.rows):
                self._add(steps, run, frame, number, row)

    def _name(self, hash_: Any) -> str:
        return str(self._names.get(hash_, {}).get("name", f"#{hash_:016x}"))

    def _add(self, steps: Dict[Tuple[ModeKeys, int], SavedStep], run: str, frame: Any, number: int,
             row: Dict[str, Any]) -> None:
        head = frame.header
        mode = mode_of(MODES[head["mode"]])
        step = row.get("step", head["step"])
        saved = steps.get((mode, step))
        if saved is None:
            saved = SavedStep(mode, step, row.get("global_step", head["global_step"]), head["time"], {})
            steps[mode, step] = saved
        role = self._roles[row["name"]] = _ROLES.get(row["meta"] >> 8 & 0xff, "other")
        scale = self._scale.get((run, head["worker"]), 1.0)
        if frame.kind == wire.SCALAR:
            if row["name"] == _LOSS_SCALE and row["value"] > 0:
                self._scale[run, head["worker"]] = row["value"]
            one = Row(row["value"], None, {})
        else:
            extras = {_STATISTICS[stat]: values[number] for stat, _, values in frame.sparse_columns()
                      if stat in _STATISTICS and number in values}
            columns = tuple(row[column] for column in _COLUMNS)
            scaled = role == "gradient" and not row["meta"] & _UNSCALED
            one = Row(None, unscaled(columns, scale if scaled else 1.0), extras)
        saved.rows.setdefault(row["name"], {})[head["worker"]] = one  # their names may come later

    def _named(self, saved: SavedStep) -> SavedStep:
        rows: Dict[str, Dict[str, Row]] = {}
        for tensor, workers in saved.rows.items():
            entry = self._names.get(tensor, {})  # type: ignore[call-overload]
            name = self._name(tensor)
            rows[name] = {self._name(worker): row for worker, row in workers.items()}
            self.describe(name, self._roles[tensor], _collections(entry), entry.get("dims", ()))
        return saved._replace(rows=rows)

    def _fill(self) -> None:
        wanted: List[str] = [run for run in self._runs if self._wanted is None or run.startswith(self._wanted)]
        if not wanted:
            if self._wanted is not None:
                raise ValueError(f"there is no run {self._wanted} in {self._path}")
            return
        # A late rank of an older launch may be what was written last.
        newest = max((run for run in wanted if run.split("/")[0] == wanted[-1].split("/")[0]), key=lambda run: int(run.split("/")[1]))
        if self.run != newest:
            self.run = newest
            self.read_elements_with(RawTensors(self.run.split("/")[0], out=self._directory))
        self.job = self._jobs.get(self.run) or self.job
        uid, attempt = self.run.split("/")
        self.loaded_all_steps = self._launches[uid].ended(int(attempt))
        self._saved, self._by_step, self._steps_of = [], {}, {}
        for saved in sorted(self._runs[self.run].values(), key=lambda one: one.global_step):
            if self._range is None or self._range[0] <= saved.global_step < self._range[1]:
                self.add(self._named(saved))


def _collections(entry: Dict[str, Any]) -> List[str]:
    try:
        return list(json.loads(entry.get("attrs") or "{}").get("collections", ()))
    except (ValueError, AttributeError, TypeError):
        return []


def unscaled(columns: Tuple[float, ...], scale: float) -> Tuple[float, ...]:
    """Of a gradient that still has the loss scale of mixed precision."""
    if scale == 1.0:
        return columns
    count, total, sumsq, m2, abs_sum, least, most = columns[:7]
    square = scale * scale
    return (count, total / scale, sumsq / square, m2 / square, abs_sum / scale, least / scale, most / scale) + columns[7:]
