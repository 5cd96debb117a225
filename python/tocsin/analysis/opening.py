"""``create_trial``: what a path names, as a trial."""

import os
from typing import Any, Optional, Tuple

from tocsin.rules import recording
from .http import Server
from .served import ServedTrial
from .trial import DirectoryTrial


def create_trial(path: str, name: Optional[str] = None, profiler: bool = False, output_dir: Optional[str] = None,
                 range_steps: Optional[Tuple[int, int]] = None, run: Optional[str] = None, token: Optional[str] = None) -> Any:
    """``path``: a directory that a run has written or is writing; or the address of a server, or of a page of it
    (``http://127.0.0.1:9760/runs/4e3046d4``). ``run``: uid or the beginning of one; None: the newest. ``range_steps``: global steps from, up
    to without. ``token``: where the server's reading needs one."""
    path = str(path)
    if profiler:
        raise ValueError(f"a trial has tensors and scalars: tocsin.analysis.PandasFrame({path!r}) has samples and spans")
    if path.startswith(("http://", "https://")):
        return ServedTrial(Server(path, token), name, range_steps, run)
    if "://" in path:
        raise ValueError(f"{path}: expected a directory, or http://host:port of a server")
    directory = recording.directory_of(path)
    del output_dir  # of the original's profiler
    return DirectoryTrial(directory, name or os.path.basename(os.path.normpath(directory)), range_steps, run)
