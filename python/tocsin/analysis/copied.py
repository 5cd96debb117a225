"""A run on Kafka as a trial: copied into a directory, and from there read as any other."""

import tempfile
import time
from typing import Optional, Tuple

from tocsin.reading.run_copy import RunCopy
from .journal_index import JournalIndex
from .recorded import RecordedSource
from .trial import DirectoryTrial

_FRESH = 0.25  # seconds; what was copied so shortly ago is not asked for again


def copy_run(source: str, directory: str, run: Optional[str] = None, config: Optional[str] = None) -> str:
    """Copies the telemetry of a run on Kafka into a directory, and returns the run's uid. Again: what has come since. Arguments and errors are
    those of ``tocsin.reading.run_copy.RunCopy``."""
    with RunCopy(source, directory, run, config) as copy:
        copy.update()
        return copy.run


class _FreshCopy:
    """A copy that is as new as the cluster, but for a moment."""

    def __init__(self, source: str, directory: Optional[str], run: Optional[str], config: Optional[str]) -> None:
        self._temporary = None if directory else tempfile.TemporaryDirectory(prefix="tocsin-copy-")
        self.copy = RunCopy(source, directory or self._temporary.name, run, config)  # type: ignore[union-attr]
        self.copy.update()
        self._updated = time.monotonic()

    def update(self) -> None:
        if time.monotonic() - self._updated >= _FRESH:
            self.copy.update()
            self._updated = time.monotonic()


class _CopiedIndex(JournalIndex):
    def __init__(self, fresh: _FreshCopy, until: Optional[int]) -> None:
        self._fresh = fresh
        super().__init__(fresh.copy.directory, until)

    def update(self) -> None:
        self._fresh.update()
        super().update()

    def heard_of(self, run: str) -> bool:
        self.update()
        return run in self.heard


class KafkaTrial(DirectoryTrial):
    """As of a directory. Whatever reads takes first what the run has sent meanwhile."""

    def __init__(self, source: str, name: Optional[str], range_steps: Optional[Tuple[int, int]], run: Optional[str],
                 until: Optional[int], directory: Optional[str], config: Optional[str]) -> None:
        """``directory``: where the copy stays; None: it goes with the trial."""
        self._fresh = _FreshCopy(source, directory, run, config)
        copy = self._fresh.copy
        if not _CopiedIndex(self._fresh, None).heard_of(copy.run):
            raise ValueError(f"{source} has no telemetry of run {copy.run}: the topic has dropped it, or it was sent elsewhere")
        super().__init__(copy.directory, name or copy.run, range_steps, copy.run, until)

    def new_source(self, until: Optional[int]) -> RecordedSource:
        return RecordedSource(self._directory, until, _CopiedIndex(self._fresh, until))

    def _fill_what_is_new(self) -> None:
        self._fresh.update()
        super()._fill_what_is_new()
