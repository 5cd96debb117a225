"""The telemetry of a run on Kafka, copied into a directory: there everything reads it that reads a recording.

    from tocsin.reading.run_copy import RunCopy
    with RunCopy("kafka://host:9092", "run1", run="4e30") as copy:
        copy.update()                              # records that were copied

The library of the hook does the copying; it needs no client, and leaves the cluster as it is.
"""

import ctypes
import json
import threading
from typing import Any, Optional

from tocsin.library import abi


def _declared() -> Any:
    library = abi.library().slow
    if library.tocsin_copy_open.argtypes is None:
        p = ctypes.c_void_p
        library.tocsin_copy_open.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(p)]
        library.tocsin_copy_run.argtypes = [p]
        library.tocsin_copy_run.restype = ctypes.c_char_p
        library.tocsin_copy_next.argtypes = [p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint64)]
        library.tocsin_copy_close.argtypes = [p]
    return library


def _refusal(code: int) -> Exception:
    said = abi.library().last_error()
    return ConnectionError(said) if code == abi.TIMEOUT else ValueError(said)


class RunCopy:
    """Goes on where an earlier copy into the same directory has ended, however it ended. May be used by several threads; they wait for each
    other. Samples of node agents belong to no run and are not copied."""

    def __init__(self, source: str, directory: str, run: Optional[str] = None, config: Optional[str] = None) -> None:
        """``source``: ``kafka://host:9092``. ``directory``: empty, or a copy of the same run. ``run``: its uid, or the first 4 digits or more of
        one that the topic ``registry`` names; None: the newest that it names. ``config``: the shared configuration, for its sections
        ``transport`` and ``topics``. Raises ValueError (no such run or topic, another run's directory) and ConnectionError."""
        options = json.dumps({"out": source, "directory": directory, "run": run or "", "config": config or ""}).encode("utf-8")
        handle = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._handle: Optional[int] = None
        library = _declared()
        code = library.tocsin_copy_open(options, len(options), ctypes.byref(handle))
        if code != abi.OK:
            raise _refusal(code)
        self._handle = handle.value
        self.directory = directory
        self.run: str = library.tocsin_copy_run(self._handle).decode("utf-8")

    def update(self, wait: float = 0.0) -> int:
        """Copies what is there and not copied yet; where nothing is, waits at most ``wait`` seconds for it. Returns how many records."""
        copied = ctypes.c_uint64()
        with self._lock:
            if self._handle is None:
                return 0
            code = _declared().tocsin_copy_next(self._handle, int(wait * 1000), ctypes.byref(copied))
            if code != abi.OK:
                raise _refusal(code)
        return copied.value

    def close(self) -> None:
        with self._lock:
            if self._handle is not None:
                _declared().tocsin_copy_close(self._handle)
                self._handle = None

    def __enter__(self) -> "RunCopy":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # noqa: BLE001 - the interpreter may be going, or it was never opened
            pass
