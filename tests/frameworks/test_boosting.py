"""XGBoost and LightGBM: every round is a step; watched, judged, stopped."""
import json

import lightgbm
import numpy
import pytest
import xgboost

from tests.support.hook_support import CommandWriter, Telemetry, wait_for, wire

import tocsin
import tocsin.lightgbm
import tocsin.xgboost


def data():
    random = numpy.random.default_rng(0)
    x = random.normal(size=(200, 4))
    return x, x[:, 0] * 3 + random.normal(size=200) * 0.1


def train_xgboost(callback, rounds=12, **more):
    x, y = data()
    first, second = xgboost.DMatrix(x[:150], y[:150]), xgboost.DMatrix(x[150:], y[150:])
    settings = {"max_depth": 2, "nthread": 1, "eval_metric": ["rmse", "mae"]}
    return xgboost.train(settings, first, rounds, evals=[(first, "train"), (second, "validation")], verbose_eval=False,
                         callbacks=[callback], **more)


def train_lightgbm(callback, rounds=12, callbacks=(), init_model=None, **settings):
    x, y = data()
    y = y > 0 if settings.get("objective") == "binary" else y
    first = lightgbm.Dataset(x[:150], y[:150])
    settings = {"num_leaves": 4, "num_threads": 1, "verbose": -1, "metric": ["l2", "l1"], "min_data_in_leaf": 2, **settings}
    return lightgbm.train(settings, first, rounds, valid_sets=[first, lightgbm.Dataset(x[150:], y[150:], reference=first)],
                          valid_names=["train", "validation"], callbacks=[callback, *callbacks], init_model=init_model)


def test_xgboost_logs_every_metric_of_every_round(out):
    callback = tocsin.xgboost.TocsinCallback(out=out, job="boosted", importance=["gain", "weight"])
    results = {}
    train_xgboost(callback, evals_result=results)
    telemetry = Telemetry(out)
    assert telemetry.steps() == list(range(12))
    for name in ("train-rmse", "train-mae", "validation-rmse", "validation-mae"):
        told = telemetry.scalars(name)
        assert [step for _, step, _ in told] == list(range(12))
        assert [value for _, _, value in told] == pytest.approx(results[name.split("-")[0]][name.split("-")[1]])
    for kind in ("gain", "weight"):
        shares = [telemetry.scalars(name) for name in telemetry.names.values() if name.startswith(f"feature_importance/{kind}/")]
        assert shares and sum(value for share in shares for _, step, value in share if step == 10) == pytest.approx(1)
    roles = {entry["name"]: entry["role"] for entry in telemetry.entries.values()}
    assert roles["validation-rmse"] == roles["train-mae"] == wire.ROLES["loss"]
    assert [end["outcome"] for end in telemetry.lifecycles("end")] == ["completed"] and tocsin.get_hook() is None


def test_metrics_that_are_to_become_large_are_no_losses(out):
    x, y = data()
    both = xgboost.DMatrix(x, y > 0)
    settings = {"objective": "binary:logistic", "eval_metric": ["auc", "logloss", "map@3"], "nthread": 1}
    xgboost.train(settings, both, 2, evals=[(both, "train")], verbose_eval=False, callbacks=[tocsin.xgboost.TocsinCallback(out=out)])
    train_lightgbm(tocsin.lightgbm.callback(out=out + "2"), rounds=2, objective="binary", metric=["auc", "binary_logloss"])
    for place, losses in ((out, {"train-logloss"}), (out + "2", {"train-binary_logloss", "validation-binary_logloss"})):
        entries = Telemetry(place).entries.values()
        assert {entry["name"] for entry in entries if entry["role"] == wire.ROLES["loss"]} == losses


def test_xgboost_goes_on_counting_where_a_booster_was(out):
    booster = train_xgboost(tocsin.xgboost.TocsinCallback(out=out + "1"), rounds=5)
    train_xgboost(tocsin.xgboost.TocsinCallback(out=out), rounds=3, xgb_model=booster)
    assert Telemetry(out).steps() == [5, 6, 7]


def test_lightgbm_logs_every_metric_of_every_round(out):
    results = {}
    train_lightgbm(tocsin.lightgbm.callback(out=out), callbacks=[lightgbm.record_evaluation(results)])
    telemetry = Telemetry(out)
    assert telemetry.steps() == list(range(12))
    for data_set, metric in (("train", "l2"), ("validation", "l1")):
        assert [value for _, _, value in telemetry.scalars(f"{data_set}-{metric}")] == pytest.approx(results[data_set][metric])
    assert [end["outcome"] for end in telemetry.lifecycles("end")] == ["completed"] and tocsin.get_hook() is None


def test_a_training_after_one_that_early_stopping_ended_is_another_run(out):
    callback = tocsin.lightgbm.callback(out=out)
    for _ in range(2):
        booster = train_lightgbm(callback, rounds=300, callbacks=[lightgbm.early_stopping(1, verbose=False)], learning_rate=1.0)
        assert booster.current_iteration() < 300
    train_lightgbm(tocsin.lightgbm.callback(out=out), rounds=2)
    telemetry = Telemetry(out)
    assert len(telemetry.lifecycles("start")) == 3 and telemetry.steps().count(0) == 3
    assert [end["outcome"] for end in telemetry.lifecycles("end")] == ["completed"] * 3


