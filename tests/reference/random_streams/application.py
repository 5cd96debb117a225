"""Random streams for the rules about labels, images, tokens, trees and the start of a training."""
import math

from tests.reference.random_streams import common

SCHEDULES = (common.train_only, common.train_and_eval, common.global_only)
BOOSTING = (common.global_only, common.global_only, common.global_only, common.train_only)


def item(chance, rule, parameters, presets=("tocsin", "original")):
    return [{"use": rule, "preset": chance.choice(presets), "with": parameters}]


def play(chance, fill, length=(3, 25), schedules=SCHEDULES, **more):
    return common.play(chance, chance.choice(schedules)(chance, chance.randint(*length)), fill, **more)


def confusion(chance):
    parameters = common.shared(chance)
    if chance.random() < 0.4:
        parameters["normalize"] = "column"
    if chance.random() < 0.4:
        parameters["min_support"] = chance.randint(1, 5)
    if chance.random() < 0.3:
        parameters["max_off_diag"] = chance.choice((0.01, 0.5))
    if chance.random() < 0.5:
        parameters["start_step"] = 0
    if chance.random() < 0.4:
        parameters["contrast"] = chance.choice((0, 0.5, 0.9))
    if chance.random() < 0.4:
        parameters["in_a_row"] = chance.randint(1, 4)
    if chance.random() < 0.2:
        parameters["ignore_labels"] = [chance.randint(0, 2)]
    if chance.random() < 0.3:
        parameters["labels_collection"] = "answers"
    names = chance.choice((("labels",), ("labels",), ("answers_0",), ("answers_0", "labels"), ("other",)))
    size = chance.randint(2, 4)
    right = chance.choice((0.6, 0.9, 1.0))

    def fill(worker, mode, step):
        if chance.random() < 0.1:
            return
        worker.tensors(*map(given, names))

    def given(name):
        cells = {}
        for _ in range(chance.randint(1, 40)):
            label = chance.randrange(size)
            cell = (label, label if chance.random() < right else chance.randrange(size))
            cells[cell] = cells.get(cell, 0) + 1
        tensor = {"name": name, "role": "label", "dtype": "i64", "values": [0.0], "statistics": {
            "confusion": [number for cell, count in sorted(cells.items()) for number in (*cell, count)]}}
        if name == "answers_0":
            tensor.update(role="other", attrs={"collections": ["answers"]})
        if chance.random() < 0.05 and len(names) == 1:
            del tensor["statistics"]
        return tensor

    return item(chance, "confusion", parameters), play(chance, fill)


