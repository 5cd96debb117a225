"""What a run has written to a directory, as event files that TensorBoard shows.

    tocsin.tensorboard.export("tocsin-data", "logs")     # then: tensorboard --logdir logs
    python3 -m tocsin.tensorboard tocsin-data logs       # the same

Needs the package ``tensorboard``; nothing else of Tocsin does.
"""

import argparse
import math
import os
import sys
from typing import Any, Dict, Iterator, List, Optional, Tuple

from tocsin.reading.tensors import Tensors

# Of a tensor, what is a curve of its own; quantiles and the others of docs/statistics.md where they were captured.
_IDENTITY = frozenset(("name", "role", "step", "mode", "rank", "run", "time", "value", "histogram", "elements", "digest",
                       "count", "sum", "m2", "sumsq", "abs_sum", "first_bad_index", "depth", "delta_from_step"))


class NoTensorBoard(ImportError):
    """The package ``tensorboard`` is not installed."""


def export(recording: str, logdir: str, run: Optional[str] = None) -> Dict[str, int]:
    """Writes scalars, statistics of tensors (tag ``name/statistic``) and their histograms, where captured, of a
    directory that a hook has written to, or a server keeps. A folder of ``logdir`` for each mode (``train``, ``eval``, …), below it
    one for each rank but 0, and above it one for each run where there are several; ``run``: the uid of one of them. Steps
    are those of the mode. Values that are not finite stay: TensorBoard marks them. Gives how many scalars and histograms were written; another
    call writes them once more, to further files.

    Raises ``FileNotFoundError`` (nothing was recorded there), ``ValueError`` (nothing of this run), and
    :class:`NoTensorBoard`."""
    try:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter
    except ImportError as problem:
        raise NoTensorBoard("export() needs the package tensorboard: pip install tensorboard") from problem
    if not os.path.exists(os.path.join(recording, "telemetry.db")):
        raise FileNotFoundError(f"{recording}: nothing was recorded there (no telemetry.db)")
    rows = Tensors(recording).get(run=run)
    if not rows:
        raise ValueError(f"{recording}: nothing was recorded of " + ("any run" if run is None else f"run {run}"))
    several = len({row["run"] for row in rows}) > 1
    writers: Dict[str, Any] = {}
    written = {"scalars": 0, "histograms": 0}
    try:
        for row in rows:
            folder = _folder(logdir, row, several)
            if folder not in writers:
                writers[folder] = EventFileWriter(folder)
            values = [summary_pb2.Summary.Value(tag=tag, simple_value=value) for tag, value in scalars_of(row)]
            written["scalars"] += len(values)
            if "histogram" in row:
                values.append(summary_pb2.Summary.Value(tag=row["name"], histo=summary_pb2.HistogramProto(**histogram_of(row))))
                written["histograms"] += 1
            if values:
                writers[folder].add_event(event_pb2.Event(wall_time=row["time"], step=row["step"],
                                                          summary=summary_pb2.Summary(value=values)))
    finally:
        for writer in writers.values():
            writer.close()
    return written


def _folder(logdir: str, row: Dict[str, Any], several: bool) -> str:
    parts = [row["run"]] if several else []
    parts.append(row["mode"])
    if row["rank"]:
        parts.append(f"rank_{row['rank']}")
    return os.path.join(logdir, *parts)


def scalars_of(row: Dict[str, Any]) -> Iterator[Tuple[str, float]]:
    """(tag, value) of a row of :meth:`Tensors.get`."""
    if "value" in row:
        yield row["name"], float(row["value"])
        return
    for statistic, value in row.items():
        if statistic not in _IDENTITY and isinstance(value, (int, float)):
            yield f"{row['name']}/{statistic}", float(value)


def histogram_of(row: Dict[str, Any]) -> Dict[str, Any]:
    """Fields of TensorBoard's HistogramProto: ascending upper ends of buckets, and how many values each holds. Values that are not
    finite are in none; zeros have a bucket of their own between the negative and the positive."""
    shape = row["histogram"]
    limits: List[float] = []
    counts: List[float] = []
    offset, numbers = shape["negative"]
    for place in range(len(numbers) - 1, -1, -1):  # from the far end towards zero
        limits.append(-_edge(offset + place))
        counts.append(float(numbers[place]))
    begin, above = shape["positive"]
    limits.append(_edge(begin) if above else 0.0)
    counts.append(float(row.get("zero", 0)))
    for place, number in enumerate(above):
        limits.append(_edge(begin + place + 1))
        counts.append(float(number))
    return {"min": _finite(row["min"]), "max": _finite(row["max"]), "num": sum(counts), "sum": _finite(row["sum"]),
            "sum_squares": _finite(row["sumsq"]), "bucket_limit": limits, "bucket": counts}


def _edge(number: int) -> float:
    return float(2.0 ** (number / 8)) if number < 8 * 1024 else sys.float_info.max


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m tocsin.tensorboard", description="Writes what was recorded as event files of TensorBoard.")
    parser.add_argument("recording", help="directory that a hook has written to, or a server keeps")
    parser.add_argument("logdir", help="where the event files go: tensorboard --logdir LOGDIR")
    parser.add_argument("--run", help="uid of one of its runs; else all of them")
    given = parser.parse_args(arguments)
    try:
        written = export(given.recording, given.logdir, given.run)
    except (ImportError, OSError, ValueError) as problem:
        print(f"tocsin: {problem}", file=sys.stderr)
        return 1
    print(f"{written['scalars']} scalars and {written['histograms']} histograms in {given.logdir}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
