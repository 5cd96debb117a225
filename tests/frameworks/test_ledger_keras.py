"""The ledger of Keras trainings: the same numbers as NumPy's in all three backends, and no trace of us in the training."""
import json
import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras  # noqa: E402
import numpy  # noqa: E402
import pytest  # noqa: E402

from tests.frameworks.ledger_fits import BATCH, expected, told  # noqa: E402
from tests.support.hook_support import ROOT, Telemetry, wire  # noqa: E402
from tests.support.program import run_cli  # noqa: E402
from tocsin.keras import TocsinCallback  # noqa: E402
from tocsin.ledger.moments import Form  # noqa: E402

BACKENDS = ("tensorflow", "torch", "jax")
CALLS = {"sparse": "sparse_categorical_crossentropy", "logits": "sparse_categorical_crossentropy", "smoothed": "categorical_crossentropy",
         "ignored": "sparse_categorical_crossentropy", "binary": "binary_crossentropy", "one switch": "binary_crossentropy",
         "squared": "mean_squared_error", "function": "mean_squared_error", "absolute": "mean_absolute_error", "huber": "huber",
         "poisson": "poisson"}
SUMS = ("samples", "loss", "straight", "crossed", "pairs", "wins", "output_spread", "target_spread")
ANSWERS = ("right", "answers", "labels")


@pytest.fixture(scope="module", params=BACKENDS)
def fits(request, tmp_path_factory):
    """What the trainings of ledger_fits.py told with one backend."""
    env = {**os.environ, "KERAS_BACKEND": request.param, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, str(ROOT / "tests" / "frameworks" / "ledger_fits.py"), str(tmp_path_factory.mktemp("fits"))],
                          text=True, capture_output=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("case", CALLS)
def test_fields_are_those_of_numpy(fits, case):
    fit = fits["cases"][case]
    assert fit["errors"] == {} and fit["left_out"] == {}
    assert list(fit["told"]) == [CALLS[case]]
    fields = fit["told"][CALLS[case]]
    answers = ANSWERS if case in ("sparse", "logits", "smoothed", "ignored", "one switch") else ()
    for step, wanted in enumerate(fit["expected"]):
        got = {name: fields[name][str(step)] for name in (*SUMS, *answers)}
        assert got == pytest.approx({name: wanted[name] for name in got}, rel=2e-4, abs=2e-4), step
        assert fields["trivial"].get(str(step)) == (pytest.approx(wanted["trivial"], rel=2e-4) if "trivial" in wanted else None)
    assert len(fit["expected"]) == 4 and list(fields["trivial"]) == ["1", "2", "3"], "the first step has no past"


def test_a_training_is_bit_for_bit_what_it_is_without_us_in_each_backend(fits):
    for way in fits["same"]:
        assert way["same"] and {"samples", "trivial", "wins"} <= set(way["train"]) and {"samples", "trivial"} <= set(way["eval"])


def test_a_model_trains_again_and_is_compiled_anew(fits):
    assert fits["again"] == {"left": [], "errors": {}, "calls": {"sparse_categorical_crossentropy": 8, "mean_squared_error": 4}}


def test_what_batches_hold_is_that_of_numpy(fits):
    """Moments of 32 bits to two millionths; what is counted, by fingerprints too, to the last one."""
    told, wanted = fits["held"]["told"], fits["held"]["expected"]
    assert fits["held"]["errors"] == {} and set(told) == set(wanted)
    assert {"ledger/world/input/0/mean", "ledger/world/input/1/1/square", "ledger/world/target/mean_squared_error/mean", "ledger/world/passes",
            "ledger/world/averages", "ledger/data/evaluation/seen", "ledger/data/train/read"} <= set(told) and "ledger/world/input/2/mean" not in told
    for name, rows in wanted.items():
        assert [row[:2] for row in told[name]] == [row[:2] for row in rows], name
        assert [row[2] for row in told[name]] == pytest.approx([row[2] for row in rows], rel=2e-6, abs=2e-6 if "world" in name else 1e-4), name
    assert [row[2] for row in told["ledger/data/evaluation/seen"]] == [20, 20], "rows 300 … 319 of 200"


