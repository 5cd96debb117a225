"""Random streams for the further rules over one row: statistics that travel beside the columns, shapes, operators."""
import math
import zlib

from tests.reference import columns, story
from tests.reference.random_streams import common
from tests.reference.rules import saturated_activation as saturation
from tests.reference.rules.weight_saturation import LARGEST
from tocsin import wire

TRAINING = ("train", "global")


def item(chance, rule, parameters, new=False):
    """One rule; of a new one how many hits in a row it takes is its own matter."""
    if new:
        parameters.pop("min_hits", None)
    preset = "tocsin" if new else chance.choice(("tocsin", "original"))
    return [{"use": rule, "preset": preset, "with": parameters}]


def play(chance, fill, schedules=common.SCHEDULES):
    return common.play(chance, chance.choice(schedules)(chance, chance.randint(3, 25)), fill)


def tensor_variance(chance):
    parameters = {"tensor_regex": ["."], **common.shared(chance)}
    limits = chance.sample((("max_threshold", 2.0), ("min_threshold", 0.5)), chance.randint(1, 2))
    parameters.update(limits)
    shapes = [chance.choice(((), (4,), (2, 2))) for _ in range(3)]

    def fill(worker, mode, step):
        if chance.random() < 0.3:
            worker.scalars(("loss_scale", chance.choice((1.0, 2.0)), "metric"))
        worker.tensors(*({"name": f"t{i}", "role": ("weight", "gradient")[i % 2], "shape": list(shape),
                          "flags": 1 << 18 if chance.random() < 0.3 else 0, "values": values()}
                         for i, shape in enumerate(shapes) if chance.random() < 0.9))

    def values():
        n = chance.choice((0, 1, 2, 4))
        spread = chance.choice((0.0, 0.5, 1.0, 1.5, 3.0))
        out = [(-1) ** i * spread for i in range(n)]
        if n and chance.random() < 0.05:
            out[0] = chance.choice(common.SPECIAL)
        return out

    return item(chance, "tensor_variance", parameters), play(chance, fill)


def unchanged_tensor(chance):
    parameters = {"tensor_regex": ["."], **common.shared(chance, steps=False)}
    if chance.random() < 0.7:
        parameters["num_steps"] = chance.randint(2, 4)
    if chance.random() < 0.3:
        parameters["equal_nan"] = True
    rtol = chance.choice((1e-5, 0.25))
    if rtol != 1e-5:
        parameters["rtol"] = rtol
    measured = chance.choice((1.0, 0.8, 0.0))
    still = chance.choice((0.9, 0.5))
    saved = {}

    def fill(worker, mode, step):
        if chance.random() < 0.9:
            worker.tensors(*(one((worker.rank, mode, i), step, i) for i in range(2)))

    def one(key, step, i):
        before = saved.get(key)
        values = list(before[1]) if before and chance.random() < still else [chance.choice((1.0, 2.0, 4.0)) for _ in range(2)]
        if chance.random() < 0.04:
            values[0] = chance.choice(common.SPECIAL)
        if chance.random() < 0.03:
            values.append(1.0)
        tensor = {"name": f"t{i}", "role": "weight", "dtype": ("f32", "i32")[i] if all(map(math.isfinite, values)) else "f32",
                  "values": values}
        if chance.random() < measured:
            spelled = repr(values)
            tensor["statistics"] = {"digest": sum(ord(c) << (k % 40) for k, c in enumerate(spelled))}
            if before and len(before[1]) == len(values) and all(map(math.isfinite, values + before[1])):
                tensor["statistics"]["delta_from_step"] = before[0]
                tensor["statistics"]["delta_excess", (rtol,)] = max(abs(new - old) - rtol * abs(new)
                                                                    for new, old in zip(values, before[1]))
        saved[key] = (step, values)
        return tensor

    return item(chance, "unchanged_tensor", parameters), play(chance, fill)


