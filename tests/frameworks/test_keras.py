"""Keras 3 on TensorFlow (and, in processes of their own, on PyTorch and JAX), and loops of one's own in TensorFlow: watched, judged, stopped."""
import copy
import json
import math
import os
import pickle
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras  # noqa: E402
import numpy  # noqa: E402
import pytest  # noqa: E402
import tensorflow  # noqa: E402

import tocsin.keras  # noqa: E402
from tests.support.hook_support import CommandWriter, Telemetry, acks, wait_for, wire  # noqa: E402
from tocsin.keras import TocsinCallback  # noqa: E402

EVERY_STEP = {"every": "1 step", "overhead": "100%"}
NAMES = {"dense/kernel", "dense/bias", "head/kernel", "head/bias"}


@pytest.fixture(autouse=True)
def fresh():
    keras.utils.clear_session()
    keras.utils.set_random_seed(0)


def made(optimizer=None, **options):
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(8, activation="relu", name="dense"), keras.layers.Dense(2, name="head")])
    model.compile(optimizer=optimizer or keras.optimizers.SGD(0.05), loss="mse", metrics=["mae"], **options)
    return model


def data(samples=64):
    x = numpy.random.default_rng(0).standard_normal((samples, 6)).astype("float32")
    return x, x[:, :2]


def fit(model, callback, samples=64, others=(), **options):
    x, y = data(samples)
    return model.fit(x, y, **{"batch_size": 16, "verbose": 0, "shuffle": False, "callbacks": [callback, *others], **options})


class Weights(keras.callbacks.Callback):
    """Sums of the first kernel before and after each batch."""

    def __init__(self):
        super().__init__()
        self.before, self.after = [], []

    def on_train_batch_begin(self, batch, logs=None):
        self.before.append(float(keras.ops.sum(self.model.layers[0].kernel)))

    def on_train_batch_end(self, batch, logs=None):
        self.after.append(float(keras.ops.sum(self.model.layers[0].kernel)))


def test_two_lines_watch_a_whole_training(out):
    callback = TocsinCallback(out=out, job="line", capture={"every": "4 steps", "overhead": "100%"})
    x, y = data()
    fit(made(), callback, epochs=2, validation_data=(x[:40], y[:40]), samples=56)
    telemetry = Telemetry(out)
    assert telemetry.steps() == list(range(8))
    losses = telemetry.scalars("loss")
    assert [step for mode, step, _ in losses if mode == wire.TRAIN] == list(range(8))
    assert [step for mode, step, _ in losses if mode == wire.EVAL] == list(range(6)), "3 batches, twice"
    assert [(mode, step) for mode, step, _ in telemetry.scalars("mae") if mode == wire.EVAL] == [(wire.EVAL, 2), (wire.EVAL, 5)]
    assert set(telemetry.summaries(step=4)) == NAMES | {"gradient/" + name for name in NAMES}
    assert telemetry.summaries(step=5) == {}
    roles = {entry["name"]: entry["role"] for entry in telemetry.entries.values()}
    assert (roles["dense/bias"], roles["gradient/dense/bias"]) == (wire.ROLES["bias"], wire.ROLES["gradient"])
    assert [end["outcome"] for end in telemetry.lifecycles("end")] == ["completed"]
    assert telemetry.lifecycles("preflight") == [] and callback.stopped is None
    rates = [(step, round(value, 4)) for _, step, value in telemetry.scalars("learning_rate")]
    assert rates == [(step, 0.05) for step in (0, 1, 3, 4, 7)], "per epoch, at doubled updates and at captures"


def test_the_loss_is_that_of_the_batch_and_not_kerass_mean_of_the_epoch(out):
    """A rate of 0: the model stays, so the loss of each batch is known. The last batch is smaller."""
    model = made(keras.optimizers.SGD(0.0))
    fit(model, TocsinCallback(out=out), samples=56)
    x, y = data(56)
    expected = [float(numpy.mean((model.predict(x[at:at + 16], verbose=0) - y[at:at + 16]) ** 2)) for at in range(0, 56, 16)]
    assert [value for _, _, value in Telemetry(out).scalars("loss")] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("options", [{}, {"jit_compile": False}, {"jit_compile": True}, {"run_eagerly": True}], ids=str)
def test_gradients_are_those_of_the_update(out, options):
    seen = Weights()
    fit(made(**options), TocsinCallback(out=out, capture=EVERY_STEP), others=[seen])
    telemetry = Telemetry(out)
    for step, (before, after) in enumerate(zip(seen.before, seen.after)):
        rows = telemetry.summaries(step=step)
        assert rows["gradient/dense/kernel"]["sum"] == pytest.approx((before - after) / 0.05, rel=1e-3, abs=1e-3)
        assert rows["dense/kernel"]["sum"] == pytest.approx(after, rel=1e-5)
    assert len(seen.after) == 4


def test_a_model_that_was_compiled_before_is_watched_too(out):
    model = made()
    x, y = data()
    model.fit(x, y, batch_size=16, verbose=0)
    fit(model, TocsinCallback(out=out, capture=EVERY_STEP))
    assert "gradient/dense/kernel" in Telemetry(out).summaries(step=4)  # its fifth update