def test_a_sigmoid_that_is_made_once_more_has_a_ceiling(fits):
    """TensorFlow's backend takes what the sigmoid was made of."""
    twice, once, none = fits["squashed"]
    assert once == none == [] and twice == ([] if fits["backend"] == "tensorflow" else [pytest.approx(numpy.log1p(numpy.exp(-1)))])


# ---- TensorFlow, in this process


@pytest.fixture(autouse=True)
def fresh():
    keras.utils.clear_session()
    keras.utils.set_random_seed(0)


def task(samples=512, classes=4):
    rng = numpy.random.default_rng(0)
    x = rng.standard_normal((samples, 6)).astype("float32")
    return x, (x @ rng.standard_normal((6, classes))).argmax(1)


def classifier(dropout=0.0, **options):
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dropout(dropout, seed=3),
                              keras.layers.Dense(4, activation="softmax")])
    model.compile(**{"optimizer": keras.optimizers.Adam(0.01), "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"], **options})
    return model


def share(fields):
    return sum(fields["wins"].values()) / sum(fields["pairs"].values())


def test_outputs_that_know_their_targets_win_their_pairs_and_others_do_not(out, tmp_path):
    x, y = task()
    shares = {}
    for name, labels in (("right", y), ("shuffled", numpy.random.default_rng(5).permutation(y))):
        classifier().fit(x, labels, batch_size=BATCH, epochs=2, verbose=0, callbacks=[TocsinCallback(out=str(tmp_path / name))])
        fields = told(str(tmp_path / name))["sparse_categorical_crossentropy"]
        assert sum(fields["pairs"].values()) > 250
        shares[name] = share(fields)
    # 300 pairs of shuffled labels: 0.5 ± 0.03 at one deviation, and two epochs remember little
    assert shares["right"] > 0.8 and 0.38 < shares["shuffled"] < 0.62


def test_an_evaluation_has_the_constant_of_training_and_teaches_it_nothing(out):
    x, y = task(64)
    model = classifier(optimizer=keras.optimizers.SGD(0.0))
    model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0, shuffle=False, callbacks=[TocsinCallback(out=out)], validation_data=(x[:24], 3 - y[:24]),
              validation_batch_size=BATCH)
    fields = told(out, wire.EVAL)["sparse_categorical_crossentropy"]
    assert fields["samples"] == {0: 16, 1: 8}
    counts = numpy.bincount(y, minlength=4)
    share_of = (counts + 0.5) / (64 + 2)
    for step, labels in enumerate((3 - y[:16], 3 - y[16:24])):
        assert fields["trivial"][step] == pytest.approx(-numpy.log(share_of[labels]).sum(), rel=1e-5)


def unwatched_and_watched(out, make, *data, **options):
    """[(history, weights)] of the same training without and with the callback."""
    results = []
    for callbacks in ([], [TocsinCallback(out=out)]):
        keras.utils.set_random_seed(7)
        model = make()
        history = model.fit(*data, batch_size=BATCH, verbose=0, callbacks=callbacks, **options).history
        results.append((history, [one.tolist() for one in model.get_weights()], model.metrics_names, model.evaluate(*data, verbose=0)))
    return results


@pytest.mark.parametrize("options", [{}, {"jit_compile": False}, {"jit_compile": True}, {"run_eagerly": True}, {"steps_per_execution": 3},
                                     {"jit_compile": True, "steps_per_execution": 4}], ids=str)
def test_a_training_is_bit_for_bit_what_it_is_without(out, options):
    x, y = task(200)
    plain, watched = unwatched_and_watched(out, lambda: classifier(dropout=0.3, **options), x, y, epochs=3, validation_split=0.2)
    assert plain == watched
    assert told(out)["sparse_categorical_crossentropy"]["samples"] and told(out, wire.EVAL)


