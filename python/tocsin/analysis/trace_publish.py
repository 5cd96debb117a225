"""What traces of a run show, as a note in its history."""

import os
import urllib.parse
from typing import Any, Dict, List, Optional, Union

from .http import Server, run_of
from .profiles import NoProfilerData
from .recorded import RecordedSource
from .served import ServedSource

_MOST = 4096  # bytes of a note
_LISTED = 3
_LONGEST = 80  # characters of a name
_WHERE = 'publish="http://127.0.0.1:9760/runs/4e3046d4", the address of the run\'s page'


class Target:
    """The history of a run at a server."""

    def __init__(self, server: Server, run: str) -> None:
        self._server, self._run = server, run

    def write(self, text: str) -> None:
        """:class:`ServerError`: the server refuses."""
        while len(text.encode()) > _MOST:
            text = text[:-2] + "…"
        self._server.post(f"/api/v1/runs/{urllib.parse.quote(self._run, safe='')}/notes", {"text": text})


def target_of(given: Any, publish: Union[bool, str], run: Optional[str], token: Optional[str]) -> Target:
    """Looked up before anything is read. ValueError: no server, or no run of it, is named."""
    served = given if isinstance(given, Server) else getattr(getattr(given, "source", None), "server", None)
    if publish is True:
        if not isinstance(served, Server):
            raise ValueError(f"publish=True: these traces are of no server; give {_WHERE}")
        if isinstance(getattr(given, "source", None), ServedSource) and run is None:
            run = given.run
        return Target(served, run_of(served, run))
    if not isinstance(publish, str):
        raise ValueError(f"publish={publish!r}: expected True, or {_WHERE}")
    server = Server(publish, token)
    named = run if run is not None else _recorded(given)
    if named is None and not server.page.strip("/").startswith("runs/"):
        raise ValueError(f"publish={publish!r} names no run: give {_WHERE}")
    return Target(server, run_of(server, None if server.page.strip("/").startswith("runs/") else named))


def _recorded(given: Any) -> Optional[str]:
    """The run of a directory or a trial of one; None: files are of no run."""
    if isinstance(getattr(given, "source", None), RecordedSource):
        return str(given.run)
    if isinstance(given, (str, os.PathLike)) and os.path.exists(os.path.join(os.fspath(given), "telemetry.db")):
        found = RecordedSource(os.fspath(given)).run_of(None)
        return None if found is None else found[0]
    return None


def summary_of(traces: Any) -> str:
    """What a person wants to know of them first, in sentences. ``traces``: :class:`Traces`."""
    steps = sorted({row["step"] for row in traces.steps()})
    ranks = len(traces.ranks)
    when = "" if not steps else f", step {steps[0]}" if len(steps) == 1 else f", steps {steps[0]} to {steps[-1]}"
    said = [f"Traces of {ranks} ranks{when}." if ranks > 1 else f"Trace of rank {traces.ranks[0]}{when}."]
    try:
        said += _of_gpus(traces)
    except NoProfilerData:
        said.append("No work of a GPU is in them." if ranks > 1 else "No work of a GPU is in it.")
        operators = list(traces.operators())
        whole = sum(row["own"] for row in operators)
        if whole:
            said.append("Operators that took most time of the CPU: " + _listed(operators, "own", whole) + ".")
    return " ".join(said)


def _of_gpus(traces: Any) -> List[str]:
    rows = list(traces.temporal())
    whole = sum(row["time"] for row in rows)
    share = {name: 100 * sum(row[name] for row in rows) / whole if whole else 0.0 for name in ("compute", "communication", "memory", "idle")}
    said = [f"Time of the GPUs: {_percent(share['compute'])} computing, {_percent(share['communication'])} communication that computing does not hide, "
            f"{_percent(share['memory'])} copies, {_percent(share['idle'])} idle."]
    exchanged = list(traces.overlap())
    both, all_ = (sum(row[name] for row in exchanged) for name in ("overlapped", "communication"))
    if all_:
        said.append(f"Computing hid {_percent(100 * both / all_)} of the communication.")
    worst = max(rows, key=lambda row: row["idle_share"])
    if len(rows) > 1:
        said.append(f"Rank {worst['rank']} was idle most: {_percent(worst['idle_share'])}.")
    gaps = list(traces.idle())
    parts = {name: sum(row[name] for row in gaps) for name in ("host_wait", "other", "kernel_wait")}
    waited = sum(parts.values())
    if waited:  # of gaps whose launches are in the traces
        of = {name: _percent(100 * time / waited) for name, time in parts.items()}
        said.append(f"Of the gaps of streams, {of['host_wait']} waited for the CPU to launch, {of['other']} for other work, {of['kernel_wait']} for nothing.")
    by_name: Dict[str, float] = {}
    kernels = list(traces.kernels())
    for row in kernels:
        by_name[row["name"]] = by_name.get(row["name"], 0.0) + row["time"]
    longest = [{"name": name, "time": time} for name, time in by_name.items()]
    said.append("What took most time: " + _listed(longest, "time", sum(by_name.values())) + ".")
    slower = [f"{_name(row['name'])} on rank {row['rank']}" for row in kernels if row["outlier"]]
    if slower:
        more = f" and {len(slower) - _LISTED} more" if len(slower) > _LISTED else ""
        said.append("At least twice as slow as on most ranks: " + ", ".join(slower[:_LISTED]) + more + ".")
    return said


def _listed(rows: List[Any], column: str, whole: float) -> str:
    first = sorted(rows, key=lambda row: (-row[column], row["name"]))[:_LISTED]
    return ", ".join(f"{_name(row['name'])} {_percent(100 * row[column] / whole if whole else 0.0)}" for row in first)


def _name(name: str) -> str:
    return name if len(name) <= _LONGEST else name[:_LONGEST - 1] + "…"


def _percent(share: float) -> str:
    return f"{share:.0f} %" if share >= 1 or share == 0 else "under 1 %"