def weight_saturation(chance):
    parameters = common.shared(chance, TRAINING)
    dtypes = [chance.choice(("f16", "bf16", "f8_e4m3", "f8_e5m2", "f32", "i8")) for _ in range(2)]
    if chance.random() < 0.6:
        parameters["bound"] = chance.choice((2, 0.5))
    if chance.random() < 0.5:
        parameters["threshold_percent"] = chance.choice((0, 25, 50))
    counted = chance.choice((1.0, 0.5))

    def fill(worker, mode, step):
        if chance.random() < 0.9:
            worker.tensors(*(one(i, dtype) for i, dtype in enumerate(dtypes)))

    def one(i, dtype):
        bound = parameters.get("bound", 0.95 * LARGEST[dtype])
        n = chance.choice((0, 1, 4))
        values = [bound * chance.choice((0.5, 0.5, -0.9, 1.0, -1.0)) for _ in range(n)]
        if n and dtype != "i8" and chance.random() < 0.05:
            values[0] = chance.choice(common.SPECIAL)
        tensor = {"name": f"w{i}", "role": "weight", "dtype": dtype, "values": values}
        if chance.random() < counted or any(map(math.isinf, values)):
            other = bound if chance.random() < 0.95 else 2 * bound
            tensor["statistics"] = {("abs_ge_count", (float(other),)): sum(abs(x) >= other for x in values)}
        return tensor

    return item(chance, "weight_saturation", parameters), play(chance, fill)


def gradient_clipping(chance):
    parameters = common.shared(chance, TRAINING, steps=False)
    parameters["window"] = chance.choice((10, 25, 30))
    if chance.random() < 0.5:
        parameters["max_norm"] = 1
    if chance.random() < 0.3:
        parameters["max_clipped_fraction"] = chance.choice((0, 0.2, 0.9))
    if chance.random() < 0.5:
        parameters["min_cut"] = chance.choice((0, 0.8, 1.1, 3))
    says = chance.choice(("clip_norm", "clipped", None))
    size = chance.choice((0.5, 1.0, 1.5, 20.0))

    def fill(worker, mode, step):
        norm = size * chance.choice((0.5, 1.0, 1.2, 1.2, 30.0 if chance.random() < 0.1 else 1.0))
        if chance.random() < 0.03:
            norm = chance.choice((math.nan, math.inf))
        sent = [("grad_norm", norm, "metric")]
        if says == "clip_norm":
            sent.append(("clip_norm", 1.0, "metric"))
        elif says == "clipped":
            sent.append(("clipped", float(norm > 1.0), "metric"))
        if chance.random() < 0.97:
            worker.scalars(*sent)

    schedule = chance.choice((common.train_only, common.global_only, common.train_and_eval))
    return item(chance, "gradient_clipping", parameters), common.play(chance, schedule(chance, chance.randint(10, 70)), fill)


def saturated_activation(chance):
    parameters = common.shared(chance)
    if chance.random() < 0.2:
        parameters["gradient_threshold"] = chance.choice((1e-3, 0.1))
    if chance.random() < 0.2:
        parameters["min_samples"] = chance.choice((2, 3, 4))
    rules = item(chance, "saturated_activation", parameters)
    p = {**saturation.DEFAULTS, **(saturation.TOCSIN if rules[0]["preset"] == "tocsin" else {}), **parameters}
    named = chance.sample((("a_tanh_input_0", None), ("sigmoid_input_1", None), ("gate_input_0", "Tanh"), ("tanh.sigmoid_input", None),
                           ("x_input_0", "relu"), ("tanh_output_0", None)), 3)
    counted = chance.choice((1.0, 0.6))

    def fill(worker, mode, step):
        worker.tensors(*(one(name, op_type) for name, op_type in named if chance.random() < 0.9))

    def one(name, op_type):
        activation = (op_type or ("tanh" if name.rfind("tanh") > name.rfind("sigmoid") else "sigmoid")).lower()
        lo, hi = saturation.bounds(p, activation) if activation in ("tanh", "sigmoid") else (-1.0, 1.0)
        n = chance.choice((0, 1, 4))
        values = [chance.choice((0.0, lo, hi, 2 * lo, 2 * hi, 2 * hi)) for _ in range(n)]
        if n and chance.random() < 0.05:
            values[0] = chance.choice(common.SPECIAL)
        tensor = {"name": name, "role": "activation_in" if "input" in name else "activation_out", "values": values,
                  "dtype": chance.choice(("f32", "f16")) if name == "gate_input_0" else "f32", "shape": [1, n],
                  "attrs": {"op_type": op_type} if op_type else {}}
        if chance.random() < counted:
            outside = sum(not lo < x < hi for x in values)
            tensor["statistics"] = {"unit_count": n, ("unit_saturated_count", (lo, hi, 1.0)): outside,
                                    ("abs_ge_count", (hi,)): sum(abs(x) >= hi for x in values)}
        return tensor

    return rules, play(chance, fill)


