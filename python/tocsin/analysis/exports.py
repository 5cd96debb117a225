"""A whole run as files of other programs."""

import os
from typing import Any, Dict, List, Optional

from . import event_files
from .jobs import MergedTimeline
from .opening import create_trial

_KINDS = {"scalars": 'metric(".*")', "tensors": 'tensor(".*")', "steps": "step()", "spans": 'span(".*")', "samples": 'system(".*")'}


def export(run: Any, to: str, path: str, which: Optional[str] = None) -> List[str]:
    """``run``: a trial of a directory, or the directory (``which``: the uid of a run in it). ``to``: ``parquet`` or ``csv``, a file for each kind
    in ``path/run=…/kind=…/``; ``chrome``, one time line; ``tensorboard``, event files (TensorBoard need not be installed). Returns the names of
    what was written; kinds that the run does not have have no file."""
    trial = run if hasattr(run, "series") else create_trial(str(run), run=which)
    if to == "chrome":
        os.makedirs(path, exist_ok=True)
        return [MergedTimeline(trial, output_directory=path).merge_timeline()]
    if to == "tensorboard":
        return event_files.write(trial, path, tensors=not getattr(trial, "details", {}))
    if to not in ("parquet", "csv"):
        raise ValueError(f"to={to!r}: expected parquet, csv, chrome or tensorboard")
    out = []
    uid = trial.run.split("/")[0]
    for kind, query in _KINDS.items():
        frame = _frame(trial, query)
        if frame is None or not len(frame):
            continue
        folder = os.path.join(path, f"run={uid}", f"kind={kind}")
        os.makedirs(folder, exist_ok=True)
        file = os.path.join(folder, f"{kind}.{to}")
        frame.to_parquet(file) if to == "parquet" else frame.to_csv(file)
        out.append(file)
    return out


def _frame(trial: Any, query: str) -> Any:
    source: Dict[str, Any] = getattr(trial, "details", {})
    if source and query not in ('metric(".*")', "step()"):
        return None  # a server keeps no more
    return trial.series(query)
