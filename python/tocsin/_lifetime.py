"""The one open hook of a process: who has it, what fork does to it, how it ends with the process."""

import atexit
import os
import sys
from typing import Any, Dict, Optional

EXIT_STOPPED = 77

_hook: Optional[Any] = None
_registered = False


def open_hook() -> Optional[Any]:
    return _hook if _hook is not None and _hook.enabled else None


def keep(hook: Any) -> None:
    """From now on this is the process's hook, if it is on."""
    global _hook, _registered
    if not _registered:
        _registered = True
        atexit.register(_at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_after_fork)
    _hook = hook if hook.enabled else None


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
        outcome = {0: "completed", EXIT_STOPPED: "stopped_by_rule"}.get(code, "failed")
        return {"outcome": outcome, "exit_code": code}
    if issubclass(kind, KeyboardInterrupt):
        return {"outcome": "interrupted"}
    return {"outcome": "failed", "error": f"{kind.__name__}: {error}"[:500]}


def _after_fork() -> None:
    global _hook
    hook, _hook = _hook, None
    if hook is not None:
        hook.forked()


def _at_exit() -> None:
    hook = _hook
    if hook is None:
        return
    kind = getattr(sys, "last_type", None)
    if kind is None:
        hook.close_at_exit()
        return
    ending = ending_of(kind, getattr(sys, "last_value", None))
    if ending["outcome"] == "failed":
        ending["exit_code"] = 1
    hook.close(**ending)