def chance_level(chance):
    parameters = common.shared(chance, ("train", "eval"), steps=False)
    for name, values in (("alpha", (0.05, 0.01)), ("skill", (0.0, 0.1)), ("share", (0.6,)), ("worse", (0.5,))):
        if chance.random() < 0.3:
            parameters[name] = chance.choice(values)
    noise, start = chance.choice((0.0, 0.01, 0.1)), chance.choice((-0.5, 0.0, 0.0, 0.6))
    later = chance.choice((start, start, -0.4, 0.0, 0.7))
    turn, pairs = chance.choice((10, 40, 80)), chance.choice((0, 4, 40, 200))
    calls = chance.choice((("l",), ("l",), ("l",), ("l", "m")))
    bare, adversarial, eval_share = chance.choice((0, 0, 0, 0.3)), chance.choice((0, 0, 0, 0.2)), chance.choice((0.5, 0.9))
    rates, planned = chance.choice((0, 0, 1)), chance.choice((0, 0, 60, 1000))
    gain, of_gain = chance.choice((None, 0.0, 0.0, 0.3)), chance.choice((0.001, 0.1))
    boosts, of = chance.random() < 0.2, {name: chance.choice((start, later, -0.4, 0.0, 0.7)) for name in ("t-m", "v-m", "v-n")}

    def rounds(step):
        values = []
        for name, skill in of.items():
            skill = skill if step < turn else later
            values += [(f"ledger/{name}/samples", 100, "ledger"), (f"ledger/{name}/trivial", 200.0, "ledger"),
                       (f"ledger/{name}/loss", 200 * (1 - skill + chance.gauss(0, noise)), "ledger")]
        return values

    def fill(worker, mode, step):
        values = []
        if boosts:
            return worker.scalars(*rounds(step))
        if mode == "train" and rates:
            values.append(("learning_rate", chance.choice((0.1, 0.1, 0.1, 0.2)) if step < 20 else 0.1, "metric"))
        if mode == "train" and planned and step == 0:
            values.append(("ledger/plan/updates", planned, "ledger"))
        for call in calls:
            skill = start if step < turn or call == "m" else later
            own = {"samples": 0, "no_targets": 1, "calls": 1}
            if chance.random() >= bare:
                samples = chance.choice((16, 32))
                share = (0.9 if skill > 0.5 else 0.5) if mode == "train" else eval_share
                won = sum(chance.random() < share for _ in range(pairs))
                own = {"samples": samples, "calls": 1, "loss": samples * 2 * (1 - skill + chance.gauss(0, noise)),
                       "trivial": samples * 2.0, "pairs": pairs, "wins": won, "crossed": samples}
                if gain is not None:
                    own.update(crossed=2.0 * samples, straight=2.0 * samples * (1 - gain + chance.gauss(0, of_gain)))
            if chance.random() < adversarial:
                own.update(calls=2, one_target=1)
            if chance.random() < 0.03:
                own.pop("trivial", None)
            values += [(f"ledger/{call}/{field}", value, "ledger") for field, value in own.items()]
        return worker.scalars(*values)

    # Which pass an evaluation of several workers belongs to, of which some lost their last training steps, is left open.
    evaluates = chance.random() < 0.4
    return item(chance, "chance_level", parameters, ("tocsin",)), play(
        chance, fill, length=(3, 150), schedules=(common.train_and_eval if evaluates else common.train_only,),
        worlds=(1,) if evaluates else (1, 1, 2, 3))


def repeated_batch(chance):
    parameters = common.shared(chance, ("global", "train", "eval"), steps=False)
    if chance.random() < 0.3:
        parameters["repeats"] = chance.choice((2, 4))
    every, still = chance.choice((1, 1, 2, 3)), chance.choice((0.2, 0.7, 1.0))
    logs, goes_round, kinds = chance.random() < 0.8, chance.random() < 0.3, chance.choice((1, 3))
    own = [chance.gauss(0, 0.2) for _ in range(every)]
    newest = {}

    def fill(worker, mode, step):
        if logs and mode != "eval" and chance.random() < 0.98:
            level = 2 - 0.01 * step + (own[step % every] if goes_round else chance.gauss(0, chance.choice((0.001, 0.1))))
            worker.scalars(("loss", level, "loss"), *([("val_loss", 5.0, "loss")] if chance.random() < 0.1 else []))
        if step % every or chance.random() < 0.05:
            return
        if mode == "eval":
            values = [float(i % 2 if kinds == 1 else i) for i in range(chance.choice((4, 8, 10)))]
        elif worker.rank in newest and chance.random() < still:
            values = newest[worker.rank]
        else:
            values = [0.0, 1.0, 0.0, 1.0] if kinds == 1 else [float(chance.randint(0, 9)) for _ in range(4)]
        newest[worker.rank] = values if mode != "eval" else newest.get(worker.rank, values)
        if chance.random() < 0.03:
            values = [math.nan, *values[1:]]
        worker.tensors({"name": "x", "role": "input", "dtype": "f32", "values": values},
                       *([{"name": "mask", "role": "input", "dtype": "i64", "values": [1.0, 0.0]}] if chance.random() < 0.9 else []))

    return item(chance, "repeated_batch", parameters), play(chance, fill)


