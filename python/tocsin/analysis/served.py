"""Curves that a server keeps, as a source of frames and as a trial: scalars and the seconds of steps."""

import datetime
import math
import re
import time
import urllib.parse
from typing import Any, Dict, Iterator, List, Optional, Tuple

from tocsin.exceptions import StepNotYetAvailable
from tocsin.rules.trial import ModeKeys, Row, SavedStep, StepState, Trial, mode_of
from .columns import INTEGER, REAL, TEXT, TIME, Table, made
from .curves import Plotting
from .frame import Frame
from .http import Server, ServerError, run_of
from .live import FollowedServer, Living, pattern_of
from .selection import Query, query_of

_ALL = {"run": TEXT, "attempt": INTEGER, "worker": TEXT, "rank": INTEGER, "mode": TEXT, "step": INTEGER, "time": TIME}
_POINTS = 10_000  # that one answer has at most
_NAMES = 1000
_BUCKET = {"width": INTEGER, "n": INTEGER, "min": REAL, "max": REAL, "first": REAL, "last": REAL, "mean": REAL, "nan": INTEGER, "posinf": INTEGER,
           "neginf": INTEGER, "bad_step": INTEGER}
_SILENCE = 60.0  # seconds
_SETTLED = 3.0  # seconds after the last record, when all values are kept
_LISTEN = 2.0  # seconds of the stream before it is asked again, as an ended run sends no event


class ServedSource:
    def __init__(self, server: Server, at: Optional[str] = None) -> None:
        """``at``: RFC 3339; what was measured after it is as if it were not there."""
        self.server, self.at = server, at

    def kinds(self, query: Query) -> Dict[str, str]:
        of = query.selection.kind
        if of not in ("metric", "step"):
            raise ValueError(f"a server keeps scalars and the seconds of steps: for {of}(…) open the directory of the run, create_trial(\"run1\")")
        if query.stat is not None and query.stat != ("value",):
            raise ValueError(f"stat is of tensors; a {of} has none")
        if query.points is not None and query.points > _POINTS:
            raise ValueError(f"points: a server gives {_POINTS} at most")
        return {**_ALL, **({"seconds": REAL} if of == "step" else {"name": TEXT, "value": REAL})}

    def names(self, query: Query) -> List[str]:
        return [item["name"] for item in self.listed(query)]

    def listed(self, query: Query) -> List[Dict[str, Any]]:
        """Names with how many values of each are stored, and their steps."""
        answer = self.server.get(f"/api/v1/runs/{query.run}/names", name=self._pattern(query), mode=query.mode, limit=_NAMES,
                                 worker=pattern_of(query.workers))
        if answer["total"] > len(answer["items"]):
            raise ValueError(f"{answer['total']} names match: a server lists {_NAMES} at once; ask for fewer")
        kind = "clock" if query.selection.kind == "step" else "scalar"
        return [item for item in answer["items"] if item["kind"] == kind]

    def _pattern(self, query: Query) -> str:
        if query.selection.kind == "step":
            return "step_seconds"
        return re.escape(query.selection.name) if query.selection.exact else query.selection.name

    def table(self, query: Query) -> Table:
        rows: List[Dict[str, Any]] = []
        for item in self.listed(query):
            rows += self.values_of(query, item)
        return self.made(query, rows)

    def values_of(self, query: Query, item: Dict[str, Any]) -> List[Dict[str, Any]]:
        """Rows of one name; those that a later attempt went over again are left out."""
        rows: List[Dict[str, Any]] = []
        for line, width in self._lines(query, item):
            if query.attempt in (None, line["attempt"]) and not line["superseded"]:
                rows += _points(line, width) if query.points is not None else _values(line)
        return rows

    def made(self, query: Query, rows: List[Dict[str, Any]]) -> Table:
        kinds = self.kinds(query)
        for row in rows:
            row["run"] = query.run
        if query.points is not None:
            kinds = {**{name: kind for name, kind in kinds.items() if name not in ("value", "seconds")}, **_BUCKET,
                     **({"smooth": REAL} if query.smooth else {})}
        elif query.selection.kind == "step":
            rows = [{**row, "seconds": row["value"]} for row in rows]
        return {name: made(kind, (row.get(name) for row in rows)) for name, kind in kinds.items()}

    @staticmethod
    def seconds(moment: str) -> float:
        """Of a time of an answer, since 1970."""
        return _microseconds(moment) / 1e6

    def _lines(self, query: Query, item: Dict[str, Any]) -> Iterator[Tuple[Dict[str, Any], int]]:
        """Lines of one name, and the width of their points. Every value comes in windows that are narrow enough."""
        low, high = query.steps if query.steps is not None else (None, None)
        low = item["first_step"] if low is None else max(low, item["first_step"])
        high = item["last_step"] + 1 if high is None else min(high, item["last_step"] + 1)
        window = high - low if query.points is not None else _POINTS
        while low < high:
            try:
                answer = self.server.get(f"/api/v1/runs/{query.run}/series", name=re.escape(item["name"]), mode=query.mode,
                                         worker=pattern_of(query.workers), at=self.at,
                                         **{"from": low, "to": min(high, low + window)}, points=query.points or _POINTS, smooth=query.smooth)
            except ServerError as error:
                if self.at is None or error.status != 404:
                    raise
                return  # its curves had not begun
            if answer["left_out"]:
                raise ValueError(f"{item['name']}: the server gives 64 lines at once and left {answer['left_out']} out; name some workers")
            for line in answer["series"]:
                yield line, answer["width"]
            low += window


