"""An exception that ended a script, as the message about the failed job tells it."""

import os
import sys
from typing import Any, Optional

_MOST = 500        # bytes of text that go with the last record
_MOST_LINE = 160   # characters of the first line, which a message shows
_LIBRARIES = ("site-packages", "dist-packages", f"{os.sep}lib{os.sep}python")


def words_of(error: BaseException) -> str:
    """``ValueError: bad batch (train.py:38 in step)``, then the other lines of its text. The place is the innermost line of the script's own code."""
    try:
        first, _, rest = str(error).partition("\n")
    except Exception:  # noqa: BLE001  a __str__ of the script's own
        first, rest = "", ""
    line = f"{type(error).__name__}{': ' if first else ''}{first}"[:_MOST_LINE]
    place = place_of(error.__traceback__)
    return f"{line}{f' ({place})' if place else ''}{chr(10) if rest else ''}{rest}"[:_MOST]


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