def test_several_batches_between_two_calls_are_several_steps(out):
    fit(made(steps_per_execution=3), TocsinCallback(out=out), samples=128)
    telemetry = Telemetry(out)
    assert telemetry.steps() == list(range(8))
    assert [step for _, step, _ in telemetry.scalars("loss")] == [2, 5, 7]


def test_gathered_gradients_are_one_step(out):
    fit(made(keras.optimizers.SGD(0.05, gradient_accumulation_steps=4)), TocsinCallback(out=out), samples=128)
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1] and len(telemetry.scalars("loss")) == 2


def test_scaled_gradients_are_divided_and_a_skipped_update_has_none(out):
    optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.05), initial_scale=2.0 ** 10, dynamic_growth_steps=100)
    seen = Weights()
    model = made(optimizer)
    x, y = data()
    x[16:32] *= 1e30  # overflows in the second batch
    model.fit(x, y, batch_size=16, verbose=0, shuffle=False, callbacks=[TocsinCallback(out=out, capture=EVERY_STEP), seen])
    telemetry = Telemetry(out)
    assert telemetry.summaries(step=0)["gradient/dense/kernel"]["sum"] == pytest.approx((seen.before[0] - seen.after[0]) / 0.05, rel=1e-3, abs=1e-3)
    assert seen.before[1] == seen.after[1]
    assert set(telemetry.summaries(step=1)) == NAMES
    assert "gradient/dense/kernel" in telemetry.summaries(step=2)


def test_what_is_saved_knows_nothing_of_us(out, tmp_path):
    model = made(keras.optimizers.Adam(0.01))
    fit(model, TocsinCallback(out=out))
    model.save(tmp_path / "model.keras")
    code = f"import keras; model = keras.models.load_model({str(tmp_path / 'model.keras')!r}); print(type(model.optimizer).__name__, int(model.optimizer.iterations))"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False,
                          env={**os.environ, "PYTHONPATH": ""})
    assert done.stdout.split() == ["Adam", "4"], done.stderr


def test_variables_without_a_gradient_are_told(out, capfd):
    inputs = keras.Input((6,))
    keras_unused = keras.layers.Dense(3, name="forgotten")
    hidden = keras.layers.Dense(8, name="dense")(inputs)
    model = keras.Model(inputs, [keras.layers.Dense(2, name="head")(hidden), keras_unused(hidden)])
    model.compile(optimizer=keras.optimizers.SGD(0.01), loss=["mse", None])
    fit(model, TocsinCallback(out=out, capture=EVERY_STEP))
    (found,) = Telemetry(out).lifecycles("preflight")
    assert found["findings"] == [{"kind": "no_gradient", "model": "Functional", "count": 2, "names": ["forgotten/bias", "forgotten/kernel"]}]
    assert "2 trainable variables of Functional get no gradient: forgotten/bias, forgotten/kernel" in capfd.readouterr().err


@pytest.mark.parametrize("mode", ["stop", "checkpoint_then_stop"])
def test_a_rule_stops_the_training(out, judged, tmp_path, mode):
    fired = judged("[{use: exploding_tensor}]")

    class Breaks(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if self.model.optimizer.iterations == 5:
                self.model.optimizer.learning_rate = math.inf
            if self.model.optimizer.iterations == 8:
                hook = tocsin.get_hook()
                CommandWriter(out).stop(hook.run, hook.attempt, args={"mode": mode})
                assert wait_for(lambda: hook.stats()["commands_received_total"] == 1)

    callback = TocsinCallback(out=out, run="k", capture=EVERY_STEP, checkpoints=str(tmp_path))
    model = made()
    x, y = data()
    model.fit(x, y, batch_size=16, epochs=1000, verbose=0, callbacks=[Breaks(), callback])
    assert int(model.optimizer.iterations) == 8 and callback.stopped.rule == "exploding_tensor"
    assert "exploding_tensor" in fired()
    last = acks(out)[-1]
    assert last["phase"] == "stopped"
    assert os.path.exists(tmp_path / "stopped-at-8.weights.h5") == (mode == "checkpoint_then_stop")


def embedding_loss(table, weights, indices):
    return tensorflow.reduce_mean(tensorflow.square(tensorflow.matmul(tensorflow.gather(table, indices), weights)))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_loop_of_ones_own(out, compiled):
    table = tensorflow.Variable(tensorflow.ones((10, 3)), name="table")
    weights = tensorflow.Variable(tensorflow.ones((3, 2)), name="weights")
    training = tocsin.keras.watch(variables=[table, weights], out=out, capture={"every": "2 steps", "overhead": "100%"})

    def step(indices):
        with tensorflow.GradientTape() as tape:
            loss = embedding_loss(table, weights, indices)
        gradients = tape.gradient(loss, [table, weights])
        for variable, gradient in zip((table, weights), gradients):
            variable.assign_sub(0.01 * tensorflow.convert_to_tensor(gradient))
        return loss, tocsin.keras.statistics(gradients) if compiled else gradients

    if compiled:
        step = tensorflow.function(step)
    for _ in range(4):
        loss, gradients = step(tensorflow.constant([1, 2]))
        training.step(loss=loss, gradients=gradients)
    training.evaluated(loss=0.5)
    training.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1, 2, 3]
    rows = telemetry.summaries(step=0)
    assert set(rows) == {"table", "weights", "gradient/table", "gradient/weights"}
    # loss = mean of 4 outputs of 3 each; d/dw = sum over 2 rows of 2 * 3 * 1 / 4 = 3; d/dtable = 2 columns of the same, over 4
    assert rows["gradient/weights"]["sum"] == pytest.approx(6 * 3.0) and rows["gradient/weights"]["count"] == 6
    assert rows["gradient/table"]["sum"] == pytest.approx(6 * 3.0) and rows["gradient/table"]["count"] == 6, "the two rows that were looked up"
    assert telemetry.summaries(step=1) == {}
    assert (wire.EVAL, 0, 0.5) in telemetry.scalars("loss")


