"""Boosting: survival with limits, gamma, an objective and a metric of one's own, monotone constraints with early stopping; forests, lines in
leaves, and errors in per cent."""
import importlib.util
import random

import numpy
import sklearn.datasets

import tocsin

from . import few_rounds as boosting

TUNING = {**dict.fromkeys(("trees_limits", "trees_gamma", "trees_own", "trees_rising"), False), **dict.fromkeys(("leaves_forest", "leaves_lines", "leaves_percent"), False)}
TUNING = {name: tuned for name, tuned in TUNING.items() if importlib.util.find_spec("xgboost" if name.startswith("trees") else "lightgbm")}
# Name of the fault, share of the run before it.
FAULTS = {"rate_too_large": 0.0, "rate_zero": 0.0, "labels_random": 0.0, "overfits": 0.0, "input_constant": 0.0, "never_splits": 0.0, "held_differs": 0.0,
          "columns_moved": 0.0}
SLOW = ("overfits", "held_differs")
METRICS = {"trees_limits": "aft-nloglik", "trees_gamma": "gamma-nloglik", "trees_own": "huber", "trees_rising": "rmse", "leaves_forest": "binary_logloss",
           "leaves_lines": "l2", "leaves_percent": "mape"}


def fault_names(name):
    """A forest has no rate."""
    return [one for one in FAULTS if name != "leaves_forest" or not one.startswith("rate")]


def _table(job, seed):
    drawn = numpy.random.default_rng(seed)
    if job == "leaves_forest":
        return sklearn.datasets.make_classification(1500, 20, n_informative=8, flip_y=0.05, class_sep=1.2, random_state=seed)
    x, y = sklearn.datasets.make_friedman1(1500, 10, noise=1.0, random_state=seed)
    y = (y - y.mean()) / y.std()
    if job == "trees_gamma":
        return x, drawn.gamma(3.0, numpy.exp(0.7 * y) / 3)
    if job == "trees_limits":
        return x, numpy.exp(0.8 * y + 0.3 * drawn.standard_normal(len(y)))
    return x, y + 6 if job == "leaves_percent" else y


def _settings(job, seed):
    chance = random.Random(f"{job}/{seed}")
    rounds = {"trees_rising": 150, "leaves_forest": 30}.get(job, chance.choice((40, 80)))
    return {"rounds": rounds, "rate": chance.uniform(0.05, 0.15), "depth": chance.choice((2, 3, 4)), "rows": chance.uniform(0.6, 0.9), "child": 1}


def _huber(said, sets):
    off = said - sets.get_label()
    root = numpy.sqrt(1 + off**2)
    return off / root, 1 / root**3


def _off(said, sets):
    return "huber", float(numpy.mean(numpy.sqrt(1 + (said - sets.get_label()) ** 2) - 1))


def _limited(xgboost, x, y, seed):
    """Of three in ten is known only that it took longer."""
    late = numpy.random.default_rng(seed + len(y)).random(len(y)) < 0.3
    low = numpy.where(late, 0.6 * y, y)
    sets = xgboost.DMatrix(x)
    sets.set_float_info("label_lower_bound", low)
    sets.set_float_info("label_upper_bound", numpy.where(late, numpy.inf, y))
    return sets


def _xgboost(job, made, parts, seed, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    kinds = {"trees_limits": {"objective": "survival:aft", "aft_loss_distribution": "normal", "aft_loss_distribution_scale": 1.0}, "trees_gamma": {"objective": "reg:gamma"},
             "trees_own": {"disable_default_eval_metric": 1, "base_score": 0.0},
             "trees_rising": {"objective": "reg:squarederror", "monotone_constraints": "(0,0,0,1,1,0,0,0,0,0)", "grow_policy": "lossguide", "max_leaves": 12}}
    settings = {"eta": made["rate"], "max_depth": made["depth"], "subsample": made["rows"], "min_child_weight": made["child"], "seed": seed, "nthread": 1, **kinds[job]}
    if job != "trees_own":
        settings["eval_metric"] = METRICS[job]
    sets = [_limited(xgboost, x, y, seed) if job == "trees_limits" else xgboost.DMatrix(x, y) for x, y in parts]
    told, seen, own = {}, [], {"obj": _huber, "custom_metric": _off} if job == "trees_own" else {}
    xgboost.train(settings, sets[0], made["rounds"], evals=[(sets[0], "train"), (sets[1], "eval")], verbose_eval=False, evals_result=told,
                  early_stopping_rounds=10 if job == "trees_rising" else None, callbacks=[boosting._kept(seen), TocsinCallback(**options)], **own)
    return seen[0], told["eval"][METRICS[job]]


def _lightgbm(job, made, parts, seed, options):
    import lightgbm

    from tocsin.lightgbm import callback
    kinds = {"leaves_forest": {"objective": "binary", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": made["rows"]},
             "leaves_lines": {"objective": "regression", "linear_tree": True}, "leaves_percent": {"objective": "mape"}}
    settings = {"metric": METRICS[job], "learning_rate": made["rate"], "num_leaves": 2 ** made["depth"], "feature_fraction": made["rows"], "seed": seed, "num_threads": 1,
                "verbosity": -1, "min_sum_hessian_in_leaf": 1e9 if made["child"] > 1e6 else 1e-3, **kinds[job]}
    seen, told = [], {}

    def keep(env):
        if env.iteration > env.begin_iteration:
            seen.append(tocsin.get_hook().run)
    keep.order = 4
    train = lightgbm.Dataset(*parts[0])
    held = lightgbm.Dataset(*parts[1], reference=train)
    lightgbm.train(settings, train, made["rounds"], valid_sets=[train, held], valid_names=["train", "valid"],
                   callbacks=[callback(**options), keep, lightgbm.record_evaluation(told)])
    return seen[0], told["valid"][METRICS[job]]


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, rounds, the best one, values)."""
    x, y = _table(job, seed)
    x, y, held, made = x.astype(float), y.astype(float), len(x) // 4, _settings(job, seed)
    if fault == "columns_moved":  # columns of the training file have slipped by one
        x[:-held] = numpy.roll(x[:-held], 1, axis=1)
    else:
        boosting._broken(fault, made, x, y, held, seed)
    train = _xgboost if job.startswith("trees") else _lightgbm
    try:
        uid, values = train(job, made, [(x[:-held], y[:-held]), (x[-held:], y[-held:])], seed, {"out": out, "run": name, "job": job})
    except Exception as error:  # XGBoost ends a training whose numbers overflow by itself
        raise LookupError(str(error)) from error
    return uid, len(values), values.index(min(values)), [[at, float(value)] for at, value in enumerate(values)]
