"""A Chrome trace read event by event, in bounded memory: of a file of gigabytes one event is held at a time."""

import gzip
import io
import json
from typing import Any, Callable, Dict, IO, Iterator, Tuple, Union

_PIECE = 1 << 20  # characters that are read at once
_WHITE = " \t\r\n"
Opened = Union[str, bytes]


class NoTrace(ValueError):
    """Not a Chrome trace; the text says of which file, and why."""


def events(trace: Opened, about: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """Events of a file (``.json`` or compressed by gzip), or of its bytes. What stands beside them at the top (``distributedInfo``,
    ``tocsin``) comes into ``about``; all of it once the last event was given."""
    name = trace if isinstance(trace, str) else "the trace"
    try:
        with _text(trace) as file:
            yield from _Reader(file).top(about)
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError, ValueError) as error:
        raise NoTrace(f"{name}: not a Chrome trace: {error}") from error


def _text(trace: Opened) -> IO[str]:
    raw: Any = io.BytesIO(trace) if isinstance(trace, bytes) else open(trace, "rb")
    begin = raw.read(2)
    raw.seek(0)
    return io.TextIOWrapper(gzip.GzipFile(fileobj=raw) if begin == b"\x1f\x8b" else raw, "utf-8")


class _Reader:
    def __init__(self, file: IO[str]) -> None:
        self._file, self._held, self._at, self._over = file, "", 0, False
        self._decode: Callable[[str, int], Tuple[Any, int]] = json.JSONDecoder(strict=False).raw_decode

    def top(self, about: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
        first = self._peek()
        if first == "[":
            yield from self._list()
        elif first == "{":
            self._at += 1
            found = False
            while self._peek() != "}":
                key = self._value()
                self._take(":")
                if key == "traceEvents":
                    found = True
                    yield from self._list()
                else:
                    about[str(key)] = self._value()
                self._between("}")
            if not found:
                raise ValueError("it has no traceEvents")
        else:
            raise ValueError("expected { or [ at its beginning")

    def _list(self) -> Iterator[Dict[str, Any]]:
        self._take("[")
        while self._peek() != "]":
            one = self._value()
            if isinstance(one, dict):
                yield one
            self._between("]")
        self._at += 1

    def _between(self, end: str) -> None:
        if self._peek() == ",":
            self._at += 1
        elif self._peek() != end:
            raise ValueError(f"expected , or {end}, not {self._held[self._at]}")

    def _more(self) -> bool:
        piece = "" if self._over else self._file.read(_PIECE)
        self._over = not piece
        if piece:
            self._held, self._at = self._held[self._at:] + piece, 0
        return bool(piece)

    def _peek(self) -> str:
        """The next character that is no white space, which stays."""
        while True:
            while self._at < len(self._held) and self._held[self._at] in _WHITE:
                self._at += 1
            if self._at < len(self._held):
                return self._held[self._at]
            if not self._more():
                raise ValueError("it ends in the middle")

    def _take(self, wanted: str) -> None:
        if self._peek() != wanted:
            raise ValueError(f"expected {wanted}, not {self._held[self._at]}")
        self._at += 1

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._decode(self._held, self._at)
                if end < len(self._held) or self._over:  # a number may go on in the next piece
                    self._at = end
                    return value
            except ValueError:
                if self._over:
                    raise
            self._more()
