"""Boosted trees: XGBoost through the product's callback where it is installed, else scikit-learn's trees under XGBoost's names;
LightGBM where it is installed. Few rounds, a value of each set per round, no modes."""
import importlib.util
import random

import numpy
import sklearn.datasets
import sklearn.ensemble
import sklearn.metrics

import tocsin

TUNING = {"boost_classes": True, "boost_regression": True, "boost_binary": True, "boost_many": True, "boost_table": True,
          "boost_rank": True, "boost_wrapper": True, "light_binary": True, "light_table": True, "light_rank": True, "boost_counts": True,
          "light_auc": True, "boost_dart": True, "boost_pairs": True, "boost_few": True,
          "boost_short": True, "light_short": True}
NEEDS = {"boost_rank": "xgboost", "boost_wrapper": "xgboost", "light_binary": "lightgbm", "light_table": "lightgbm", "light_rank": "lightgbm",
         "boost_counts": "xgboost", "light_auc": "lightgbm", "boost_dart": "xgboost",
         "boost_pairs": "xgboost", "boost_few": "xgboost", "boost_short": "xgboost", "light_short": "lightgbm"}
TABLES = ("boost_table", "boost_wrapper", "light_table")  # a made-up table, most of whose columns matter
SLOW = ("overfits", "held_differs")
FAULTS = {"rate_too_large": 0.0, "rate_zero": 0.0, "labels_random": 0.0, "overfits": 0.0, "leak": 0.0, "input_constant": 0.0,
          "never_splits": 0.0, "held_differs": 0.0}
ONLY = {"leak": ("boost_binary", "boost_regression", "boost_table", "boost_wrapper", "light_table")}


def job_names():
    """Those whose package is installed."""
    return [name for name in TUNING if name not in NEEDS or importlib.util.find_spec(NEEDS[name])]


def _data(job, seed):
    if job == "boost_pairs":
        x, y = sklearn.datasets.make_friedman1(1200, 10, noise=1.0, random_state=seed)
        return x, numpy.digitize(y, numpy.quantile(y, (0.4, 0.7, 0.9))) * 3.0  # _grouped divides by three
    if job == "boost_few":
        x, y = sklearn.datasets.make_friedman2(900, noise=80.0, random_state=seed)
        return x, (y - y.mean()) / y.std()
    if job == "boost_counts":
        x, y = sklearn.datasets.make_friedman1(1000, 8, noise=0.0, random_state=seed)
        return x, numpy.random.default_rng(seed).poisson(numpy.exp((y - y.mean()) / y.std() * 0.8)).astype(float)
    if job in ("boost_short", "light_short"):
        return sklearn.datasets.make_classification(1000, 14, n_informative=8, n_classes=3, flip_y=0.03, class_sep=1.5, random_state=seed)
    if job in ("light_auc", "boost_dart"):
        two = job == "light_auc"
        return sklearn.datasets.make_classification(1000, 16, n_informative=6, n_classes=2 if two else 4, weights=[0.85] if two else None,
                                                    flip_y=0.05, random_state=seed)
    if job in TABLES:
        x, y = sklearn.datasets.make_friedman1(800, 12, noise=random.Random(f"{job}/{seed}/noise").choice((0.5, 2.0)), random_state=seed)
        return x, (y - y.mean()) / y.std()
    load = {"boost_regression": sklearn.datasets.load_diabetes, "boost_binary": sklearn.datasets.load_breast_cancer,
            "light_binary": sklearn.datasets.load_breast_cancer}
    x, y = load.get(job, sklearn.datasets.load_digits)(return_X_y=True)
    order = numpy.random.default_rng(seed).permutation(len(x))
    x, y = x[order].astype(float), y[order].astype(float)
    return (x - x.min(0)) / numpy.maximum(numpy.ptp(x, 0), 1e-9), y / y.std() if job == "boost_regression" else y


def _settings(job, seed):
    chance = random.Random(f"{job}/{seed}")
    rounds = {"boost_short": 10, "light_short": 15, "boost_few": 12, "boost_pairs": 30, "boost_many": 120, "boost_rank": 60, "light_table": 80, "light_auc": 40}.get(job, chance.choice((25, 40)))
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
    elif fault == "never_splits":
        made["child"] = 1e9
    elif fault == "held_differs":
        x[-held:] = x[-held:][:, random_.permutation(x.shape[1])]


def applies(fault, job):
    """Whether the fault makes sense for the job."""
    return job in ONLY.get(fault, (job,))


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, rounds, the best one)."""
    x, y = _data(job, seed)
    held = len(x) // 5
    made = _settings(job, seed)
    _broken(fault, made, x, y, held, seed)
    train = (_lightgbm if job.startswith("light") else _wrapper if job == "boost_wrapper" else
             _xgboost if importlib.util.find_spec("xgboost") else _sklearn)
    uid, losses = train(job, made, x, y, held, seed, {"out": out, "run": name, "job": job})
    return uid, made["rounds"], losses.index(min(losses))


def _kept(seen):
    """A callback of XGBoost that keeps the run's name while the hook is open."""
    import xgboost

    class Keep(xgboost.callback.TrainingCallback):
        """Stands before the product's."""

        def after_iteration(self, model, epoch, evals_log):
            seen.append(tocsin.get_hook().run)
            return False
    return Keep()


