"""The ledger of XGBoost and LightGBM: constants against boosters that do not learn, leaks in every interface, and models that stay as they are."""
import json

import lightgbm
import numpy
import pytest
import xgboost

from tests.support.hook_support import Telemetry, wire
from tests.support.program import run_cli

import tocsin.lightgbm
import tocsin.xgboost


def data(rows=900, seed=0):
    random = numpy.random.default_rng(seed)
    x = random.normal(size=(rows, 5))
    return random, x, x[:, 0] + random.normal(size=rows)


def ledger(out):
    telemetry = Telemetry(out)
    return {name: telemetry.scalars(name) for name in set(telemetry.names.values()) if name.startswith("ledger/")}


def constant(told, name):
    """(loss of the first round, of the constant)"""
    return told[f"ledger/{name}/loss"][0][2], told[f"ledger/{name}/trivial"][0][2]


@pytest.mark.parametrize("objective, metrics, labels", [
    ("reg:squarederror", ["rmse"], lambda y: y), ("reg:absoluteerror", ["mae"], lambda y: y),
    ("binary:logistic", ["logloss", "error", "auc"], lambda y: y > 1), ("multi:softprob", ["mlogloss", "merror"], lambda y: numpy.digitize(y, [0, 1])),
    ("count:poisson", ["poisson-nloglik"], lambda y: numpy.round(numpy.exp(y / 2))), ("reg:gamma", ["gamma-nloglik"], numpy.exp),
    ("reg:tweedie", ["tweedie-nloglik@1.5"], lambda y: numpy.maximum(y, 0))])
def test_an_xgboost_that_does_not_learn_costs_what_the_constant_costs(out, objective, metrics, labels):
    _, x, y = data()
    target = labels(y).astype(float)
    first, second = xgboost.DMatrix(x[:600], target[:600]), xgboost.DMatrix(x[600:], target[600:])
    settings = {"objective": objective, "eval_metric": metrics, "eta": 1e-12, "nthread": 1, "base_score": None}
    if objective.startswith("multi"):
        settings["num_class"] = 3
    callback = tocsin.xgboost.TocsinCallback(out=out)
    xgboost.train({name: value for name, value in settings.items() if value is not None}, first, 2, evals=[(first, "train"), (second, "validation")],
                  verbose_eval=False, callbacks=[callback])
    told = ledger(out)
    for metric in metrics:
        for name in ("train", "validation"):
            loss, trivial = constant(told, f"{name}-{metric}")
            assert loss == pytest.approx(trivial, rel=2e-3)
    assert not callback._watcher.hook.stats()["hook_errors_total"]


@pytest.mark.parametrize("objective, metrics, labels", [
    ("regression", ["l2", "rmse", "l1"], lambda y: y), ("binary", ["binary_logloss", "binary_error", "auc", "average_precision"], lambda y: y > 1),
    ("multiclass", ["multi_logloss", "multi_error"], lambda y: numpy.digitize(y, [0, 1])),
    ("poisson", ["poisson"], lambda y: numpy.round(numpy.exp(y / 2))), ("quantile", ["quantile"], lambda y: y),
    ("gamma", ["gamma"], numpy.exp), ("tweedie", ["tweedie"], lambda y: numpy.maximum(y, 0))])
def test_a_lightgbm_that_does_not_learn_costs_what_the_constant_costs(out, objective, metrics, labels):
    _, x, y = data()
    target = labels(y).astype(float)
    first = lightgbm.Dataset(x[:600], target[:600])
    second = lightgbm.Dataset(x[600:], target[600:], reference=first)
    settings = {"objective": objective, "metric": metrics, "min_data_in_leaf": 10000, "num_threads": 1, "verbose": -1}
    if objective == "multiclass":
        settings["num_class"] = 3
    callback = tocsin.lightgbm.callback(out=out)
    lightgbm.train(settings, first, 2, valid_sets=[first, second], valid_names=["train", "validation"], callbacks=[callback])
    told = ledger(out)
    for metric in metrics:
        for name in ("train", "validation"):
            loss, trivial = constant(told, f"{name}-{metric}")
            assert loss == pytest.approx(trivial, rel=5e-3), metric
    assert not callback._watcher.hook.stats()["hook_errors_total"]


