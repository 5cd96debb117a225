"""Random streams for the rules over series: losses of jobs with modes, without modes, and of XGBoost."""
import math

from tests.reference import story
from tests.reference.random_streams import common


def walk(chance, first=None):
    """A loss that falls, stands, climbs, jumps, vanishes: what rules about losses look at."""
    value = first if first is not None else chance.choice((1.0, 2.0, 0.3, 100.0))
    mood = chance.choice(("fall", "flat", "climb"))
    while True:
        yield value
        if chance.random() < 0.15:
            mood = chance.choice(("fall", "flat", "creep", "climb", "noise"))
        if mood == "fall":
            value *= chance.choice((0.9, 0.97, 0.9995))
        elif mood == "creep":
            value *= 1.01
        elif mood == "climb":
            value *= chance.choice((1.04, 1.2))
        elif mood == "noise":
            value *= chance.uniform(0.8, 1.25)
        if chance.random() < 0.02:
            value *= 5


def odd(chance, value, often):
    """Sometimes no number, nothing, or below it."""
    if chance.random() < often:
        return chance.choice((*common.SPECIAL, 0.0, -value, math.nan))
    return value


@common.of("loss_not_decreasing")
def loss_original(chance):
    names = chance.sample(("loss", "retrieval_loss", "val_loss", "train/loss"), chance.choice((1, 1, 2)))
    parameters = common.shared(chance, ("train", "eval", "global"))
    parameters["num_steps"] = chance.choice((1, 2, 3, 5, 10, 80))
    if chance.random() < 0.3:
        parameters["mode"] = chance.choice(("EVAL", "TRAIN", "GLOBAL"))
        parameters.pop("modes", None)
    if chance.random() < 0.4:
        parameters["flat_evaluations"] = chance.randint(1, 4)
    if chance.random() < 0.3:
        parameters["diff_percent"] = chance.choice((0, 1, 20))
    rules = [{"use": "loss_not_decreasing", "preset": "original", "with": parameters}]
    often = chance.choice((0, 0, 0.05))
    length = chance.randint(100, 250) if parameters["num_steps"] == 80 else chance.randint(4, 40)
    walks = {}
    vector = chance.random() < 0.1

    def fill(worker, mode, step):
        if chance.random() > 0.93:
            return
        sent = []
        for name in names:
            here = walks.setdefault((worker.rank, name, mode), walk(chance))
            sent.append((name, odd(chance, next(here), often)))
        if vector:
            worker.tensors(*({"name": name, "role": "loss", "values": [value, value]} for name, value in sent))
        else:
            worker.scalars(*sent)

    schedule = chance.choice(common.SCHEDULES)(chance, length)
    if parameters["num_steps"] == 80 and chance.random() < 0.5:
        schedule = [(mode, further if i % 90 else 200) for i, (mode, further) in enumerate(schedule)]
    return rules, common.play(chance, schedule, fill, evaluates_alone=0.1, passes=True)


@common.of("loss_not_decreasing")
def loss_tocsin(chance):
    """Losses that either stand still or clearly move, positive: what the prose of the preset leaves open stays out."""
    parameters = {"num_steps": 1, "noise_factor": 0, **common.shared(chance, common_modes())}
    rules = [{"use": "loss_not_decreasing", "with": parameters}]
    boosting = chance.random() < 0.4
    value = [chance.choice((1.0, 0.7, 30.0))]
    names = (["train-logloss", "validation-logloss", *(["train-auc"] if chance.random() < 0.5 else []),
              *(["train-error"] if chance.random() < 0.3 else [])] if boosting
             else [chance.choice(("loss", "contest_loss", "retrieval_loss", "interval_loss", "train_loss"))]
             + (["val_loss"] if chance.random() < 0.4 else []))
    if not boosting and chance.random() < 0.1:
        names.append("discriminator/loss")
    schedule = chance.choice((common.train_only, common.global_only, common.train_and_eval))
    if boosting:
        schedule = common.global_only
    lane = schedule(chance, chance.randint(5, 60))
    mood = {}
    for i in range(400):
        if i == 0 or chance.random() < 0.08:
            mood["is"] = chance.choice((1.0, 1.0, 0.95, 0.91, 1.1, 0.7))  # none comes to a limit itself
        jump = chance.choice((3.0, 0.2)) if chance.random() < 0.02 else 1.0
        value.append(value[-1] * mood["is"] * jump)
    falls = chance.choice((1.0, 1.0, 0.999, 0.98))  # per step, of what is evaluated

    def fill(worker, mode, step):
        at = min(worker.global_step, len(value) - 1)
        held = 1.5 * falls ** at
        worker.scalars(*((name, value[at] * (held if "val" in name or mode == "eval" else 1)) for name in names))

    return rules, common.play(chance, lane, fill)


