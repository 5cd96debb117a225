"""The ledger of loops with scikit-learn and with TensorFlow that give their outputs and targets."""
import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import numpy
import pytest
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.neural_network import MLPClassifier

import tocsin.sklearn
from tests.support.hook_support import Telemetry, wire
from tests.support.program import run_cli


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


# ---- inputs


def fields_of(out, mode=wire.TRAIN):
    telemetry = Telemetry(out)
    return {name[7:]: {step: value for where, step, value in telemetry.scalars(name) if where == mode}
            for name in set(telemetry.names.values()) if name.startswith("ledger/")}


def trained(out, estimator, method, change=lambda x: x, steps=120, leak=False, repeats=0):
    """A loop as docs/frameworks/sklearn.md has it: an evaluation at every 40th batch."""
    rng = numpy.random.default_rng(3)
    x = rng.standard_normal((2000, 6))
    y = (x @ rng.standard_normal((6, 3)) + rng.standard_normal((2000, 3))).argmax(1)
    if leak:
        x[:, 5] = y
    x, y, held, wanted = x[:1500], y[:1500], x[1500:], y[1500:]
    x, y = numpy.r_[x, held[:repeats]], numpy.r_[y, wanted[:repeats]]
    held = change(held)
    plain = type(estimator)
    training = tocsin.sklearn.watch(estimator, out=out)
    for step in range(steps):
        some = rng.integers(0, len(x), 48)
        before = getattr(estimator, method)(x[some]) if step else None
        estimator.partial_fit(x[some], y[some], classes=[0, 1, 2])
        training.step(loss=0.5, outputs=before, targets=y[some])
        if step % 40 == 39:
            training.evaluated(outputs=getattr(estimator, method)(X=held), targets=wanted)
    stats = training._watcher.hook.stats()
    training.close()
    assert stats["hook_errors_total"] == {} and type(estimator) is plain


def issues(out, tmp_path, rule):
    rules = tmp_path / f"{rule}.yaml"
    rules.write_text(f"rules: [{{use: {rule}}}]\n", encoding="utf-8")
    code, said, error = run_cli("evaluate", "--from", out, "--rules", rules, "--output", "json")
    assert code in (0, 1), error
    return {one["kind"] for one in json.loads(said)["issues"]}


ESTIMATORS = {"perceptron": (lambda: MLPClassifier((8,), random_state=0), "predict_proba"),
              "linear": (lambda: SGDClassifier(loss="log_loss", random_state=0), "decision_function")}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("fault, rule, kind", [({}, "", ""), ({"change": lambda x: 8 * x + 8}, "parity", "inputs"), ({"leak": True}, "leak", "target_in_input"),
                                               ({"repeats": 300}, "leak", "overlap")], ids=["healthy", "not scaled", "leak", "overlap"])
def test_what_an_estimator_is_given_is_known_without_a_word(out, tmp_path, estimator, fault, rule, kind):
    make, method = ESTIMATORS[estimator]
    trained(out, make(), method, **fault)
    for one in ("parity", "leak"):
        assert issues(out, tmp_path, one) == ({kind} if rule == one else set())


def test_inputs_that_are_said_are_those(out):
    x = numpy.arange(120.0).reshape(60, 2)
    training = tocsin.sklearn.watch(SGDRegressor(), out=out)
    training.step(outputs=numpy.zeros(60), targets=x[:, 0], inputs=x)
    training.step(outputs=numpy.zeros(60), targets=x[:, 0], inputs={"a": x[:, :1] + 7, "b": numpy.arange(60)})
    training.close()
    fields = fields_of(out)
    some = x[::2]
    assert fields["world/input/0/mean"] == pytest.approx({0: 0.0, 1: (some[:, 0] + 7).mean() - some.mean()})
    assert fields["world/input/0/square"][0] == pytest.approx(((some - some.mean()) ** 2).mean(), rel=1e-6)


def test_an_estimator_that_is_watched_can_be_copied_and_kept(out):
    import copy
    import pickle

    from sklearn.base import clone, is_classifier

    estimator = SGDClassifier(loss="hinge", random_state=0)
    training = tocsin.sklearn.watch(estimator, out=out)
    x = numpy.random.default_rng(0).standard_normal((50, 3))
    estimator.partial_fit(x, x[:, 0] > 0, classes=[False, True])
    assert not hasattr(estimator, "predict_proba") and estimator.set_params(loss="log_loss").predict_proba(x).shape == (50, 2)
    assert is_classifier(estimator) and repr(estimator).startswith("SGDClassifier(") and clone(estimator).get_params() == estimator.get_params()
    for other in (pickle.loads(pickle.dumps(estimator)), copy.deepcopy(estimator)):
        assert type(other) is SGDClassifier and (other.predict(x) == estimator.predict(x)).all()
    assert isinstance(estimator, SGDClassifier)
    training.close()
    assert type(estimator) is SGDClassifier
