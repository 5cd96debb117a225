"""A case as a whole: what was accepted of its records, as lists in the order of reading, and the completed steps and
evaluation passes in the order of training. Slow on purpose: everything is kept, nothing is updated.

What is not here: workers that are given up because they are silent, and data later than the end of its step. The random
streams have neither, so that every verdict but those of clocks is a function of what was sent, not of when it came.
"""
import dataclasses
import math

from tests.reference import columns


@dataclasses.dataclass
class Name:
    """What a dictionary says of a name: to a worker its own newest entry counts, else whose came first."""
    role: str = "other"
    dtype: str = "unknown"
    shape: tuple = ()
    collections: tuple = ()
    direction: str = None
    op_type: str = None
    axis: int = 1


@dataclasses.dataclass
class Row:
    """One tensor, or one scalar, of one worker at one step."""
    name: str
    rank: int
    mode: str
    step: int
    global_step: int
    scalar: bool
    dtype: str
    role: str
    flags: int
    columns: dict
    statistics: dict  # (name, parameters) -> value
    vectors: dict     # (name, parameters) -> values
    evaluation: int   # how often its worker had entered this mode before
    loss_scale: float
    learning_rate: float  # newest of the worker; None: none was logged
    largest_rate: float   # so far
    known: Name

    @property
    def worker(self):
        return f"worker_{self.rank}"

    def flag(self, bit):
        return bool(self.flags >> bit & 1)


@dataclasses.dataclass
class Point:
    """A completed step: {name: [(rank, row)]}, ranks ascending."""
    mode: str
    step: int
    global_step: int
    values: dict
    evaluation: int
    train_step: int  # the newest training step before it in the order of training; -1: none


