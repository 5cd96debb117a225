"""Small Keras trainings in a process of one backend: ledger_fits.py FOLDER. A line of JSON says what their ledgers told,
beside the same numbers from NumPy (python/tocsin/ledger/moments.py, itself tested against loops) of what the model predicts.
The rate is 0, so the model of each step is known."""
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import keras  # noqa: E402
import numpy  # noqa: E402

from tests.support.hook_support import Telemetry, wire  # noqa: E402
from tocsin.keras import TocsinCallback  # noqa: E402
from tocsin.ledger.batch import Wanted, batch  # noqa: E402
from tocsin.ledger.batch_book import BatchBook  # noqa: E402
from tocsin.ledger.constants import Constant, split  # noqa: E402
from tocsin.ledger.moments import Form, moments, prepared  # noqa: E402
from tocsin.ledger.operations import Operations  # noqa: E402

BATCH = 16
PREFIX = "ledger/"


def told(out, mode=wire.TRAIN):
    """{loss call: {field: {step: value}}}"""
    telemetry, found = Telemetry(out), {}
    for name in sorted(set(telemetry.names.values())):
        if name.startswith(PREFIX):
            call, field = name[len(PREFIX):].rsplit("/", 1)
            rows = {step: value for where, step, value in telemetry.scalars(name) if where == mode}
            if rows:
                found.setdefault(call, {})[field] = rows
    return {call: fields for call, fields in found.items() if "calls" in fields}


def expected(form, outputs, targets, weights=None, inputs=None):
    """[{field: value}] of each batch."""
    constant, found = Constant(), []
    for at in range(0, len(outputs), BATCH):
        part = [None if one is None else one[at:at + BATCH] for one in (outputs, targets, weights, inputs)]
        call = prepared(Operations(), form, *part)
        head, tail = split(call.form, moments(Operations(), call))
        trivial = constant.loss(call.form, head, tail)
        constant.learn(call.form, head, tail)
        for field in ("straight", "crossed"):  # told in the unit of the loss
            head[field] *= head["weight"] / head["samples"]
        found.append({**head, **({} if trivial is None else {"trivial": trivial})})
    return found


def model_of(units, activation, **compiled):
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(units, activation=activation)])
    model.compile(optimizer=keras.optimizers.SGD(0.0), **compiled)
    return model


def fit(out, model, x, y, **options):
    callback = TocsinCallback(out=out)
    model.fit(x, y, batch_size=BATCH, verbose=0, shuffle=False, callbacks=[callback], **options)
    return callback._watcher.hook.stats()


def cases():
    rng = numpy.random.default_rng(0)
    x = rng.standard_normal((BATCH * 3 + 5, 6)).astype("float32")  # the last batch is smaller
    n = len(x)
    classes, weights = rng.integers(0, 4, n), rng.choice([0.0, 1.0, 2.0], n).astype("float32")
    switches, counts = rng.integers(0, 2, (n, 3)).astype("float32"), rng.poisson(2.0, (n, 2)).astype("float32")
    values = rng.standard_normal((n, 2)).astype("float32")
    yield "sparse", "softmax", 4, "sparse_categorical_crossentropy", Form("cross_entropy", from_logits=False), x, classes, None
    yield "logits", None, 4, keras.losses.SparseCategoricalCrossentropy(from_logits=True), Form("cross_entropy"), x, classes, weights
    yield "smoothed", None, 4, keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1), \
        Form("cross_entropy", smoothing=0.1), x, numpy.eye(4, dtype="float32")[classes], None
    yield "ignored", None, 4, keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=3), Form("cross_entropy"), x, classes, (classes != 3) * 1.0
    yield "binary", "sigmoid", 3, "binary_crossentropy", Form("binary", from_logits=False), x, switches, None
    yield "one switch", None, 1, keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.2), Form("binary", smoothing=0.2), x, switches[:, 0], None
    yield "squared", None, 2, "mse", Form("squared"), x, values, weights
    yield "function", None, 2, keras.losses.mean_squared_error, Form("squared"), x, values, None
    yield "absolute", None, 2, "mae", Form("absolute"), x, values, None
    yield "huber", None, 2, keras.losses.Huber(delta=0.5), Form("huber", delta=0.5), x, values, None
    yield "poisson", "exponential", 2, "poisson", Form("poisson", from_logits=False), x, counts, None


def ways():
    yield {}
    if keras.backend.backend() == "jax":
        yield {"steps_per_execution": 3}


def same(out, **compiled):
    """Whether history, metrics and weights of a training are bit for bit those without the callback, and what was told."""
    rng = numpy.random.default_rng(2)
    x, y = rng.standard_normal((120, 6)).astype("float32"), rng.integers(0, 4, 120)
    results = []
    for callbacks in ([], [TocsinCallback(out=out)]):
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dropout(0.3, seed=5),
                                  keras.layers.Dense(4, activation="softmax")])
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], **compiled)
        history = model.fit(x, y, batch_size=BATCH, epochs=3, verbose=0, validation_split=0.2, callbacks=callbacks).history
        results.append((history, [one.tolist() for one in model.get_weights()], model.metrics_names, model.evaluate(x, y, verbose=0)))
    return {"same": results[0] == results[1], "train": sorted(told(out).get("sparse_categorical_crossentropy", {})),
            "eval": sorted(told(out, wire.EVAL).get("sparse_categorical_crossentropy", {}))}