def common_modes():
    return ("train", "global")


def adversarial_imbalance(chance):
    names = chance.sample(("g/loss", "d/loss", "aux/loss", "val_loss"), chance.choice((1, 2, 3, 3, 3)))
    often = chance.choice((0, 0.02))
    small = {name: chance.choice((1.0, 1.0, 0.03, 0.01, 0.01)) for name in names}
    parameters = common.shared(chance, common_modes(), steps=False)
    parameters.pop("min_hits", None)

    def fill(worker, mode, step):
        if chance.random() < 0.95:
            # They begin balanced: what is unequal from the start may be meant so.
            worker.scalars(*((name, math.nan if chance.random() < often else
                              (small[name] if worker.global_step > 12 else 1.0) * chance.choice((0.8, 1.0, 1.2))) for name in names))

    schedule = chance.choice((common.train_only, common.global_only, common.train_and_eval))
    return [{"use": "adversarial_imbalance", "with": parameters}], common.play(chance, schedule(chance, chance.randint(5, 45)), fill)


def loss_spike(chance):
    """A level with some scatter, on it jumps that pass or stay, values that are none, and other levels."""
    parameters = {"window": chance.choice((30, 40, 200)), "points": chance.randint(1, 4), "recovery_steps": chance.choice((2, 5, 20)),
                  "z_threshold": chance.choice((4, 8)), **common.shared(chance, common_modes())}
    names = chance.choice((["loss"], ["loss"], ["a_loss", "val_loss"], ["train-logloss", "train-auc"]))
    often = chance.choice((0, 0, 0.03))
    level, left, factor = chance.choice((1.0, 30.0, 0.0, -2.0)), 0, 1.0
    values = []
    for _ in range(260):
        if left == 0 and len(values) > 25 and chance.random() < 0.03:
            left, factor = chance.choice((1, 2, 4, 8, 25, 60)), chance.choice((0.2, 1.5, 3.0, 40.0))
        left = max(left - 1, 0)
        scatter = chance.choice((0.0, 0.01, -0.01, 0.05, -0.05))
        values.append((level or 1e-3) * ((factor if left else 1.0) + scatter))

    def fill(worker, mode, step):
        if chance.random() < 0.97:
            number = values[min(worker.global_step, len(values) - 1)]
            worker.scalars(*((name, odd(chance, number, often)) for name in names))

    schedule = chance.choice((common.train_only, common.global_only, common.train_and_eval))
    return ([{"use": "loss_spike", "with": parameters}],
            common.play(chance, schedule(chance, chance.randint(30, 220)), fill, worlds=(1, 1, 1, 2)))


