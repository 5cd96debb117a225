"""Rows of the tables that boosters are trained on, as far as they are worth looking at: at most 65 536, spread evenly over the table, and
so many that a million elements are read. Nothing is drawn at random and the table is left as it is."""

from typing import Any, List, Optional

import numpy

MOST_ROWS = 65536
MOST_COLUMNS = 512
_MOST_ELEMENTS = 1 << 20
_SPARSE = 0.5  # share of elements that are there: below it those that are not are zeros, above they are missing


class TableRows:
    """``values``: float32, rows by columns, NaN where nothing is; ``numbers``: which rows of the table they are. ``exact``: False of values
    that were replaced by the bounds of their bins."""

    def __init__(self, values: Any, numbers: Any, exact: bool) -> None:
        self.values, self.numbers, self.exact = values, numbers, exact


def rows_of(table: Any) -> Optional[TableRows]:
    """Of a DMatrix, a NumPy array, a data frame or a sparse matrix; None of other tables and of those that are too wide."""
    if hasattr(table, "num_row") and hasattr(table, "get_data"):
        return _of_dmatrix(table)
    shape = getattr(table, "shape", ())
    if len(shape) != 2 or not 1 <= shape[1] <= MOST_COLUMNS or shape[0] < 1:
        return None
    numbers = _spread(shape[0], shape[1])
    if isinstance(table, numpy.ndarray):
        values = table[numbers]
    elif hasattr(table, "iloc"):
        values = _of_frame(table.iloc[numbers])
    elif hasattr(table, "tocsr"):
        values = table.tocsr()[numbers].toarray()
    else:
        return None
    return _clean(values, numbers, True)


def _spread(rows: int, columns: int) -> Any:
    count = min(rows, MOST_ROWS, max(_MOST_ELEMENTS // columns, 1))
    return numpy.arange(count, dtype=numpy.int64) * rows // count


def _of_dmatrix(table: Any) -> Optional[TableRows]:
    rows, columns = int(table.num_row()), int(table.num_col())
    if not 1 <= columns <= MOST_COLUMNS or rows < 1:
        return None
    numbers = _spread(rows, columns)
    binned = "Quantile" in type(table).__name__ or "ExtMem" in type(table).__name__
    if numbers.size < rows:
        if binned:  # cannot be cut
            return None
        table = table.slice(numbers.astype(numpy.int32), allow_groups=True)
    found = table.get_data()
    if tuple(found.shape) != (numbers.size, columns):
        return None
    if found.nnz < _SPARSE * numbers.size * columns:
        return _clean(found.toarray(), numbers, not binned)
    values = numpy.full(found.shape, numpy.nan, dtype=numpy.float32)
    values[numpy.repeat(numpy.arange(numbers.size), numpy.diff(found.indptr)), found.indices] = found.data
    return _clean(values, numbers, not binned)


def _of_frame(frame: Any) -> Any:
    columns: List[Any] = []
    for at in range(frame.shape[1]):
        column = frame.iloc[:, at]
        if hasattr(column, "cat"):
            column = column.cat.codes
        try:
            columns.append(numpy.asarray(column, dtype=numpy.float32))
        except (TypeError, ValueError):  # texts
            columns.append(numpy.full(frame.shape[0], numpy.nan, dtype=numpy.float32))
    return numpy.stack(columns, axis=1)


def _clean(values: Any, numbers: Any, exact: bool) -> TableRows:
    values = numpy.array(values, dtype=numpy.float32)  # a copy
    values[~numpy.isfinite(values)] = numpy.nan
    values += numpy.float32(0)  # one zero
    return TableRows(values, numbers, exact)
