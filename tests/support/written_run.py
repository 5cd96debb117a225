"""A run written record by record, as several workers would: frames in the file that create_trial reads."""
import json
import pathlib
import sqlite3
import time

from tocsin import wire

RUN = wire.run_uid("digits", "trial")
ROLES = {"loss": "loss", "gradient": "gradient", "weight": "weight"}


class WrittenRun:
    """Each call writes one frame, in a transaction of its own unless `held` collects them."""

    def __init__(self, folder, world=1, run=RUN, names=("loss",), now=time.time_ns):
        self.folder, self.world, self.run, self.now, self.sequence = pathlib.Path(folder), world, run, now, 0
        self.folder.mkdir(parents=True, exist_ok=True)
        self.database = sqlite3.connect(self.folder / "telemetry.db", isolation_level=None, check_same_thread=False)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute("CREATE TABLE IF NOT EXISTS telemetry(id INTEGER PRIMARY KEY, ts INTEGER, key BLOB, value BLOB, headers BLOB)")
        self.held = None
        self.tell(*({"type": 2, "dtype": 2, "role": wire.ROLES[ROLES.get(name.split("/")[0], "metric")], "name": name} for name in names),
                  *({"type": 4, "name": f"worker_{rank}"} for rank in range(world)))

    def put(self, frame):
        if self.held is not None:
            self.held.append(frame)
        else:
            self.database.execute("INSERT INTO telemetry(ts, key, value) VALUES (?, ?, ?)", (time.time_ns(), b"", frame))

    def release(self):
        """Writes what was held, as one transaction."""
        held, self.held = self.held, None
        self.database.execute("BEGIN")
        for frame in held:
            self.put(frame)
        self.database.execute("COMMIT")

    def head(self, rank=0, **more):
        self.sequence += 1
        return wire.header(self.run, worker=f"worker_{rank}", rank=rank, world_size=self.world,
                           **{"incarnation": 7, "time": self.now(), "sequence": self.sequence, **more})

    def tell(self, *entries):
        self.put(wire.encode_dictionary(self.head(), list(entries)))

    def scalars(self, rank, rows, mode=wire.TRAIN, **head):
        """rows: (name, step, value[, time])."""
        self.put(wire.encode_frame(self.head(rank, step=rows[-1][1], global_step=rows[-1][1], mode=mode, **head), wire.SCALAR, [
            {"name": wire.xxh64(name), "step": step, "global_step": step, "time": time_[0] if time_ else self.now(), "value": value, "meta": 5 << 8}
            for name, step, value, *time_ in rows]))

    def loss(self, rank, step, value, mode=wire.TRAIN):
        self.scalars(rank, [("loss", step, value)], mode)

    def summary(self, rank, step, rows, mode=wire.TRAIN, extensions=()):
        """rows: {name: {column: value}}."""
        self.put(wire.encode_frame(self.head(rank, step=step, global_step=step, mode=mode), wire.SUMMARY,
                                   [{"name": wire.xxh64(name), "meta": 3 << 8 | 1 << 18, **row} for name, row in rows.items()], extensions))

    def step_end(self, rank, step, mode=wire.TRAIN, start=1, end=2):
        self.put(wire.encode_frame(self.head(rank, step=step, global_step=step, mode=mode), wire.STEP_END, [
            {"step": step, "global_step": step, "start": start, "end": end, "micro_steps": 1}]))

    def spans(self, rank, rows, mode=wire.TRAIN):
        """rows: (name, track, start, duration, step[, arguments]) in ns."""
        for name, track, *_, in rows:
            self.tell({"type": 6, "name": name}, {"type": 7, "name": track})
        for row in rows:
            if len(row) > 5:
                self.tell({"type": 8, "name": json.dumps(row[5])})
        self.put(wire.encode_frame(self.head(rank, mode=mode), wire.SPAN, [
            {"name": wire.xxh64(row[0]), "track": wire.xxh64(row[1]), "start": row[2], "duration": row[3], "step": row[4],
             "args": wire.xxh64(json.dumps(row[5])) if len(row) > 5 else 0} for row in rows]))

    def samples(self, node, rows):
        """rows: (series, time ns, value[, counter])."""
        self.tell({"type": 5, "name": node}, *({"type": 3, "name": series} for series in sorted({row[0] for row in rows})))
        self.sequence += 1
        head = wire.header(self.run, worker=node, rank=0xFFFFFFFF, world_size=0, incarnation=3, time=self.now(), sequence=self.sequence)
        self.put(wire.encode_frame(head, wire.SYSTEM, [
            {"series": wire.xxh64(series), "time": time_, "value": value, "meta": 1 if more else 0} for series, time_, value, *more in rows]))

    def event(self, rank, event, **more):
        self.put(wire.encode_lifecycle(self.head(rank), {"event": event, **more}))