def class_imbalance(chance):
    parameters = {"samples": chance.choice((50, 200)), **common.shared(chance, steps=False)}
    size = chance.randint(1, 3)
    if chance.random() < 0.3:
        parameters["num_classes"] = max(size, 2) + chance.randint(0, 1)
    if chance.random() < 0.3:
        parameters["misprediction_scope"] = "all"
    if chance.random() < 0.5:
        parameters["threshold_imbalance"] = chance.choice((2, 5))
    weights = [chance.choice((0, 1, 5, 40)) for _ in range(size)] or [1]
    right = chance.choice((0.2, 0.5, 1.0))
    predicted = chance.choice((1.0, 0.7))
    shape = chance.choice(([], [40], [20, 2]))

    def fill(worker, mode, step):
        counts = [chance.randint(0, weight) for weight in weights]
        statistics = {"class_counts": counts}
        if chance.random() < predicted:
            statistics["class_correct"] = [sum(chance.random() < right for _ in range(count)) for count in counts]
        worker.tensors({"name": "labels", "role": "label", "dtype": "i64", "shape": shape, "values": [0.0], "statistics": statistics})

    return item(chance, "class_imbalance", parameters), play(chance, fill)


def tree_depth(chance):
    parameters = {"depth": chance.randint(0, 6), **common.shared(chance, ("global",))}
    parameters.pop("modes", None)

    def fill(worker, mode, step):
        if chance.random() < 0.9:
            worker.scalars(("trees/depth", float(chance.randint(0, 8)), "tree"))

    return item(chance, "tree_depth", parameters), play(chance, fill, schedules=BOOSTING)


def tree_without_split(chance):
    parameters = {"rounds": chance.randint(1, 4), **common.shared(chance, ("global",))}
    parameters.pop("modes", None)
    flat = chance.choice((0, 2, 5, 30))

    def fill(worker, mode, step):
        if chance.random() < 0.9:
            depth = 0.0 if step < flat else chance.choice((0.0, 2.0, 5.0))
            if chance.random() < 0.5:
                worker.scalars(("trees/depth", math.nan if chance.random() < 0.03 else depth, "tree"))
            else:
                worker.tensors({"name": "trees/Node", "role": "tree", "dtype": "i32", "values": [0.0], "statistics": {"depth": depth}})

    return item(chance, "tree_without_split", parameters), play(chance, fill, schedules=BOOSTING)


def feature_importance_overweight(chance):
    preset = chance.choice(("original", "tocsin"))
    kind = "weight" if preset == "original" else "gain"
    parameters = {"nfeatures": chance.randint(1, 3), **common.shared(chance, ("global",))}
    parameters.pop("modes", None)
    if chance.random() < 0.4:
        parameters["threshold"] = chance.choice((0.4, 0.5, 0.6))
    count = chance.randint(2, 6)
    heavy = chance.random() < 0.5

    def fill(worker, mode, step):
        values = [chance.choice((0.0, 1.0, 2.0, 3.0, 30.0 if heavy and i == 0 else 1.0, 30.0 if heavy and i == 0 else 2.0))
                  for i in range(count)]
        if chance.random() < 0.03:
            values[0] = math.nan
        worker.scalars(*((f"feature_importance/{kind}/f{i}", value, "importance") for i, value in enumerate(values)))

    return item(chance, "feature_importance_overweight", parameters, (preset,)), play(chance, fill, schedules=BOOSTING)