def _grouped(x, y, at=20):
    """Lists of 20 documents, of which high digits are the better ones."""
    import xgboost
    size = len(x) // at * at
    return xgboost.DMatrix(x[:size], y[:size] // 3, group=[at] * (size // at))


def _xgboost(job, made, x, y, held, seed, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    squared = ("reg:squarederror", "rmse")
    kind = {"boost_regression": squared, "boost_table": squared, "boost_binary": ("binary:logistic", ["logloss", "auc", "error"]),
            "boost_rank": ("rank:ndcg", "ndcg"), "boost_counts": ("count:poisson", "poisson-nloglik"),
            "boost_dart": ("multi:softprob", "mlogloss"), "boost_few": squared,
            "boost_pairs": ("rank:pairwise", ["ndcg", "ndcg@5"])}
    objective, metric = kind.get(job, ("multi:softprob", ["mlogloss", "merror"]))
    settings = {"objective": objective, "eval_metric": metric, "eta": made["rate"], "max_depth": made["depth"],
                "subsample": made["rows"], "seed": seed, "nthread": 1, "min_child_weight": made.get("child", 1)}
    if objective.startswith("multi"):
        settings["num_class"] = {"boost_dart": 4, "boost_short": 3}.get(job, 10)
    if job == "boost_dart":
        settings.update(booster="dart", rate_drop=0.1)
    matrix = _grouped if job in ("boost_rank", "boost_pairs") else xgboost.DMatrix
    first, second = matrix(x[:-held], y[:-held]), matrix(x[-held:], y[-held:])
    seen, told = [], {}
    xgboost.train(settings, first, made["rounds"], evals=[(first, "train"), (second, "validation")], verbose_eval=False,
                  evals_result=told, callbacks=[_kept(seen), TocsinCallback(**options)])
    values = told["validation"][metric if isinstance(metric, str) else metric[0]]
    return seen[0], [-one for one in values] if job in ("boost_rank", "boost_pairs") else values


def _wrapper(job, made, x, y, held, seed, options):
    """XGBoost's own interface after scikit-learn: sets are validation_0, which is trained on, and validation_1."""
    import xgboost

    from tocsin.xgboost import TocsinCallback
    seen = []
    model = xgboost.XGBRegressor(n_estimators=made["rounds"], learning_rate=made["rate"], max_depth=made["depth"], random_state=seed,
                                 subsample=made["rows"], min_child_weight=made.get("child", 1), n_jobs=1, eval_metric=["rmse", "mae"],
                                 callbacks=[_kept(seen), TocsinCallback(**options)])
    model.fit(x[:-held], y[:-held], eval_set=[(x[:-held], y[:-held]), (x[-held:], y[-held:])], verbose=False)
    return seen[0], model.evals_result()["validation_1"]["rmse"]


def _lists(x, y, ranks, at=20):
    """Of a ranking lists of 20 documents."""
    import lightgbm
    size = len(x) // at * at if ranks else len(x)
    return lightgbm.Dataset(x[:size], y[:size] // 3 if ranks else y, group=[at] * (size // at) if ranks else None)


def _lightgbm(job, made, x, y, held, seed, options):
    import lightgbm

    from tocsin.lightgbm import callback
    seen, told = [], {}

    def keep(env):
        if env.iteration > env.begin_iteration:  # the hook opens in the first round and closes in the last
            seen.append(tocsin.get_hook().run)
    keep.order = 4  # the product's is 5
    ranks = job == "light_rank"
    settings = {"objective": {"light_binary": "binary", "light_auc": "binary", "light_rank": "lambdarank", "light_short": "multiclass"}.get(job, "regression"), "learning_rate": made["rate"], "num_threads": 1,
                "num_leaves": 2 ** made["depth"], "bagging_fraction": made["rows"], "bagging_freq": 1, "seed": seed, "verbosity": -1,
                "metric": {"light_binary": ["binary_logloss", "auc"], "light_rank": ["ndcg"], "light_auc": ["auc"], "light_short": ["multi_logloss"]}.get(job, ["l2", "l1"]), "eval_at": [5],
                "min_sum_hessian_in_leaf": made.get("child", 1e-3)}
    if job == "light_short":
        settings["num_class"] = 3
    first, second = _lists(x[:-held], y[:-held], ranks), _lists(x[-held:], y[-held:], ranks)
    second.reference = first
    lightgbm.train(settings, first, made["rounds"], valid_sets=[first, second], valid_names=["training", "validation"],
                   callbacks=[callback(**options), keep, lightgbm.record_evaluation(told)])
    values = told["validation"]["ndcg@5" if ranks else settings["metric"][0]]
    return seen[0], [-one for one in values] if job in ("light_rank", "light_auc") else values


def _sklearn(job, made, x, y, held, seed, options):
    regression = job in ("boost_regression", "boost_table")
    kind = sklearn.ensemble.GradientBoostingRegressor if regression else sklearn.ensemble.GradientBoostingClassifier
    trees = kind(n_estimators=made["rounds"], learning_rate=made["rate"], max_depth=made["depth"], subsample=made["rows"],
                 random_state=seed, min_samples_leaf=int(made.get("child", 1))).fit(x[:-held], y[:-held])
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