def again(out):
    """Attributes of the model after two trainings, errors, and the ledger's steps."""
    rng = numpy.random.default_rng(2)
    x, y = rng.standard_normal((64, 6)).astype("float32"), rng.integers(0, 4, 64)
    model = model_of(4, "softmax", loss="sparse_categorical_crossentropy")
    plain = set(vars(model))
    for _ in range(2):
        stats = fit(out, model, x, y)
    model.compile(keras.optimizers.SGD(0.0), "mse")
    fit(out, model, x, numpy.eye(4)[y])
    return {"left": sorted(name for name in set(vars(model)) - plain if "step" in name or "compute" in name or name.startswith("make")),
            "errors": stats["hook_errors_total"], "calls": {call: len(fields["samples"]) for call, fields in told(out).items()}}


def held(out, **compiled):
    """What a training with two inputs and an evaluation after each epoch tells of its batches, and the same of NumPy."""
    rng = numpy.random.default_rng(4)
    table, images = rng.standard_normal((500, 6)).astype("float32") + 40, rng.standard_normal((500, 9, 9, 2)).astype("float32")
    codes, y = rng.integers(0, 5, (500, 2)).astype("int32"), rng.standard_normal((500, 1)).astype("float32")
    inputs = [keras.Input((6,)), keras.Input((9, 9, 2)), keras.Input((2,), dtype="int32")]
    keras.utils.set_random_seed(1)
    hidden = keras.layers.Concatenate()([inputs[0], keras.layers.Flatten()(inputs[1]), keras.layers.Flatten()(keras.layers.Embedding(5, 2)(inputs[2]))])
    model = keras.Model(inputs, keras.layers.Dense(1)(keras.layers.BatchNormalization()(hidden)))
    model.compile(optimizer=keras.optimizers.SGD(0.0), loss="mse", **compiled)
    x, other = [table[:320], images[:320], codes[:320]], [table[300:], images[300:], codes[300:]]
    callback, told = TocsinCallback(out=out), {}
    model.fit(x, y[:320], batch_size=40, epochs=2, verbose=0, shuffle=False, callbacks=[callback], validation_data=(other, y[300:]), validation_batch_size=40)
    telemetry = Telemetry(out)
    for name in sorted(set(telemetry.names.values())):
        if name.startswith(("ledger/world/", "ledger/data/")):
            told[name] = sorted(([mode, step, value] for mode, step, value in telemetry.scalars(name)), key=str)
    return {"told": told, "expected": batches([*x, y[:320]], [*other, y[300:]]), "errors": callback._watcher.hook.stats()["hook_errors_total"]}


def squashed(out):
    """The ceilings of a sigmoid in front of a loss that makes another one of it, and of one in front of a loss that wants it."""
    rng, found = numpy.random.default_rng(6), []
    x = rng.standard_normal((64, 6)).astype("float32")
    for number, (from_logits, activation) in enumerate(((True, "sigmoid"), (False, "sigmoid"), (True, None))):
        folder = f"{out}{number}"
        fit(folder, model_of(1, activation, loss=keras.losses.BinaryCrossentropy(from_logits=from_logits)), x, (x[:, :1] > 0) * 1.0)
        found.append(sorted(set(told(folder)["binary_crossentropy"].get("ceiling", {}).values())))
    return found


def batches(train, evaluation):
    found, at = {}, [0, 0]
    book = BatchBook(lambda name, value: found.setdefault(name, []).append([at[0], at[1], value]))

    def step(mode, number, arrays, begin):
        at[:] = mode, number
        *inputs, y = (one[begin:begin + 40].astype("float64") if one.dtype == "float32" and mode else one[begin:begin + 40] for one in arrays)
        call = prepared(Operations(), Form("squared"), y * 0, y)
        words = [one[begin:begin + 40] for one in arrays]  # fingerprints are of the elements as they are
        moments_ = batch(Operations(), "squared", "mean_squared_error", y * 0, y, inputs, Wanted(32 if mode == wire.TRAIN else 256, table=mode == wire.TRAIN))
        prints = batch(Operations(), "squared", "mean_squared_error", y * 0, words[-1], words[:-1], Wanted()).prints
        book.add("mean_squared_error", call.form, moments(Operations(), call), moments_._replace(prints=prints))

    trained = tested = 0
    for epoch in range(2):
        at[:] = wire.TRAIN, 8 * epoch
        if epoch:
            book.worlds.begins_pass(2)
        else:
            book.worlds.has_averages()
            book.worlds.begins_pass(1)
        for begin in range(0, 320, 40):
            trained += 1
            step(wire.TRAIN, trained - 1, train, begin)
            book.publish(True, trained, tested)
        for begin in range(0, 200, 40):
            tested += 1
            step(wire.EVAL, tested - 1, evaluation, begin)
            book.publish(False, trained, tested)
    at[:] = wire.TRAIN, trained
    book.over(tested)
    return {name: sorted(rows, key=str) for name, rows in found.items()}


def main(folder):
    answers = {}
    for name, activation, units, loss, form, x, y, weights in cases():
        out = os.path.join(folder, name.replace(" ", "_"))
        model = model_of(units, activation, loss=loss)
        stats = fit(out, model, x, y, **({} if weights is None or name == "ignored" else {"sample_weight": weights}))
        answers[name] = {"told": told(out), "expected": expected(form, model.predict(x, verbose=0), y, weights),
                         "errors": stats["hook_errors_total"], "left_out": stats["ledger"].get("left_out", {})}
    print(json.dumps({"backend": keras.backend.backend(), "cases": answers, "same": [same(os.path.join(folder, f"same{number}"), **options) for number, options in enumerate(ways())],
                      "again": again(os.path.join(folder, "again")), "held": held(os.path.join(folder, "held")), "squashed": squashed(os.path.join(folder, "squashed"))}))


if __name__ == "__main__":
    main(sys.argv[1])
