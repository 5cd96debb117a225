"""Curves of a run as a chart: the mean of each bucket, and a band from the least to the greatest."""

import math
from typing import Any, Dict, List, Optional, Tuple

from . import chart
from .chart import Chart, number
from .live import SILENCE, keep_drawn
from .selection import query_of

POINTS = 400
_MOST = 16  # lines


class CurveChart(Chart):
    """``data``: {line: [{"step", "min", "mean", "max", "bad_step"}, …]}."""

    _again: Any = None  # () -> frames of what is new, and () -> the chart drawn anew

    def live(self, timeout: float = SILENCE) -> Chart:
        """Shows it in a notebook and keeps it drawn until the run has ended; ``timeout`` as of ``trial.live``. Gives the last chart."""
        frames, draw = self._again
        return keep_drawn(self, frames(timeout), draw)


class Plotting:
    """``plot`` of a trial."""

    def plot(self, query: str, stat: Any = None, mode: Any = None, workers: Any = None, steps: Any = None, points: int = POINTS,
             smooth: Optional[int] = None) -> CurveChart:
        """A chart of what ``series`` gives for the same arguments: a line for each name, mode and worker, the first 16. Of tensors one
        statistic, the L2 norm unless ``stat`` names another. Values that are not finite are marks below."""
        of = query_of(query, mode=mode).selection
        if of.kind in ("tensor", "collection") and stat is None:
            stat = "l2"
        if of.kind in ("system", "span"):
            raise ValueError(f"plot: {of.kind}(…) is over time: TimelineCharts, StepTimelineChart and MergedTimeline show it")
        frame = self.series(query, stat=stat, mode=mode, workers=workers, steps=steps, points=points, smooth=smooth)  # type: ignore[attr-defined]
        lines: Dict[Tuple[str, ...], List[Dict[str, Any]]] = {}
        for row in frame:
            lines.setdefault((str(row.get("name", "step")), str(row["mode"]), str(row["worker"])), []).append(row)
        whole = len(lines)
        named = dict(list(_words(lines).items())[:_MOST])
        told = " ".join(_sentence(name, rows) for name, rows in named.items()) or f"Nothing of {query}."
        if whole > _MOST:
            told += f" {whole - _MOST} more lines are not drawn."
        key = "smooth" if smooth else "mean"
        shown = {name: [(float(row["step"]), _number(row[key])) for row in rows] for name, rows in named.items()}
        bands = {name: chart.Band([(float(row["step"]), row["min"], row["max"]) for row in rows if row["n"]],
                                  [float(row["bad_step"]) for row in rows if row["bad_step"] is not None]) for name, rows in named.items()}
        data = {name: [{column: row[column] for column in ("step", "min", "mean", "max", "bad_step")} for row in rows] for name, rows in named.items()}
        out = CurveChart(query, told, data, [chart.Lines(query, shown, "step", "seconds" if of.kind == "step" else str(stat or "value"), bands=bands)])
        out._again = (lambda timeout: self.live(query, stat=stat, mode=mode, workers=workers, timeout=timeout),  # type: ignore[attr-defined]
                      lambda: self.plot(query, stat, mode, workers, steps, points, smooth))
        return out


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def _words(lines: Dict[Tuple[str, ...], List[Dict[str, Any]]]) -> Dict[str, List[Dict[str, Any]]]:
    """Lines by as much of name, mode and worker as tells them apart."""
    parts = [place for place in range(3) if place == 0 or len({key[place] for key in lines}) > 1]
    return {" ".join(key[place] for place in parts): sorted(rows, key=lambda row: row["step"]) for key, rows in sorted(lines.items())}


def _sentence(name: str, rows: List[Dict[str, Any]]) -> str:
    finite = [row for row in rows if row["n"]]
    out = f"{name}, steps {rows[0]['step']} to {rows[-1]['step'] + rows[-1]['width'] - 1}: "
    if not finite:
        out += "no finite number"
    else:
        least, most = min(finite, key=lambda row: row["min"]), max(finite, key=lambda row: row["max"])
        out += (f"from {number(finite[0]['mean'])} to {number(finite[-1]['mean'])}, least {number(least['min'])} at {least['step']}, "
                f"greatest {number(most['max'])} at {most['step']}")
    bad = [row["bad_step"] for row in rows if row["bad_step"] is not None]
    return out + (f"; not finite for the first time at {min(bad)}." if bad else ".")