def test_several_outputs_are_calls_of_their_own_and_those_without_a_loss_are_none(out):
    inputs = keras.Input((6,))
    heads = {name: keras.layers.Dense(units, name=name)(inputs) for name, units in (("a", 4), ("b", 1), ("c", 2))}
    model = keras.Model(inputs, heads)
    model.compile("sgd", loss={"a": keras.losses.SparseCategoricalCrossentropy(from_logits=True), "b": "mse"}, loss_weights={"a": 1.0, "b": 0.1})
    x, y = task(64)
    model.fit(x, {"a": y, "b": x[:, :1]}, batch_size=BATCH, verbose=0, shuffle=False, callbacks=[TocsinCallback(out=out)])
    calls = told(out)
    assert set(calls) == {"a.sparse_categorical_crossentropy", "b.mean_squared_error"}
    assert calls["b.mean_squared_error"]["target_spread"][0] == pytest.approx(16 * numpy.var(x[:16, 0]), rel=1e-4)


def test_a_list_of_losses_is_named_by_its_outputs(out):
    inputs = keras.Input((6,))
    model = keras.Model(inputs, [keras.layers.Dense(1, name="left")(inputs), keras.layers.Dense(2, name="right")(inputs)])
    model.compile("sgd", loss=["mae", "mse"])
    x, _ = task(32)
    model.fit(x, [x[:, 0], x[:, 1:3]], batch_size=BATCH, verbose=0, callbacks=[TocsinCallback(out=out)])
    assert set(told(out)) == {"left.mean_absolute_error", "right.mean_squared_error"}


def test_class_weights_weigh_loss_and_constant_alike(out):
    x, y = task(64)
    model = classifier(optimizer=keras.optimizers.SGD(0.0))
    weight = {0: 1.0, 1: 5.0, 2: 0.5, 3: 1.0}
    model.fit(x, y, batch_size=BATCH, verbose=0, shuffle=False, class_weight=weight, callbacks=[TocsinCallback(out=out)])
    fields = told(out)["sparse_categorical_crossentropy"]
    wanted = expected(Form("cross_entropy", from_logits=False), model.predict(x, verbose=0), y, numpy.array([weight[one] for one in y]))
    for step in range(1, 4):
        assert (fields["loss"][step], fields["trivial"][step]) == pytest.approx((wanted[step]["loss"], wanted[step]["trivial"]), rel=1e-4)


def test_micro_batches_are_added_up_and_have_the_constant_of_the_updates_before(out):
    x, y = task(128)
    classifier(optimizer=keras.optimizers.SGD(0.0, gradient_accumulation_steps=2)).fit(
        x, y, batch_size=BATCH, verbose=0, shuffle=False, callbacks=[TocsinCallback(out=out)])
    fields = told(out)["sparse_categorical_crossentropy"]
    assert fields["samples"] == {step: 32 for step in range(4)} and set(fields["calls"].values()) == {2}
    share_of = (numpy.bincount(y[:32], minlength=4) + 0.5) / (32 + 2)
    assert fields["trivial"][1] == pytest.approx(-numpy.log(share_of[y[32:64]]).sum(), rel=1e-5) and 0 not in fields["trivial"]