def _of_line(line: Dict[str, Any], at: int) -> Dict[str, Any]:
    micro = None if not line.get("t0") else _microseconds(line["t0"]) + int(line["dt"][at] * 1000)
    return {"attempt": line["attempt"], "worker": line["worker"], "rank": line["rank"], "mode": line["mode"], "name": line["name"],
            "step": line["x0"][at], "time": micro}


def _microseconds(time_: str) -> int:
    """Of RFC 3339 in UTC, with any number of digits."""
    whole, _, part = time_.rstrip("Z").partition(".")
    begin = datetime.datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=datetime.timezone.utc)
    return int(begin.timestamp()) * 1_000_000 + int((part + "000000")[:6])


def _bad(line: Dict[str, Any]) -> Dict[int, List[int]]:
    return {row[0]: row for row in line.get("bad") or ()}


def _values(line: Dict[str, Any]) -> List[Dict[str, Any]]:
    bad = _bad(line)
    out = []
    for at, value in enumerate(line["value"]):
        if value is None:
            _, nan, above, _, _ = bad[at]
            value = math.nan if nan else math.inf if above else -math.inf
        out.append({**_of_line(line, at), "value": float(value)})
    return out


def _points(line: Dict[str, Any], width: int) -> List[Dict[str, Any]]:
    bad = _bad(line)
    out = []
    for at in range(len(line["x0"])):
        _, nan, above, below, first = bad.get(at, (at, 0, 0, 0, None))
        if "value" in line:
            one = line["value"][at]
            told: Dict[str, Any] = {"n": int(one is not None), **dict.fromkeys(("min", "max", "first", "last", "mean"), one)}
        else:
            told = {name: line[name][at] for name in ("n", "min", "max", "first", "last", "mean")}
        out.append({**_of_line(line, at), **told, "width": width, "nan": nan, "posinf": above, "neginf": below, "bad_step": first,
                    "smooth": line["smooth"][at] if "smooth" in line else None})
    return out


