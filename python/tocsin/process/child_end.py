"""How a process ends that never comes to the interpreter's end: a child of ``multiprocessing`` (``os._exit`` follows its function),
and whoever calls ``os._exit`` itself. The record of the run is closed there, with the last steps, instead of by nobody.
"""

import os
import sys
import threading
from typing import Any, Callable, Dict, Optional

LAST = -100  # after the finalizers of others (queues: -5), when children that are no daemons have been joined
SECONDS = 5.0

_exit = os._exit  # as it was found


class ChildEnd:
    """Of one process, in which a hook was opened."""

    def __init__(self, hook: Callable[[], Optional[Any]], ending_of: Callable[[Any, Any], Dict[str, Any]],
                 ending_with: Callable[[int, Any], Dict[str, Any]]) -> None:
        """``hook``: gives the open one. ``ending_of``, ``ending_with``: arguments of its close() for what was raised, and for an exit
        status with what was raised before."""
        self._process = os.getpid()
        self._thread = threading.get_ident()
        self._hook, self._ending_of, self._ending_with = hook, ending_of, ending_with
        _call_at_end_of_child(self._finalize)
        _call_before_exit(self)

    def is_of_this_process(self) -> bool:
        return self._process == os.getpid()

    def _finalize(self) -> None:
        """The child's function has returned, or raised what is being handled here."""
        hook = self._hook()
        if hook is not None:
            kind, error, _ = sys.exc_info()
            ending = self._ending_of(kind, error)
            _close(hook, {"outcome": "completed", "exit_code": 0 if kind is None else 1, **ending})

    def exits(self, status: Any) -> None:
        """``os._exit(status)`` comes next. Another thread than the one that trains may call it because that one hangs: it
        cannot speak for it."""
        hook = self._hook()
        if hook is None or not self.is_of_this_process() or threading.get_ident() != self._thread or hook.closing():
            return
        kind, error, _ = sys.exc_info()
        if isinstance(status, int):
            _close(hook, self._ending_with(status & 0xFF, error if kind is not None else None))


def _close(hook: Any, ending: Dict[str, Any]) -> None:
    """A status says that a rule has stopped it only where one has."""
    if ending["outcome"] == "stopped_by_rule" and not hook.acknowledged:
        ending["outcome"] = "failed"
    hook.close(**ending, timeout=SECONDS)


_present: Optional[ChildEnd] = None


def _call_before_exit(end: ChildEnd) -> None:
    """Has ``end`` told of ``os._exit()``. Who replaces that function later calls ours, or does without."""
    global _present, _exit
    _present = end
    if getattr(os._exit, "_tocsin", False):
        return
    _exit = os._exit

    def exit_now(status: int) -> Any:
        try:
            if _present is not None:
                _present.exits(status)
        finally:
            _exit(status)

    exit_now._tocsin = True  # type: ignore[attr-defined]
    exit_now.__name__, exit_now.__doc__ = "_exit", _exit.__doc__
    os._exit = exit_now  # type: ignore[assignment]


def _call_at_end_of_child(function: Callable[[], None]) -> None:
    """In the main process, which is nobody's child, the interpreter's own end comes."""
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return
    from multiprocessing import util

    util.Finalize(None, function, exitpriority=LAST)