def test_padded_places_of_texts_are_no_samples_and_targets_may_be_the_input(out):
    rng = numpy.random.default_rng(1)
    tokens = rng.integers(1, 12, (48, 10))
    tokens[:, 7:] = 0
    model = keras.Sequential([keras.Input((10,), dtype="int32"), keras.layers.Embedding(12, 8, mask_zero=True),
                              keras.layers.LSTM(8, return_sequences=True), keras.layers.Dense(12, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(tokens, tokens, batch_size=BATCH, verbose=0, callbacks=[TocsinCallback(out=out)])
    fields = told(out)["sparse_categorical_crossentropy"]
    assert set(fields["samples"].values()) == set(fields["input_places"].values()) == set(fields["same_as_input"].values()) == {16 * 7}
    assert all(0.05 < value / (16 * 7) < 0.15 for value in fields["same_by_chance"].values()), "eleven tokens, about alike"


def test_a_loss_of_ones_own_is_counted_and_nothing_is_told(out):
    x, y = task(64)
    callback = TocsinCallback(out=out)
    classifier(loss=lambda t, z: keras.ops.mean(keras.ops.square(z - keras.ops.one_hot(keras.ops.cast(t[:, 0], "int32"), 4)), -1)).fit(
        x, y[:, None], batch_size=BATCH, verbose=0, callbacks=[callback])
    stats = callback._watcher.hook.stats()
    assert told(out) == {} and stats["ledger"]["left_out"] == {"loss": 1} and stats["hook_errors_total"] == {}


def test_models_with_steps_and_losses_of_their_own_are_read_too(out):
    import tensorflow

    class Mine(keras.Model):
        def __init__(self):
            super().__init__()
            self.head = keras.layers.Dense(4)

        def call(self, x):
            return self.head(x)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
            return super().compute_loss(x, y, y_pred, sample_weight) + 0.01 * keras.ops.sum(keras.ops.square(self.head.kernel))

        def train_step(self, data):
            x, y = data
            with tensorflow.GradientTape() as tape:
                y_pred = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=y_pred)
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return {"mine": loss}

    x, y = task(64)
    model = Mine()
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=[TocsinCallback(out=out)]).history
    assert list(history) == ["mine"]
    assert told(out)["sparse_categorical_crossentropy"]["samples"] == {step: 16 for step in range(4)}


def test_the_model_is_as_it_was_when_the_training_ends_and_is_not_compiled_again_for_the_next_one(out, tmp_path):
    traced = []

    class Counts(keras.layers.Layer):
        def call(self, x):
            traced.append(1)
            return x

    model = keras.Sequential([keras.Input((6,)), Counts(), keras.layers.Dense(4, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")
    x, y = task(64)
    before = {name: vars(model).get(name) for name in ("train_step", "test_step", "compute_loss", "make_train_function", "make_test_function")}
    assert set(before.values()) == {None}
    callback = TocsinCallback(out=out)
    save = keras.callbacks.ModelCheckpoint(str(tmp_path / "model.keras"))
    model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=[callback, save], validation_data=(x, y))
    assert {name: vars(model).get(name) for name in before} == before
    first = len(traced)
    for _ in range(3):
        model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=[callback], validation_data=(x, y))
    assert len(traced) == first
    assert model.fit(x, y, batch_size=BATCH, verbose=0).history.keys() == {"loss"}, "and without us"
    loaded = keras.models.load_model(str(tmp_path / "model.keras"), custom_objects={"Counts": Counts})
    assert [one.name for one in loaded.layers] == [one.name for one in model.layers]


def test_a_training_that_broke_off_leaves_a_model_that_trains(out):
    class Breaks(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            assert set(logs) == {"loss", "accuracy"}, "no key of ours"
            if batch == 2:
                raise KeyboardInterrupt

    x, y = task(64)
    model = classifier()
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=[TocsinCallback(out=out), Breaks()])
    assert set(model.evaluate(x, y, verbose=0, return_dict=True)) == {"loss", "accuracy"}
    callback = TocsinCallback(out=out)
    model.fit(x, y, batch_size=BATCH, verbose=0, callbacks=[callback])
    assert callback._watcher.hook.stats()["hook_errors_total"] == {}


def test_where_the_loss_is_read_seldom_the_ledger_is_read_with_it(out):
    x, y = task(1600)
    callback = TocsinCallback(out=out, loss_every=25)
    classifier().fit(x, y, batch_size=BATCH, verbose=0, callbacks=[callback])
    steps = list(told(out)["sparse_categorical_crossentropy"]["samples"])
    assert steps[:2] == [24, 49] and all(step % 25 == 24 for step in steps), "of the first 64 steps those that are read"
    assert callback._watcher.hook.stats()["hook_errors_total"] == {}


# ---- inputs, in healthy and faulty trainings

RULES = "rules: [{use: parity}, {use: leak}, {use: probabilities_into_loss}]\n"


def issues(out, tmp_path):
    """{rule and kind}"""
    rules = tmp_path / "rules.yaml"
    rules.write_text(RULES, encoding="utf-8")
    code, said, error = run_cli("evaluate", "--from", out, "--rules", rules, "--output", "json")
    assert code in (0, 1), error
    return {f"{one['rule']} {one['kind']}".strip() for one in json.loads(said)["issues"]}


def visits(leak=False):
    """Rows of which a class of four, and one of two, is to be told."""
    rng = numpy.random.default_rng(5)
    x = rng.standard_normal((2000, 6)).astype("float32")
    y = (x @ rng.standard_normal((6, 4)) + rng.standard_normal((2000, 4))).argmax(1)
    if leak:
        x[:, 5] = y
    return x[:1600], y[:1600], x[1600:], y[1600:]


def plain(model, x, y, held, wanted, callback, **options):
    model.fit(x, y, batch_size=32, epochs=2, verbose=0, validation_data=(held, wanted), validation_batch_size=32, callbacks=[callback], **options)


def noisy(model, x, y, held, wanted, callback):
    import tensorflow

    data = tensorflow.data.Dataset.from_tensor_slices((x, y)).shuffle(2000).batch(32)
    model.fit(data.map(lambda x, y: (x + tensorflow.random.normal(tensorflow.shape(x)), y)), epochs=2, verbose=0,
              validation_data=tensorflow.data.Dataset.from_tensor_slices((held, wanted)).batch(400), callbacks=[callback])


def weighed(model, x, y, held, wanted, callback):
    plain(model, x, y, held, wanted, callback, class_weight={0: 0.02, 1: 0.1, 2: 0.05, 3: 0.02})


def switches(from_logits, activation):
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1, activation=activation)])
    model.compile(keras.optimizers.Adam(0.01), keras.losses.BinaryCrossentropy(from_logits=from_logits))
    return model