def test_lightgbm_tells_leaves_and_what_the_trees_use(out):
    booster = train_lightgbm(tocsin.lightgbm.callback(out=out, importance=("gain", "split")))
    telemetry = Telemetry(out)
    assert [(step, value) for _, step, value in telemetry.scalars("trees/leaves")] == [(step, 4.0) for step in range(12)]
    for kind in ("gain", "split"):
        shares = [telemetry.scalars(name) for name in set(telemetry.names.values()) if name.startswith(f"feature_importance/{kind}/")]
        for round_ in (0, 5, 10):
            assert sum(value for share in shares for _, step, value in share if step == round_) == pytest.approx(1)
    train_lightgbm(tocsin.lightgbm.callback(out=out + "2"), rounds=3, init_model=booster)
    assert [(step, value) for _, step, value in Telemetry(out + "2").scalars("trees/leaves")] == [(12, 4.0), (13, 4.0), (14, 4.0)]


def test_lightgbm_says_so_where_nothing_can_be_split(out):
    train_lightgbm(tocsin.lightgbm.callback(out=out), rounds=6, min_data_in_leaf=1000)
    telemetry = Telemetry(out)
    assert [value for _, _, value in telemetry.scalars("trees/leaves")] == [1.0] * 6
    assert not any(name.startswith("feature_importance") for name in telemetry.names.values())


def test_a_cross_validation_of_lightgbm_has_no_trees_of_its_own(out):
    x, y = data()
    lightgbm.cv({"num_threads": 1, "verbose": -1, "metric": "l2"}, lightgbm.Dataset(x, y), 3, nfold=2, stratified=False,
                callbacks=[tocsin.lightgbm.callback(out=out)])
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1, 2] and not telemetry.scalars("trees/leaves")


def stop_in_round_3(out, round_number):
    """As the router would; waits until the client has read it."""
    if round_number == 3:
        hook = tocsin.get_hook()
        CommandWriter(out).stop(hook.run, hook.attempt)
        assert wait_for(lambda: hook.stats()["commands_received_total"] == 1)


def assert_stopped_in_round_3(out, callback):
    assert callback.stopped.rule == "exploding_tensor"
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1, 2, 3]
    assert [end["outcome"] for end in telemetry.lifecycles("end")] == ["stopped_by_rule"]


def test_a_stop_ends_the_rounds_of_xgboost_and_keeps_the_booster(out):
    class Stopped(tocsin.xgboost.TocsinCallback):
        def after_iteration(self, model, epoch, evals_log):
            stop_in_round_3(out, epoch)
            return super().after_iteration(model, epoch, evals_log)

    callback = Stopped(out=out, run="boosted")
    assert train_xgboost(callback, rounds=50).num_boosted_rounds() == 4
    assert_stopped_in_round_3(out, callback)


def test_a_stop_ends_the_rounds_of_lightgbm_and_keeps_the_booster(out):
    def asks(env):
        stop_in_round_3(out, env.iteration)

    asks.order = 1
    callback = tocsin.lightgbm.callback(out=out, run="boosted")
    assert train_lightgbm(callback, rounds=50, callbacks=[asks]).current_iteration() == 4
    assert_stopped_in_round_3(out, callback)


def test_a_model_that_overfits_is_found(out, judged):
    fired = judged("[overfit]")
    random = numpy.random.default_rng(0)
    x, y = random.normal(size=(60, 8)), random.normal(size=60)
    first, second = xgboost.DMatrix(x[:30], y[:30]), xgboost.DMatrix(x[30:], y[30:])
    xgboost.train({"max_depth": 6, "eta": 0.5, "nthread": 1}, first, 40, evals=[(first, "train"), (second, "validation")],
                  verbose_eval=False, callbacks=[tocsin.xgboost.TocsinCallback(out=out)])
    assert "overfit" in fired()


def test_the_depth_of_xgboosts_trees_and_what_it_predicts(out):
    x, y = data()
    held = xgboost.DMatrix(x[150:], y[150:] > 0)
    classes = {"every": "1 step", "statistics": ["classes"]}
    callback = tocsin.xgboost.TocsinCallback(out=out, validation=held, capture={
        "overhead": "100%", "collections": {"labels": classes, "predictions": classes}})
    booster = xgboost.train({"max_depth": 3, "nthread": 1, "objective": "binary:logistic"}, xgboost.DMatrix(x[:150], y[:150] > 0), 5,
                            callbacks=[callback])

    def depth(node):
        return max((1 + depth(child) for child in node.get("children", ())), default=0)

    told = [value for _, _, value in Telemetry(out).scalars("trees/depth")]
    assert told == [depth(json.loads(tree)) for tree in booster.get_dump(dump_format="json")] and max(told) > 1

    def leaves(node):
        return sum(map(leaves, node["children"])) if "children" in node else 1

    told = [value for _, _, value in Telemetry(out).scalars("trees/leaves")]
    assert told == [leaves(json.loads(tree)) for tree in booster.get_dump(dump_format="json")]
    right = int(((booster.predict(held) >= 0.5) == (y[150:] > 0)).sum())
    assert sum(Telemetry(out).vectors()[4, "labels"][37]) == right


