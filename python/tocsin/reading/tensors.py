"""What a run has written to a directory, read back: no server, standard library only."""

import json
import os
import sqlite3
import struct
import threading
from typing import Any, Dict, Iterator, List, Optional, Tuple

from tocsin import wire

MODES = {wire.GLOBAL: "global", wire.TRAIN: "train", wire.EVAL: "eval", wire.PREDICT: "predict"}
_ROLES = {code: name for name, code in wire.ROLES.items()}
# Sparse statistics by their numbers on the wire (docs/statistics.md).
_STATISTICS = {1: "median", 2: "prod", 3: "p05", 4: "p25", 5: "p75", 6: "p95", 7: "delta_l2",
               8: "delta_max_abs", 9: "delta_excess", 10: "prev_l2", 11: "delta_from_step",
               12: "unit_count", 13: "unit_inactive_count", 14: "unit_saturated_count",
               15: "abs_ge_count", 16: "depth", 17: "abs_min", 18: "abs_median", 19: "abs_prod",
               20: "first_bad_index", 0x8001: "digest"}
_PART = 1000  # records that one query reads

# Connections are never closed: this SQLite may be another one than the hook's, and a close() drops every lock that the process has on
# the file, also that of a transaction which the hook is in. By process, path and inode.
_connections: Dict[Tuple[int, str, int], sqlite3.Connection] = {}
_reading = threading.Lock()


def _connection(path: str) -> sqlite3.Connection:
    key = (os.getpid(), path, os.stat(path).st_ino)
    if key not in _connections:
        _connections[key] = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10, check_same_thread=False)
    return _connections[key]


def rows(path: str, topic: str) -> Iterator[Tuple[int, Optional[bytes], Dict[str, bytes]]]:
    """Records of a topic of a journal's file, oldest first: (UTC ns, value, headers)."""
    with _reading:
        found = _connection(path).execute(f"SELECT ts, value, headers FROM {topic.replace('-', '_')} ORDER BY id").fetchall()
    for ts, value, packed in found:
        headers, at = {}, 0
        while packed and at < len(packed):
            names, values = struct.unpack_from("<HI", packed, at)
            at += 6 + names + values
            headers[packed[at - values - names:at - values].decode()] = packed[at - values:at]
        yield ts, value, headers


