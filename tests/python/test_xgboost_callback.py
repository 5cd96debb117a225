"""The XGBoost callback with a booster of the same public interface: Debian has no xgboost, and tests/frameworks/test_boosting.py tries the
real one."""
import importlib
import sys
import types

import numpy
import pytest

from tests.support.hook_support import Telemetry, wire


class Booster:
    """A round has the trees that `rounds` says, each as its dump."""

    def __init__(self, rounds, predictions=()):
        self.rounds, self.predictions = rounds, predictions

    def num_boosted_rounds(self):
        return len(self.rounds)

    def __getitem__(self, which):
        if self.rounds and self.rounds[0] is None:
            raise ValueError("Slice is not supported by gblinear")
        return Booster(self.rounds[which])

    def get_dump(self):
        return [tree for trees in self.rounds for tree in trees]

    def get_score(self, importance_type="weight"):
        assert importance_type in ("gain", "weight", "total_gain")
        return {"age": 3.0, "income": 1.0}

    def predict(self, data, pred_contribs=False):
        assert data.is_validation and not pred_contribs
        return numpy.asarray(self.predictions, dtype=numpy.float32)


class Validation:
    is_validation = True

    def get_label(self):
        return numpy.asarray([0, 0, 1, 2], dtype=numpy.float32)


LEAF = "0:leaf=0.5\n"


def chain(depth):
    """A tree that splits off one leaf after the other, as XGBoost writes it."""
    lines = [f"{tabs * chr(9)}{2 * tabs}:[age<{tabs}] yes={2 * tabs + 1},no={2 * tabs + 2},missing={2 * tabs + 2}\n"
             f"{(tabs + 1) * chr(9)}{2 * tabs + 1}:leaf=0.1\n" for tabs in range(depth)]
    return "".join(lines) + f"{depth * chr(9)}{2 * depth}:leaf=-0.1\n"


@pytest.fixture
def boosting(monkeypatch):
    """The module tocsin.xgboost over a stand-in for xgboost."""
    fake = types.ModuleType("xgboost")
    fake.callback = types.ModuleType("xgboost.callback")
    fake.callback.TrainingCallback = type("TrainingCallback", (), {})
    fake.callback.EarlyStopping = type("EarlyStopping", (), {})
    fake.collective = types.SimpleNamespace(get_world_size=lambda: 1)
    monkeypatch.setitem(sys.modules, "xgboost", fake)
    monkeypatch.setitem(sys.modules, "xgboost.callback", fake.callback)
    monkeypatch.delitem(sys.modules, "tocsin.xgboost", raising=False)
    yield importlib.import_module("tocsin.xgboost")
    sys.modules.pop("tocsin.xgboost", None)


def train(callback, rounds, booster=None):
    """As xgboost.train() calls it, a round at a time."""
    model = booster or Booster([])
    model = callback.before_training(model)
    stopped = False
    for epoch, trees in enumerate(rounds):
        model.rounds.append(trees)
        stopped = callback.after_iteration(model, epoch, {"train": {"rmse": [1.0 / (epoch + 1)]}})
    hook = callback._watcher.hook
    errors = dict(hook.stats()["hook_errors_total"])
    callback.after_training(model)
    return errors, stopped


def test_the_depth_of_each_round_is_that_of_its_deepest_tree(boosting, out):
    errors, stopped = train(boosting.TocsinCallback(out=out), [[chain(2)], [chain(1), chain(2000), LEAF], [LEAF]])
    assert not errors and stopped is False
    assert [(step, value) for _, step, value in Telemetry(out).scalars("trees/depth")] == [(0, 2), (1, 2000), (2, 0)]
    assert [(step, value) for _, step, value in Telemetry(out).scalars("trees/leaves")] == [(0, 3), (1, 2001), (2, 1)]
    assert [(step, value) for _, step, value in Telemetry(out).scalars("trees/deepest")] == [(1, 1)]
    entry = next(one for one in Telemetry(out).entries.values() if one["name"] == "trees/depth")
    assert entry["role"] == wire.ROLES["metric"]
    assert [value for _, step, value in Telemetry(out).scalars("feature_importance/gain/age")] == [0.75]


def test_a_booster_without_trees_is_asked_once(boosting, out):
    errors, _ = train(boosting.TocsinCallback(out=out), [None, None, None])
    assert errors == {"xgboost": 1}
    assert len(Telemetry(out).scalars("train-rmse")) == 3 and Telemetry(out).scalars("trees/depth") == []


def test_who_wants_no_depth_gets_none(boosting, out):
    errors, _ = train(boosting.TocsinCallback(out=out, trees=False), [[chain(2)]])
    assert not errors and Telemetry(out).scalars("trees/depth") == []


def test_a_training_that_goes_on_looks_at_its_own_rounds(boosting, out):
    train(boosting.TocsinCallback(out=out), [[chain(1)]], Booster([[chain(7)], [chain(8)]]))
    assert [(step, value) for _, step, value in Telemetry(out).scalars("trees/depth")] == [(2, 1)]


def test_labels_and_predictions_are_captured_together_where_they_are_wanted(boosting, out):
    classes = {"every": "1 step", "statistics": ["classes"]}
    callback = boosting.TocsinCallback(out=out, validation=Validation(), capture={
        "overhead": "100%", "collections": {"labels": classes, "predictions": classes}})
    predictions = [[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.1, 0.9, 0.0], [0.1, 0.2, 0.7]]
    errors, _ = train(callback, [[LEAF]], Booster([], predictions))
    assert not errors
    assert Telemetry(out).vectors() == {(0, "labels"): {36: [2, 1, 1], 37: [1, 1, 1], 38: [0, 0, 1, 0, 1, 1, 1, 1, 1, 2, 2, 1]}}


@pytest.mark.parametrize("labels, name, expected", [([0, 0, 1, 1], "roc/area", 0.75), ([0.5, 1, 2, 0], "residual/mean", -0.375)])
def test_what_both_say_goes_with_them(boosting, out, labels, name, expected):
    validation = Validation()
    validation.get_label = lambda: numpy.asarray(labels, dtype=numpy.float32)
    every = {"every": "2 steps"}
    callback = boosting.TocsinCallback(out=out, validation=validation, capture={
        "overhead": "100%", "collections": {"labels": every, "predictions": every}})
    errors, _ = train(callback, [[LEAF]] * 3, Booster([], [0.25, 0.5, 0.375, 0.875]))
    assert not errors
    assert [(step, value) for _, step, value in Telemetry(out).scalars(name)] == [(0, expected), (2, expected)]


def test_nobody_predicts_what_nobody_wants(boosting, out):
    callback = boosting.TocsinCallback(out=out, validation=Validation(), capture={"overhead": "100%"})
    errors, _ = train(callback, [[LEAF]], Booster([], None))
    assert not errors and Telemetry(out).of_kind(wire.SUMMARY) == []


def test_an_estimator_that_is_fitted_again_is_watched_again(boosting, out):
    """Its callbacks are those that it was made with."""
    callback = boosting.TocsinCallback(out=out)
    for _ in range(3):
        train(callback, [[LEAF]] * 2)
    telemetry = Telemetry(out)
    assert len(telemetry.lifecycles("start")) == 3 and telemetry.steps() == [0, 1] * 3