def poor_weight_initialization(chance):
    parameters = {key: value for key, value in common.shared(chance, steps=False).items() if key in ("min_hits", "clear_after")}
    parameters.update({"patience": chance.randint(1, 4), "combine": chance.choice(("any", "any", "all"))})
    if chance.random() < 0.3:
        parameters["steps"] = chance.randint(1, 20)
    spread = chance.choice((1.0, 3.0, 5.0))
    narrow = chance.choice((0.1, 0.5))
    walk = {}

    def fill(worker, mode, step):
        tensors = []
        if chance.random() < 0.8:
            tensors += [{"name": f"relu_input_{i}", "role": "activation_in",
                         "values": [0.0, chance.choice((1.0, spread))] if chance.random() < 0.95 else [1.0]} for i in range(2)]
        if chance.random() < 0.8:
            tensors += [{"name": f"gradient/{i}", "role": "gradient", "values": [0.0, 1.0],
                         "statistics": {"p05": 0.0, "p95": 1e-4 if chance.random() < narrow else 0.5}} for i in range(2)]
        if tensors:
            worker.tensors(*tensors)
        if chance.random() < 0.9:
            walk[worker.rank] = walk.get(worker.rank, 1.0) * chance.choice((1.0, 1.0, 0.9, 1.1))
            worker.scalars(("loss", math.nan if chance.random() < 0.05 else walk[worker.rank]))

    return (item(chance, "poor_weight_initialization", parameters, ("original",)),
            play(chance, fill, schedules=(common.train_only, common.global_only)))


def nlp_sequence_ratio(chance):
    tokens = chance.choice(([0], [0, 7], [5]))
    parameters = {"token_values": tokens, **common.shared(chance)}
    if chance.random() < 0.5:
        parameters["token_thresholds_percent"] = [chance.choice((25, 50, 75)) for _ in tokens]
    named = (("embedding0_input_0", "i64"), ("tokens", "i64"), ("images", "f32"))

    def fill(worker, mode, step):
        worker.tensors(*(one(name, dtype) for name, dtype in named if chance.random() < 0.9))

    def one(name, dtype):
        values = [float(chance.choice((0, 0, 5, 7))) for _ in range(chance.choice((0, 4, 8)))]
        if dtype == "f32" and values and chance.random() < 0.1:
            values[0] = math.nan
        counted = tokens if chance.random() < 0.95 else [1]
        return {"name": name, "role": "input", "dtype": dtype, "values": values,
                "statistics": {("value_counts", tuple(map(float, counted))): [values.count(one) for one in counted]}}

    return item(chance, "nlp_sequence_ratio", parameters), play(chance, fill)


def check_input_images(chance):
    parameters = {"threshold_samples": chance.choice((2, 20)), **common.shared(chance, steps=False)}
    if chance.random() < 0.4:
        parameters["threshold_std"] = 0.5
    channels = chance.randint(1, 3)
    shape = chance.choice(([2, channels, 2, 2], [2, channels, 2, 2], [2, 8]))
    off = chance.choice((0.0, 0.15, 0.5))

    def fill(worker, mode, step):
        sums = [8 * (off if c == 0 else 0.0) * chance.choice((0.5, 1.0, 2.0)) for c in range(channels)]
        worker.tensors({"name": "inputs", "role": "input", "shape": shape, "values": [0.0] * math.prod(shape), "statistics": {
            "channel_sum": sums, "channel_sumsq": [8 * chance.choice((1.0, 1.0, 4.0)) for _ in sums],
            "channel_count": [8] * channels}})

    return item(chance, "check_input_images", parameters), play(chance, fill)


def replica_divergence(chance):
    parameters = common.shared(chance, ("train", "global"), steps=False)
    parameters.pop("min_hits", None)
    parameters.pop("workers", None)
    differs = chance.choice((0.0, 0.05, 0.3))

    def fill(worker, mode, step):
        tensors = [{"name": f"w{i}", "role": "weight", "values": [1.0], "statistics": {
            "digest": 100 * step + i + (1 + worker.rank if chance.random() < differs else 0) * 7}} for i in range(2)]
        for tensor in tensors:
            if chance.random() < 0.05:
                del tensor["statistics"]
        if chance.random() < 0.95:
            worker.tensors(*tensors)

    return [{"use": "replica_divergence", "with": parameters}], play(chance, fill, worlds=(1, 2, 3, 4), evaluates_alone=0)


