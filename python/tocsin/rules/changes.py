"""Waits for writes to a directory: Linux says when there is one (inotify); elsewhere it is looked at often."""

import ctypes
import os
import select
import time
from typing import Any

_EVENTS = 0x2 | 0x80 | 0x100  # modified, moved to here, created
_NONBLOCK_CLOEXEC = 0o4000 | 0o2000000
_LOOK = 0.2  # seconds between two looks where nobody tells


class Changes:
    """``with Changes(directory) as changes: changes.wait(5)``."""

    def __init__(self, directory: str) -> None:
        self._file = -1
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            self._file = libc.inotify_init1(_NONBLOCK_CLOEXEC)
            if self._file >= 0 and libc.inotify_add_watch(self._file, os.fsencode(directory), _EVENTS) < 0:
                self.close()
        except (OSError, AttributeError, TypeError):
            self.close()

    @property
    def told(self) -> bool:
        """The kernel says when there is a write."""
        return self._file >= 0

    def wait(self, seconds: float) -> bool:
        """Returns at a write, after so many seconds at the latest. False: there was none. Without inotify always True."""
        if self._file < 0:
            time.sleep(min(seconds, _LOOK))
            return True
        if not select.select([self._file], [], [], max(0.0, seconds))[0]:
            return False
        os.read(self._file, 1 << 16)
        return True

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def __enter__(self) -> "Changes":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
