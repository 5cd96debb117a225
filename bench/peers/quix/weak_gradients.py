"""The rule of bench/peers/streams.py as a Quix Streams program: the mean magnitude of a gradient, averaged over
its last ten saved steps, is below 1e-4; told once, until three steps in a row are fine.

  python weak_gradients.py BOOTSTRAP PREFIX exactly-once|at-least-once FOLDER

A frame becomes its rows; each is judged with the state of its tensor, which Quix keeps in RocksDB with a changelog,
by the record's key, the run. Its windows of counts would need a topic between, keyed by tensor: this is the cheaper
way. Like the Kafka Streams program it looks neither at checksums nor at sequence numbers, launches or the order of steps."""
import struct
import sys
import uuid

from quixstreams import Application

WINDOW, LIMIT, CLEAR_AFTER = 10, 1e-4, 3
SUMMARY, GRADIENT = 1, 3


def rows_of(frame):
    """(run, step, tensor, mean magnitude) of each gradient of a frame v1 (docs/wire.md)."""
    if frame[:4] != b"TCSN" or frame[6] != SUMMARY:
        return []
    header, rows = struct.unpack_from("<H2xI", frame, 8)
    step = struct.unpack_from("<q", frame, 56)[0]
    run = str(uuid.UUID(bytes=bytes(frame[24:40])))

    def column(number, kind):
        return struct.unpack_from(f"<{rows}{kind}", frame, header + 8 * number * rows)

    return [(run, step, tensor, total / count)
            for tensor, count, total, meta in zip(column(0, "Q"), column(1, "Q"), column(5, "d"), column(13, "Q"))
            if (meta >> 8) & 0xFF == GRADIENT and count]


def judge(row, state):
    run, step, tensor, mean = row
    key = str(tensor)
    values, fine, told = state.get(key, ([], 0, False))
    values = [*values[1 - WINDOW:], mean]
    issue = None
    if len(values) == WINDOW:
        if sum(values) / WINDOW < LIMIT:
            fine = 0
            if not told:
                told = True
                issue = {"run": run, "tensor": key, "step": step}
        elif told:
            fine += 1
            told = fine < CLEAR_AFTER
    state.set(key, (values, fine, told))
    return issue


def main():
    broker, prefix, guarantee, folder = sys.argv[1:]
    app = Application(broker_address=broker, consumer_group=f"{prefix}-quix", auto_offset_reset="earliest", state_dir=folder,
                      processing_guarantee=guarantee, auto_create_topics=True, loglevel="WARNING")
    telemetry = app.topic(f"{prefix}.telemetry.v1", key_deserializer="str", value_deserializer="bytes")
    issues = app.topic(f"{prefix}.issues.v1", key_serializer="str", value_serializer="json")
    frames = app.dataframe(telemetry)
    told = frames.apply(rows_of, expand=True).apply(judge, stateful=True).filter(lambda issue: issue is not None)
    told.to_topic(issues)
    print("ready", flush=True)
    app.run()


main()