def dead_relu(chance):
    parameters = common.shared(chance)
    if chance.random() < 0.4:
        parameters["threshold_layer"] = chance.choice((0, 25, 75))
    if chance.random() < 0.2:
        parameters["min_samples"] = chance.choice((2, 3, 4))
    named = chance.sample((("relu_output_0", None, (1, 4)), ("ReLU_output_0", None, (1, 4)), ("block_output_0", "ReLU6", (1, 4)),
                           ("leaky_output_0", "leaky_relu", (1, 4)), ("relu_output_9", None, ())), 3)
    counted = chance.choice((1.0, 0.6))

    def fill(worker, mode, step):
        worker.tensors(*(one(name, op_type, shape) for name, op_type, shape in named if chance.random() < 0.9))

    def one(name, op_type, shape):
        values = [chance.choice((0.0, 0.0, -1.0, 1.0)) for _ in range(4 if shape else 1)] if chance.random() < 0.95 else []
        if values and chance.random() < 0.05:
            values[0] = chance.choice(common.SPECIAL)
        tensor = {"name": name, "role": "activation_out", "values": values, "shape": list(shape),
                  "attrs": {"op_type": op_type} if op_type else {}}
        if chance.random() < counted:
            tensor["statistics"] = {"unit_count": len(values), ("unit_inactive_count", (1.0,)): sum(not x > 0 for x in values)}
        return tensor

    return item(chance, "dead_relu", parameters), play(chance, fill)


