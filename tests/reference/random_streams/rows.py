"""Random streams for the rules over one row."""
import math

from tests.reference import columns
from tests.reference.random_streams import common

DTYPES = ("f32", "f32", "f64", "i32", "bool", "u8", "unknown", *common.HALVES)


def few_tensors(chance, roles):
    """[(name, role, dtype)]"""
    return [(f"{role}/layer{i}.{chance.choice('ab')}", role, chance.choice(DTYPES))
            for i in range(chance.randint(1, 4)) for role in [chance.choice(roles)]]


def all_zero(chance):
    tensors = few_tensors(chance, ("weight", "bias", "activation_out"))
    selector = chance.choice(({"tensor_regex": [".*"]}, {"collection_names": ["weights"]}, {"tensor_regex": ["layer0", "x$"]},
                              {"collection_names": ["biases"], "tensor_regex": ["activation"]}))
    rules = [{"use": "all_zero", "preset": chance.choice(("tocsin", "original")),
              "with": {**selector, "threshold": chance.choice((100, 50, 75, 12.5, 33)), **common.shared(chance)}}]
    floating = {"f32", "f64", "unknown", *common.HALVES}

    def fill(worker, mode, step):
        if chance.random() < 0.85:
            worker.tensors(*({"name": name, "role": role, "dtype": dtype, "values": values(dtype)}
                             for name, role, dtype in tensors if chance.random() < 0.9))
        if chance.random() < 0.3:
            worker.scalars(("layer0_loss", chance.choice((0.0, 1.0, math.nan))))

    def values(dtype):
        n = chance.choice((0, 1, 1, 2, 4, 8))
        zeros = chance.choice((0, n // 2, n, n))
        rest = [1.0] * (n - zeros)
        if dtype in floating and rest and chance.random() < 0.1:
            rest[0] = chance.choice(common.SPECIAL)
        return [chance.choice((0.0, -0.0)) for _ in range(zeros)] + rest

    return rules, common.play(chance, chance.choice(common.SCHEDULES)(chance, chance.randint(3, 25)), fill)


def exploding_tensor(chance):
    roles = ("weight", "gradient", "gradient", "activation_out", "input")
    tensors = few_tensors(chance, roles)
    parameters = common.shared(chance)
    if chance.random() < 0.3:
        parameters["only_nan"] = True
    if chance.random() < 0.3:
        parameters["ignore_skipped_steps"] = False
    if chance.random() < 0.3:
        parameters["collection_names"] = [chance.choice(("weights", "gradients", "losses"))]
    rules = [{"use": "exploding_tensor", "preset": chance.choice(("tocsin", "original")), "with": parameters}]
    bad = chance.choice((0.0, 0.02, 0.3))

    def fill(worker, mode, step):
        skipped = chance.random() < 0.2
        if chance.random() < 0.9:
            worker.tensors(*(one(*tensor, skipped) for tensor in tensors if chance.random() < 0.9))
        if chance.random() < 0.4:
            worker.scalars(("loss", chance.choice((0.5, *common.SPECIAL)) if chance.random() < bad else 0.5),
                           ("accuracy", 0.5, "metric"))

    def one(name, role, dtype, skipped):
        values = [chance.choice((0.0, 1.0, 1e300, -3.0)) for _ in range(chance.randint(0, 4))]
        if dtype in ("i32", "bool", "u8"):
            values = [abs(value) % 2 for value in values]
        elif values and chance.random() < bad:
            values[-1] = chance.choice(common.SPECIAL)
        return {"name": name, "role": role, "dtype": dtype, "values": values,
                "flags": 1 << 20 if skipped and role == "gradient" else 0}

    return rules, common.play(chance, chance.choice(common.SCHEDULES)(chance, chance.randint(3, 25)), fill)


def vanishing_gradient(chance):
    threshold = chance.choice((1e-7, 1e-7, 1e-4))
    count = chance.randint(1, 8)
    parameters = {**({"threshold": threshold} if threshold != 1e-7 else {}), **common.shared(chance, common_modes())}
    if chance.random() < 0.6:
        parameters["min_fraction"] = chance.choice((0, 0.25, 0.5, 1))
    rules = [{"use": "vanishing_gradient", "preset": chance.choice(("tocsin", "original")), "with": parameters}]
    scaled = chance.random() < 0.3
    small = chance.choice((0.1, 0.5, 0.9))

    def fill(worker, mode, step):
        if scaled and chance.random() < 0.5:
            worker.scalars(("loss_scale", float(2 ** chance.randint(0, 12)), "metric"))
        if chance.random() < 0.9:
            tensors = [one(i) for i in range(count) if chance.random() < 0.95]
            half = chance.randint(0, len(tensors)) if chance.random() < 0.3 else len(tensors)
            for part in (tensors[:half], tensors[half:]):  # a step's tensors may come in two frames
                if part:
                    worker.tensors(*part)

    def one(i):
        n = chance.choice((0, 1, 2, 4))
        size = threshold * chance.choice((0.5, 0.999, 0.0)) if chance.random() < small else threshold * chance.choice((1, 2, 4096))
        values = [size] * n
        if n and chance.random() < 0.05:
            values[0] = chance.choice(common.SPECIAL)
        return {"name": f"gradient/{i}", "role": "gradient", "dtype": chance.choice(("f32", "f16", "bf16")) if i % 2 else "f32",
                "values": values, "flags": 1 << 18 if chance.random() < 0.3 else 0}

    schedule = chance.choice((common.train_only, common.global_only, common.train_and_eval))
    return rules, common.play(chance, schedule(chance, chance.randint(3, 20)), fill)


def common_modes():
    return ("train", "global")


def weight_update_ratio(chance):
    parameters = common.shared(chance, common_modes(), steps=False)
    if chance.random() < 0.4:
        parameters["num_steps"] = chance.choice((1, 2, 3, 5, 10, 40))
    rules = [{"use": "weight_update_ratio", "preset": chance.choice(("tocsin", "original")), "with": parameters}]
    rates = chance.choice((None, None, [1e-3] * 100, [1e-3 * 0.5 ** i for i in range(100)], [1e-3 * 0.1 ** (i % 7) for i in range(100)],
                           [1e-3 * max(0, 1 - i % 8 / 7) for i in range(100)]))
    dtype = chance.choice(("f32", "f32", "f64", "f16", "bf16", "unknown"))
    measured = chance.choice((1.0, 1.0, 0.7, 0.0))
    weights = {}  # (rank, mode, name) -> (step, values)
    frozen = chance.random() < 0.1

    def fill(worker, mode, step):
        if rates and mode in common_modes() and step < 100:
            worker.scalars(("learning_rate", rates[step], "metric"))
        if chance.random() < 0.9:
            worker.tensors(*(one(worker.rank, mode, step, i) for i in range(2)))

    def one(rank, mode, step, i):
        key = (rank, mode, i)
        before = weights.get(key)
        values = list(before[1]) if before else [0.0] * 4 if chance.random() < 0.2 else [1.0, -2.0, 0.5, 1.0]
        if before:
            move = chance.choice((0.0, 1e-12, 1e-4, 0.1, 0.1, 0.1, 300.0)) * (rates[min(step, 99)] / 1e-3 if rates else 1)
            values = [value + move for value in values]
        if chance.random() < 0.03:
            values = values + [1.0] if len(values) == 4 else [1.0] * 4  # another shape
        if chance.random() < 0.03:
            values[0] = chance.choice(common.SPECIAL)
        made = columns.of(values)
        tensor = {"name": f"layer{i}.weight", "role": "weight", "dtype": dtype, "columns": made, "flags": 1 << 21 if frozen and i else 0}
        if before and len(before[1]) == len(values) and chance.random() < measured:
            difference = columns.of([new - old for new, old in zip(values, before[1])])
            tensor["statistics"] = {"delta_l2": columns.l2(difference), "prev_l2": columns.l2(columns.of(before[1])),
                                    "delta_from_step": before[0]}
        weights[key] = (step, [value if math.isfinite(value) else 1.0 for value in values])
        return tensor

    schedule = chance.choice((common.train_only, common.global_only, common.train_and_eval))
    return rules, common.play(chance, schedule(chance, chance.randint(3, 25)), fill)
