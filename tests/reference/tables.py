"""Hand-worked cases: tables/<rule>.yaml, one list of cases per rule. README.md says how a case is written."""
import pathlib
import re

import yaml

from tests.reference import judging, story
from tests.reference.engine import UNIT
from tests.reference.judging import Episode
from tocsin import wire

FOLDER = pathlib.Path(__file__).parent / "tables"
FLAGS = {"unscaled": 18, "skipped": 20, "not_trainable": 21}
KEYS = {"case", "use", "preset", "with", "names", "workers", "send", "samples", "steps", "operators", "loading", "expect", "status", "tells", "open", "refused", "earlier"}
ENTRY = re.compile(r"(?P<other>other )?(?:worker (?P<rank>\d+) )?"
                   r"(?:(?P<mode>train|eval|predict|global) (?P<step>\d+)(?: to (?P<last>\d+))?|(?P<life>heartbeat|end)(?: for (?P<within>[\d.]+))?)"
                   r"(?: at (?P<at>[\d.]+))?(?P<open> open)?$")


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # several times faster; not in every build of PyYAML


def load():
    """{id: (rule, case)} of all tables: <rule>.yaml, and <rule>.<part>.yaml of a long one."""
    out = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        rule = path.name.partition(".")[0]
        for case in yaml.load(path.read_text(), Loader=LOADER):
            name = f"table/{rule}/{case['case']}"
            unknown = set(case) - KEYS
            assert not unknown, f"{name}: unknown keys {unknown}"
            assert name not in out, f"{name} stands twice"
            out[name] = (case.get("use", rule), case)
    return out


def summing_up():
    """Rules that raise nothing: what they tell is the summary of their last status."""
    fires, tells = set(), set()
    for rule, case in load().values():
        (fires if case.get("expect") else tells if "tells" in case else set()).add(rule)
    return tells - fires


def rules(rule, case):
    new = getattr(judging.module(rule), "NEW", False)
    parameters = dict(case.get("with", {}))
    if rule == "similar_across_runs":
        parameters.setdefault("other_trials", str(wire.run_uid("reference", case["case"])))
    return [{"use": rule, "preset": case.get("preset", "tocsin" if new else "original"), "with": parameters}]


def _statistic(text):
    """("abs_ge_count", (2.0,)) of abs_ge_count(2)."""
    name, _, inside = text.rstrip(")").partition("(")
    return name, tuple(float(one) for one in inside.split(",") if one)


def default_role(name):
    return "loss" if re.search(r"(^|[_/.])loss$", name) else "metric"