def update_large(chance):
    parameters = common.shared(chance, TRAINING, steps=False)
    if chance.random() < 0.3:
        parameters["updates"] = chance.choice((1, 3))
    if chance.random() < 0.2:
        parameters[chance.choice(("once", "replaced", "withered", "shrinks"))] = 0
    saved = {}
    start = [1.0, -2.0, 0.5, 1.0] * chance.choice((1, 4))
    pace = chance.choice((0, 0, 0.9))
    moves = chance.choice(((0.01, 0.2), (0.01, 0.5, 0.5, 0.5), (0.01,) * 12 + (0.2, 1.1)))
    fall = chance.choice((None, 0.9, 1, 1.1))
    lost = chance.choice((0, 0, 0.05, 0.7))
    if chance.random() < 0.2:
        parameters["while_falling"] = True

    def fill(worker, mode, step):
        if fall is not None:
            for name in chance.sample(("loss", "other_loss"), chance.choice((1, 1, 2))):
                worker.scalars((name, math.nan if lost and step > 12 and chance.random() < lost else 4 * fall**step + 0.1 * chance.random(), "loss"))
        if chance.random() < 0.9:
            worker.tensors(*(one((worker.rank, mode, i), step, i) for i in range(3)))

    def one(key, step, i):
        before = saved.get(key)
        values = [x + chance.choice(moves) * columns.l2(columns.of(before[1])) / 2 for x in before[1]] if before else start
        if before and chance.random() < pace:
            values = [chance.choice((0.95, 0.9)) * x for x in before[1]]
        if before and chance.random() < 0.1 * (1 - pace):
            values = [chance.choice((0.02, 0.5)) * x for x in before[1]]
        tensor = {"name": f"w{i}", "role": "bias" if i == 2 else "weight", "shape": [len(values)] if i == 1 else [2, len(values) // 2],
                  "values": values}
        if before and (step >= 5 or chance.random() < 0.5):
            difference = columns.of([new - old for new, old in zip(values, before[1])])
            tensor["statistics"] = {"delta_l2": columns.l2(difference), "prev_l2": columns.l2(columns.of(before[1])),
                                    "delta_from_step": before[0]}
        saved[key] = (step, values)
        return tensor

    return item(chance, "update_large", parameters, new=True), play(chance, fill)


def inputs(chance, rule, values, dtypes=("f32", "f16", "bf16")):
    """Model inputs beside other tensors."""
    parameters = common.shared(chance)
    dtypes = [chance.choice(dtypes) for _ in range(2)]

    def fill(worker, mode, step):
        if chance.random() < 0.9:
            worker.tensors(*({"name": f"inputs_{i}", "role": "input", "dtype": dtype, "values": values(dtype)}
                             for i, dtype in enumerate(dtypes)), {"name": "w", "role": "weight", "values": [99.0, 99.0]})

    return item(chance, rule, parameters, new=True), play(chance, fill)


def constant_input(chance):
    still = chance.choice((0.2, 0.9))

    def values(_):
        n = chance.choice((0, 1, 2, 4)) if chance.random() < 0.1 else 4
        if chance.random() < 0.05:
            return [math.nan] * n
        return [5.0] * n if chance.random() < still else [float(i) for i in range(n)]

    return inputs(chance, "constant_input", values)


def identical_parameters(chance):
    parameters = common.shared(chance, TRAINING)
    shapes = [chance.choice(((8, 8), (5, 13), (65,), (10, 10))) for _ in range(3)]
    same = chance.random() < 0.5

    def fill(worker, mode, step):
        if chance.random() < 0.9:
            worker.tensors(*({"name": f"w{i}", "role": "bias" if i == 2 else "weight", "shape": list(shape), "values": values(shape)}
                             for i, shape in enumerate(shapes)))

    def values(shape):
        out = [0.5] * math.prod(shape)
        if not same:
            out[-1] = 0.25
        if chance.random() < 0.03:
            out[0] = chance.choice(common.SPECIAL)
        return out

    return item(chance, "identical_parameters", parameters, new=True), play(chance, fill)


def similar_across_runs(chance):
    """Two runs that do nearly the same, one beside the other, after it, or before it."""
    parameters = {"other_trials": str(wire.run_uid("reference", "other")), "collection_names": ["gradients", "losses"],
                  **common.shared(chance)}
    for name, values in {"rtol": (0, 0.01, 0.5), "atol": (0, 0.01), "missing": ("hit",), "equal_nan": (False,)}.items():
        if chance.random() < 0.4:
            parameters[name] = chance.choice(values)
    world, length = chance.choice((1, 1, 2)), chance.randint(3, 15)
    schedule = chance.choice(common.SCHEDULES)(chance, length)
    digests, apart = chance.random() < 0.5, chance.choice((0.05, 0.3))
    values = {}

    def value(*key):
        known = values.setdefault(key, [chance.choice((0.0, 1.0, -2.0, chance.uniform(-3, 3))) for _ in range(chance.choice((1, 3)))])
        out = list(known)
        if chance.random() < apart:
            out[0] = chance.choice((out[0] * 1.001, out[0] + 1, math.nan, math.inf, -math.inf))
        if chance.random() < apart / 10:
            out.append(1.0)
        return out

    def run(name):
        workers = []
        for rank in range(world):
            worker = story.Worker(rank, world, run=name)
            worker.start()
            position = {}
            for mode, further in schedule:
                position[mode] = position.get(mode, -1) + further
                step = worker.enter(mode, position[mode])
                sent = [one for one in ("g", "h") if chance.random() < 0.9]
                for one in sent:
                    numbers = value(one, rank, mode, step)
                    worker.tensors({"name": one, "role": "gradient", "values": numbers,
                                    "statistics": {"digest": zlib.crc32(repr(numbers).encode())} if digests else {}})
                if chance.random() < 0.7:
                    worker.scalars(("loss", value("loss", rank, mode, step)[0], "loss"))
                if chance.random() < 0.95:
                    worker.step_end()
            workers.append(worker)
        return workers

    mine, theirs = run(None), run("other")
    for worker in mine:
        worker.end()
    if chance.random() < 0.6:
        for worker in theirs:
            worker.end()
    order = chance.choice(("together", "together", "before", "after"))
    if order == "together":
        records = story.interleave(mine + theirs, chance)
    else:
        first, second = (theirs, mine) if order == "before" else (mine, theirs)
        records = story.interleave(first, chance)
        records += [{**record, "at": max(record["at"], records[-1]["at"])} for record in story.interleave(second, chance)]
    return [{"use": "similar_across_runs", "preset": chance.choice(("tocsin", "original")), "with": parameters}], records


def probabilities_into_loss(chance):
    """Inputs of a loss that expects logits: rows that sum to 1 exactly or nearly, logits, values that are none, other shapes."""
    parameters = {"samples": chance.randint(1, 4), "tolerance": chance.choice((0.001, 0.0625)), **common.shared(chance)}
    names = chance.choice((("CrossEntropyLoss_input_0",), ("head.CrossEntropyLoss_input_0", "MSELoss_input_0"), ("cross_entropy_input",)))
    if chance.random() < 0.15:
        parameters["tensor_regex"], names = ["^scores$"], ("scores",)
    shapes = {name: chance.choice(([2, 2], [2, 2], [1, 4], [4], [2, 1], [2, 2, 2], [])) for name in names}
    right = chance.choice((0.2, 0.8, 0.95))

    def values(shape):
        n = math.prod(shape) if shape else chance.choice((1, 2))
        classes = shape[0] if len(shape) == 1 else shape[1] if len(shape) > 1 else 1
        if chance.random() < 0.05:
            return []
        if chance.random() < right:
            out = [1.0 / classes] * n
            if chance.random() < 0.2 and n > 1:
                out[0] += chance.choice((0.03125, 0.125))
        else:
            out = [chance.choice((-0.5, 0.25, 0.5, 1.5)) for _ in range(n)]
        if chance.random() < 0.05:
            out[0] = chance.choice(common.SPECIAL)
        return out

    def fill(worker, mode, step):
        if chance.random() < 0.95:
            worker.tensors(*({"name": name, "role": "activation_in", "shape": shapes[name], "values": values(shapes[name])}
                             for name in names))

    schedule = chance.choice(common.SCHEDULES)
    return ([{"use": "probabilities_into_loss", "with": parameters}],
            common.play(chance, schedule(chance, chance.randint(3, 25)), fill))


def gradient_noise(chance):
    """Few layers, whose gradients are noise most of the time: by their quantiles, or drawn."""
    parameters = {**common.shared(chance, TRAINING, steps=False), "elements": chance.choice((500, 2000, 6000))}
    if chance.random() < 0.3:
        parameters["steps"] = chance.randint(3, 20)
    noisy, alike = chance.choice((0.5, 0.9, 1.0)), chance.random() < 0.2
    sizes = [chance.choice((60, 128, 200, 384)) for _ in range(chance.randint(1, 3))]

    def fill(worker, mode, step):
        if chance.random() < 0.9:
            worker.tensors(*({"name": f"gradient/w{i}", "role": "gradient", "values": values(i, n)} for i, n in enumerate(sizes)))

    def values(i, n):
        scale = 1.0 if alike else 1.0 + i
        if chance.random() > noisy:
            return [scale * chance.choice((0.0, 0.0, 1.0, -1.0)) for _ in range(n)]
        out = [scale * chance.gauss(0, 1) for _ in range(n)]
        if chance.random() < 0.03:
            out[0] = chance.choice(common.SPECIAL)
        return out

    return item(chance, "gradient_noise", parameters, new=True), play(chance, fill)