def learning_rate_decay(chance):
    """Rates that fall geometrically, evenly or to an end, with warm-ups, restarts and values that are none."""
    parameters = {"updates": chance.choice((10, 50, 200)), "share": chance.choice((0.0625, 0.0625, 0.25, 0.01)),
                  "zero_updates": chance.choice((1, 5, 20, 20)), **common.shared(chance, common_modes())}
    if chance.random() < 0.1:
        parameters["tensor_regex"] = ["rate$"]
    names = chance.choice((["learning_rate"], ["learning_rate"], ["learning_rate", "judge.learning_rate", "my_learning_rates"], ["learning_rate", "lr"]))
    length, period, often = chance.randint(20, 90), chance.choice((1, 1, 3, 10)), chance.choice((0, 0, 0.03))
    warm, again, changed = chance.choice((0, 0, 5)), chance.choice((1000, 1000, 25)), chance.random() < 0.7
    factor = chance.choice((0.5, 0.8, 0.9, 0.97)) if period < 10 else chance.choice((0.1, 0.5))
    shapes = {"geometric": lambda at: factor ** (at // period), "line": lambda at: max(0.0, 1 - at / length),
              "square": lambda at: max(0.0, 1 - at / length) ** 2, "root": lambda at: (1 + at) ** -0.5,
              "odd": lambda at: chance.choice((1.0, 0.5, 0.25, 0.1, 0.05, 0.0))}
    shape = shapes[chance.choice(("geometric", "geometric", "geometric", "line", "square", "root", "odd"))]
    rates = [0.1 * ((at % again) / warm if at % again < warm else shape(at % again - warm)) for at in range(400)]
    newest = {}

    def fill(worker, mode, step):
        rate = rates[min(worker.global_step, len(rates) - 1)]
        if changed and newest.get((worker.rank, mode)) == rate and not (rate == 0 and step % 10 == 0):  # as the hook sends it
            return
        newest[worker.rank, mode] = rate
        worker.scalars(*((name, odd(chance, rate if name != "judge.learning_rate" else 0.1, often), "other") for name in names))

    schedule = chance.choice((common.train_only, common.global_only, common.train_and_eval))
    return ([{"use": "learning_rate_decay", "with": parameters}],
            common.play(chance, schedule(chance, length), fill, worlds=(1, 1, 1, 2)))


def budget(chance):
    """Rates with and without an end, plans that fit and plans that do not, stages, and rounds of boosting."""
    parameters = {**({"share": chance.choice((0.1, 0.001))} if chance.random() < 0.2 else {}), **common.shared(chance, common_modes())}
    for name, values in (("early", (0.5, 0.9)), ("late", (1.0, 2.0)), ("per_epoch", (2, 30)), ("reach", (0.1, 0.9)), ("worth", (1, 10))):
        if chance.random() < 0.1:
            parameters[name] = chance.choice(values)
    if chance.random() < 0.1:
        parameters["tensor_regex"] = ["rate$"]
    names = chance.choice((["learning_rate"], ["learning_rate"], ["learning_rate", "judge.learning_rate"], ["judge.learning_rate", "lr"]))
    updates, stride = chance.randint(10, 90), chance.choice((1, 1, 5, 0.25))
    end, warm, again = chance.randint(3, 120), chance.choice((0, 0, 4, 200)), chance.choice((1000, 1000, 25))
    floor = chance.choice((0.0, 0.0, 0.005, 0.01, 0.2))
    shapes = {"line": lambda at: max(floor, 1 - at / end), "geometric": lambda at: 0.8 ** (at // 3), "cosine": lambda at: max(floor, 0.5 + 0.5 * math.cos(math.pi * min(1.0, at / end))),
              "steps": lambda at: 0.1 ** (at // max(1, end // 3)), "stages": lambda at: 1.0 if at < end else 0.001, "none": lambda at: 1.0,
              "odd": lambda at: chance.choice((1.0, 0.5, 0.02, 0.009, 0.0))}
    shape = shapes[chance.choice(sorted(shapes))]
    rates = [0.1 * ((at % again) / warm if at % again < warm else shape(at % again - warm)) for at in range(600)]
    epochs = max(1, updates // chance.choice((5, 20)))
    length = chance.choice((updates, epochs, end, updates * 4, updates // 2))
    plan = {"updates": updates, "epochs": epochs, "length": length, "stride": stride, "schedule": round(length * stride),
            "lowest": chance.choice((0, 0, 0.005, 0.01, 1)), "accumulation": chance.choice((1, 4)), "follows_metric": chance.choice((0, 0, 1)),
            "rounds": chance.choice((10, 300, 20000)), "shrinkage": chance.choice((0.001, 0.1, 1, 2)), "early_stopping": chance.choice((0, 0, 1)), "other": 3}
    plan = {field: number for field, number in plan.items() if chance.random() < 0.8} if chance.random() < 0.7 else {}
    often, newest, said = chance.choice((0, 0, 0.03)), {}, {}

    def fill(worker, mode, step):
        rate = rates[min(worker.global_step, len(rates) - 1)]
        values = []
        for field, number in plan.items():
            if (worker.rank, field) not in said and chance.random() < 0.5:
                said[worker.rank, field] = number
                values.append((f"ledger/plan/{field}", odd(chance, number, often), "ledger"))
        if values or newest.get((worker.rank, mode)) != rate or step & (step - 1) == 0:  # as the hook sends it
            newest[worker.rank, mode] = rate
            values += [(name, odd(chance, rate if name != "judge.learning_rate" else 0.1, often), "other") for name in names]
        if values:
            worker.scalars(*values)

    schedule = chance.choice((common.train_only, common.global_only, common.train_and_eval))
    return ([{"use": "budget", "with": parameters}],
            common.play(chance, schedule(chance, chance.randint(10, 100)), fill, worlds=(1, 1, 1, 2)))


def mode_mismatch(chance):
    """The state of the model at each step, right or wrong, of one worker or of some."""
    parameters = {"steps": chance.randint(1, 4), **common.shared(chance, ("train", "eval"))}
    name = chance.choice(("training", "model_training", "discriminator/training"))
    if chance.random() < 0.15:
        parameters["tensor_regex"] = ["^state$"]
        name = "state"
    wrong = {"train": chance.choice((0.0, 0.3, 0.8)), "eval": chance.choice((0.0, 0.3, 0.9))}
    often = chance.choice((0, 0, 0.05))

    def fill(worker, mode, step):
        if chance.random() < 0.95:
            right = mode in ("train", "global")
            state = float(right != (chance.random() < wrong.get(mode, 0.5)))
            worker.scalars((name, chance.choice(common.SPECIAL) if chance.random() < often else state), ("retraining", 0.0))

    schedule = chance.choice((common.train_only, common.train_and_eval, common.train_and_eval))
    return ([{"use": "mode_mismatch", "with": parameters}],
            common.play(chance, schedule(chance, chance.randint(3, 40)), fill, passes=True))


def family_baseline(chance):
    """Runs of one job, one after the other; the last is judged. They differ a little, or a lot, or from some run on; some fail."""
    parameters = {"family": ["job"], "min_runs": chance.randint(3, 6), "points": chance.randint(1, 3), "z_threshold": chance.choice((1, 2, 4)),
                  **({"better": True} if chance.random() < 0.4 else {}), **common.shared(chance, ("train", "eval", "global"))}
    names = chance.choice((("loss",), ("loss", "accuracy"), ("train-logloss", "val-auc"), ("f1_score", "perplexity")))
    scatter, drift, often = chance.choice((0.0, 0.001, 0.05)), chance.choice((0.0, 0.3, 3.0)), chance.choice((0, 0, 0.03))
    schedule = chance.choice((common.train_only, common.train_and_eval, common.global_only))(chance, chance.randint(5, 60))
    count = chance.randint(2, 14)
    drifts_at, odd_run = chance.randint(0, count), chance.choice((1.0, 1.0, 0.3, 1.1, 5.0))
    records, start = [], story.START
    for number in range(count + 1):
        judged = number == count
        level = (1 + drift if number >= drifts_at else 1.0) * (odd_run if judged else 1.0)
        world, workers = chance.choice((1, 1, 2)), []
        ends = chance.choice(("completed",) * 6 + ("failed", None))
        for rank in range(world):
            worker = story.Worker(rank, world, start=start, run=None if judged else f"earlier{number}")
            worker.start()
            position = {}
            for mode, further in schedule:
                position[mode] = position.get(mode, -1) + (further if mode in position else 1)
                step = worker.enter(mode, position[mode])
                worker.scalars(*((name, odd(chance, level * (1 + scatter * chance.uniform(-1, 1)) * 10 / (3 + position.get("train", step)),
                                            often), "loss" if "loss" in name else "metric") for name in names))
                worker.step_end()
            if ends or judged:
                worker.end(ends or "completed")
            workers.append(worker)
        records += [{**record, "at": max(record["at"], records[-1]["at"]) if records else record["at"]}
                    for record in story.interleave(workers, chance)]
        start += 3600 * story.SECOND
    return [{"use": "family_baseline", "with": parameters}], records


def course(chance):
    """A loss that falls, stands, jumps, climbs, comes back, scatters; beside it rates, a plan, a loss call, evaluations, a metric."""
    parameters = common.shared(chance, ("train", "eval"), steps=False)
    for name, choices in (("alpha", (0.05, 0.01)), ("back", (0.3,)), ("jump", (0.1,)), ("turn", (0.02, 0.3)), ("skill", (0.1,)), ("gain", (0.02,))):
        if chance.random() < 0.3:
            parameters[name] = chance.choice(choices)
    name, shift = chance.choice(("loss", "train_loss", "train/loss")), chance.choice((0, 0, -1.0, 10.0))
    first, floor, pace, scatter = chance.choice((2.3, 2.3, 0.1)), chance.choice((0.3, 0.9, 1.0)), chance.choice((5, 30, 200)), chance.choice((0, 0.01, 0.05, 0.3))
    length, at = chance.choice((60, 130, 200, 280)), chance.randint(20, 150)
    event = chance.choice((None, None, "jump", "climb", "scatter", "back"))
    size, lasting = chance.choice((0.2, 0.6, 3.0)), chance.choice((15, 60, 300))
    trivial, planned, rates = chance.choice((None, 2.3, 1.0)), chance.choice((0, 0, 300, 5000)), chance.choice((None, None, 0.1))
    evaluated, beside = chance.choice((None, "val_loss", "loss")), chance.choice((None, None, "val_accuracy"))
    turning, several, rewarded = chance.choice((0, 0.002, 0.02)), chance.choice((0, 0, 0, 0.1, 1)), chance.random() < 0.03
    mode_of = chance.choice((common.train_only, common.global_only, common.train_and_eval))

    def level(step):
        out = first * (floor + (1 - floor) * math.exp(-step / pace))
        if event == "jump" and at <= step < at + lasting:
            out += size * first
        elif event == "climb" and step >= at:
            out += size * first * (step - at) / 40
        elif event == "back" and step >= at:
            out += size * first * math.exp(-(step - at) / lasting)
        return out + chance.gauss(0, scatter * first * (12 if event == "scatter" and step >= at else 1))

    def held(step):
        return 1.2 * (floor + (1 - floor) * math.exp(-step / pace)) + turning * step + chance.gauss(0, scatter / 10)

    def fill(worker, mode, step):
        values, done = [], worker.global_step
        if mode == "eval":
            if evaluated:
                values.append((evaluated, held(done), "loss"))
            if beside:
                values.append((beside, 0.3 + 0.4 * min(done / 50, 1) - (done > 100) * chance.choice((0, 0.2)), "metric"))
        else:
            loss = odd(chance, level(done) + shift, 0.003)
            values.append((name, loss, "loss"))
            if chance.random() < several:
                values.append(("adversary/loss", 0.7, "loss"))
            if rates is not None and (done == 0 or chance.random() < 0.03):
                values.append(("learning_rate", rates * chance.choice((1.0, 1.0, 0.5, 2.0)), "metric"))
            if planned and done == 0:
                values.append(("ledger/plan/updates", float(planned), "ledger"))
            if rewarded and done == 40:
                values.append(("reward", 1.0, "metric"))
            if trivial is not None and math.isfinite(loss) and chance.random() < 0.9:
                own = {"samples": 16, "loss": 16 * loss, "trivial": 16 * trivial * chance.uniform(0.95, 1.05), "pairs": 7, "wins": chance.choice((3, 4)), "straight": 30, "crossed": chance.choice((30, 30.5))}
                values += [(f"ledger/l/{field}", float(number), "ledger") for field, number in own.items()]
            if evaluated == "val_loss" and mode == "train" and done % 9 == 8 and mode_of is not common.train_and_eval:
                values.append((evaluated, held(done), "loss"))
                if beside:
                    values.append((beside, 0.3 + 0.01 * done, "metric"))
        worker.scalars(*values)

    return [{"use": "course", "with": parameters}], common.play(chance, mode_of(chance, length), fill, worlds=(1, 1, 2), passes=True)


@common.of("course", "course of boosters")
def course_boosting(chance):
    """Rounds of a booster: sets of one metric or two, that turn or gain."""
    parameters = {"turn": chance.choice((0.1, 0.3, 0.02)), **common.shared(chance, ("global",), steps=False)}
    sets = chance.choice((("train", "validation"), ("validation_0", "validation_1"), ("training", "valid_0")))
    metrics = chance.choice((("logloss",), ("rmse", "auc"), ("logloss", "auc"), ("ndcg",), ("error", "logloss")))
    turn, pace, climb, noise = chance.randint(2, 30), chance.choice((3, 12)), chance.choice((0, 0.01, 0.1)), chance.choice((0, 0.002))

    def fill(worker, mode, step):
        values = []
        for which, data in enumerate(sets):
            for metric in metrics:
                fall = math.exp(-step / pace) + (climb * max(step - turn, 0) if which else 0) + chance.gauss(0, noise)
                values.append((f"{data}-{metric}", 1 - 0.5 * fall if metric in ("auc", "ndcg") else fall, "metric"))
        worker.scalars(*values)

    return [{"use": "course", "with": parameters}], common.play(chance, common.global_only(chance, chance.randint(5, 50)), fill)
