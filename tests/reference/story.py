"""What trainings send: builds the records of a case, one worker at a time, as a hook would. What it gives are plain
dictionaries: the driver turns them into frames of the wire, the reference reads them as they are.

Times are UTC nanoseconds. A worker counts its steps per mode, its global steps, its passes and the sequence of its frames.
"""
import math
import random

from tests.reference import columns

START = 1_767_323_040 * 10**9  # a full minute
SECOND = 10**9
AGENT = 0xFFFFFFFF


class Worker:
    """One rank of a run of `world`; `tick` nanoseconds pass with every step."""

    def __init__(self, rank=0, world=1, start=START, tick=SECOND // 1000, run=None):
        self.run = run  # name of another run than the one that is judged
        self.rank, self.world, self.now, self.tick = rank, world, start, tick
        self.records, self.sequence, self.global_step = [], 0, -1
        self.steps, self.passes, self.mode = {}, {}, None
        self.known = set()

    def add(self, kind, mode="global", step=0, **more):
        """One record; returns it, so that a test can spoil it."""
        self.sequence += 1
        record = {"kind": kind, "rank": self.rank, "world": self.world, "mode": mode, "step": step,
                  "global": max(self.global_step, 0), "time": self.now, "seq": self.sequence,
                  "pass": self.passes.get(mode, 0), **({"run": self.run} if self.run else {}), **more}
        self.records.append(record)
        return record

    # --- life ----------------------------------------------------------------------------------

    def start(self, **more):
        return self.add("lifecycle", body={"event": "start", "job": "reference", "pid": 4711, "host": "here", **more})

    def heartbeat(self, **more):
        return self.add("lifecycle", body={"event": "heartbeat", **more})

    def end(self, outcome="completed"):
        return self.add("lifecycle", body={"event": "end", "outcome": outcome, "exit_code": 0})

    def names(self, *entries):
        """Dictionary entries: (type, name, role) or with a further map of dtype, shape, attrs."""
        out = []
        for entry in entries:
            kind, name, role, *more = entry
            out.append({"type": kind, "name": name, "role": role, **(more[0] if more else {})})
            self.known.add(name)
        return self.add("dictionary", names=out)

    # --- steps ---------------------------------------------------------------------------------

    def enter(self, mode, step=None):
        """Begins the next step of a mode (or the stated one) and returns its number."""
        if self.mode != mode:
            if mode in self.steps:
                self.passes[mode] = self.passes.get(mode, 0) + 1
            self.mode = mode
        self.steps[mode] = self.steps.get(mode, -1) + 1 if step is None else step
        self.global_step += 1
        self.now += self.tick
        return self.steps[mode]

    def step_end(self):
        """Ends the step that was entered last."""
        mode, step = self.mode, self.steps[self.mode]
        return self.add("step_end", mode, step, rows=[[step, self.global_step, self.now - self.tick, self.now]])

    def scalars(self, *values):
        """(name, value) or (name, value, role) of the step that was entered last."""
        mode, step = self.mode, self.steps[self.mode]
        rows = [[v[0], v[2] if len(v) > 2 else "loss", step, self.global_step, v[1]] for v in values]
        new = [(("scalar", v[0], v[2] if len(v) > 2 else "loss")) for v in values if v[0] not in self.known]
        if new:
            self.names(*new)
        return self.add("scalars", mode, step, rows=rows)

    def tensors(self, *tensors):
        """Maps of name, values (or columns), role, dtype, flags, and statistics by name: {"delta_l2": 0.5}, whose key may
        be (name, parameters); a list as the value is a vector."""
        mode, step = self.mode, self.steps[self.mode]
        rows, sparse, vectors = [], {}, []
        new = [("tensor", t["name"], t.get("role", "other"), {"dtype": t.get("dtype", "f32"), "shape": t.get("shape", []),
                                                              **({"attrs": t["attrs"]} if "attrs" in t else {})})
               for t in tensors if t["name"] not in self.known]
        if new:
            self.names(*new)
        for at, tensor in enumerate(tensors):
            made = tensor.get("columns") or columns.of(tensor["values"])
            rows.append([tensor["name"], tensor.get("dtype", "f32"), tensor.get("role", "other"), tensor.get("flags", 0),
                         *(made[name] for name in columns.NAMES)])
            for key, value in tensor.get("statistics", {}).items():
                name, parameters = key if isinstance(key, tuple) else (key, ())
                if isinstance(value, (list, tuple)):
                    vectors.append([name, at, list(parameters), list(value)])
                    continue
                column = sparse.setdefault((name, tuple(parameters)), ([], []))
                column[0].append(at)
                column[1].append(value)
        return self.add("summary", mode, step, rows=rows,
                        sparse=[[name, list(parameters), *column] for (name, parameters), column in sparse.items()],
                        vectors=vectors)

    def spans(self, *spans):
        """(track, name, start, duration) of the step that was entered last."""
        mode, step = self.mode, self.steps[self.mode]
        new = {(kind, text, "other") for track, name, _, _ in spans for kind, text in (("track", track), ("span_name", name))
               if (kind, text) not in self.known}
        if new:
            self.names(*sorted(new))
            self.known |= {(kind, text) for kind, text, _ in new}
        return self.add("span", mode, step, rows=[[name, track, start, duration, step] for track, name, start, duration in spans])


class Node(Worker):
    """A node's agent."""

    def __init__(self, name="node-a", start=START):
        super().__init__(AGENT, 0, start)
        self.name = name

    def add(self, kind, mode="global", step=0, **more):
        return super().add(kind, mode, step, worker=self.name, **more)

    def samples(self, time, values):
        """One sweep: {series: ratio}."""
        new = [("series", name, "other") for name in values if name not in self.known]
        self.now = time
        if new:
            if not self.known:
                new.insert(0, ("node", self.name, "other"))
            self.names(*new)
        return self.add("system", rows=[[name, time, value] for name, value in values.items()])


def interleave(workers, chance=None):
    """The records of all workers in one stream: each worker's in its order; which comes next is drawn. Without chance: by
    time. `at`, when the record was appended, never goes back."""
    queues = [list(worker.records) for worker in workers]
    out, at = [], 0
    while any(queues):
        open_queues = [queue for queue in queues if queue]
        if chance is None:
            queue = min(open_queues, key=lambda one: one[0]["time"])
        else:
            queue = chance.choice(open_queues)
        record = dict(queue.pop(0))
        at = max(at, record["time"])
        record["at"] = at
        out.append(record)
    return out


def wire(value):
    """The same with numbers that JSON does not have as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: wire(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [wire(one) for one in value]
    return value


def chance(*seed):
    """Random numbers of a seed, the same on every machine."""
    return random.Random(" ".join(map(str, seed)))