class ServedTrial(Plotting, Living, Trial):
    """Scalars of a run that a server keeps. Global steps are those of the mode where there is one mode; with several, their order in time."""

    def __init__(self, server: Server, name: Optional[str], range_steps: Optional[Tuple[int, int]], run: Optional[str],
                 at: Optional[int] = None) -> None:
        """``at``: a moment, UTC ns; the trial is as it was then, and gets nothing new. ValueError: no run was known then."""
        then = None if at is None else datetime.datetime.fromtimestamp(at // 10**9, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{at % 10**9:09d}Z"
        uid = run_of(server, run, then)
        super().__init__(name or uid, uid)
        self.source = ServedSource(server, then)
        self._server, self._range = server, range_steps
        self._asked = -math.inf
        self._last: Dict[Tuple[str, str], int] = {}  # by mode and worker: the newest step
        self.details: Dict[str, Any] = {}
        self._rows = -1  # of the last answer
        self.refresh()

    def refresh(self) -> None:
        if self.loaded_all_steps:
            return
        self._asked = time.monotonic()
        self.details = self._server.get(f"/api/v1/runs/{urllib.parse.quote(self.run)}", at=self.source.at)["run"]
        self.job, self.world_size = self.details["job"], self.details["world_size"] or 0
        frame = self.series('metric(".*")')
        of: Dict[Tuple[str, int], Dict[str, Dict[str, Row]]] = {}
        times: Dict[Tuple[str, int], int] = {}
        for row in frame:
            key = (row["mode"], row["step"])
            of.setdefault(key, {}).setdefault(row["name"], {})[row["worker"]] = Row(row["value"], None, {})
            times.setdefault(key, int(row["time"].timestamp() * 1e9))
            self._last[row["mode"], row["worker"]] = max(self._last.get((row["mode"], row["worker"]), -1), row["step"])
        for row in self.source.listed(query_of('metric(".*")')._replace(run=self.run)):
            self.describe(row["name"], row["role"])
        one_mode = len({mode for mode, _ in of}) == 1
        self._saved, self._by_step, self._steps_of = [], {}, {}
        for place, key in enumerate(sorted(of, key=lambda one: (times[one], one[1]))):
            self.add(SavedStep(mode_of(key[0]), key[1], key[1] if one_mode else place, times[key], of[key]))
        # The end of a run may be known a moment before its last values are kept.
        ended, before, self._rows = self.details["state"] == "ended", self._rows, len(frame)
        self.loaded_all_steps = self.source.at is not None or ended and (before == self._rows or time.time() - _microseconds(self.details["heard_at"]) / 1e6 > _SETTLED)

    def maybe_refresh(self) -> None:
        """At most once a second."""
        if not self.frozen and time.monotonic() - self._asked > 1.0:
            self.refresh()

    def complete(self, saved: SavedStep) -> bool:
        mode = saved.mode.name.lower()
        heard = [step for (of, _), step in self._last.items() if of == mode]
        return self.loaded_all_steps or (len(heard) >= max(1, self.world_size) and min(heard) >= saved.step)

    def wait_for_steps(self, required_steps: List[int], mode: ModeKeys = ModeKeys.GLOBAL, timeout: Optional[float] = None) -> None:
        """As of a directory; the server's stream tells of new values."""
        end = time.monotonic() + (_SILENCE if timeout is None else timeout)

        def behind() -> bool:
            return any(self.has_passed_step(step, mode) is StepState.NOT_YET_AVAILABLE for step in required_steps)
        while behind():
            left = end - time.monotonic()
            if left <= 0:
                raise StepNotYetAvailable(max(required_steps), mode_of(mode))
            for event in self._server.events(min(left, _LISTEN), types="tick,run", run=self.run):
                if event in ("hello", "tick", "run", "reset"):
                    steps = len(self._saved)
                    self.refresh()
                    if timeout is None and len(self._saved) != steps:
                        end = time.monotonic() + _SILENCE
                    if not behind():
                        break
            else:
                self.refresh()
        super().wait_for_steps(required_steps, mode)

    def series(self, query: str, stat: Any = None, mode: Any = None, workers: Any = None, steps: Any = None,
               points: Optional[int] = None, smooth: Optional[int] = None) -> Frame:
        """A lazy frame, asked from the server. ``query``: ``metric("loss")``, ``step()``, or the name of a metric."""
        asked = query_of(query, stat=stat, mode=mode, workers=workers, steps=steps if steps is not None else self._range, points=points, smooth=smooth)
        return Frame(self.source, asked._replace(run=self.run))

    def follow(self, query: Query) -> FollowedServer:
        if self.source.at is not None:
            raise ValueError(f"a trial as of {self.source.at} gets no new values; open it without at=")
        return FollowedServer(self.source, query._replace(run=self.run))
