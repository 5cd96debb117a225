"""A directory as a source of frames: only records that hold a wanted name are decoded, column by column."""

import json
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from tocsin import wire
from tocsin.library.vocabulary import COLLECTIONS_OF
from tocsin.reading.launches import NODE_AGENT
from tocsin.reading.tensors import MODES, _ROLES, _STATISTICS
from .buckets import bucketed
from .columns import INTEGER, REAL, TEXT, TIME, Growing, Table, numpy
from .journal_index import Head, JournalIndex, plain
from .selection import Query

_ALL = {"run": TEXT, "attempt": INTEGER, "worker": TEXT, "rank": INTEGER, "mode": TEXT, "step": INTEGER, "time": TIME}
_COUNTS = ("count", "nan", "posinf", "neginf", "zero", "negative")
_BASE = tuple(name for name, _ in wire.COLUMNS[wire.SUMMARY] if name not in ("name", "meta"))
_DERIVED = ("mean", "variance", "std", "l1", "l2", "abs_mean", "abs_max")
_LOOKED_FOR = 8  # names; of more than that every frame is decoded
_TYPES_OF = {"Q": "<u8", "q": "<i8", "d": "<f8"}
_EXTRAS = {name: stat for stat, name in _STATISTICS.items()}
_TYPES = {"metric": (1, 2), "tensor": (1, 2), "collection": (1, 2), "system": (3,), "span": (6,)}  # of dictionary entries
_KIND = {"metric": wire.SCALAR, "tensor": wire.SUMMARY, "collection": wire.SUMMARY, "system": wire.SYSTEM, "span": wire.SPAN,
         "step": wire.STEP_END}


