"""Where traces are: files, folders of them, and runs that sent them."""

import glob
import os
import re
import urllib.parse
from typing import Any, Dict, List, Optional, Tuple

from tocsin.reading.raw import RawTensors
from .http import Server, run_of
from .profiles import NoProfilerData
from .recorded import RecordedSource
from .selection import query_of
from .served import ServedSource
from .trace_parse import NoTrace, Opened

NAME = "profiler/trace"  # of the raw tensor that a hook sends
_ENDINGS = (".json", ".json.gz", ".trace", ".gz")
_HOW = "`tocsin capture RUN --trace 5` asks a running job for one (docs/capture-by-hand.md)"


def traces_of(given: Any, step: Optional[int], run: Optional[str], capture: Any = None) -> List[Opened]:
    if isinstance(given, bytes):
        return [given]
    if isinstance(given, (list, tuple)):
        return [one for each in given for one in traces_of(each, step, run, capture)]
    if hasattr(given, "series"):
        if isinstance(getattr(given, "source", None), ServedSource):
            return _kept(given.source.server, given.run if run is None else run, step)
        if not isinstance(getattr(given, "source", None), RecordedSource):
            raise ValueError("of trials, those of a directory and of a server have traces")
        return _sent(given.source, given._wanted if run is None else run, step, capture)
    if isinstance(given, Server):
        return _kept(given, run, step)
    path = os.fspath(given)
    if os.path.isdir(path):
        if os.path.exists(os.path.join(path, "telemetry.db")):
            return _sent(RecordedSource(path), run, step, capture)
        found = sorted(file for file in glob.glob(os.path.join(glob.escape(path), "*")) if file.endswith(_ENDINGS))
        if not found:
            raise NoTrace(f"{path}: neither a run nor a trace file (.json, .json.gz) is in it")
        return list(found)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: there is no such trace")
    return [path]


def _kept(server: Server, run: Optional[str], step: Optional[int]) -> List[Opened]:
    """That a server can send, of all workers: of a capture that began at this step; else the newest of each."""
    uid = run_of(server, run)
    listed = [one for one in server.get(f"/api/v1/runs/{uid}/traces")["items"]]
    of: Dict[str, Dict[str, Any]] = {}  # by worker; the newest comes first
    for one in listed:
        if step is None or step in (one["step"], one["first_step"]):
            of.setdefault(one["worker"], one)
    if not of:
        others = ", ".join(str(one) for one in sorted({one["step"] for one in listed}))
        raise NoProfilerData("traces" if not listed else f"trace of step {step} (it has {others})", _HOW)
    return [server.bytes_of(f"/api/v1/runs/{uid}/traces/{urllib.parse.quote(one['id'], safe='')}") for _, one in sorted(of.items())]


def _sent(source: RecordedSource, run: Optional[str], step: Optional[int], capture: Any) -> List[Opened]:
    """Of all workers, at this step; else the newest of each."""
    found = source.run_of(run)
    places = sent_at(source, NAME, found)
    if found is None or not places:
        raise NoProfilerData("traces", _HOW)
    out: List[Opened] = []
    with RawTensors(run=found[0], out=os.path.dirname(source.index.path) or ".", capture=capture) as raw:
        for worker in sorted({one for one, _, _ in places}):
            at = [(number, mode) for one, mode, number in places if one == worker and step in (None, number)]
            if at:
                number, mode = max(at)
                out.append(raw.value(NAME, number, mode=mode, worker=worker).tobytes())
    if not out:
        raise NoProfilerData(f"trace of step {step} (it has {', '.join(sorted({str(number) for _, _, number in places}))})", _HOW)
    return out


def sent_at(source: RecordedSource, name: str, run: Optional[Tuple[str, int]]) -> List[Tuple[str, str, int]]:
    """(worker, mode, step) at which the run sent a tensor of this name."""
    asked = query_of(f'tensor("{re.escape(name)}")', stat="count")
    if run is not None:
        asked = asked._replace(run=run[0], attempt=run[1])
    table = source.table(asked)
    return sorted({(table["worker"].value(row), table["mode"].value(row), table["step"].value(row)) for row in range(len(table["step"]))})
