"""Telemetry for tests: JSON scalars written to a journal or to Kafka as any producer would, and what came of them."""
import json
import subprocess

from tests.support import journal
from tocsin import wire


class JournalWriter:
    """Appends records to the journal in `folder`, as any producer may."""

    def __init__(self, folder):
        self.folder = folder

    def append(self, *records):
        """(topic, key, value) records: one transaction."""
        journal.append(self.folder, *records)


def scalar(run, name, value, step, **more):
    """One JSON scalar record."""
    return ("telemetry", str(wire.run_uid("", run)),
            json.dumps({"run": run, "name": name, "value": value, "step": step, **more}).encode())


def journal_records(folder, topic):
    """Every committed record of a topic, oldest first."""
    return journal.records(folder, topic)


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


def kafka_values(bootstrap, topic):
    """The bytes of every record of a topic, in the order of its partitions."""
    done = subprocess.run(["kcat", "-b", bootstrap, "-C", "-e", "-q", "-t", topic, "-o", "beginning", "-f", "%S\n%s"],
                          capture_output=True, check=True, timeout=60)
    values, rest = [], done.stdout
    while rest:
        size, rest = rest.split(b"\n", 1)
        values.append(rest[:int(size)])
        rest = rest[int(size):]
    return values


def firing_ids(events):
    """Event ids of firing issues, as often as they stand on the topic."""
    return sorted(headers["ce_id"] for _, data, headers in events
                  if headers.get("ce_type") == "dev.tocsin.issue.v1" and data.get("status") == "firing")
