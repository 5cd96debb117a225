"""Telemetry for tests: JSON scalars written to a journal or to Kafka as any producer would, and what came of them."""
import fcntl
import json
import pathlib
import struct
import subprocess
import time

from tocsin import wire


class JournalWriter:
    """Appends records as the writer `name` of the journal in `folder`, in the published format (docs/wire.md)."""

    def __init__(self, folder, name):
        home = pathlib.Path(folder) / name
        home.mkdir(parents=True, exist_ok=True)
        self.lock = open(home / "lock", "w", encoding="utf-8")
        fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.next = 0
        self.file = open(home / f"{0:020d}.tcj", "ab", buffering=0)
        self.file.write(self._segment_header())

    @staticmethod
    def _segment_header():
        head = bytearray(struct.pack("<4sHHqQI", b"TCSJ", 1, 0, time.time_ns(), 0, 0).ljust(64, b"\0"))
        struct.pack_into("<I", head, 24, wire.crc32c(bytes(head)))
        return bytes(head)

    def append(self, *records):
        """(topic, key, value) records: one batch, one write."""
        now = time.time_ns()
        packed = [wire.journal_record(topic, key, value, now) for topic, key, value in records]
        self.file.write(wire.journal_batch(self.next, now, packed))
        self.next += len(records)


def scalar(run, name, value, step, **more):
    """One JSON scalar record."""
    return ("telemetry", str(wire.run_uid("", run)),
            json.dumps({"run": run, "name": name, "value": value, "step": step, **more}).encode())


def journal_records(folder, topic):
    """Every committed record of a topic as the reference codec gives it, oldest first per writer."""
    for path in sorted(pathlib.Path(folder).glob("*/*.tcj")):
        data, at = path.read_bytes(), 64
        while at < len(data):
            try:
                _, _, _, records = wire.decode_journal_batch(data[at:])
            except wire.WireError:
                break  # not committed: a batch counts whole or not at all
            at += 8 + int.from_bytes(data[at:at + 4], "little")
            yield from (record for record in records if record["topic"] == topic)


def journal_events(folder, topic):
    """(key, data, attributes) of every committed event of a topic."""
    for record in journal_records(folder, topic):
        if record["value"] is not None:
            headers = {name: text.decode() for name, text in record["headers"]}
            yield record["key"].decode(), json.loads(record["value"]), headers


def kafka_produce(bootstrap, topic, records):
    """(_, key, value) records to one topic, partitioned as Java's clients do by default."""
    lines = "".join(f"{key}\t{value.decode()}\n" for _, key, value in records)
    subprocess.run(["kcat", "-b", bootstrap, "-P", "-t", topic, "-K", "\t", "-X", "partitioner=murmur2_random",
                    "-X", "message.timeout.ms=60000"], input=lines, text=True, check=True, timeout=90)


def kafka_events(bootstrap, topic):
    """(key, data, attributes) of every committed event of a topic."""
    done = subprocess.run(["kcat", "-b", bootstrap, "-C", "-e", "-q", "-t", topic, "-o", "beginning", "-J",
                           "-X", "isolation.level=read_committed"], capture_output=True, text=True, check=True, timeout=60)
    for line in done.stdout.splitlines():
        record = json.loads(line)
        if record["payload"] is None:
            continue
        flat = record.get("headers") or []
        yield record["key"], json.loads(record["payload"]), dict(zip(flat[::2], flat[1::2]))


def firing_ids(events):
    """Event ids of firing issues, as often as they stand on the topic."""
    return sorted(headers["ce_id"] for _, data, headers in events
                  if headers.get("ce_type") == "dev.tocsin.issue.v1" and data.get("status") == "firing")
