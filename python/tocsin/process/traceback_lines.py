"""The calls that led to an exception, a line each: places only. Lines of source and values may be private, so they stay here."""

import collections
import os
from typing import Any, Deque, List

_MOST = 12         # innermost calls
_MOST_CAUSES = 3   # exceptions that led to it
_FOLDERS = ("site-packages", "dist-packages")
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def lines_of(traceback: Any) -> List[str]:
    """``train.py:88 in <module>``, …, ``torch/nn/functional.py:3029 in cross_entropy``: as Python prints them, the innermost last. Of more than 12 calls
    the first line says how many are left out. Calls of this package are not listed."""
    found: Deque[str] = collections.deque(maxlen=_MOST)
    calls = 0
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith((_OURS, "<frozen ")):
            found.append(f"{_short(code.co_filename)}:{traceback.tb_lineno} in {code.co_name}")
            calls += 1
        traceback = traceback.tb_next
    return ([f"… {calls - len(found)} calls above"] if calls > len(found) else []) + list(found)


def causes_of(error: BaseException) -> List[BaseException]:
    """What led to an exception, the nearest first: as Python prints them, at most three."""
    out: List[BaseException] = []
    seen = {id(error)}
    at = _cause(error)
    while at is not None and id(at) not in seen and len(out) < _MOST_CAUSES:
        out.append(at)
        seen.add(id(at))
        at = _cause(at)
    return out


def _cause(error: BaseException) -> Any:
    return error.__cause__ if error.__cause__ is not None or error.__suppress_context__ else error.__context__


def _short(path: str) -> str:
    """Of a library the path within it; else the file's name."""
    if path.startswith("<"):
        return path
    parts = path.replace("\\", "/").split("/")
    for place in range(len(parts) - 1, 0, -1):
        if parts[place - 1] in _FOLDERS or (parts[place - 1].startswith("python3") and parts[place - 2:place - 1] == ["lib"]):
            return "/".join(parts[place:])
    return parts[-1]
