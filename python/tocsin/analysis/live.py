"""New values of a run that goes on, as they come: from its directory, or from a server."""

import re
import time
import urllib.parse
from typing import Any, Dict, Iterator, List, Optional, Tuple

from tocsin.rules.changes import Changes
from .chart import Chart, NotInstalled
from .columns import Table, rows_of
from .frame import Frame
from .selection import Query, query_of

SILENCE = 60.0  # seconds; a run that lives writes a heartbeat every 5 s
_SHORTEST = 0.01  # seconds between two looks: a commit shows a moment after the write that the kernel tells of
_LONGEST = 1.0
_LISTEN = 2.0  # seconds of a server's stream before it is asked again: an ended run sends no event
_SELDOM = 64  # looks
_SETTLED = 3.0  # seconds after the last record, when a server has kept all values


class Living:
    """``live`` of a trial."""

    def live(self, query: str, stat: Any = None, mode: Any = None, workers: Any = None, history: bool = True,
             timeout: float = SILENCE) -> Iterator[Frame]:
        """Frames as ``series`` gives them, each with the rows that came since the one before. The first has all that is there; without
        ``history`` it is left out. Between two frames it sleeps until the run writes. Ends when the run has ended; of a directory without a run it
        waits for one. Raises TimeoutError when the run said nothing for ``timeout`` seconds."""
        return _frames(self.follow(query_of(query, stat=stat, mode=mode, workers=workers)), history, timeout)

    def follow(self, query: Query) -> Any:
        raise NotImplementedError


def _frames(following: Any, history: bool, timeout: float) -> Iterator[Frame]:
    began = time.time()
    first = True
    try:
        while True:
            table = following.new()
            if rows_of(table) and (history or not first):
                yield Frame.of(following.source, following.query, table)
            first = False
            if following.ended():
                return
            left = (following.heard() or began) + timeout - time.time()
            if left <= 0:
                raise TimeoutError(f"nothing was heard of {following.query.run or 'a run'} for {timeout:g} s")
            following.wait(left)
    finally:
        following.close()


class FollowedDirectory:
    """Every row exactly once, in the order of the records. A launch that begins meanwhile belongs to it."""

    def __init__(self, source: Any, directory: str, wanted: Optional[str], query: Query) -> None:
        self.source, self.query = source, query
        self._wanted, self._begun, self._mark = wanted, 0, 0
        self._changes = Changes(directory)
        self._pause = _SHORTEST
        source.kinds(query)  # says at once what is wrong with the query

    def new(self) -> Table:
        self.source.index.update()
        if self.query.run is None:
            found = self.source.index.newest(self._wanted or "")
            if found is not None:
                self.query, self._begun = self.query._replace(run=found[0]), found[1]
        if self.query.run is None:
            return {}
        table, self._mark = self.source.since(self.query, self._mark)
        if rows_of(table):
            self._pause = _SHORTEST
            attempts = table["attempt"]
            keep = [row for row in range(len(attempts)) if attempts.absent(row) or int(attempts.data[row]) >= self._begun]
            if len(keep) != len(attempts):
                table = {name: column.take(keep) for name, column in table.items()}
        return table

    def ended(self) -> bool:
        if self.query.run is None:
            return False
        newest = self.source.index.newest(self.query.run)
        return newest is not None and self.source.index.ended(*newest)

    def heard(self) -> float:
        return self.source.index.heard.get(self.query.run, 0) / 1e9

    def wait(self, seconds: float) -> None:
        self._pause = _SHORTEST if self._changes.wait(min(seconds, self._pause)) else min(2 * self._pause, _LONGEST)

    def close(self) -> None:
        self._changes.close()


class FollowedServer:
    """Asks for what lies behind the newest row of each line. Where more is stored than came, a line began below: then for all of the name."""

    def __init__(self, source: Any, query: Query) -> None:
        self.source, self.query = source, query
        self._details: Dict[str, Any] = {}
        self._newest: Dict[str, Dict[Tuple[str, str, int], int]] = {}  # by name: its lines' newest steps
        self._came: Dict[str, int] = {}
        self._short: Dict[str, int] = {}  # by name: rows that are stored and never come, because later ones took their place
        self._rests: Dict[str, Tuple[int, int]] = {}  # by name: looks until all is asked for again, and how many after that
        self._events: Optional[Iterator[str]] = None
        self._quiet = 0  # looks without a row since it ended
        source.kinds(query)

    def new(self) -> Table:
        path = f"/api/v1/runs/{urllib.parse.quote(str(self.query.run))}"
        told = self.source.server.get(path)
        self._details = {**told["run"], "as_of": told["as_of"]}
        rows: List[Dict[str, Any]] = []
        for item in self.source.listed(self.query):
            rows += self._of(item)
        self._quiet = self._quiet + 1 if not rows and self._details["state"] == "ended" else 0
        return self.source.made(self.query, rows)

    def _of(self, item: Dict[str, Any]) -> List[Dict[str, Any]]:
        name = item["name"]
        lines = self._newest.setdefault(name, {})
        missing = item["stored"] - self._came.get(name, 0) - self._short.get(name, 0)
        if missing <= 0:
            return []
        out = self._behind(item, min(lines.values()) + 1, lines) if lines else []
        if len(out) < missing and self._may_ask_for_all(name):
            more = self._behind(item, None, lines)
            out += more
            self._short[name] = max(0, item["stored"] - self._came.get(name, 0) - len(out))
            if more:
                self._rests.pop(name, None)
        self._came[name] = self._came.get(name, 0) + len(out)
        return out

    def _may_ask_for_all(self, name: str) -> bool:
        """Workers that are not asked for are counted too: what brought nothing is asked again ever more seldom."""
        left, next_ = self._rests.get(name, (0, 1))
        self._rests[name] = (left - 1, next_) if left > 0 else (next_, min(2 * next_, _SELDOM))
        return left <= 0

    def _behind(self, item: Dict[str, Any], low: Optional[int], lines: Dict[Tuple[str, str, int], int]) -> List[Dict[str, Any]]:
        out = []
        for row in self.source.values_of(self.query._replace(steps=(low, None)), item):
            line = (row["mode"], row["worker"], row["attempt"])
            if row["step"] > lines.get(line, -1):
                lines[line] = row["step"]
                out.append(row)
        return out

    def ended(self) -> bool:
        return self._details["state"] == "ended" and self._quiet > 0 and (self._quiet > 1 or self._age() > _SETTLED)

    def _age(self) -> float:
        """Seconds since the run was heard, by the server's clock."""
        return float(self.source.seconds(self._details["as_of"]) - self.source.seconds(self._details["heard_at"]))

    def heard(self) -> float:
        return time.time() - self._age()

    def wait(self, seconds: float) -> None:
        if self._events is None:
            self._events = self.source.server.events(max(0.1, min(seconds, _LISTEN)), types="tick,run", run=self.query.run)
        if next(self._events, None) is None:
            self._events = None

    def close(self) -> None:
        self._events = None


def keep_drawn(chart: Chart, frames: Iterator[Frame], draw: Any) -> Chart:
    """Shows a chart in a notebook, and draws it again in its place with each frame. Gives the last one."""
    try:
        from IPython.display import display
    except ImportError:
        raise NotInstalled("live() draws in a notebook and needs IPython: pip install ipython") from None
    shown = display(chart, display_id=True)
    for _ in frames:
        chart = draw()
        if shown is not None:
            shown.update(chart)
    return chart


def pattern_of(words: Optional[Tuple[str, ...]]) -> Optional[str]:
    return None if words is None else "|".join(map(re.escape, words))
