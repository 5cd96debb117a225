"""scikit-learn: loops of partial_fit, and what estimators remember."""
import numpy
import pytest
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

from tests.support.hook_support import CommandWriter, Telemetry, acks, wait_for, wire

import tocsin
import tocsin.sklearn


def data(rows=200):
    random = numpy.random.default_rng(0)
    x = random.normal(size=(rows, 4))
    return x, (x[:, 0] > 0).astype(int)


@pytest.mark.parametrize("estimator, weights", [
    (SGDClassifier(loss="log_loss", random_state=0), {"coef_", "intercept_"}),
    (MLPClassifier((5,), random_state=0), {"coefs_.0", "coefs_.1", "intercepts_.0", "intercepts_.1"})])
def test_a_loop_of_batches(out, estimator, weights):
    x, y = data()
    training, sums = tocsin.sklearn.watch(estimator, out=out, capture={"every": "2 steps", "overhead": "100%"}), []
    for start in range(0, 200, 40):
        batch = slice(start, start + 40)
        estimator.partial_fit(x[batch], y[batch], classes=[0, 1])
        first = estimator.coef_ if hasattr(estimator, "coef_") else estimator.coefs_[0]
        sums.append(float(first.sum()))
        training.step(loss=log_loss(y[batch], estimator.predict_proba(x[batch])))
        assert training.should_stop() is None
    training.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == list(range(5)) and len(telemetry.scalars("loss")) == 5
    rows = telemetry.summaries(step=4)
    assert set(rows) == weights
    name = min(weights)
    assert rows[name]["sum"] == pytest.approx(sums[4]) and "delta_l2" not in rows
    roles = {entry["name"]: entry["role"] for entry in telemetry.entries.values()}
    assert roles[name] == wire.ROLES["weight"] and roles[max(weights)] == wire.ROLES["bias"]


def test_the_estimators_own_loss_is_taken_where_the_script_gives_none(out):
    x, y = data()
    estimator = MLPClassifier((5,), random_state=0)
    training = tocsin.sklearn.watch(estimator, out=out)
    estimator.partial_fit(x, y, classes=[0, 1])
    training.step()
    training.close()
    assert Telemetry(out).scalars("loss") == [(wire.TRAIN, 0, pytest.approx(estimator.loss_))]


def test_a_stop_ends_the_loop(out):
    x, y = data()
    estimator = SGDClassifier(loss="log_loss")
    training = tocsin.sklearn.watch(estimator, out=out, run="s")
    hook = tocsin.get_hook()
    for number in range(50):
        estimator.partial_fit(x, y, classes=[0, 1])
        training.step(loss=1.0)
        if number == 3:
            CommandWriter(out).stop(hook.run, hook.attempt)
            assert wait_for(lambda: hook.stats()["commands_received_total"] == 1)
        if training.should_stop():
            break
    training.close()
    assert number == 3 and training.stopped.rule == "exploding_tensor"
    assert [ack["phase"] for ack in acks(out)][-1] == "stopped"
    assert [end["outcome"] for end in Telemetry(out).lifecycles("end")] == ["stopped_by_rule"]


@pytest.mark.parametrize("estimator, names", [
    (MLPClassifier((5,), max_iter=20, early_stopping=True, random_state=0), ["loss", "validation_score"]),
    (GradientBoostingRegressor(n_estimators=8), ["train_loss"]),
    (HistGradientBoostingClassifier(max_iter=8, early_stopping=True, scoring="accuracy"), ["train_score", "validation_score"])])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_an_estimator_remembers_of_its_fitting(out, estimator, names):
    x, y = data()
    estimator.fit(x, y)
    assert tocsin.sklearn.history(estimator, out=out) == names
    telemetry = Telemetry(out)
    roles = {entry["name"]: entry["role"] for entry in telemetry.entries.values()}
    for name in names:
        assert len(telemetry.scalars(name)) >= 8
        assert roles[name] == wire.ROLES["loss" if "loss" in name else "metric"]
    if names == ["train_loss"]:
        assert [value for _, _, value in telemetry.scalars("train_loss")] == pytest.approx(list(estimator.train_score_))
    assert [end["outcome"] for end in telemetry.lifecycles("end")] == ["completed"] and tocsin.get_hook() is None