def of_two(model_of):
    def fits(_, x, y, held, wanted, callback):
        plain(model_of(), x, y > 1, held, wanted > 1, callback)
    return fits


def normed():
    model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(16), keras.layers.BatchNormalization(), keras.layers.Dropout(0.4),
                              keras.layers.Dense(4, activation="softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


HEALTHY = {"plain": plain, "noise on the inputs": noisy, "small class weights": weighed, "a sigmoid": of_two(lambda: switches(False, "sigmoid")),
           "logits": of_two(lambda: switches(True, None)), "logits that TensorFlow finds behind a sigmoid": of_two(lambda: switches(True, "sigmoid")), "batch norm": lambda model, *given: plain(normed(), *given),
           "the training's own rows": lambda model, x, y, held, wanted, callback: plain(model, x, y, x, y, callback)}
FAULTS = {
    "not scaled": (lambda model, x, y, held, wanted, callback: plain(model, x, y, 8 * held + 8, wanted, callback), "parity inputs"),
    "labels shifted": (lambda model, x, y, held, wanted, callback: plain(model, x, y, held, (wanted + 1) % 4, callback), "parity loss"),
    "rows of the training": (lambda model, x, y, held, wanted, callback: plain(model, numpy.r_[x, held[::2]], numpy.r_[y, wanted[::2]], held, wanted,
                                                                                callback), "leak overlap")}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_trainings_are_silent(out, tmp_path, name):
    callback = TocsinCallback(out=out)
    HEALTHY[name](classifier(), *visits(), callback)
    assert callback._watcher.hook.stats()["hook_errors_total"] == {} and issues(out, tmp_path) == set()
    assert Telemetry(out).scalars("ledger/world/input/0/mean") and Telemetry(out).scalars("ledger/data/evaluation/compared")


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_told(out, tmp_path, name):
    FAULTS[name][0](classifier(), *visits(), TocsinCallback(out=out))
    assert FAULTS[name][1] in issues(out, tmp_path)


def test_a_column_that_is_the_class_is_told(out, tmp_path):
    plain(classifier(), *visits(leak=True), TocsinCallback(out=out))
    assert "leak target_in_input" in issues(out, tmp_path)


def test_inputs_of_other_layouts_are_left_out_and_nothing_is_counted_as_an_error(out):
    import tensorflow

    model = keras.Sequential([keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = tensorflow.data.Dataset.from_generator(lambda: ((numpy.ones((8, size, 3), "float32"), numpy.ones((8, 1), "float32")) for size in (2, 5, 3)),
                                                  output_signature=(tensorflow.TensorSpec((None, None, 3)), tensorflow.TensorSpec((None, 1))))
    callback = TocsinCallback(out=out)
    model.fit(data, verbose=0, callbacks=[callback])
    assert callback._watcher.hook.stats()["hook_errors_total"] == {}
    assert told(out)["mean_squared_error"]["samples"] == {0: 8, 1: 8, 2: 8}
    assert Telemetry(out).scalars("ledger/world/target/mean_squared_error/mean") and not Telemetry(out).scalars("ledger/world/input/0/mean")
