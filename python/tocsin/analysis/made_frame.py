"""Rows that an analysis computed, as a frame."""

from typing import Any, Dict, Iterable, List, Sequence

from .columns import Table, made
from .frame import Frame
from .selection import query_of


class _Made:
    """A source that has the answer already."""

    def __init__(self, kinds: Dict[str, str], table: Table) -> None:
        self._kinds, self._table = kinds, table

    def kinds(self, _: Any) -> Dict[str, str]:
        return self._kinds

    def table(self, _: Any) -> Table:
        return self._table


class MadeFrame(Frame):
    """A :class:`Frame` in memory. ``filter`` takes values of columns: ``frame.filter(rank=0)``."""

    def __init__(self, kinds: Dict[str, str], rows: Iterable[Sequence[Any]], what: str) -> None:
        listed: List[Sequence[Any]] = list(rows)
        self._kinds_, self._rows, self._what = dict(kinds), listed, what
        columns = list(zip(*listed)) if listed else [()] * len(kinds)
        table = {name: made(kind, list(column)) for (name, kind), column in zip(kinds.items(), columns)}
        super().__init__(_Made(self._kinds_, table), query_of("made"))
        self._read = table

    def filter(self, **values: Any) -> "MadeFrame":  # type: ignore[override]
        places = {name: list(self._kinds_).index(name) for name in values}
        return MadeFrame(self._kinds_, [row for row in self._rows if all(row[places[name]] == value for name, value in values.items())], self._what)

    def refresh(self) -> "MadeFrame":
        return self

    def __repr__(self) -> str:
        return f"<{self._what}: {len(self._rows)} rows; {' '.join(self._kinds_)}>"