def leaky():
    random, x, y = data()
    x[:, 3] = y
    return x, y


def xgboost_native(out, x, y):
    first, second = xgboost.DMatrix(x[:600], y[:600]), xgboost.DMatrix(x[550:], y[550:])
    xgboost.train({"nthread": 1}, first, 3, evals=[(first, "train"), (second, "held")], verbose_eval=False, callbacks=[tocsin.xgboost.TocsinCallback(out=out)])


def xgboost_given(out, x, y):
    """Where no call of ``train`` is found."""
    first, second = xgboost.DMatrix(x[:600], y[:600]), xgboost.DMatrix(x[550:], y[550:])
    callback = tocsin.xgboost.TocsinCallback(out=out, dtrain=first, evals=[(second, "held")])
    booster = callback.before_training(xgboost.Booster({"nthread": 1}, [first]))
    for round_ in range(3):
        booster.update(first, round_)
        callback.after_iteration(booster, round_, {"held": {"rmse": [1.0]}})
    callback.after_training(booster)


def xgboost_estimator(out, x, y):
    model = xgboost.XGBRegressor(n_estimators=3, n_jobs=1, callbacks=[tocsin.xgboost.TocsinCallback(out=out)])
    model.fit(x[:600], y[:600], eval_set=[(x[:600], y[:600]), (x[550:], y[550:])], verbose=False)


def lightgbm_native(out, x, y):
    first = lightgbm.Dataset(x[:600], y[:600])
    second = lightgbm.Dataset(x[550:], y[550:], reference=first)
    lightgbm.train({"num_threads": 1, "verbose": -1}, first, 3, valid_sets=[second], valid_names=["held"], callbacks=[tocsin.lightgbm.callback(out=out)])


def lightgbm_estimator(out, x, y):
    model = lightgbm.LGBMRegressor(n_estimators=3, n_jobs=1, verbose=-1)
    model.fit(x[:600], y[:600], eval_set=[(x[550:], y[550:])], callbacks=[tocsin.lightgbm.callback(out=out)])


@pytest.mark.parametrize("train, name, column", [(xgboost_native, "held", "f3"), (xgboost_given, "held", "f3"), (xgboost_estimator, "validation_1", "f3"),
                                                 (lightgbm_native, "held", "Column_3"), (lightgbm_estimator, "valid_0", "Column_3")])
def test_a_column_that_is_the_label_and_rows_that_were_trained_on(out, train, name, column):
    train(out, *leaky())
    told = {name: rows[0][2] for name, rows in ledger(out).items()}
    assert told[f"ledger/data/train/column_fit/{column}"] > 0.9999 and told[f"ledger/data/train/column_equal/{column}"] == 1
    assert told[f"ledger/data/train/shifted_fit/{column}"] < 0.1
    assert (told[f"ledger/data/{name}/seen"], told[f"ledger/data/{name}/compared"]) == (50, 350)
    roles = {entry["role"] for entry in Telemetry(out).entries.values() if entry["name"].startswith("ledger/")}
    assert roles == {wire.ROLES["ledger"]}


def test_several_classes_as_frames_with_texts(out):
    pandas = pytest.importorskip("pandas")
    random, x, y = data()
    frame = pandas.DataFrame(x, columns=list("abcde"))
    labels = numpy.digitize(y, [-1, 0, 1])
    frame["d"] = labels * 2.0
    frame["town"] = pandas.Categorical(random.choice(["x", "y"], len(frame)))
    first = lightgbm.Dataset(frame, labels)
    lightgbm.train({"objective": "multiclass", "num_class": 4, "num_threads": 1, "verbose": -1}, first, 2, callbacks=[tocsin.lightgbm.callback(out=out)])
    told = {name: rows[0][2] for name, rows in ledger(out).items()}
    assert told["ledger/data/train/column_fit/d"] == 1 and told["ledger/data/train/column_equal/d"] < 0.99 and told["ledger/data/train/classes"] == 4