class _Cast:
    """The workers of a case, and what it says of names."""

    def __init__(self, case):
        self.names = case.get("names", {})
        count = case.get("workers", 1)
        self.workers = [story.Worker(rank, count) for rank in range(count)]
        self.count = count
        entries = [entry for item in case.get("send", []) for entry in (item if isinstance(item, dict) else [item])]
        if any(entry.startswith("other ") for entry in entries):
            self.workers.append(story.Worker(run=case["case"]))
        self.order = []
        for worker in self.workers:
            worker.start(**({"labels": {"recipe": case["case"]}} if "earlier" in case else {}))

    def tensor(self, name, value):
        """A list of values, or a map with values, how often they are repeated, dtype, role, flags, statistics; of those
        with parameters the key is as in a capture: abs_ge_count(2)."""
        about = {**self.names.get(name, {}), **(value if isinstance(value, dict) else {"values": value})}
        flags = sum(1 << FLAGS[flag] for flag in about.pop("flags", []))
        values = [float(one) for one in about.get("values", [])] * about.pop("repeat", 1)
        statistics = {_statistic(key): one for key, one in about.pop("statistics", {}).items()}
        return {"name": name, **about, "flags": flags, "values": values, "statistics": statistics}

    def say(self, worker, name):
        """The name's dictionary entry, when the case states more than its role."""
        about = self.names.get(name, {})
        if name not in worker.known and ("attrs" in about or "shape" in about):
            worker.names(("scalar" if about.get("scalar") else "tensor", name, about.get("role", default_role(name)),
                          {key: about[key] for key in ("attrs", "shape", "dtype") if key in about}))

    def enter(self, entry, values):
        found = ENTRY.match(entry)
        assert found, f"not an entry: {entry}"
        number = self.count if found["other"] else int(found["rank"] or 0)
        worker = self.workers[number]
        before = len(worker.records)
        if found["at"]:
            worker.now = story.START + int(float(found["at"]) * story.SECOND)
            worker.tick = 0
        if found["life"]:
            getattr(worker, found["life"])(**({"expect_next_in": float(found["within"])} if found["within"] else {}))
        else:
            for step in range(int(found["step"]), int(found["last"] or found["step"]) + 1):
                worker.enter(found["mode"], step)
                self.send(worker, values or {})
                if not found["open"]:
                    worker.step_end()
        self.order += [number] * (len(worker.records) - before)

    def send(self, worker, values):
        """Scalars in one frame, tensors each in its own, in the order of the case."""
        scalars = []
        for name, value in values.items():
            self.say(worker, name)
            if isinstance(value, (list, dict)):
                if scalars:
                    worker.scalars(*scalars)
                    scalars = []
                worker.tensors(self.tensor(name, value))
            else:
                scalars.append((name, float(value), self.names.get(name, {}).get("role", default_role(name))))
        if scalars:
            worker.scalars(*scalars)


def records(case):
    """What is sent, in the order of the case: entries of several workers as they stand there."""
    if "samples" in case:
        return _samples(case)
    if "loading" in case:
        return loading(case["loading"])
    if "steps" in case or "operators" in case:
        return _timed(case)
    earlier = list(_earlier(case))
    cast = _Cast(case)
    for worker in cast.workers:
        for record in worker.records:
            worker.now = record["time"] = earlier[-1]["at"] + 3600 * story.SECOND if earlier else record["time"]
    starts = [record for worker in cast.workers for record in worker.records]
    for item in case.get("send", []):
        [(entry, values)] = item.items() if isinstance(item, dict) else [(item, None)]
        cast.enter(entry, values)
    queues = [list(worker.records[1:]) for worker in cast.workers]
    out = starts + [queues[number].pop(0) for number in cast.order]
    if not case.get("open"):
        for worker in cast.workers[:cast.count]:
            if not any(one["kind"] == "lifecycle" and one["body"]["event"] == "end" for one in worker.records):
                worker.now = max(one["time"] for one in out)
                out.append(worker.end())
    out = earlier + out
    at = 0
    for record in out:
        at = max(at, record["time"])
        record["at"] = at
    return out


def _earlier(case):
    """Whole runs of the same recipe, an hour after each other; they end as completed, or by the stated outcome."""
    number = 0
    for group in case.get("earlier", []):
        for _ in range(group["runs"]):
            cast = _Cast({**case, **group, "workers": 1})
            [worker] = cast.workers
            worker.run = f"{case['case']} {number}"
            worker.now += number * 3600 * story.SECOND
            for record in worker.records:
                record.update(run=worker.run, time=worker.now)
            for item in group["send"]:
                [(entry, values)] = item.items()
                cast.enter(entry, values)
            worker.end(group.get("outcome", "completed"))
            yield from ({**record, "at": record["time"]} for record in worker.records)
            number += 1


def loading(stretches):
    """[seconds, cores, data-loading processes] of stretches, on the node `here`: each second one step, one sweep of its
    cores and an event of every process."""
    worker, node = story.Worker(tick=0), story.Node("here")
    worker.start()
    time = story.START
    for seconds, cores, processes in stretches:
        for _ in range(seconds):
            worker.now = time + story.SECOND // 4
            worker.enter("train")
            if processes:
                worker.spans(*((f"dataloader/{i}", "fetch", worker.now, 10**6) for i in range(processes)))
            worker.step_end()
            node.samples(time + story.SECOND // 2, {f"system.cpu.utilization{{cpu.logical_number={i},cpu.mode=idle}}": 0.5
                                                    for i in range(cores)})
            time += story.SECOND
    worker.now = time
    worker.end()
    return story.interleave([worker, node])


