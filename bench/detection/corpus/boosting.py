"""Boosted trees: XGBoost through the product's callback where it is installed, else scikit-learn's trees under XGBoost's names.
Few rounds, a value of each set per round, no modes."""
import importlib.util
import random

import numpy
import sklearn.datasets
import sklearn.ensemble
import sklearn.metrics

import tocsin

TUNING = {"boost_classes": True, "boost_regression": True, "boost_binary": False, "boost_many": False}
FAULTS = {"rate_too_large": 0.0, "rate_zero": 0.0, "labels_random": 0.0, "overfits": 0.0, "leak": 0.0, "input_constant": 0.0}
ONLY = {"leak": ("boost_binary", "boost_regression")}


def _data(job, seed):
    load = {"boost_regression": sklearn.datasets.load_diabetes, "boost_binary": sklearn.datasets.load_breast_cancer}
    x, y = load.get(job, sklearn.datasets.load_digits)(return_X_y=True)
    order = numpy.random.default_rng(seed).permutation(len(x))
    x, y = x[order].astype(float), y[order].astype(float)
    return (x - x.min(0)) / numpy.maximum(numpy.ptp(x, 0), 1e-9), y / y.std() if job == "boost_regression" else y


def _settings(job, seed):
    chance = random.Random(f"{job}/{seed}")
    rounds = {"boost_many": 120}.get(job, chance.choice((25, 40)))
    return {"rounds": rounds, "rate": chance.uniform(0.03, 0.1) if job == "boost_many" else chance.uniform(0.05, 0.3),
            "depth": chance.choice((2, 3)), "rows": chance.uniform(0.6, 1.0)}


def _broken(fault, made, x, y, held, seed):
    random_ = numpy.random.default_rng(seed + 1)
    if fault == "rate_too_large":
        made["rate"] = 4.0
    elif fault == "rate_zero":
        made["rate"] = 1e-9
    elif fault == "labels_random":
        y[:-held] = random_.permutation(y[:-held])
    elif fault == "overfits":
        made.update(depth=8, rate=0.8, rounds=80)
        wrong = random_.random(len(y) - held) < 0.4
        y[:-held][wrong] = random_.permutation(y[:-held])[wrong]
    elif fault == "leak":
        x[:, 0] = y
    elif fault == "input_constant":
        x[:-held] = 0.5


def applies(fault, job):
    """Whether the fault makes sense for the job."""
    return job in ONLY.get(fault, (job,))


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, rounds, the best one)."""
    x, y = _data(job, seed)
    held = len(x) // 5
    made = _settings(job, seed)
    _broken(fault, made, x, y, held, seed)
    train = _xgboost if importlib.util.find_spec("xgboost") else _sklearn
    uid, losses = train(job, made, x, y, held, seed, {"out": out, "run": name, "job": job})
    return uid, made["rounds"], losses.index(min(losses))


def _xgboost(job, made, x, y, held, seed, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    kind = {"boost_regression": ("reg:squarederror", "rmse"), "boost_binary": ("binary:logistic", ["logloss", "auc", "error"])}
    objective, metric = kind.get(job, ("multi:softprob", ["mlogloss", "merror"]))
    settings = {"objective": objective, "eval_metric": metric, "eta": made["rate"], "max_depth": made["depth"],
                "subsample": made["rows"], "seed": seed, "nthread": 1}
    if objective.startswith("multi"):
        settings["num_class"] = 10
    first, second = xgboost.DMatrix(x[:-held], y[:-held]), xgboost.DMatrix(x[-held:], y[-held:])
    callback = TocsinCallback(**options)
    seen, told = [], {}

    class Keep(xgboost.callback.TrainingCallback):
        """The run's name, while the hook is open."""

        def after_iteration(self, model, epoch, evals_log):
            seen.append(tocsin.get_hook().run)
            return False
    xgboost.train(settings, first, made["rounds"], evals=[(first, "train"), (second, "validation")], verbose_eval=False,
                  evals_result=told, callbacks=[Keep(), callback])
    return seen[0], told["validation"][metric if isinstance(metric, str) else metric[0]]


def _sklearn(job, made, x, y, held, seed, options):
    regression = job == "boost_regression"
    kind = sklearn.ensemble.GradientBoostingRegressor if regression else sklearn.ensemble.GradientBoostingClassifier
    trees = kind(n_estimators=made["rounds"], learning_rate=made["rate"], max_depth=made["depth"], subsample=made["rows"],
                 random_state=seed).fit(x[:-held], y[:-held])
    metric = "rmse" if regression else "logloss" if job == "boost_binary" else "mlogloss"

    def told(x, y):
        if regression:
            return [sklearn.metrics.mean_squared_error(y, one) ** 0.5 for one in trees.staged_predict(x)]
        return [sklearn.metrics.log_loss(y, one, labels=trees.classes_) for one in trees.staged_predict_proba(x)]
    hook = tocsin.watch(**options)
    hook.set_mode("global")
    losses = told(x[-held:], y[-held:])
    for step, (first, second) in enumerate(zip(told(x[:-held], y[:-held]), losses)):
        hook.emit(f"train-{metric}", first, role="loss", step=step)
        hook.emit(f"validation-{metric}", second, role="loss")
    uid = hook.run
    hook.close(timeout=20)
    return uid, losses