@pytest.mark.parametrize("looks", [True, False])
def test_the_model_is_the_same_and_nothing_is_kept(out, looks):
    _, x, y = data()

    def trained(*callbacks):
        first = xgboost.DMatrix(x, y)
        settings = {"nthread": 1, "subsample": 0.5, "seed": 3}
        return xgboost.train(settings, first, 4, evals=[(first, "train")], verbose_eval=False, callbacks=list(callbacks)).get_dump(with_stats=True)

    callback = tocsin.xgboost.TocsinCallback(out=out, ledger=looks)
    assert trained(callback) == trained()
    assert any(name.startswith("ledger/data/") for name in ledger(out)) == looks
    if looks:
        assert callback._ledger._sets == {} and callback._data == (None, None) and callback._once == {}

    def grown(*callbacks):
        settings = {"num_threads": 1, "verbose": -1, "bagging_fraction": 0.5, "bagging_freq": 1, "seed": 3}
        return lightgbm.train(settings, lightgbm.Dataset(x, y), 4, callbacks=list(callbacks)).model_to_string()

    callback = tocsin.lightgbm.callback(out=out + "2", ledger=looks)
    assert grown(callback) == grown() and callback._tables == []


def test_a_cross_validation_has_no_data_that_is_whole(out):
    _, x, y = data()
    xgboost.cv({"nthread": 1}, xgboost.DMatrix(x, y), 2, nfold=2, callbacks=[tocsin.xgboost.TocsinCallback(out=out)])
    assert not any(name.startswith("ledger/data/") for name in ledger(out))


def test_early_stopping_names_the_set_that_it_goes_by(out):
    _, x, y = data()
    first, second = xgboost.DMatrix(x[:600], y[:600]), xgboost.DMatrix(x[600:], y[600:])

    def stops(number, evals, *callbacks, **more):
        place = f"{out}{number}"
        xgboost.train({"nthread": 1}, first, 4, evals=evals, verbose_eval=False, callbacks=[tocsin.xgboost.TocsinCallback(out=place), *callbacks], **more)
        return [name for name in ledger(place) if name.endswith("/stops")]

    both = [(second, "held"), (first, "learn")]
    assert stops(1, both) == []
    assert stops(2, both, early_stopping_rounds=2) == ["ledger/data/train/stops"]
    assert stops(3, both[::-1], early_stopping_rounds=2) == ["ledger/data/held/stops"]
    assert stops(4, both, xgboost.callback.EarlyStopping(2, data_name="held")) == ["ledger/data/held/stops"]
    assert judged(out + "2", "parity") == {("stops_on_training", "warning")} and judged(out + "3", "parity") == set()


# --- judged: faults and their healthy twins -------------------------------------------------------


def judged(out, rules="leak,parity"):
    """{(kind, severity)} of all issues."""
    code, told, error = run_cli("evaluate", "--from", out, "--rules", rules, "--output", "json")
    assert code in (0, 1), error
    return {(issue["kind"], issue["labels"]["severity"]) for issue in json.loads(told)["issues"]}


def trained_on(out, library, x, y, train, held, classes=0):
    if library == "xgboost":
        params = {"nthread": 1}
        if classes:
            params.update({"objective": "multi:softprob", "num_class": classes} if classes > 2 else {"objective": "binary:logistic"})
        first, second = xgboost.DMatrix(x[train], y[train]), xgboost.DMatrix(x[held], y[held])
        xgboost.train(params, first, 20, evals=[(first, "train"), (second, "held")], verbose_eval=False, callbacks=[tocsin.xgboost.TocsinCallback(out=out)])
    else:
        params = {"num_threads": 1, "verbose": -1}
        if classes:
            params.update({"objective": "multiclass", "num_class": classes} if classes > 2 else {"objective": "binary"})
        first = lightgbm.Dataset(x[train], y[train])
        second = lightgbm.Dataset(x[held], y[held], reference=first)
        lightgbm.train(params, first, 20, valid_sets=[second], valid_names=["held"], callbacks=[tocsin.lightgbm.callback(out=out)])