def _timed(case):
    """`steps`: [count, seconds] or [count, seconds, seconds of data_wait] of stretches of training steps, or a map of such
    lists by rank. `operators`: [steps, {track/name: µs, or [[µs after the step's
    begin, µs], …]}]."""
    stretches = case.get("steps") or [[1, 1, 0, calls] for count, calls in case["operators"] for _ in range(count)]
    by_rank = stretches if isinstance(stretches, dict) else {0: stretches}
    workers = []
    for rank, own in by_rank.items():
        worker = story.Worker(rank, case.get("workers", 1), tick=0)
        worker.start()
        for count, seconds, *more in own:
            for _ in range(count):
                worker.tick = 0
                worker.enter("train")
                worker.tick = round(seconds * story.SECOND)
                worker.now += worker.tick
                if more and more[0]:
                    worker.spans(("phase", "data_wait", worker.now - worker.tick, round(more[0] * story.SECOND)))
                if len(more) > 1:
                    worker.spans(*(tuple(name.rsplit("/", 1)) + (worker.now - worker.tick + at * 1000, us * 1000)
                                   for name, took in more[1].items()
                                   for at, us in (took if isinstance(took, list) else [[0, took]])))
                worker.step_end()
        worker.end()
        workers.append(worker)
    return story.interleave(workers)


def _sweeps(samples):
    """(seconds, node, values), one by one."""
    for sweep in samples:
        when, node, values = sweep if len(sweep) == 3 else (sweep[0], "node-a", sweep[1])
        if not isinstance(when, str):
            yield when, node, values
            continue
        first, last, pace = (float(one) for one in re.fullmatch(r"([\d.]+) to ([\d.]+) by ([\d.]+)", when).groups())
        for i in range(round((last - first) / pace) + 1):
            yield first + i * pace, node, values


def _samples(case):
    """[seconds, {gpu0: percent, core3: percent busy}] per sweep, on one node; [seconds, node, {…}] on several. Seconds may be
    "first to last by pace"."""
    nodes = {}
    for when, node, values in _sweeps(case["samples"]):
        made = {}
        for name, value in values.items():
            kind, number = re.fullmatch(r"(gpu|core|wait|memory|used|process)(\d*)", name).groups()
            ratio = float(value) / 100
            made[{"gpu": f"hw.gpu.utilization{{hw.id={number}}}",
                  "memory": f"hw.gpu.memory.utilization{{hw.id={number}}}",
                  "process": f"process.memory.usage{{process.pid={number}}}",
                  "used": "system.memory.utilization{system.memory.state=used}",
                  "core": f"system.cpu.utilization{{cpu.logical_number={number},cpu.mode=idle}}",
                  "wait": f"system.cpu.utilization{{cpu.logical_number={number},cpu.mode=iowait}}"}[kind]] = (
                      1 - ratio if kind == "core" else value if kind == "process" else ratio)
        nodes.setdefault(node, story.Node(node)).samples(story.START + round(when * story.SECOND), made)
    worker = story.Worker()
    worker.start()
    out = story.interleave([worker, *nodes.values()])
    worker.now = out[-1]["time"]
    if not case.get("open"):
        out.append({**worker.end(), "at": out[-1]["at"]})
    return out


def expected(rule, case, clock):
    """The issues of a case as episodes; of rules of a clock in seconds."""
    def where(value):
        return value if value is None or not clock else story.START + round(value * story.SECOND)

    return [Episode(rule, issue.get("kind", ""), tuple((name, str(issue[name])) for name in UNIT if name in issue),
                    where(issue["at"]), where(issue.get("until"))) for issue in case.get("expect", [])]
