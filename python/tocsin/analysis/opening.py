"""``create_trial``: what a path names, as a trial."""

import datetime
import math
import os
from typing import Any, Optional, Tuple

from tocsin.rules import recording
from .http import Server
from .served import ServedTrial
from .trial import DirectoryTrial


def create_trial(path: str, name: Optional[str] = None, profiler: bool = False, output_dir: Optional[str] = None,
                 range_steps: Optional[Tuple[int, int]] = None, run: Optional[str] = None, token: Optional[str] = None,
                 at: Any = None) -> Any:
    """``path``: a directory that a run has written or is writing; or the address of a server, or of a page of it
    (``http://127.0.0.1:9760/runs/4e3046d4``). ``run``: uid or the beginning of one; None: the newest. ``range_steps``: global steps from, up
    to without. ``token``: where the server's reading needs one. ``at``: a past moment, of a directory; the trial shows what had been sent by then:
    a datetime, seconds since 1970, or a text (``2026-11-27T18:58:30Z``)."""
    path = str(path)
    if profiler:
        raise ValueError(f"a trial has tensors and scalars: tocsin.analysis.PandasFrame({path!r}) has samples and spans")
    if path.startswith(("http://", "https://")):
        if at is not None:
            raise ValueError("at: a server shows its curves as they are now; open the directory of the run")
        return ServedTrial(Server(path, token), name, range_steps, run)
    if path.startswith("kafka://"):
        raise ValueError(f"{path}: the client library reads raw tensors of a topic, but no telemetry. Open the server, http://host:9760, or a "
                         f"directory: `tocsin issues reproduce ISSUE --save DIR` copies what an issue was decided by")
    if "://" in path:
        raise ValueError(f"{path}: expected a directory, or http://host:port of a server")
    directory = recording.directory_of(path)
    del output_dir  # of the original's profiler
    return DirectoryTrial(directory, name or os.path.basename(os.path.normpath(directory)), range_steps, run, _moment(at))


def _moment(at: Any) -> Optional[int]:
    """UTC ns."""
    if at is None:
        return None
    if isinstance(at, str):
        try:
            at = datetime.datetime.fromisoformat(at.strip().replace("Z", "+00:00"))
        except ValueError:
            raise ValueError(f"at={at!r}: expected for instance 2026-11-27T18:58:30Z") from None
    if isinstance(at, datetime.datetime):
        at = (at if at.tzinfo is not None else at.replace(tzinfo=datetime.timezone.utc)).timestamp()
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not math.isfinite(at):
        raise ValueError(f"at={at!r}: expected a datetime, seconds since 1970, or a text as 2026-11-27T18:58:30Z")
    return round(at * 1e9)
