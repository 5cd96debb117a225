"""What the random streams share: schedules of modes and steps, workers, and the parameters that every rule has."""
import math

from tests.reference import story

HALVES = ("f16", "bf16", "f8_e4m3", "f8_e5m2")
SPECIAL = (math.nan, math.inf, -math.inf)


def of(rule, family=None):
    """Marks a generator whose name is not that of its rule. `family`: the name of its streams; else the function's."""
    def mark(make):
        make.rule, make.family = rule, family or make.__name__
        return make
    return mark


def shared(chance, modes=("global", "train", "eval", "predict"), steps=True):
    """Some of the parameters that rules share."""
    out = {}
    if chance.random() < 0.3:
        out["min_hits"] = chance.randint(1, 3)
    if chance.random() < 0.4:
        out["clear_after"] = chance.randint(1, 3)
    if chance.random() < 0.15 and modes:
        out["modes"] = chance.sample(modes, chance.randint(1, len(modes)))
    if steps and chance.random() < 0.2:
        out["start_step"] = chance.randint(0, 8)
    if steps and chance.random() < 0.1:
        out["end_step"] = chance.randint(3, 20)
    if chance.random() < 0.1:
        out["workers"] = chance.choice(["all", ["worker_0"], ["worker_1"], ["worker_0", "worker_1"]])
        if out["workers"] == "all":
            out["workers"] = ["all"]
    return out


def train_only(chance, length):
    """[(mode, how many steps further)]"""
    stride = chance.choice((1, 1, 1, 2, 5))
    return [("train", stride if chance.random() < 0.8 else stride * chance.randint(1, 4)) for _ in range(length)]


def global_only(chance, length):
    return [("global", 1 if chance.random() < 0.85 else chance.randint(1, 5)) for _ in range(length)]


def train_and_eval(chance, length):
    """Blocks of training with evaluation passes, perhaps a prediction between two of them."""
    out = []
    block = chance.randint(1, 5)
    while len(out) < length:
        out += [("train", 1)] * (block if chance.random() < 0.7 else chance.randint(1, 6))
        if chance.random() < 0.9:
            out += [("eval", 1)] * chance.randint(1, 3)
            if chance.random() < 0.15:
                out += [("predict", 1)] * chance.randint(1, 2)
                if chance.random() < 0.5:
                    out += [("eval", 1)] * chance.randint(1, 2)
    return out


def mixed(chance, length):
    return [(chance.choice(("train", "train", "eval", "predict")), 1) for _ in range(length)]


SCHEDULES = (train_only, train_and_eval, train_and_eval, global_only, mixed)


def play(chance, schedule, fill, start=None, worlds=(1, 1, 1, 2, 3), evaluates_alone=0.2, passes=False):
    """The records of a run: every worker goes through the schedule and `fill(worker, mode, step)` says what it sends.
    Sometimes only rank 0 evaluates, frames are lost or come twice, and a run does not announce its end. `passes`: what is
    judged are evaluation passes."""
    world = chance.choice(worlds)
    alone = world > 1 and chance.random() < evaluates_alone
    announced = chance.random() < 0.85
    workers = []
    for rank in range(world):
        worker = story.Worker(rank, world)
        worker.start()
        if start:
            start(worker)
        position = {}
        for mode, further in schedule:
            if alone and rank > 0 and mode in ("eval", "predict"):
                continue
            position[mode] = position.get(mode, -1) + (further if mode in position else 1)
            step = worker.enter(mode, position[mode])
            fill(worker, mode, step)
            worker.step_end()
        if announced:
            worker.end()
        workers.append(worker)
    records = story.interleave(workers, chance)
    if chance.random() < 0.15:
        records = lost(chance, records, keeps_ends=passes and world > 1)
    return twice(chance, records) if chance.random() < 0.3 else records


def lost(chance, records, keeps_ends=False):
    """Some frames never arrive; their sequence numbers stay a gap. Of an evaluation only ends of steps are lost: where a pass
    is placed whose last value is missing, is not laid down. `keeps_ends`: those of training stay, because without them
    nobody who does not wait for long can know behind which step of the others a worker evaluates."""
    out = list(records)
    for _ in range(chance.randint(1, 4)):
        there = [at for at, record in enumerate(out)
                 if (record["kind"] == "step_end" and not (keeps_ends and record["mode"] == "train"))
                 or (record["kind"] in ("summary", "scalars") and record["mode"] != "eval")]
        if there:
            del out[chance.choice(there)]
    return out


def twice(chance, records):
    """Delivery is at least once: some records come again, later."""
    out = list(records)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(records))
        again = dict(records[at])
        place = chance.randrange(out.index(records[at]) + 1, len(out) + 1)
        again["at"] = out[place - 1]["at"]
        out.insert(place, again)
    return out