def ranks(chance):
    parameters = {"steps": chance.choice((2, 3)), **common.shared(chance, ("train", "global"), steps=False)}
    parameters.pop("min_hits", None)
    parameters.pop("workers", None)
    few, sends = chance.choice((2, 3, 12)), chance.choice((0.8, 1.0))

    def fill(worker, mode, step):
        if chance.random() < sends:
            worker.scalars(("ledger/ranks/batch", float(chance.randint(1, few)), "ledger"))

    return [{"use": "ranks", "with": parameters}], play(chance, fill, worlds=(1, 2, 3, 4), evaluates_alone=0)


def precision(chance):
    parameters = {"updates": chance.choice((1, 2, 4)), "share": chance.choice((0.5, 0.9)), "attempts": chance.choice((3, 8)),
                  **common.shared(chance, ("train", "global"), steps=False)}
    lost, window, words = chance.choice((30, 50, 90, 100)), chance.choice((0.2, 0.6)), chance.choice((0.0, 0.0, 0.5, 0.9))

    def fill(worker, mode, step):
        values = []
        if chance.random() < 0.8:
            values += [("elements", chance.choice((0.0, 100.0, 100.0))), ("swallowed", float(chance.randint(lost // 2, lost)))]
        if chance.random() < window:
            values += [("window", chance.choice((0.0, 100.0, 100.0))), ("unmoved", float(chance.randint(lost // 2, lost)))]
        if chance.random() < 0.6:
            values += [("scaled", float(chance.randint(1, 3)))]
            values += [("left_out", float(chance.randint(0, 1)))] if chance.random() < 0.5 else []
        if chance.random() < words:
            values += [("scale", chance.choice((1.0, 1.0, 1.0, 2.0))), ("scale_tensors", chance.choice((0.0, 4.0))), ("beside", 1.0)]
            values += [("underflow/" + name, chance.choice((0.9, 0.9, 0.6, 0.2))) for name in ("a", "b.c") if chance.random() < words]
        if values:
            worker.scalars(*(("ledger/precision/" + field, value, "ledger") for field, value in values))

    return [{"use": "precision", "with": parameters}], play(chance, fill)


def create_xgboost_report(chance):
    names = chance.sample(("train-logloss", "validation-logloss", "train-auc", "validation-auc", "eval-rmse"), chance.randint(1, 4))
    features = [f"f{i}" for i in range(chance.randint(1, 5))]
    kinds = chance.sample(("weight", "gain", "cover"), chance.randint(1, 2))
    size, right = chance.randint(2, 4), chance.choice((0.6, 0.9))

    def fill(worker, mode, step):
        values = [(name, chance.choice((math.nan, math.inf)) if chance.random() < 0.02 else chance.uniform(0, 2),
                   "metric" if name.endswith("auc") else "loss") for name in names if chance.random() < 0.95]
        if step % 3 == 0:
            values += [(f"feature_importance/{kind}/{feature}", chance.uniform(0, 1), "metric")
                       for kind in kinds for feature in features if chance.random() < 0.8]
        if chance.random() < 0.7:
            values.append(("trees/depth", float(chance.randint(1, 9)), "metric"))
        if step == 0:
            values.append(("max_depth", 6.0, "hyperparameter"))
        if values:
            worker.scalars(*values)
        if chance.random() < 0.4:
            cells = {}
            for _ in range(chance.randint(1, 40)):
                label = chance.randrange(size)
                cell = (label, label if chance.random() < right else chance.randrange(size))
                cells[cell] = cells.get(cell, 0) + 1
            counts = [sum(n for (label, _), n in cells.items() if label == one) for one in range(size)]
            worker.tensors({"name": "predictions", "role": "prediction", "values": [chance.random() for _ in range(5)]},
                           {"name": "labels", "role": "label", "values": [float(chance.randrange(size)) for _ in range(5)],
                            "statistics": {"class_counts": counts, "class_correct": [cells.get((one, one), 0) for one in range(size)],
                                           "confusion": [n for cell, count in sorted(cells.items()) for n in (*cell, count)]}})

    records = play(chance, fill, schedules=(common.global_only,), worlds=(1, 1, 2))
    return item(chance, "create_xgboost_report", {}), records