def honest(name):
    """x, y, rows of training, rows of evaluation, classes"""
    random = numpy.random.default_rng(5)
    x = random.normal(size=(1600, 6))
    y, classes, order = x[:, 0] * 2 + x[:, 1] + random.normal(size=1600), 0, random.permutation(1600)
    if name == "one strong feature":
        y = x[:, 0] * 4 + x[:, 1] + random.normal(size=1600)
    elif name == "classes":
        y, classes = numpy.digitize(y, [-2, 0, 2]).astype(float), 4
    elif name == "rare positives":
        y, classes = (y > 4.5).astype(float), 2
    elif name == "a small table that repeats itself":
        x = random.integers(0, 3, (1600, 3)).astype(float)
        y, classes = (x[:, 0] + random.random(1600) > 1.5).astype(float), 2
    elif name == "time":  # trend, season, yesterday's value
        t = numpy.arange(1600)
        y = t * 0.01 + numpy.sin(t / 9) + random.normal(size=1600) * 0.2
        x, order = numpy.column_stack([t, numpy.r_[y[:1], y[:-1]], t % 7]), t
    elif name == "a random walk":
        y = numpy.cumsum(random.normal(size=1600))
        x[:, 0], order = numpy.r_[y[:1], y[:-1]], numpy.arange(1600)
    elif name == "holes":
        x[random.random(x.shape) < 0.4] = numpy.nan
    elif name == "tiny":
        order = order[:60]
    cut = len(order) * 4 // 5
    return x, y, order[:cut], order[cut:], classes


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("name", ["plain", "one strong feature", "classes", "rare positives", "a small table that repeats itself", "time",
                                  "a random walk", "holes", "tiny"])
def test_honest_boosters_are_left_alone(out, library, name):
    x, y, train, held, classes = honest(name)
    trained_on(out, library, x, y, train, held, classes)
    assert judged(out) == set()


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("name, fault, expected", [
    ("plain", "the label as a column", ("target_in_input", "warning")), ("classes", "the label as a column", ("target_in_input", "warning")),
    ("rare positives", "the label as a column", ("target_in_input", "warning")), ("plain", "the label, scaled", ("target_in_input", "warning")),
    ("plain", "the label with noise", ("target_in_input", "info")), ("plain", "a twentieth of the rows again", ("overlap", "warning")),
    ("plain", "half of the rows again", ("overlap", "error")), ("plain", "another scale", ("inputs", "warning")),
    ("plain", "another unit of the label", ("targets", "warning")), ("classes", "sorted by class", ("targets", "warning")),
    ("plain", "sorted by label", ("targets", "warning"))])
def test_their_twins_are_told(out, library, name, fault, expected):
    x, y, train, held, classes = honest(name)
    random = numpy.random.default_rng(9)
    if fault.startswith("the label"):
        more = {"as": y, "scaled": y * 3 + 1, "with": y + 0.15 * y.std() * random.normal(size=len(y))}
        x = numpy.column_stack([x, next(column for word, column in more.items() if word in fault)])
    elif fault.endswith("rows again"):
        held = numpy.concatenate([held, train[:len(held) // (20 if "twentieth" in fault else 1)]])
    elif fault == "another scale":
        x = x.copy()
        x[held, 2] *= 100
    elif fault == "another unit of the label":
        y = y.copy()
        y[held] *= 10
    else:
        order = numpy.argsort(y, kind="stable")
        train, held = order[:1280], order[1280:]
    trained_on(out, library, x, y, train, held, classes)
    assert expected in judged(out)
