"""Texts of the script, as the library takes them."""

import os
from typing import Any

NAME_BYTES = 1024  # core/limits.h: what is longer is cut there, so that it shows


def utf8(value: Any) -> str:
    """Whatever the script calls a text: U+FFFD stands for what is none."""
    text = str(value)
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def text_of(value: Any) -> str:
    """The same without NUL, which ends a text of C."""
    return utf8(value).replace("\0", "\ufffd")


def path_of(value: Any) -> bytes:
    """The bytes of a path, as the system has them; ``ValueError`` for one that cannot be."""
    data = os.fsencode(value if isinstance(value, (str, bytes, os.PathLike)) else str(value))
    if b"\0" in data:
        raise ValueError(f"{value!r} holds a NUL, which no path has")
    return data


def fits(name: Any) -> bool:
    """Whether a name goes as it is."""
    return (type(name) is str and 0 < len(name) <= NAME_BYTES and name.isprintable() and len(name.encode("utf-8")) <= NAME_BYTES)
