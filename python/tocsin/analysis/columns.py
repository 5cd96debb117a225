"""Columns of a frame: numbers, times and words, each with what is absent. NumPy arrays where it is installed, else Python's own."""

from array import array
from datetime import datetime, timedelta, timezone
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

INTEGER, REAL, TIME, TEXT = "int64", "double", "timestamp[us, UTC]", "utf8"
_CODES = {INTEGER: "q", REAL: "d", TIME: "q", TEXT: "i"}
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Column:
    """``data``: numbers; microseconds of a time; of words the place in ``words``. ``valid``: None where nothing is absent."""

    __slots__ = ("kind", "data", "words", "valid")

    def __init__(self, kind: str, data: Any, words: Optional[List[str]] = None, valid: Any = None) -> None:
        self.kind, self.data, self.words, self.valid = kind, data, words, valid

    def __len__(self) -> int:
        return len(self.data)

    def absent(self, row: int) -> bool:
        return self.valid is not None and not self.valid[row]

    def value(self, row: int) -> Any:
        if self.absent(row):
            return None
        one = self.data[row]
        if self.kind == TEXT:
            return self.words[one]  # type: ignore[index]
        if self.kind == TIME:
            return _EPOCH + timedelta(microseconds=int(one))
        return int(one) if self.kind == INTEGER else float(one)

    def numpy(self) -> Any:
        """An array: texts as objects, times as datetime64[us], absent integers as NaN."""
        data = numpy.asarray(self.data)
        if self.kind == TEXT:
            return numpy.array(self.words or [""], dtype=object)[data] if len(data) else numpy.array([], dtype=object)
        if self.kind == TIME:
            return data.astype("datetime64[us]")
        if self.valid is not None:
            return numpy.where(numpy.asarray(self.valid, bool), data.astype("f8"), numpy.nan)
        return data

    def take(self, rows: Any) -> "Column":
        if numpy is not None:
            rows = numpy.asarray(rows)
            return Column(self.kind, numpy.asarray(self.data)[rows], self.words,
                          None if self.valid is None else numpy.asarray(self.valid)[rows])
        return Column(self.kind, array(_CODES[self.kind], [self.data[row] for row in rows]), self.words,
                      None if self.valid is None else [self.valid[row] for row in rows])


Table = Dict[str, Column]


def rows_of(table: Table) -> int:
    return len(next(iter(table.values()))) if table else 0


def made(kind: str, values: Iterable[Any]) -> Column:
    """Of plain values; None is absent."""
    listed = list(values)
    valid = None if all(one is not None for one in listed) else [one is not None for one in listed]
    words: Optional[List[str]] = None
    if kind == TEXT:
        places: Dict[str, int] = {}
        listed = [None if one is None else places.setdefault(one, len(places)) for one in listed]
        words = list(places) or [""]
    filled = [(0 if kind != REAL else float("nan")) if one is None else one for one in listed]
    data: Any = array(_CODES[kind], filled)
    if numpy is not None:
        data = numpy.frombuffer(data, dtype={INTEGER: "i8", REAL: "f8", TIME: "i8", TEXT: "i4"}[kind]) if filled \
            else numpy.empty(0, {INTEGER: "i8", REAL: "f8", TIME: "i8", TEXT: "i4"}[kind])
        valid = None if valid is None else numpy.array(valid)
    return Column(kind, data, words, valid)


class Growing:
    """A table that grows frame by frame: whole columns, and values that are one for the frame."""

    def __init__(self, kinds: Dict[str, str], word: Any = str, hashed: Sequence[str] = ()) -> None:
        """``hashed``: columns of texts that come as numbers; ``word`` says what one stands for."""
        self._kinds, self._word, self._hashed = kinds, word, hashed
        self._parts: Dict[str, List[Any]] = {name: [] for name in kinds}
        self._valid: Dict[str, List[Any]] = {}
        self._words: Dict[str, Dict[str, int]] = {name: {} for name, kind in kinds.items() if kind == TEXT}
        self._counts: List[int] = []

    def code(self, column: str, word: str) -> int:
        return self._words[column].setdefault(word, len(self._words[column]))

    def add(self, count: int, one: Dict[str, Any], many: Dict[str, Any], partly: Optional[Dict[str, Sequence[bool]]] = None) -> None:
        """``one``: a value for all ``count`` rows (None: absent, words as words); ``many``: columns, of which none is a tuple."""
        at = len(self._counts)
        self._counts.append(count)
        for name, value in one.items():
            if value is None:
                self._valid.setdefault(name, []).append((at, False))
                value = 0
            elif self._kinds[name] == TEXT:
                value = self.code(name, value)
            self._parts[name].append((value,))
        for name, values in many.items():
            self._parts[name].append(values)
        for name, valid in (partly or {}).items():
            self._valid.setdefault(name, []).append((at, valid))

    def table(self) -> Table:
        return {name: self._column(name, kind) for name, kind in self._kinds.items()}

    def _column(self, name: str, kind: str) -> Column:
        if name in self._hashed:
            return self._of_hashes(self._parts[name])
        words = (list(self._words[name]) or [""]) if kind == TEXT else None
        known = dict(self._valid.get(name, ()))
        if numpy is None:
            return Column(kind, self._plain(name, kind), words, self._plainly_valid(known) if known else None)
        dtype = {INTEGER: "i8", REAL: "f8", TIME: "i8", TEXT: "i4"}[kind]
        parts = self._parts[name]
        if all(isinstance(part, tuple) for part in parts):  # one value for each frame
            data = numpy.repeat(numpy.array([part[0] for part in parts], dtype), self._counts)
        else:
            data = numpy.concatenate([numpy.full(count, part[0], dtype) if isinstance(part, tuple) else numpy.asarray(part, dtype)
                                      for part, count in zip(parts, self._counts)])
        valid = numpy.concatenate([numpy.broadcast_to(numpy.asarray(known.get(at, True), bool), count)
                                   for at, count in enumerate(self._counts)]) if known else None
        return Column(kind, data, words, valid)

    def _plain(self, name: str, kind: str) -> Any:
        data: Any = array(_CODES[kind])
        for part, count in zip(self._parts[name], self._counts):
            data.extend(list(part) * count if isinstance(part, tuple) else list(part))
        return data

    def _plainly_valid(self, known: Dict[int, Any]) -> List[bool]:
        valid: List[bool] = []
        for at, count in enumerate(self._counts):
            one = known.get(at, True)
            valid.extend([one] * count if isinstance(one, bool) else one)
        return valid

    def _of_hashes(self, parts: List[Any]) -> Column:
        if numpy is None:
            return made(TEXT, (self._word(int(hash_)) for part in parts for hash_ in part))
        hashes = numpy.concatenate(parts) if parts else numpy.empty(0, "u8")
        found = numpy.unique(hashes)
        return Column(TEXT, numpy.searchsorted(found, hashes).astype("i4"), [self._word(hash_) for hash_ in found.tolist()] or [""])


def rows(table: Table) -> Iterator[Dict[str, Any]]:
    for row in range(rows_of(table)):
        yield {name: column.value(row) for name, column in table.items()}
