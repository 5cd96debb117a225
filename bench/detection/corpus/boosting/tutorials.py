"""Boosting, as tutorials have it: early stopping on an eval_set, a rate of 0.05 to 0.1, tables with noise."""
import importlib.util
import random

import numpy
import sklearn.datasets

import tocsin

from . import few_rounds as boosting

TUNING = dict.fromkeys(("xgb_binary", "xgb_regression", "xgb_multiclass", "xgb_rank", "lgb_binary"), False)
TUNING = {name: tuned for name, tuned in TUNING.items() if importlib.util.find_spec("xgboost" if name.startswith("xgb") else "lightgbm")}
# Name of the fault, share of the run before it.
FAULTS = {"rate_too_large": 0.0, "rate_zero": 0.0, "labels_random": 0.0, "overfits": 0.0, "input_constant": 0.0, "never_splits": 0.0,
          "held_differs": 0.0,
          "held_shuffled": 0.0, "held_divided": 0.0, "labels_cut": 0.0}
SLOW = ("overfits", "held_differs")
METRICS = {"xgb_binary": ["auc", "logloss"], "xgb_regression": ["rmse"], "xgb_multiclass": ["merror", "mlogloss"], "xgb_rank": ["ndcg@10"],
           "lgb_binary": ["auc", "binary_logloss"]}


def fault_names(name):
    """All of them."""
    return list(FAULTS)


def _table(job, seed):
    made = sklearn.datasets
    if job in ("xgb_binary", "lgb_binary"):
        return made.make_classification(2500, 20, n_informative=8, n_redundant=4, flip_y=0.05, class_sep=0.9, random_state=seed)
    if job == "xgb_multiclass":
        return made.make_classification(2000, 18, n_informative=10, n_classes=4, flip_y=0.03, class_sep=1.2, random_state=seed)
    x, y = made.make_friedman1(3200 if job == "xgb_rank" else 2000, 12, noise=1.0, random_state=seed)
    if job == "xgb_rank":  # lists of 20 documents, whose labels say how good they are
        return x, numpy.digitize(y, numpy.quantile(y, (0.4, 0.7, 0.9))) * 1.0
    return x, (y - y.mean()) / y.std()


def _settings(job, seed):
    chance = random.Random(f"{job}/{seed}")
    return {"rounds": chance.choice((150, 200)), "rate": chance.uniform(0.05, 0.12), "depth": chance.choice((3, 4, 5)),
            "rows": chance.uniform(0.7, 0.9), "child": 1}


def _xgboost(job, made, parts, seed, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    seen, told = [], {}
    settings = {"max_depth": made["depth"], "subsample": made["rows"], "colsample_bytree": 0.8, "min_child_weight": made["child"]}
    if job == "xgb_rank":
        sets = [xgboost.DMatrix(x, y, qid=numpy.arange(len(x)) // 20) for x, y in parts]
        xgboost.train({**settings, "objective": "rank:ndcg", "eval_metric": METRICS[job], "eta": made["rate"], "seed": seed, "nthread": 1}, sets[0],
                      made["rounds"],
                      evals=[(sets[0], "train"), (sets[1], "eval")], verbose_eval=False, evals_result=told, early_stopping_rounds=20,
                      callbacks=[boosting._kept(seen), TocsinCallback(**options)])
        return seen[0], [-one for one in told["eval"][METRICS[job][-1]]]
    kind = xgboost.XGBRegressor if job == "xgb_regression" else xgboost.XGBClassifier
    model = kind(n_estimators=made["rounds"], learning_rate=made["rate"], random_state=seed, n_jobs=1, eval_metric=METRICS[job],
                 early_stopping_rounds=20,
                 callbacks=[boosting._kept(seen), TocsinCallback(**options)], **settings)
    sets = [parts[1]] if job == "xgb_multiclass" else parts  # many give what is evaluated on alone
    model.fit(*parts[0], eval_set=sets, verbose=False)
    return seen[0], model.evals_result()[f"validation_{len(sets) - 1}"][METRICS[job][-1]]


def _lightgbm(job, made, parts, seed, options):
    import lightgbm

    from tocsin.lightgbm import callback
    seen, told = [], {}

    def keep(env):
        if env.iteration > env.begin_iteration:
            seen.append(tocsin.get_hook().run)
    keep.order = 4
    settings = {"objective": "binary", "metric": METRICS[job], "learning_rate": made["rate"], "num_leaves": 2 ** made["depth"] - 1,
                "bagging_fraction": made["rows"],
                "bagging_freq": 1, "feature_fraction": 0.8, "min_sum_hessian_in_leaf": 1e9 if made["child"] > 1e6 else 1e-3, "seed": seed,
                "num_threads": 1,
                "verbosity": -1}
    train = lightgbm.Dataset(*parts[0])
    held = lightgbm.Dataset(*parts[1], reference=train)
    lightgbm.train(settings, train, made["rounds"], valid_sets=[train, held], valid_names=["train", "valid"],
                   callbacks=[callback(**options), keep, lightgbm.record_evaluation(told), lightgbm.early_stopping(20, verbose=False)])
    return seen[0], told["valid"]["binary_logloss"]


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, rounds, the best one, values)."""
    x, y = _table(job, seed)
    x, y, held, made = x.astype(float), y.astype(float), len(x) // 5, _settings(job, seed)
    if fault == "labels_cut":  # the file of labels begins one line too late
        y[:-held] = numpy.roll(y[:-held], -1)
    elif fault == "held_shuffled":
        y[-held:] = numpy.random.default_rng(seed + 1).permutation(y[-held:])
    elif fault == "held_divided":
        x[-held:] = x[-held:] / 255
    else:
        boosting._broken(fault, made, x, y, held, seed)
    train = _xgboost if job.startswith("xgb") else _lightgbm
    try:
        uid, values = train(job, made, [(x[:-held], y[:-held]), (x[-held:], y[-held:])], seed, {"out": out, "run": name, "job": job})
    except Exception as error:  # XGBoost ends a training whose numbers overflow by itself
        raise LookupError(str(error)) from error
    return uid, len(values), values.index(min(values)), [[at, float(value)] for at, value in enumerate(values)]
