"""A whole run as files of other programs."""

import os
from typing import Any, Dict, List, Optional

from .jobs import MergedTimeline
from .opening import create_trial

_KINDS = {"scalars": 'metric(".*")', "tensors": 'tensor(".*")', "steps": "step()", "spans": 'span(".*")', "samples": 'system(".*")'}


def export(run: Any, to: str, path: str, which: Optional[str] = None) -> List[str]:
    """``run``: a trial of a directory, or the directory (``which``: the uid of a run in it). ``to``: ``parquet`` or ``csv``, a file for each kind
    in ``path/run=…/kind=…/``; ``chrome``, one time line. Returns the names of what was written; kinds that the run does not have have no
    file. TensorBoard: ``python3 -m tocsin.tensorboard`` writes its files."""
    trial = run if hasattr(run, "series") else create_trial(str(run), run=which)
    if to == "chrome":
        os.makedirs(path, exist_ok=True)
        return [MergedTimeline(trial, output_directory=path).merge_timeline()]
    if to not in ("parquet", "csv"):
        more = ": python3 -m tocsin.tensorboard writes those" if to == "tensorboard" else ""
        raise ValueError(f"to={to!r}: expected parquet, csv or chrome{more}")
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
