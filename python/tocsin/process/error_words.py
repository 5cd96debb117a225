"""An exception that ended a script, as the message about the failed job tells it."""

import os
import sys
from typing import Any, Optional, Tuple

from .traceback_lines import causes_of, lines_of

_MOST = 2000       # bytes that go with the last record; the engine keeps 2048
_MOST_TEXT = 500   # characters of the exception's own text
_MOST_LINE = 160   # characters of its first line, which a message shows
_LIBRARIES = ("site-packages", "dist-packages", f"{os.sep}lib{os.sep}python")


def words_of(error: BaseException) -> str:
    """``ValueError: bad batch (train.py:38 in step)``, then the other lines of its text, what led to it, and the calls. The place is the innermost line
    of the script's own code. At most 2000 bytes: the outermost calls go first."""
    line, rest = _told(error)
    head = f"{line}\n{rest}"[:_MOST_TEXT] if rest else line
    above = [f"Caused by {_told(one)[0]}" for one in causes_of(error)]
    calls = lines_of(error.__traceback__)
    if len(calls) < 2:
        calls = []  # the first line says it
    while True:
        lines = [head, *above, *(["Traceback (most recent call last):"] if calls else []), *(f"  {one}" for one in calls)]
        out = "\n".join(lines)
        if len(out.encode("utf-8", "replace")) <= _MOST or not (calls or above):
            return out.encode("utf-8", "replace")[:_MOST].decode("utf-8", "ignore")
        calls, above = (calls[1:], above) if calls else ([], above[:-1])


def _told(error: BaseException) -> Tuple[str, str]:
    """(the first line, with the place; the others)."""
    try:
        first, _, rest = str(error).partition("\n")
    except Exception:  # noqa: BLE001  a __str__ of the script's own
        first, rest = "", ""
    line = f"{type(error).__name__}{': ' if first else ''}{first}"[:_MOST_LINE]
    place = place_of(error.__traceback__)
    return f"{line}{f' ({place})' if place else ''}", rest


def place_of(traceback: Any) -> Optional[str]:
    """``train.py:38 in step``; None where no line is the script's own."""
    found = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        name = code.co_filename
        if not name.startswith("<") and not _of_a_library(name):
            found = f"{os.path.basename(name)}:{traceback.tb_lineno} in {code.co_name}"
        traceback = traceback.tb_next
    return found


def _of_a_library(path: str) -> bool:
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return any(part in path for part in _LIBRARIES) or path.startswith((sys.base_prefix + os.sep + "lib", ours + os.sep))
