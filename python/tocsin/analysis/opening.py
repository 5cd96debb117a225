"""``create_trial``: what a path names, as a trial."""

import datetime
import math
import os
from typing import Any, Optional, Tuple

from tocsin.rules import recording
from .copied import KafkaTrial
from .http import Server
from .served import ServedTrial
from .stored import StoredTrial
from .trial import DirectoryTrial


def create_trial(path: str, name: Optional[str] = None, profiler: bool = False, output_dir: Optional[str] = None,
                 range_steps: Optional[Tuple[int, int]] = None, run: Optional[str] = None, token: Optional[str] = None,
                 at: Any = None, config: Optional[str] = None) -> Any:
    """``path``: a directory that a run has written or is writing; or the address of a server, or of a page of it
    (``http://127.0.0.1:9760/runs/4e3046d4``); or ``kafka://host:9092``, from where the run is copied: into ``output_dir``, which stays, or
    into a directory that goes with the trial; or ``s3://bucket/prefix``, where a run has put raw tensors, which are all that it has. ``run``: uid or the beginning of one; None: the newest. ``range_steps``: global steps from, up
    to without. ``token``: where the server's reading needs one. ``at``: a past moment; the trial shows what had been sent by
    then, of a server what it had measured by then: a datetime, seconds since 1970, or a text (``2026-11-27T18:58:30Z``). ``config``: the shared configuration with the
    settings of the cluster and its topics; None: ``TOCSIN_CONFIG``, ``./tocsin.yaml``."""
    path = str(path)
    if profiler:
        raise ValueError(f"a trial has tensors and scalars: tocsin.analysis.PandasFrame({path!r}) has samples and spans")
    if path.startswith(("http://", "https://")):
        return ServedTrial(Server(path, token), name, range_steps, run, _moment(at))
    if path.startswith("kafka://"):
        return KafkaTrial(path, name, range_steps, run, _moment(at), output_dir, config)
    if path.startswith("s3://"):
        if at is not None:
            raise ValueError("at: a store does not say what was there at a past moment")
        return StoredTrial(path, name, range_steps, run)
    if "://" in path:
        raise ValueError(f"{path}: expected a directory, http://host:port of a server, kafka://host:9092, or s3://bucket/prefix")
    directory = recording.directory_of(path)
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
