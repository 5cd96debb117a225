"""The one open hook of a process: who has it, what fork does to it, how it ends with the process."""

import atexit
import os
import sys
import time
from typing import Any, Dict, Optional

from .child_end import ChildEnd
from .error_words import words_of

EXIT_STOPPED = 77

_hook: Optional[Any] = None
_registered = False
_child_end: Optional[ChildEnd] = None
_seen: Optional[int] = None  # id() of what had been raised when the hook was opened


def hook_of(run: Optional[str], job: Optional[str]) -> Optional[Any]:
    """The open hook if it is of that run; None: as the hook has it. A hook of another run is closed:
    in a notebook the cell that watches is run again with another job."""
    hook = open_hook()
    if hook is None:
        return None
    # A job's name may have been cut to fit: the script knows it by what it said.
    names = (hook.job, hook.said.get("job"))
    wanted = names[1] or hook.job if job is None else str(job)
    if wanted in names and (run is None or _uid(wanted, str(run)) == hook.run):
        return hook
    end_former(hook)
    return None


def end_former(hook: Any) -> None:
    """Closes it as what was raised since it was opened says."""
    error = _raised()
    hook.close(**ending_of(None if error is None else type(error), error))


def open_hook() -> Optional[Any]:
    return _hook if _hook is not None and _hook.enabled else None


def keep(hook: Any) -> None:
    """From now on this is the process's hook, if it is on."""
    global _hook, _registered, _seen, _child_end
    if not _registered:
        _registered = True
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_after_fork)
    if hook.enabled and (_child_end is None or not _child_end.is_of_this_process()):
        _child_end = ChildEnd(open_hook, ending_of, ending_with)
    _hook = hook if hook.enabled else None
    _seen = id(getattr(sys, "last_value", None))


def forget(hook: Any) -> None:
    global _hook
    if _hook is hook:
        _hook = None


def ending_of(kind: Any, error: Any) -> Dict[str, Any]:
    """Arguments of ``close()`` for a block that was left by an exception, or by none (None)."""
    if kind is None:
        return {}
    if issubclass(kind, SystemExit):
        code = error.code if isinstance(error.code, int) else (0 if error.code is None else 1)
        return ending_with(code, error.__context__)
    if issubclass(kind, KeyboardInterrupt):
        return {"outcome": "interrupted"}
    return {"outcome": "failed", "error": words_of(error) if isinstance(error, BaseException) else f"{kind.__name__}: {error}"[:500]}


def ending_with(code: int, cause: Any = None) -> Dict[str, Any]:
    """Of a process that ends with an exit status. ``cause``: what was raised before it was chosen, if anything was."""
    outcome = {0: "completed", EXIT_STOPPED: "stopped_by_rule"}.get(code, "failed")
    ending: Dict[str, Any] = {"outcome": outcome, "exit_code": code}
    if outcome == "failed" and isinstance(cause, Exception):  # torch.multiprocessing ends a rank so
        ending["error"] = words_of(cause)
    return ending


def _uid(job: str, run: str) -> str:
    from tocsin.wire import run_uid  # seldom needed, and not small

    return str(run_uid(job, run))


def _raised() -> Optional[BaseException]:
    """What reached the interpreter since the hook was opened: a notebook keeps the error of a cell
    for ever, and the runs of later cells have nothing to do with it."""
    error = getattr(sys, "last_value", None)
    return None if id(error) == _seen else error


def _after_fork() -> None:
    global _hook
    hook, _hook = _hook, None
    if hook is not None:
        hook.forked()


def _at_exit() -> None:
    hook = _hook
    if hook is None:
        return
    try:
        error = _raised()
        if error is None:
            hook.close_at_exit()
        elif isinstance(error, KeyboardInterrupt):
            hook.close("interrupted", _wait_interruptibly(hook, 5.0))
        else:
            ending = ending_of(type(error), error)
            hook.close(exit_code=1, **ending)
    except KeyboardInterrupt:  # a person who is in a hurry needs no traceback of ours
        pass


def _wait_interruptibly(hook: Any, seconds: float) -> float:
    """Delivers what it can, in slices, because no signal ends a wait of the library's. What is left
    of the time; 0 after another Ctrl-C."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end and not hook.flush(0.1):
            pass
    except KeyboardInterrupt:
        return 0.0
    return max(end - time.monotonic(), 0.0)