def test_importance_of_every_type_is_a_collection_of_its_own(out):
    kinds = ("weight", "gain", "cover", "total_gain", "total_cover")
    booster = train_xgboost(tocsin.xgboost.TocsinCallback(out=out, importance=kinds, importance_every=11))
    telemetry = Telemetry(out)
    for kind in kinds:
        scores = booster.get_score(importance_type=kind)
        for feature, score in scores.items():
            assert telemetry.scalars(f"feature_importance/{kind}/{feature}")[-1][1:] == (11, pytest.approx(score / sum(scores.values())))
    roles = {entry["name"]: entry["role"] for entry in telemetry.entries.values()}
    assert roles["feature_importance/cover/f0"] == wire.ROLES["importance"]


def test_the_parameters_of_the_booster_are_told_once(out):
    train_xgboost(tocsin.xgboost.TocsinCallback(out=out), rounds=3)
    telemetry = Telemetry(out)
    assert telemetry.scalars("hyperparameters/max_depth") == [(wire.TRAIN, 0, 2.0)]
    assert telemetry.scalars("hyperparameters/eta") == [(wire.TRAIN, 0, pytest.approx(0.3))]
    assert not any(name.endswith("/objective") for name in telemetry.names.values()), "a text"
    roles = {entry["name"]: entry["role"] for entry in telemetry.entries.values()}
    assert roles["hyperparameters/max_depth"] == wire.ROLES["hyperparameter"]


def splits(node):
    """All of a tree, given as its JSON."""
    return [node, *(one for child in node["children"] for one in splits(child))] if "children" in node else []


def test_the_columns_of_the_trees_are_those_of_the_rounds_own(out):
    booster = train_xgboost(tocsin.xgboost.TocsinCallback(out=out, capture={
        "overhead": "100%", "collections": {"trees": {"every": "2 steps"}}}), rounds=4)
    telemetry = Telemetry(out)
    told = telemetry.summaries(step=2)
    (tree,) = [json.loads(one) for one in booster[2:3].get_dump(with_stats=True, dump_format="json")]
    inner = splits(tree)
    assert len(inner) > 1 and told["trees/Split"]["count"] == len(inner) and told["trees/Node"]["count"] == 2 * len(inner) + 1
    for column, key in (("Gain", "gain"), ("Split", "split_condition"), ("Yes", "yes"), ("No", "no"), ("Missing", "missing")):
        assert told[f"trees/{column}"]["sum"] == pytest.approx(sum(one[key] for one in inner), rel=1e-6)
    assert told["trees/Node"]["max"] == max(one["no"] for one in inner)
    assert telemetry.summaries(step=1) == {}


@pytest.mark.parametrize("settings", [{}, {"objective": "multi:softprob", "num_class": 3}])
def test_contributions_of_the_features_where_they_are_asked_for(out, settings):
    x, y = data()
    y = numpy.digitize(y, [-1, 1]) if settings else y
    train = xgboost.DMatrix(x, y, feature_names=["age", "body_weight", "c", "d"])
    collections = {name: {"every": "2 steps"} for name in ("average_shap", "full_shap")}
    callback = tocsin.xgboost.TocsinCallback(out=out, shap=train, capture={"overhead": "100%", "collections": collections})
    booster = xgboost.train({"max_depth": 2, "nthread": 1, **settings}, train, 3, callbacks=[callback])
    shap = booster.predict(train, pred_contribs=True)
    told = Telemetry(out).summaries(step=2)
    assert set(told) == {"full_shap/contributions", *(f"average_shap/{name}" for name in train.feature_names)}
    for number, name in enumerate(train.feature_names):
        row, own = told[f"average_shap/{name}"], shap[..., number].astype("float64")
        assert row["count"] == own.size
        assert row["sum"] == pytest.approx(own.sum(), rel=1e-4, abs=1e-4) and row["abs_sum"] == pytest.approx(abs(own).sum(), rel=1e-5)
    assert told["full_shap/contributions"]["count"] == shap[..., :-1].size


def test_nobody_computes_contributions_that_nobody_asked_for(out, monkeypatch):
    def predict(*_, **__):
        raise AssertionError("asked")

    monkeypatch.setattr(xgboost.Booster, "predict", predict)
    x, y = data()
    train = xgboost.DMatrix(x, y)
    xgboost.train({"nthread": 1}, train, 2, callbacks=[tocsin.xgboost.TocsinCallback(out=out, shap=train, capture={"every": "1 step"})])
    assert not any("shap" in name for name in Telemetry(out).names.values())