class Tensors:
    """The names and values of a directory. Reads it again at each call, from where it was."""

    def __init__(self, directory: str) -> None:
        self._path = os.path.join(directory, "telemetry.db")
        self._next = 0
        self._names: Dict[int, Dict[str, Any]] = {}
        self._rows: List[Tuple[int, Dict[str, Any]]] = []  # (hash of the name, what is known of the value)
        self._times: List[Tuple[int, int, Dict[str, Any]]] = []  # (hash of the name, of the arguments, …); 0: none

    def names(self) -> List[str]:
        """Of all tensors and scalars, in order."""
        self._read()
        return sorted({self._name(hash_) for hash_, _ in self._rows})

    def get(self, name: Optional[str] = None, step: Optional[int] = None,
            run: Optional[str] = None) -> List[Dict[str, Any]]:
        """Values in the order in which they were written: ``name``, ``role``, ``step``, ``mode``,
        ``rank``, ``run``, ``time`` (seconds since 1970, UTC), and ``value`` of a scalar or the statistics of a tensor (``count``, ``mean``,
        ``std``, ``min``, ``max``, ``l2``, the columns of docs/statistics.md, and where captured ``histogram``: for ``positive`` and ``negative``
        values the number of the first bucket, and counts; bucket i holds 2^(i/8) < |x| ≤ 2^((i+1)/8)). None: all of them."""
        self._read()
        out = []
        for hash_, row in self._rows:
            if (step is None or row["step"] == step) and (run is None or row["run"] == run):
                known = self._name(hash_)
                if name is None or name == known:
                    out.append({"name": known, **row})
        return out

    def times(self, name: Optional[str] = None, step: Optional[int] = None,
              run: Optional[str] = None) -> List[Dict[str, Any]]:
        """What took how long, in the order in which it ended: ``name`` (``step``, or of a span: ``forward``, …), ``step``,
        ``mode``, ``rank``, ``run``, ``start`` (seconds since 1970, UTC), ``seconds`` (-1: an instant) and ``args`` of a span. None: all."""
        self._read()
        out = []
        for hash_, args, row in self._times:
            if (step is None or row["step"] == step) and (run is None or row["run"] == run):
                known = self._name(hash_) if hash_ else "step"
                if name is None or name == known:
                    out.append({"name": known, **row, "args": json.loads(self._name(args)) if args in self._names else {}})
        return out

    def _name(self, hash_: int) -> str:
        return str(self._names.get(hash_, {}).get("name", f"#{hash_:016x}"))

    def _read(self) -> None:
        if not os.path.exists(self._path):
            return
        with _reading:
            database = _connection(self._path)
            while True:
                part = database.execute("SELECT id, value FROM telemetry WHERE id >= ? ORDER BY id "
                                        "LIMIT ?", (self._next, _PART)).fetchall()
                for number, value in part:
                    self._next = number + 1
                    self._take(value)
                if len(part) < _PART:
                    return

    def _take(self, value: Optional[bytes]) -> None:
        try:
            frame = wire.decode_frame(value or b"")
        except wire.WireError:
            return  # JSON of another producer, or damaged: the server says so
        for entry in frame.entries:
            self._names[entry["hash"]] = entry
        if frame.kind in (wire.SUMMARY, wire.SCALAR):
            for row in _rows(frame):
                self._rows.append((row.pop("hash"), row))
        elif frame.kind in (wire.SPAN, wire.STEP_END):
            for row in frame.rows:
                self._times.append((row.get("name", 0), row.get("args", 0), _time(frame.header, row)))


def _rows(frame: Any) -> Iterator[Dict[str, Any]]:
    head = frame.header
    extra = [(stat, values) for stat, _, values in frame.sparse_columns()] \
        if frame.kind == wire.SUMMARY else []
    histograms = dict(_histograms(frame)) if frame.kind == wire.SUMMARY else {}
    for number, row in enumerate(frame.rows):
        out = {"hash": row["name"], "time": row.get("time", head["time"]) / 1e9, "role": _ROLES.get(row["meta"] >> 8 & 0xff, "other"),
               "step": row.get("step", head["step"]), "mode": MODES[head["mode"]],
               "rank": head["rank"], "run": str(head["run"])}
        if frame.kind == wire.SCALAR:
            out["value"] = row["value"]
        else:
            out.update({column: row[column] for column in row if column not in ("name", "meta")})
            out.update(_derived(row))
            if number in histograms:
                out["histogram"] = histograms[number]
            out.update({_STATISTICS.get(stat, str(stat)): values[number] for stat, values in extra
                        if number in values})
        yield out


def _histograms(frame: Any) -> Iterator[Tuple[int, Dict[str, Any]]]:
    for tag, payload in frame.extensions:
        if tag == 3:
            row, above, positive, below, negative, _ = struct.unpack_from("<IiIiII", payload)
            counts = list(struct.unpack_from(f"<{positive + negative}Q", payload, 24))
            yield row, {"positive": (above, counts[:positive]), "negative": (below, counts[positive:])}


def _time(head: Dict[str, Any], row: Dict[str, Any]) -> Dict[str, Any]:
    duration = row["duration"] if "duration" in row else row["end"] - row["start"]
    return {"step": row["step"], "mode": MODES[head["mode"]], "rank": head["rank"], "run": str(head["run"]),
            "start": row["start"] / 1e9, "seconds": duration / 1e9 if duration >= 0 else -1.0}


def _derived(row: Dict[str, Any]) -> Dict[str, float]:
    count = row["count"]
    if count == 0:
        return {}
    return {"mean": row["sum"] / count, "std": (row["m2"] / count) ** 0.5 if row["m2"] >= 0 else
            float("nan"), "l2": row["sumsq"] ** 0.5 if row["sumsq"] >= 0 else float("nan")}
