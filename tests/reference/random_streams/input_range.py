"""Random streams for input_range. This is the file to copy: one generator for a rule over one row."""
from tests.reference.random_streams import common

# Change: values on both sides of the boundary, and on it. 5 % of the tensors hold one that is no finite number.
VALUES = (0.0, 1.0, -30.0, 30.0, 31.0)


def input_range(chance):  # Change: the name of the rule.
    # Change: the parameters of the rule. common.shared draws some of those that every rule has.
    parameters = common.shared(chance)
    if chance.random() < 0.5:
        parameters["threshold"] = 20
    dtype = chance.choice(("f32", "f16", "bf16", "i64"))

    def values():
        out = [chance.choice(VALUES) for _ in range(chance.randint(0, 3))]
        if out and dtype != "i64" and chance.random() < 0.05:
            out[0] = chance.choice(common.SPECIAL)
        return out

    # Change: what a worker sends in one step: tensors that the rule judges, and one that it must not.
    def fill(worker, mode, step):
        worker.tensors({"name": "inputs_0", "role": "input", "dtype": dtype, "values": values()},
                       {"name": "w", "role": "weight", "values": [99.0]})

    schedule = chance.choice(common.SCHEDULES)(chance, chance.randint(3, 25))
    return [{"use": "input_range", "with": parameters}], common.play(chance, schedule, fill)