class History:
    def __init__(self, records):
        """`others`: what was accepted of the records of other runs; `other`: of the first of them, None without any."""
        numbered = [{"order": order, **record} for order, record in enumerate(records)]  # of all runs together
        others = [record for record in numbered if "run" in record]
        runs = {}
        for record in others:
            runs.setdefault(record["run"], []).append({name: value for name, value in record.items() if name != "run"})
        self.others = [History(theirs) for theirs in runs.values()]  # in the order in which they came
        self.other = self.others[0] if self.others else None
        records = [record for record in numbered if "run" not in record]
        self.names, self.own, self.rows, self.ends, self.samples = {}, {}, [], [], []
        self.end_places = []  # (rank, mode, step, place of the record) of ended steps
        self.spans = []  # (rank, mode, name, track, start, duration, step)
        self.progress, self.promises, self.records = [], [], []
        self.present, self.left = set(), {}  # ranks heard of; of those that said goodbye when
        self.over = math.inf                 # place of that record among all
        self.ended_at = None                 # arrival of the record with which the last of all workers did
        self.outcomes = {}                   # rank: how it ended, and when by its own time
        self._read(records)

    # --- reading -------------------------------------------------------------------------------

    def _read(self, records):
        sequences, last_step, scale, rate, largest = {}, {}, {}, {}, {}
        for record in records:
            rank, arrival = record.get("rank", 0), record.get("at", record.get("time"))
            if record["kind"] in ("tick", "json"):
                raise ValueError(f"the reference does not read {record['kind']} records")
            sender = (rank, record.get("worker"))
            if record["seq"] <= sequences.get(sender, -1):
                continue  # delivery is at least once
            sequences[sender] = record["seq"]
            self.records.append(record)
            kind = record["kind"]
            agent = rank == 0xFFFFFFFF
            if not agent:
                self.present.add(rank)
            if kind in ("summary", "scalars", "step_end") and not agent:
                self.progress.append((arrival, rank, record))
            if kind == "lifecycle" and "expect_next_in" in record["body"] and not agent:
                self.promises.append((arrival, rank, record["body"]["expect_next_in"]))
            if kind == "dictionary":
                for entry in record["names"]:
                    self._learn(entry, rank)
            elif kind == "lifecycle" and record["body"]["event"] in ("end", "leave"):
                self.left.setdefault(rank, arrival)
                self.outcomes[rank] = (record["body"].get("outcome"), record["time"])
                if len(self.left) == len(self.present) >= record.get("world", 1):
                    self.ended_at, self.over = arrival, record["order"]
            elif kind == "step_end":
                for step, global_step, start, end in record["rows"]:
                    self.end_places.append((rank, record["mode"], step, record["order"]))
                    self.ends.append((rank, record["mode"], step, global_step, start, end, record["pass"]))
            elif kind == "system":
                self.samples.extend((record.get("worker", rank), series, time, value, arrival)
                                    for series, time, value in record["rows"])
            elif kind == "span":
                self.spans.extend((rank, record["mode"], *row) for row in record["rows"])
            elif kind in ("summary", "scalars"):
                for row in self._rows_of(record):
                    unit = (row.name, rank, row.mode, row.scalar)
                    if row.scalar and row.name == "loss_scale" and 0 < row.columns["sum"] < math.inf:
                        scale[rank] = row.columns["sum"]
                    further = row.scalar and row.known.role == "ledger" and row.step == last_step.get(unit)
                    if row.step <= last_step.get(unit, -math.inf) and not further:
                        continue  # a unit drops a step that is not later than its last; the ledger's rows of one step are added up
                    last_step[unit] = row.step
                    if row.scalar and row.name == "learning_rate" and math.isfinite(row.columns["sum"]):
                        rate[rank] = row.columns["sum"]
                        largest[rank] = max(largest.get(rank, 0), rate[rank])
                    row.loss_scale = scale.get(rank, 1.0)
                    row.learning_rate, row.largest_rate = rate.get(rank), largest.get(rank)
                    self.rows.append(row)

    def _learn(self, entry, rank):
        attrs = entry.get("attrs", {})
        said = Name(entry.get("role", "other"), entry.get("dtype", "unknown"), tuple(entry.get("shape", ())),
                    tuple(attrs.get("collections", ())), attrs.get("direction"), attrs.get("op_type"), attrs.get("axis", 1))
        if entry["type"] == "tensor":
            self.own[rank, entry["name"]] = said
        self.names.setdefault(entry["name"], said)

    def _rows_of(self, record):
        scalar = record["kind"] == "scalars"
        for at, row in enumerate(record["rows"]):
            if scalar:
                name, role, step, global_step, value = row
                yield Row(name, record["rank"], record["mode"], step, global_step, True, "f64", role, 0,
                          columns.of([float(value)]), {}, {}, record["pass"], 1.0, None, None,
                          self._name(name, role, record["rank"]))
                continue
            name, dtype, role, flags, *numbers = row
            statistics = {(stat, tuple(parameters)): values[rows.index(at)]
                          for stat, parameters, rows, values in record.get("sparse", ()) if at in rows}
            vectors = {(stat, tuple(parameters)): values
                       for stat, which, parameters, values in record.get("vectors", ()) if which == at}
            yield Row(name, record["rank"], record["mode"], record["step"], record["global"], False, dtype, role, flags,
                      dict(zip(columns.NAMES, numbers)), statistics, vectors, record["pass"], 1.0, None, None,
                      self._name(name, role, record["rank"]))

    def _name(self, name, role, rank):
        known = self.own.get((rank, name)) or self.names.get(name, Name())
        return dataclasses.replace(known, role=role if role != "other" else known.role)

    # --- steps ---------------------------------------------------------------------------------

    def points(self):
        """Completed steps in the order of training: that of their global steps, of each the largest that a worker gives."""
        found = {}
        for row in self.rows:
            point = found.setdefault((row.mode, row.step), Point(row.mode, row.step, row.global_step, {}, row.evaluation, -1))
            point.global_step = max(point.global_step, row.global_step)
            point.values.setdefault(row.name, []).append((row.rank, row))
        for rank, mode, step, global_step, _, _, evaluation in self.ends:
            point = found.setdefault((mode, step), Point(mode, step, global_step, {}, evaluation, -1))
            point.global_step = max(point.global_step, global_step)
        ordered = sorted(found.values(), key=lambda point: (point.global_step, point.mode, point.step))
        newest = -1
        training = "train" if any(point.mode == "train" for point in ordered) else "global"
        for point in ordered:
            for by_rank in point.values.values():
                by_rank.sort(key=lambda pair: pair[0])
            if point.mode == training:
                newest = point.step
            point.train_step = newest
        return ordered

    def passes(self):
        """[point …] per item, in the order of training: a step of another mode alone, the steps of an evaluation pass
        together. The pass ends at the next step of another mode, or with the run."""
        out = []
        for point in self.points():
            before = out[-1][0] if out else point
            if point.mode == "eval" and out and (before.mode, before.evaluation) == ("eval", point.evaluation):
                out[-1].append(point)
            else:
                out.append([point])
        return out


def last_step(p, points):
    """Where a pass stands: at the last of its steps that the rule considers, whether that brought a value or not."""
    return max(point.step for point in points if p["start_step"] <= point.step
               and (p["end_step"] is None or point.step < p["end_step"]))


def value(by_rank):
    """A step's value: the plain mean over the workers that delivered it; of a vector its mean first."""
    terms = [row.columns["sum"] / row.columns["count"] if row.columns["count"] else math.nan for _, row in by_rank]
    return mean(terms)


def mean(terms):
    """A plain sum divided by the number of terms."""
    total = 0.0
    for term in terms:
        total += term
    return total / len(terms)
