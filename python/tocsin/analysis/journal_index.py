"""Which frames a recording has: their heads, the launch of each, and the names. Values are not decoded."""

import os
import sqlite3
import struct
import uuid
from array import array
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from tocsin import wire
from tocsin.exceptions import IndexReaderException, MissingCollectionFiles
from tocsin.reading import records
from tocsin.reading.launches import NODE_AGENT, Launches

KINDS_WITH_ROWS = (wire.SUMMARY, wire.SCALAR, wire.STEP_END, wire.SYSTEM, wire.SPAN)


class Head(NamedTuple):
    """Of one frame."""
    number: int  # of the record
    kind: int
    mode: int
    length: int  # of the header
    stride: int
    rows: int
    run: str
    attempt: int  # as settled
    rank: int
    step: int
    time: int  # UTC ns
    worker: int  # hash


class _Light:
    """What Launches asks of a frame."""
    __slots__ = ("header", "lifecycle")

    def __init__(self, header: Dict[str, Any], lifecycle: Optional[Dict[str, Any]]) -> None:
        self.header, self.lifecycle = header, lifecycle


class JournalIndex:
    """Reads on from where it was. Frames whose lengths do not fit are left out and counted; the sum of a frame (CRC) is not checked."""

    def __init__(self, directory: str, until: Optional[int] = None) -> None:
        """``until``: frames that were made after this moment (UTC ns) are as if they were not there."""
        self._until = until
        self.path = directory if directory.endswith("telemetry.db") else os.path.join(directory, "telemetry.db")
        self.heads: Dict[int, List[Head]] = {kind: [] for kind in KINDS_WITH_ROWS}
        self.names: Dict[int, str] = {}
        self.types: Dict[int, int] = {}
        self.attrs: Dict[int, str] = {}
        self.roles: Dict[int, int] = {}
        self.jobs: Dict[str, str] = {}  # by uid
        self.with_values: Dict[Tuple[str, int], None] = {}  # (uid, attempt), newest last
        self.with_steps: Dict[Tuple[str, int], None] = {}  # the same of those with ends of steps, which may have no value
        self.events: List[Tuple[Head, Dict[str, Any]]] = []
        self.heard: Dict[str, int] = {}  # by uid: when its newest frame was made, UTC ns
        self.unreadable = 0
        self._launches: Dict[str, Launches] = {}
        self._settled: Dict[Tuple[Any, ...], int] = {}
        self._uids: Dict[bytes, str] = {}
        self._next = 0
        if not os.path.exists(self.path):
            raise MissingCollectionFiles(f"there is no recording in {directory}: {self.path} is missing")

    def update(self) -> None:
        try:
            for number, value in records.since(self.path, self._next):
                self._next = number + 1
                if value is not None and len(value) >= wire.HEADER_BYTES and value[:5] == b"TCSN\x01":
                    self._take(number, value)
        except sqlite3.DatabaseError as error:
            raise IndexReaderException(f"{self.path} cannot be read: {error}") from error

    def newest(self, begin: str = "", job: Optional[str] = None) -> Optional[Tuple[str, int]]:
        """(uid, attempt) of the newest run whose uid begins so, and whose job has this name."""
        known = [key for key in self.with_values if key[0].startswith(begin) and job in (None, self.jobs.get(key[0]))]
        if not known and begin:  # one that is named may have nothing but steps
            known = [key for key in self.with_steps if key[0].startswith(begin) and job in (None, self.jobs.get(key[0]))]
        return max((key for key in known if key[0] == known[-1][0]), key=lambda key: key[1]) if known else None

    def ended(self, uid: str, attempt: int) -> bool:
        """All processes of this launch have been heard, and have ended."""
        return uid in self._launches and self._launches[uid].ended(attempt)

    def values(self, heads: List[Head]) -> Iterator[Tuple[Head, bytes]]:
        """The records of these heads, which come in the order of their numbers."""
        wanted = {head.number: head for head in heads}
        if not wanted:
            return
        last = heads[-1].number
        for number, value in records.since(self.path, heads[0].number):
            head = wanted.get(number)
            if head is not None and value is not None:
                yield head, value
            if number >= last:
                return

    def name(self, hash_: int) -> str:
        return self.names.get(hash_, f"#{hash_:016x}")

    def _take(self, number: int, value: bytes) -> None:
        (_, _, _, kind, mode, length, stride, rows, body, _, run, attempt, rank, world, _, _, step, global_step, time, _,
         incarnation, worker, _, _) = wire.HEADER.unpack_from(value)
        if length + body != len(value) or stride * rows > body or length < wire.HEADER_BYTES or rows > wire.MAX_ROWS or \
                (kind in KINDS_WITH_ROWS and rows and stride < 8 * wire.LEAST_COLUMNS[kind]):
            self.unreadable += 1
            return
        if self._until is not None and time > self._until and kind != wire.DICTIONARY:
            return
        uid = self._uids.get(run)
        if uid is None:
            uid = self._uids.setdefault(run, str(uuid.UUID(bytes=run)))
        self.heard[uid] = max(self.heard.get(uid, 0), time)
        event = None
        if kind == wire.LIFECYCLE:
            event = self._event(uid, value[length:])
        key = (uid, worker, rank, incarnation, attempt, world)
        settled = self._settled.get(key) if event is None else None
        if settled is None:
            light = _Light({"worker": worker, "rank": rank, "incarnation": incarnation, "attempt": attempt, "world_size": world}, event)
            settled = self._launches.setdefault(uid, Launches()).attempt_of(light)
            self._settled.clear()
            self._settled[key] = settled
        head = Head(number, kind, mode, length, stride, rows, uid, settled, rank, step, time, worker)
        if event is not None:
            self.events.append((head, event))
        if kind == wire.DICTIONARY:
            self._learn(value, length, rows)
        elif kind in self.heads and rows:
            self.heads[kind].append(head)
            if kind in (wire.SUMMARY, wire.SCALAR) and rank != NODE_AGENT:
                self.with_values.setdefault((uid, settled))
            elif kind == wire.STEP_END and rank != NODE_AGENT:
                self.with_steps.setdefault((uid, settled))

    def _event(self, uid: str, body: bytes) -> Dict[str, Any]:
        try:
            event = wire.json.loads(body)
        except ValueError:
            event = {}
        event = event if isinstance(event, dict) else {}
        if event.get("job"):
            self.jobs.setdefault(uid, str(event["job"]))
        return event

    def _learn(self, value: bytes, length: int, rows: int) -> None:
        try:
            for entry in wire._entries(value[length:], rows):
                self.names[entry["hash"]], self.types[entry["hash"]] = entry["name"], entry["type"]
                self.attrs[entry["hash"]], self.roles[entry["hash"]] = entry["attrs"], entry["role"]
        except (wire.WireError, struct.error):
            self.unreadable += 1


def plain(code: str, value: bytes, count: int, at: int) -> Any:
    """A column without NumPy."""
    out = array({"Q": "Q", "q": "q", "d": "d"}[code])
    out.frombytes(value[at:at + 8 * count])
    return out