def test_statistics_are_numpys(out):
    values = numpy.array([1.5, -2.0, 0.0, numpy.nan, numpy.inf, -numpy.inf], "float32")
    (row,) = tocsin.keras.statistics([tensorflow.constant(values)]).numpy()
    names = dict(zip(tocsin.keras.COLUMNS, row))
    assert [names[name] for name in ("count", "nan", "posinf", "neginf", "zero", "negative")] == [6, 1, 1, 1, 1, 2]
    finite = numpy.random.default_rng(1).standard_normal(1000).astype("float16")
    (row,) = tocsin.keras.statistics([tensorflow.constant(finite)]).numpy()
    wide = finite.astype("float64")
    expected = [1000, wide.sum(), (wide ** 2).sum(), ((wide - wide.mean()) ** 2).sum(), abs(wide).sum(), wide.min(), wide.max()]
    assert row[:7] == pytest.approx(expected, rel=1e-4, abs=1e-2)


OTHER_BACKEND = """
import json, sys
import keras, numpy
from tests.support.hook_support import Telemetry
from tocsin.keras import TocsinCallback
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2, name="head")])
model.compile(optimizer=keras.optimizers.SGD(0.05), loss="mse")
x = numpy.random.default_rng(0).standard_normal((48, 6)).astype("float32")
before = float(keras.ops.sum(model.layers[0].kernel))
model.fit(x, x[:, :2], batch_size=48, epochs=3, verbose=0, callbacks=[TocsinCallback(out=sys.argv[1], capture={"every": "1 step", "overhead": "100%"})])
telemetry = Telemetry(sys.argv[1])
rows = telemetry.summaries(step=0)
print(json.dumps({"steps": telemetry.steps(), "losses": [value for _, _, value in telemetry.scalars("loss")], "names": sorted(rows),
                  "moved": before - rows["head/kernel"]["sum"], "gradient": rows.get("gradient/head/kernel", {}).get("sum")}))
"""


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_other_backends(out, backend):
    done = subprocess.run([sys.executable, "-c", OTHER_BACKEND, out], text=True, capture_output=True, check=False,
                          env={**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["steps"] == [0, 1, 2] and len(told["losses"]) == 3 and told["losses"][0] > told["losses"][2]
    if backend == "torch":
        assert told["gradient"] == pytest.approx(told["moved"] / 0.05, rel=1e-3, abs=1e-3)
    else:
        assert told["names"] == ["head/bias", "head/kernel"]


def test_the_hook_lives_with_tensorflows_own_re2_and_sqlite(out):
    """TensorFlow shows its RE2, Abseil and SQLite to every library of the process; patterns and a journal use ours."""
    hook = tocsin.watch(out=out, capture={"every": "1 step", "overhead": "100%", "collections": {"mine": {"include": ["^block[0-9]+/.*kernel$"]}}})
    for name in ("block12/dense/kernel", "head/kernel"):
        hook.save_tensor(name, numpy.ones(3, "float32"), collection=None)
    hook.step()
    hook.close()
    assert set(Telemetry(out).summaries(step=0)) == {"block12/dense/kernel"}
    assert hook.stats()["hook_errors_total"] == {}


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "deepcopy", "pickle"])
def test_a_callback_that_has_trained_trains_again_as_a_copy(out, again):
    callback = TocsinCallback(out=out)
    made().fit(*data(), verbose=0, callbacks=[callback])
    made().fit(*data(), verbose=0, callbacks=[again(callback)])
    assert [end["outcome"] for end in Telemetry(out).lifecycles("end")] == ["completed", "completed"]


def test_what_the_optimizer_remembers_is_captured_where_it_is_asked_for(out):
    model = made(keras.optimizers.SGD(0.05, momentum=0.9))
    model.fit(*data(), batch_size=16, verbose=0, callbacks=[TocsinCallback(out=out, capture={**EVERY_STEP, "collections": ["optimizer_variables"]})])
    rows = Telemetry(out).summaries(2)
    remembered = [name for name in rows if name.startswith("optimizer/")]
    assert len(remembered) == 4 and all("momentum" in name for name in remembered)
    assert any(rows[name]["abs_sum"] > 0 for name in remembered)
