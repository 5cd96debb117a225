"""The journal as any program may use it: two SQLite files, a table per topic (docs/transports.md)."""
import pathlib
import sqlite3
import struct
import time

OUTSIDE = ("telemetry", "tensors", "acks")  # lie in telemetry.db


def connect(folder, topic):
    """A connection to the file of `topic`; waits for the program that makes it."""
    path = pathlib.Path(folder) / ("telemetry.db" if topic in OUTSIDE else "control.db")
    end = time.monotonic() + 10
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=10, isolation_level=None)


def pack_headers(headers):
    return b"".join(struct.pack("<HI", len(name.encode()), len(value)) + name.encode() + value for name, value in headers) or None


def unpack_headers(packed):
    headers, at = [], 0
    while packed and at < len(packed):
        names, values = struct.unpack_from("<HI", packed, at)
        at += 6 + names + values
        headers.append((packed[at - values - names:at - values].decode(), packed[at - values:at]))
    return headers


def append(folder, *records):
    """(topic, key, value[, headers]) records in one transaction per file. value None is a tombstone."""
    by_file = {}
    for record in records:
        by_file.setdefault(record[0] in OUTSIDE, []).append(record)
    for group in by_file.values():
        database = connect(folder, group[0][0])
        try:
            database.execute("BEGIN IMMEDIATE")
            for topic, key, value, *headers in group:
                (number,) = database.execute("SELECT next FROM topic WHERE name = ?", (topic,)).fetchone()
                # Of a compacted topic the older record of the key goes: its table has an index that says so.
                database.execute(f"INSERT OR REPLACE INTO {topic.replace('-', '_')} VALUES(?, ?, ?, ?, ?)",
                                 (number, time.time_ns(), key.encode() or None, value.encode() if isinstance(value, str) else value,
                                  pack_headers(headers[0] if headers else ())))
                database.execute("UPDATE topic SET next = ? WHERE name = ?", (number + 1, topic))
            database.execute("COMMIT")
        finally:
            database.close()


def records(folder, topic):
    """Every record of a topic, oldest first; none while there is no journal."""
    path = pathlib.Path(folder) / ("telemetry.db" if topic in OUTSIDE else "control.db")
    if not path.exists():
        return []
    database = connect(folder, topic)
    try:
        rows = database.execute(f"SELECT id, ts, key, value, headers FROM {topic.replace('-', '_')} ORDER BY id").fetchall()
    finally:
        database.close()
    return [{"topic": topic, "offset": number, "timestamp": ts, "key": key or b"", "value": value,
             "headers": unpack_headers(headers)} for number, ts, key, value, headers in rows]