class RecordedSource:
    """A recording or a journal."""

    def __init__(self, directory: str, until: Optional[int] = None, index: Optional[JournalIndex] = None) -> None:
        """``index``: another one of the same directory."""
        self.index = index if index is not None else JournalIndex(directory, until)
        self.index.update()

    def run_of(self, wanted: Optional[str]) -> Optional[Tuple[str, int]]:
        """(uid, attempt) of the run that begins so; None: of the newest one. ValueError: there is none."""
        self.index.update()
        found = self.index.newest(wanted or "")
        if found is None and wanted is not None:
            raise ValueError(f"there is no run {wanted} in {self.index.path}")
        return found

    def kinds(self, query: Query) -> Dict[str, str]:
        """Columns and their types."""
        more: Dict[str, Dict[str, str]] = {
            "metric": {"name": TEXT, "value": REAL}, "system": {"name": TEXT, "value": REAL},
            "span": {"name": TEXT, "track": TEXT, "seconds": REAL, "args": TEXT},
            "step": {"global_step": INTEGER, "start": TIME, "seconds": REAL, "micro_steps": INTEGER}}
        if query.selection.kind not in ("tensor", "collection"):
            if query.stat is not None and query.stat != ("value",):
                raise ValueError(f"stat is of tensors; a {query.selection.kind} has none")
            return {**_ALL, **more[query.selection.kind]}
        stats = query.stat if query.stat is not None else (*_BASE, "mean", "std", "l2")
        for one in stats:
            if one not in _BASE and one not in _DERIVED and one not in _EXTRAS:
                raise ValueError(f"no statistic {one}: expected one of {', '.join((*_BASE, *_DERIVED, *_EXTRAS))}")
        return {**_ALL, "name": TEXT, **{one: INTEGER if one in _COUNTS else REAL for one in stats}}

    def names(self, query: Query) -> List[str]:
        """Names that the selection takes, in order."""
        self.index.update()
        return sorted({self.index.name(hash_) for hash_ in self._hashes(query)})

    def table(self, query: Query) -> Table:
        self.index.update()
        table = self.rows_of(query, self._heads(query))
        return table if query.points is None else bucketed(table, query)

    def since(self, query: Query, mark: int) -> Tuple[Table, int]:
        """Rows of records that were read behind a mark, and the mark behind them; the first mark is 0. ``update`` brings new ones."""
        heads = self.index.heads[_KIND[query.selection.kind]]
        return self.rows_of(query, self._heads(query, mark)), len(heads)

    def rows_of(self, query: Query, heads: List[Head]) -> Table:
        growing = Growing(self.kinds(query), self._word, ("name", "track", "args"))
        wanted = None if query.selection.kind == "step" else set(self._hashes(query))
        if wanted is None or wanted:
            for head, value in self.index.values(heads):
                self._decode(head, value, wanted, query, growing)
        table = growing.table()
        return table if wanted is None else _of_names(table, {self._word(hash_) for hash_ in wanted})

    def _hashes(self, query: Query) -> List[int]:
        selection = query.selection
        if selection.kind == "step":
            return []
        of_type = [hash_ for hash_, type_ in self.index.types.items() if type_ in _TYPES[selection.kind]]
        if selection.kind == "collection":
            return [hash_ for hash_ in of_type if selection.name in self._collections(hash_)]
        pattern = selection.pattern()
        if selection.kind == "system":  # a name stands for all its attributes
            return [hash_ for hash_ in of_type if pattern.fullmatch(self.index.names[hash_])
                    or pattern.fullmatch(self.index.names[hash_].split("{")[0])]
        return [hash_ for hash_ in of_type if pattern.fullmatch(self.index.names[hash_])]

    def _collections(self, hash_: int) -> Any:
        try:
            told = json.loads(self.index.attrs.get(hash_) or "{}").get("collections")
        except (ValueError, AttributeError):
            told = None
        return told or COLLECTIONS_OF.get(_ROLES.get(self.index.roles.get(hash_, 0), ""), ("default",))

    def _heads(self, query: Query, mark: int = 0) -> List[Head]:
        out = []
        kind = _KIND[query.selection.kind]
        for head in self.index.heads[kind][mark:]:
            of_node = head.rank == NODE_AGENT and kind == wire.SYSTEM
            if not of_node and query.run is not None and (head.run != query.run or query.attempt not in (None, head.attempt)):
                continue
            if query.mode is not None and not of_node and MODES.get(head.mode) != query.mode:
                continue
            if query.workers is not None and self.index.name(head.worker) not in query.workers:
                continue
            if kind == wire.SUMMARY and not query.takes_step(head.step):
                continue
            out.append(head)
        return out

    def _decode(self, head: Head, value: bytes, wanted: Optional[Set[int]], query: Query, growing: Growing) -> None:
        kind = head.kind
        rows = _Rows(value, head, wanted)
        if query.steps is not None and kind not in (wire.SYSTEM, wire.SUMMARY):
            rows.narrow([query.takes_step(int(step)) for step in rows["step"]])
        if not len(rows):
            return
        one: Dict[str, Any] = {"run": head.run, "attempt": head.attempt, "worker": self.index.name(head.worker), "mode": MODES.get(head.mode, "global"),
                               "rank": None if head.rank == NODE_AGENT else head.rank}
        if kind == wire.SUMMARY:
            one.update(step=head.step, time=head.time // 1000)
            many = {"name": rows["name"]}
            partly = self._statistics(head, value, rows, query, many)
            growing.add(len(rows), one, many, partly)
            return
        many = {"time": _microseconds(rows["end" if kind == wire.STEP_END else "start" if kind == wire.SPAN else "time"])}
        if kind == wire.SYSTEM:
            one["step"] = None
            many.update(name=rows["series"], value=rows["value"])
        else:
            many["step"] = rows["step"]
        if kind == wire.SCALAR:
            many.update(name=rows["name"], value=rows["value"])
        elif kind == wire.STEP_END:
            many.update(global_step=rows["global_step"], start=_microseconds(rows["start"]), micro_steps=rows["micro_steps"],
                        seconds=_seconds(rows["end"], rows["start"]))
        elif kind == wire.SPAN:
            many.update(name=rows["name"], track=rows["track"], seconds=_seconds(rows["duration"]), args=rows["args"])
        growing.add(len(rows), one, many)

    def _word(self, hash_: int) -> str:
        return self.index.name(hash_) if hash_ else ""

    def _statistics(self, head: Head, value: bytes, rows: "_Rows", query: Query, many: Dict[str, Any]) -> Dict[str, Any]:
        """Fills the asked statistics; returns where they are absent."""
        partly: Dict[str, Any] = {}
        sparse = None
        for name in self.kinds(query):
            if name in _ALL or name == "name":
                continue
            if name in _BASE:
                many[name] = rows[name]
            elif name in _DERIVED:
                many[name] = _derived(name, rows)
            else:
                if sparse is None:
                    sparse = _sparse(value, head)
                found = sparse.get(_EXTRAS[name], {})
                many[name] = _array([found.get(row, 0.0) for row in rows.places()])
                partly[name] = [row in found for row in rows.places()]
        return partly


class _Rows:
    """Rows of a frame. Of one wanted name only those; of several all, if one of them is there."""

    def __init__(self, value: bytes, head: Head, wanted: Optional[Set[int]]) -> None:
        self._value, self._head = value, head
        self._places = {name: (place, code) for place, (name, code) in enumerate(wire.COLUMNS[head.kind][:head.stride // 8])}
        self._taken: Any = None  # None: all of them
        if wanted is None or len(wanted) > _LOOKED_FOR:
            return
        end = head.length + 8 * head.rows
        if all(value.find(one.to_bytes(8, "little"), head.length, end) < 0 for one in wanted):
            self._taken = []
        elif len(wanted) == 1:
            names, one = self["series" if head.kind == wire.SYSTEM else "name"], next(iter(wanted))
            self._taken = numpy.flatnonzero(names == numpy.uint64(one)) if numpy is not None else \
                [row for row, name in enumerate(names) if name == one]

    def __len__(self) -> int:
        return self._head.rows if self._taken is None else len(self._taken)

    def places(self) -> List[int]:
        return list(range(self._head.rows)) if self._taken is None else [int(row) for row in self._taken]

    def narrow(self, keep: List[bool]) -> None:
        if not all(keep):
            kept = [place for place, one in zip(self.places(), keep) if one]
            self._taken = numpy.array(kept, int) if numpy is not None else kept

    def __getitem__(self, name: str) -> Any:
        place, code = self._places[name]
        count = self._head.rows
        at = self._head.length + 8 * count * place
        if numpy is None:
            column = plain(code, self._value, count, at)
            return column if self._taken is None else [column[row] for row in self._taken]
        column = numpy.frombuffer(self._value, _TYPES_OF[code], count, at)
        return column if self._taken is None else column[self._taken]


def _of_names(table: Table, words: Set[str]) -> Table:
    """Rows whose frame had other names too are taken out."""
    name = table["name"]
    places = {place for place, word in enumerate(name.words or ()) if word in words}
    if len(places) == len(name.words or ()):
        return table
    if numpy is not None:
        keep = numpy.flatnonzero(numpy.isin(name.data, list(places)))
    else:
        keep = [row for row, place in enumerate(name.data) if place in places]
    return {column: values.take(keep) for column, values in table.items()}


def _array(values: List[float]) -> Any:
    return numpy.array(values, "f8") if numpy is not None else values


def _microseconds(times: Any) -> Any:
    return times // 1000 if numpy is not None else [one // 1000 for one in times]


def _seconds(end: Any, start: Any = None) -> Any:
    """Of nanoseconds; -1: an instant."""
    if numpy is not None:
        taken = end if start is None else end - start
        return numpy.where(taken < 0, -1.0, taken / 1e9)
    taken = list(end) if start is None else [one - other for one, other in zip(end, start)]
    return [one / 1e9 if one >= 0 else -1.0 for one in taken]


def _derived(name: str, columns: "_Rows") -> Any:
    if numpy is None:
        listed = [columns[column] for column in _BASE]
        return [_one_derived(name, dict(zip(_BASE, row))) for row in zip(*listed)]
    with numpy.errstate(all="ignore"):
        count = columns["count"].astype("f8")
        if name in ("l1", "l2"):
            return columns["abs_sum"] if name == "l1" else numpy.sqrt(columns["sumsq"])
        if name == "abs_max":
            return numpy.where(count > 0, numpy.maximum(abs(columns["min"]), abs(columns["max"])), numpy.nan)
        over = {"mean": "sum", "abs_mean": "abs_sum"}.get(name, "m2")
        found = numpy.where(count > 0, columns[over] / count, numpy.nan)
        return numpy.sqrt(found) if name == "std" else found


def _one_derived(name: str, row: Dict[str, Any]) -> float:
    nan = float("nan")
    if name in ("l1", "l2"):
        return float(row["abs_sum"]) if name == "l1" else (row["sumsq"] ** 0.5 if row["sumsq"] >= 0 else nan)
    if not row["count"]:
        return nan
    if name == "abs_max":
        return nan if row["min"] != row["min"] else max(abs(row["min"]), abs(row["max"]))
    found = row[{"mean": "sum", "abs_mean": "abs_sum"}.get(name, "m2")] / row["count"]
    return (found ** 0.5 if found >= 0 else nan) if name == "std" else float(found)


def _sparse(value: bytes, head: Head) -> Dict[int, Dict[int, float]]:
    """{statistic: {row: value}} of a frame."""
    out: Dict[int, Dict[int, float]] = {}
    for tag, payload in _extensions(value[head.length + head.stride * head.rows:], head.rows):
        if tag == 1:
            stat, _, found = wire.decode_sparse_column(payload)
            out[stat] = found
    return out


def _extensions(area: bytes, rows: int) -> Iterator[Tuple[int, bytes]]:
    try:
        yield from wire._extensions(area, rows)
    except wire.WireError:
        return
