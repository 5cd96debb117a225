"""What Keras has planned reaches the ledger unasked (in a file of its own: TensorFlow and Triton do not share a process)."""
import json
import os
import subprocess

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras  # noqa: E402
import numpy  # noqa: E402
import pytest  # noqa: E402

from tests.support.hook_support import Telemetry  # noqa: E402

import tocsin.keras  # noqa: E402


def planned(out):
    """The newest of each field."""
    telemetry = Telemetry(out)
    return {name[len("ledger/plan/"):]: telemetry.scalars(name)[-1][2] for name in telemetry.names.values() if name.startswith("ledger/plan/")}


def told(callback, out):
    """Kinds that the rule finds in the recording: the engine and TensorFlow do not share a process here."""
    stats = callback._watcher.hook.stats()
    assert not stats["hook_errors_total"], stats
    found = subprocess.run([os.environ["TOCSIN_BINARY"], "evaluate", "--from", out, "--rules", "budget", "--format", "json"],
                           capture_output=True, text=True, check=False)
    assert found.returncode in (0, 1), found.stderr
    return [one["kind"] for one in json.loads(found.stdout)["issues"] if one["status"] == "firing"]


# 8 batches per epoch
def fit_keras(out, rate, others=(), epochs=10, **options):
    keras.utils.clear_session()
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(2)])
    model.compile(optimizer=keras.optimizers.SGD(rate, **options), loss="mse")
    x = numpy.random.default_rng(0).standard_normal((128, 6)).astype("float32")
    callback = tocsin.keras.TocsinCallback(out=out)
    model.fit(x, x[:, :2], batch_size=16, epochs=epochs, verbose=0, callbacks=[callback, *others])
    return callback


@pytest.mark.parametrize("rate, options, plan, kinds", [
    (lambda: keras.optimizers.schedules.CosineDecay(0.1, 80), {}, {"updates": 80, "epochs": 10, "schedule": 80, "length": 80, "stride": 1, "lowest": 0}, []),
    (lambda: keras.optimizers.schedules.CosineDecay(0.0, 72, warmup_target=0.1, warmup_steps=8), {}, {"schedule": 80}, []),
    (lambda: keras.optimizers.schedules.CosineDecay(0.1, 80), {"gradient_accumulation_steps": 4}, {"updates": 20, "accumulation": 4, "schedule": 20}, []),
    (lambda: keras.optimizers.schedules.PolynomialDecay(0.1, 30, 0.01), {}, {"schedule": 30, "lowest": 0.1}, []),
    (lambda: keras.optimizers.schedules.ExponentialDecay(0.1, 80, 0.5), {}, {"updates": 80}, []),
    (lambda: 0.1, {}, {"updates": 80}, []),
    (lambda: keras.optimizers.schedules.CosineDecay(0.1, 10), {}, {"schedule": 10}, ["per_epoch"]),
    (lambda: keras.optimizers.schedules.CosineDecay(0.1, 40), {}, {"schedule": 40}, ["ends_early"]),
    (lambda: keras.optimizers.schedules.CosineDecay(0.1, 800), {}, {"schedule": 800}, ["unfinished"]),
    (lambda: keras.optimizers.schedules.CosineDecay(0.1, 20), {"gradient_accumulation_steps": 4}, {"updates": 20, "schedule": 5}, ["per_batch"]),
], ids=["as long", "warm-up", "accumulation", "to a tenth", "exponential", "constant", "epochs", "half", "tenfold", "updates for batches"])
def test_keras(out, rate, options, plan, kinds):
    callback = fit_keras(out, rate(), **options)
    found = planned(out)
    assert {field: found[field] for field in plan} == pytest.approx(plan)
    assert told(callback, out) == kinds


def test_keras_says_what_other_callbacks_do(out):
    callback = fit_keras(out, 0.1, [keras.callbacks.EarlyStopping(monitor="loss", patience=50), keras.callbacks.ReduceLROnPlateau(monitor="loss", patience=50)])
    assert (planned(out)["early_stopping"], planned(out)["follows_metric"]) == (1, 1) and told(callback, out) == []


def test_the_rate_of_keras_arrives_per_epoch_and_at_doubled_updates(out):
    callback = fit_keras(out, 0.1, [keras.callbacks.LearningRateScheduler(lambda epoch: 0.1 if epoch < 3 else 0.0)])
    rates = [(step, value) for _, step, value in Telemetry(out).scalars("learning_rate")]
    assert {0, 1, 3, 7, 8, 16, 24, 32, 63} <= {step for step, _ in rates} and dict(rates)[24] == 0
    assert told(callback, out) == ["ends_early"]


def test_a_fit_of_one_epoch_is_no_plan(out):
    assert not {"updates", "epochs"} & set(planned(out) if fit_keras(out, 0.1, epochs=1) else ())
