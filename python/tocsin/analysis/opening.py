"""``create_trial``: what a path names, as a trial."""

import os
from typing import Any, Optional, Tuple

from tocsin.rules import recording
from .trial import DirectoryTrial


def create_trial(path: str, name: Optional[str] = None, profiler: bool = False, output_dir: Optional[str] = None,
                 range_steps: Optional[Tuple[int, int]] = None, run: Optional[str] = None) -> Any:
    """``path``: a directory that a run has written or is writing. ``run``: uid or the beginning of one; None: the newest.
    ``range_steps``: global steps from, up to without."""
    path = str(path)
    if "://" in path:
        raise ValueError(f"{path}: expected a directory")
    del output_dir  # of the original's profiler
    directory = recording.directory_of(path)
    return DirectoryTrial(directory, name or os.path.basename(os.path.normpath(directory)), range_steps, run)
