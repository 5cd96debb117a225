"""A query whose answer is read when it is looked at."""

import csv
import datetime
from typing import Any, Dict, Iterator, List, Optional, Tuple

from . import arrow, columns
from .chart import NotInstalled
from .columns import TIME, Table
from .selection import Query


def _library(name: str, what: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        raise NotInstalled(f"{what} needs {name}: pip install {name}") from None


class Frame:
    """Columns ``run attempt worker rank mode step time`` and what the query asks for. Nothing is read until a value is. Iterates over rows
    as dictionaries; ``frame["step"]`` is a column. Other libraries read it as it is: ``pandas.DataFrame.from_arrow(frame)``,
    ``polars.DataFrame(frame)``, ``pyarrow.table(frame)``, ``duckdb.sql("select * from frame")``."""

    def __init__(self, source: Any, query: Query) -> None:
        self._source, self._query = source, query
        self._kinds: Dict[str, str] = source.kinds(query)  # says at once what is wrong with the query
        self._read: Optional[Table] = None

    @classmethod
    def of(cls, source: Any, query: Query, table: Table) -> "Frame":
        """Of rows that were read already."""
        out = cls(source, query)
        out._read = table
        return out

    @property
    def table(self) -> Table:
        if self._read is None:
            self._read = self._source.table(self._query)
        return self._read

    @property
    def columns(self) -> List[str]:
        return list(self._kinds) if self._query.points is None and self._read is None else list(self.table)

    def refresh(self) -> "Frame":
        """The same query, asked again at the next look."""
        return type(self)(self._source, self._query)

    def filter(self, step: Optional[Tuple[Optional[int], Optional[int]]] = None, mode: Any = None, workers: Any = None) -> "Frame":
        """A frame of fewer rows, asked from the source anew. ``step``: from, up to without."""
        query = self._query
        if step is not None:
            query = query._replace(steps=tuple(step))
        if mode is not None:
            query = query._replace(mode=str(getattr(mode, "name", mode)).lower())
        if workers is not None:
            query = query._replace(workers=(workers,) if isinstance(workers, str) else tuple(workers))
        return type(self)(self._source, query)

    def __len__(self) -> int:
        return columns.rows_of(self.table)

    def __iter__(self) -> Iterator[Dict[str, Any]]:
        return columns.rows(self.table)

    def __getitem__(self, name: str) -> Any:
        """A column: an array where NumPy is installed, else a list."""
        if name not in self.table:
            raise KeyError(f"no column {name}: expected one of {', '.join(self.table)}")
        column = self.table[name]
        return column.numpy() if columns.numpy is not None else [column.value(row) for row in range(len(column))]

    def __repr__(self) -> str:
        state = f"{len(self)} rows" if self._read is not None else "not read yet"
        return f"<Frame {self._query.selection.kind} {self._query.selection.name!r}: {state}; {' '.join(self.columns)}>"

    def to_numpy(self) -> Dict[str, Any]:
        """Columns by name: texts as objects, times as datetime64[us] of UTC, absent numbers as NaN."""
        _library("numpy", "to_numpy()")
        return {name: column.numpy() for name, column in self.table.items()}

    def to_pandas(self) -> Any:
        pandas = _library("pandas", "to_pandas()")
        numbers = self.to_numpy()
        out = pandas.DataFrame(numbers)
        for name, column in self.table.items():
            if column.kind == TIME:
                out[name] = pandas.to_datetime(out[name], utc=True)
        return out

    def to_polars(self) -> Any:
        return _library("polars", "to_polars()").DataFrame(self)

    def to_arrow(self) -> Any:
        return _library("pyarrow", "to_arrow()").table(self)

    def to_csv(self, path: str) -> None:
        """Times as RFC 3339 of UTC; absent values are empty, NaN is ``nan``."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.table)
            for row in self:
                writer.writerow([_text(value) for value in row.values()])

    def to_parquet(self, path: str) -> None:
        """By PyArrow, else by Polars."""
        try:
            import pyarrow.parquet as parquet
        except ImportError:
            try:
                polars = _library("polars", "to_parquet()")
            except NotInstalled:
                raise NotInstalled("to_parquet() needs pyarrow or polars: pip install pyarrow") from None
            polars.DataFrame(self).write_parquet(path)
            return
        parquet.write_table(self.to_arrow(), path)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html"""
        del requested_schema  # a wish, which may be left out
        return arrow.stream_of(self.table)


def _text(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value
