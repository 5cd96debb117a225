"""The ledger of loops with scikit-learn and with TensorFlow that give their outputs and targets."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import numpy
import pytest
from sklearn.linear_model import SGDClassifier, SGDRegressor

import tocsin.sklearn
from tests.support.hook_support import Telemetry, wire


def told(out, call, mode=wire.TRAIN):
    """{field: {step: value}}"""
    telemetry, start = Telemetry(out), f"ledger/{call}/"
    return {name[len(start):]: {step: value for where, step, value in telemetry.scalars(name) if where == mode}
            for name in set(telemetry.names.values()) if name.startswith(start)}


def batches(count=60, size=32):
    rng = numpy.random.default_rng(0)
    rule = rng.standard_normal((5, 3))
    for _ in range(count):
        x = rng.standard_normal((size, 5))
        yield x, numpy.array(["a", "b", "c"])[(x @ rule).argmax(1)], rng


@pytest.mark.parametrize("method, logits", [("predict_proba", False), ("decision_function", True)])
@pytest.mark.parametrize("shuffled", [False, True])
def test_partial_fit_is_judged_on_what_it_says_before_it_learns(out, shuffled, method, logits):
    estimator = SGDClassifier(loss="log_loss", random_state=0)
    training = tocsin.sklearn.watch(estimator, out=out)
    for x, y, rng in batches():
        if shuffled:
            y = rng.permutation(y)
        before = getattr(estimator, method)(x) if hasattr(estimator, "classes_") else None
        estimator.partial_fit(x, y, classes=["a", "b", "c"])
        training.step(loss=0.5, outputs=before, targets=y)
    training.evaluated(accuracy=0.5, outputs=before, targets=y)
    stats = training._watcher.hook.stats()
    training.close()
    assert stats["hook_errors_total"] == {}
    fields = told(out, "cross_entropy")
    assert list(fields["samples"]) == list(range(1, 60)), "nothing was said of the first batch"
    share = sum(fields["wins"].values()) / sum(fields["pairs"].values())
    assert (0.42 < share < 0.58) if shuffled else share > 0.8, "about 600 pairs: 0.02 at one deviation"
    assert told(out, "cross_entropy", wire.EVAL)["samples"] == {0: 32}


def test_regressions_are_squared_errors(out):
    estimator = SGDRegressor(random_state=0)
    training = tocsin.sklearn.watch(estimator, out=out)
    said = []
    for number, (x, _, _) in enumerate(batches(8)):
        y = x[:, 0] * 3 + 1
        before = estimator.predict(x) if number else numpy.zeros(32)
        estimator.partial_fit(x, y)
        training.step(loss=0.0, outputs=before, targets=y)
        said.append(float(numpy.sum((before - y) ** 2)))
    training.close()
    fields = told(out, "squared")
    assert list(fields["loss"].values()) == pytest.approx(said) and len(fields["trivial"]) == 7


def test_tensorflow_loops_give_tensors(out):
    import tensorflow

    import tocsin.keras

    weights = tensorflow.Variable(tensorflow.zeros((5, 3)), name="weights")
    training = tocsin.keras.watch(variables=[weights], out=out)
    for x, y, _ in batches(4):
        ids = numpy.searchsorted(["a", "b", "c"], y)
        training.step(loss=1.0, outputs=tensorflow.matmul(tensorflow.constant(x, "float32"), weights), targets=tensorflow.constant(ids), loss_kind="cross_entropy")
    training.close()
    fields = told(out, "cross_entropy")
    assert fields["loss"] == pytest.approx({step: 32 * numpy.log(3) for step in range(4)}) and set(fields["pairs"].values()) == {0}


def test_a_kind_that_is_unknown_is_counted_and_the_loop_goes_on(out):
    training = tocsin.sklearn.watch(SGDRegressor(), out=out)
    with pytest.warns(RuntimeWarning, match="expected a function, or one of"):
        training.step(loss=1.0, outputs=numpy.zeros(4), targets=numpy.zeros(4), loss_kind="mse")
    assert training._watcher.hook.stats()["hook_errors_total"] == {"ledger": 1}
    training.close()
    assert Telemetry(out).steps() == [0]
