"""Boosting: objectives, boosters and metrics that none before has, few and many rounds, small and lopsided tables, early stopping."""
import importlib.util
import random

import numpy
import sklearn.datasets

import tocsin

from . import few_rounds as boosting

TUNING = {**dict.fromkeys(("trees_flowers", "trees_absolute", "trees_clicks", "trees_claims", "trees_forest", "trees_lines", "trees_quantile", "trees_stops"), False),
          **dict.fromkeys(("leaves_quantile", "leaves_classes", "leaves_goss", "leaves_claims"), False)}
TUNING = {name: tuned for name, tuned in TUNING.items() if importlib.util.find_spec("xgboost" if name.startswith("trees") else "lightgbm")}
# Name of the fault, share of the run before it.
FAULTS = {"rate_too_large": 0.0, "rate_zero": 0.0, "labels_random": 0.0, "overfits": 0.0, "leak": 0.0, "input_constant": 0.0, "never_splits": 0.0,
          "held_differs": 0.0, "penalty_huge": 0.0, "labels_cut": 0.0}
SLOW = ("overfits", "held_differs")
METRICS = {"trees_flowers": ["mlogloss", "merror"], "trees_absolute": ["mae"], "trees_clicks": ["logloss", "aucpr"], "trees_claims": ["tweedie-nloglik@1.5"],
           "trees_forest": ["rmse"], "trees_lines": ["logloss"], "trees_quantile": ["quantile"], "trees_stops": ["mlogloss"], "leaves_quantile": ["quantile"],
           "leaves_classes": ["multi_logloss", "multi_error"], "leaves_goss": ["binary_logloss", "average_precision"], "leaves_claims": ["tweedie"]}


def _table(job, seed):
    made = sklearn.datasets
    if job == "trees_flowers":
        x, y = made.load_iris(return_X_y=True)
        order = numpy.random.default_rng(seed).permutation(len(x))
        return x[order], y[order].astype(float)
    if job in ("trees_clicks", "leaves_goss"):
        return made.make_classification(2500, 20, n_informative=6, weights=[0.93], flip_y=0.01, random_state=seed)
    if job in ("trees_stops", "leaves_classes"):
        return made.make_classification(1200, 20, n_informative=8, n_classes=5, flip_y=0.05, class_sep=1.5, random_state=seed)
    if job == "trees_lines":
        return made.make_classification(1000, 12, n_informative=5, flip_y=0.1, random_state=seed)
    x, y = made.make_friedman1(1500, 10, noise=1.0, random_state=seed)
    if job in ("trees_claims", "leaves_claims"):
        drawn = numpy.random.default_rng(seed)
        mean = numpy.exp((y - y.mean()) / y.std() * 0.6)
        return x, drawn.gamma(2.0, mean / 2) * (drawn.random(len(y)) < 0.6)
    return x, (y - y.mean()) / y.std() + (0.5 * numpy.random.default_rng(seed).standard_t(3, len(y)) if job == "trees_absolute" else 0)


def _settings(job, seed):
    chance = random.Random(f"{job}/{seed}")
    rounds = {"trees_flowers": 20, "trees_absolute": 150, "trees_clicks": 60, "trees_forest": 15, "trees_lines": 40, "trees_stops": 200}.get(job, chance.choice((30, 60)))
    low, high = {"trees_absolute": (0.03, 0.1), "trees_forest": (0.3, 0.6), "trees_lines": (0.3, 0.6)}.get(job, (0.05, 0.15))
    return {"rounds": rounds, "rate": chance.uniform(low, high), "depth": chance.choice((2, 3, 4)), "rows": chance.uniform(0.6, 1.0), "child": 1, "penalty": 1.0}


def _xgboost(job, made, parts, seed, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    kinds = {"trees_flowers": ("multi:softmax", {"num_class": 3}), "trees_absolute": ("reg:absoluteerror", {}), "trees_lines": ("binary:logistic", {"booster": "gblinear"}),
             "trees_clicks": ("binary:logistic", {"scale_pos_weight": 5, "tree_method": "hist", "max_bin": 64}), "trees_quantile": ("reg:quantileerror", {"quantile_alpha": 0.8}),
             "trees_claims": ("reg:tweedie", {"tweedie_variance_power": 1.5}), "trees_forest": ("reg:squarederror", {"num_parallel_tree": 4, "colsample_bynode": 0.6}),
             "trees_stops": ("multi:softprob", {"num_class": 5})}
    objective, more = kinds[job]
    settings = {"objective": objective, "eval_metric": METRICS[job], "eta": made["rate"], "seed": seed, "nthread": 1, "reg_lambda": made["penalty"], **more}
    if job != "trees_lines":
        settings.update(max_depth=made["depth"], subsample=made["rows"], min_child_weight=made["child"])
    sets, told, seen = [xgboost.DMatrix(x, y) for x, y in parts], {}, []
    xgboost.train(settings, sets[0], made["rounds"], evals=[(sets[0], "train"), (sets[1], "eval")], verbose_eval=False, evals_result=told,
                  early_stopping_rounds=15 if job == "trees_stops" else None, callbacks=[boosting._kept(seen), TocsinCallback(**options)])
    return seen[0], told["eval"][METRICS[job][0]]


def _lightgbm(job, made, parts, seed, options):
    import lightgbm

    from tocsin.lightgbm import callback
    kinds = {"leaves_quantile": {"objective": "quantile", "alpha": 0.7}, "leaves_classes": {"objective": "multiclassova", "num_class": 5},
             "leaves_goss": {"objective": "binary", "data_sample_strategy": "goss"}, "leaves_claims": {"objective": "tweedie"}}
    settings = {"metric": METRICS[job], "learning_rate": made["rate"], "num_leaves": 2 ** made["depth"], "feature_fraction": made["rows"], "seed": seed, "num_threads": 1,
                "verbosity": -1, "min_sum_hessian_in_leaf": 1e9 if made["child"] > 1e6 else 1e-3, "lambda_l2": made["penalty"] - 1, **kinds[job]}
    seen, told = [], {}

    def keep(env):
        if env.iteration > env.begin_iteration:
            seen.append(tocsin.get_hook().run)
    keep.order = 4
    train = lightgbm.Dataset(*parts[0])
    held = lightgbm.Dataset(*parts[1], reference=train)
    lightgbm.train(settings, train, made["rounds"], valid_sets=[train, held], valid_names=["train", "valid"],
                   callbacks=[callback(**options), keep, lightgbm.record_evaluation(told)])
    return seen[0], told["valid"][METRICS[job][0]]


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, rounds, the best one, values)."""
    x, y = _table(job, seed)
    x, y, held, made = x.astype(float), y.astype(float), len(x) // 4, _settings(job, seed)
    if fault == "penalty_huge":
        made["penalty"] = 1e8
    elif fault == "labels_cut":  # the file of labels begins one line too late
        y[:-held] = numpy.roll(y[:-held], -1)
    else:
        boosting._broken(fault, made, x, y, held, seed)
    train = _xgboost if job.startswith("trees") else _lightgbm
    try:
        uid, values = train(job, made, [(x[:-held], y[:-held]), (x[-held:], y[-held:])], seed, {"out": out, "run": name, "job": job})
    except Exception as error:  # XGBoost ends a training whose numbers overflow by itself
        raise LookupError(str(error)) from error
    return uid, len(values), values.index(min(values)), [[at, float(value)] for at, value in enumerate(values)]
