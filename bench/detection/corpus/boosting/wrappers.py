"""Boosting: scikit-learn's wrappers with early stopping, several targets in one tree, survival, categories, many slow rounds,
trees that go on from others; LightGBM that drops trees, ranks lists, splits by chance."""
import importlib.util
import random

import numpy
import sklearn.datasets

import tocsin

from . import few_rounds as boosting

TUNING = {**dict.fromkeys(("trees_skewed", "trees_vector", "trees_cox", "trees_slow", "trees_kinds", "trees_continued"), False),
          **dict.fromkeys(("leaves_dropped", "leaves_lists", "leaves_chance", "leaves_wrapped"), False)}
TUNING = {name: tuned for name, tuned in TUNING.items() if importlib.util.find_spec("xgboost" if name.startswith("trees") else "lightgbm")}
# Name of the fault, share of the run before it.
FAULTS = {"rate_too_large": 0.0, "rate_zero": 0.0, "labels_random": 0.0, "overfits": 0.0, "input_constant": 0.0, "never_splits": 0.0, "held_differs": 0.0,
          "columns_moved": 0.0, "labels_cut": 0.0, "held_raw": 0.0}
SLOW = ("overfits", "held_differs")
METRICS = {"trees_skewed": ["aucpr", "logloss"], "trees_vector": ["rmse"], "trees_cox": ["cox-nloglik"], "trees_slow": ["error", "logloss"],
           "trees_kinds": ["mlogloss"],
           "trees_continued": ["mae"], "leaves_dropped": ["multi_logloss"], "leaves_lists": ["map"], "leaves_chance": ["huber", "l1"],
           "leaves_wrapped": ["auc", "binary_logloss"]}
NUMBERED = 3  # columns of trees_kinds that are numbers; the rest are names of categories


def fault_names(name):
    """Those that fit: labels of several columns are not drawn anew one by one, and categories have no scale."""
    return [one for one in FAULTS if not (name == "trees_kinds" and one in ("held_raw", "input_constant"))]


def _table(job, seed):
    drawn, made = numpy.random.default_rng(seed), sklearn.datasets
    if job in ("trees_skewed", "leaves_wrapped"):
        return made.make_classification(2400, 18, n_informative=8, weights=[0.88], flip_y=0.02, class_sep=1.2, random_state=seed)
    if job in ("trees_slow", "leaves_dropped"):
        return made.make_classification(1400, 16, n_informative=9, n_classes=2 if job == "trees_slow" else 4, flip_y=0.05, class_sep=1.2, random_state=seed)
    if job == "trees_kinds":
        kinds = drawn.integers(0, (12, 8, 20, 5), (1800, 4))
        score = sum(drawn.normal(0, 1.2, (20, 3))[kinds[:, at]] for at in range(4))
        numbers = drawn.standard_normal((1800, NUMBERED))
        score = score + numbers @ drawn.normal(0, 0.7, (NUMBERED, 3)) + drawn.gumbel(0, 0.5, (1800, 3))
        return numpy.concatenate([numbers, kinds], 1), score.argmax(1)
    size = 4800 if job == "leaves_lists" else 1600
    x, y = made.make_friedman1(size, 10, noise=1.0, random_state=seed)
    y = (y - y.mean()) / y.std()
    if job == "trees_cox":
        time = drawn.exponential(numpy.exp(-1.2 * y))
        return x, numpy.where(drawn.random(1600) < 0.3, -time * drawn.random(1600), time)
    if job == "trees_vector":
        return x, numpy.stack([y, numpy.sin(3 * x[:, 0]) + x[:, 5], numpy.abs(x[:, 1] - x[:, 2]) * 2 + 0.2 * drawn.standard_normal(1600)], 1)
    if job == "leaves_lists":
        return x, numpy.digitize(y + 0.3 * drawn.standard_normal(size), (0.5, 1.2)) * 1.0
    return x, y + (0.6 * drawn.standard_t(2, 1600) if job == "leaves_chance" else 0)


def _settings(job, seed):
    chance = random.Random(f"{job}/{seed}")
    rounds = {"trees_slow": 300, "trees_skewed": 120, "leaves_wrapped": 120, "trees_continued": 50}.get(job, chance.choice((40, 70)))
    low, high = {"trees_slow": (0.015, 0.03), "trees_continued": (0.03, 0.06)}.get(job, (0.06, 0.15))
    return {"rounds": rounds, "rate": chance.uniform(low, high), "depth": chance.choice((2, 3, 4)), "rows": chance.uniform(0.6, 0.9), "child": 1}


def _xgboost(job, made, parts, seed, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    seen, told = [], {}
    settings = {"max_depth": made["depth"], "subsample": made["rows"], "min_child_weight": made["child"]}
    if job == "trees_skewed":  # after scikit-learn: the sets are validation_0, which is trained on, and validation_1
        model = xgboost.XGBClassifier(n_estimators=made["rounds"], learning_rate=made["rate"], random_state=seed, n_jobs=1, scale_pos_weight=4,
                                      colsample_bytree=0.7,
                                      eval_metric=METRICS[job], early_stopping_rounds=12, callbacks=[boosting._kept(seen), TocsinCallback(**options)],
                                      **settings)
        model.fit(*parts[0], eval_set=parts, verbose=False)
        return seen[0], model.evals_result()["validation_1"]["logloss"]
    kinds = {"trees_vector": {"objective": "reg:squarederror", "multi_strategy": "multi_output_tree", "tree_method": "hist"},
             "trees_cox": {"objective": "survival:cox"},
             "trees_slow": {"objective": "binary:logistic", "tree_method": "hist", "colsample_bylevel": 0.5},
             "trees_continued": {"objective": "reg:pseudohubererror"},
             "trees_kinds": {"objective": "multi:softprob", "num_class": 3, "tree_method": "hist", "max_cat_to_onehot": 6}}
    settings.update(eta=made["rate"], seed=seed, nthread=1, eval_metric=METRICS[job], **kinds[job])
    columns = {"feature_types": ["q"] * NUMBERED + ["c"] * 4, "enable_categorical": True} if job == "trees_kinds" else {}
    sets, before = [xgboost.DMatrix(x, y, **columns) for x, y in parts], None
    if job == "trees_continued":  # somebody has trained for a while, on the first half of what there is now
        half = len(parts[0][0]) // 2
        before = xgboost.train({**settings, "eta": 0.1}, xgboost.DMatrix(*(one[:half] for one in parts[0])), 12)
    xgboost.train(settings, sets[0], made["rounds"], evals=[(sets[0], "train"), (sets[1], "test")], verbose_eval=False, evals_result=told, xgb_model=before,
                  callbacks=[boosting._kept(seen), TocsinCallback(**options)])
    return seen[0], told["test"][METRICS[job][-1]]


def _lightgbm(job, made, parts, seed, options):
    import lightgbm

    from tocsin.lightgbm import callback
    seen, told, watch = [], {}, callback(**options)

    def keep(env):
        if env.iteration > env.begin_iteration:
            seen.append(tocsin.get_hook().run)
    keep.order = 4
    child = 1e9 if made["child"] > 1e6 else 1e-3
    if job == "leaves_wrapped":
        model = lightgbm.LGBMClassifier(n_estimators=made["rounds"], learning_rate=made["rate"], num_leaves=2 ** made["depth"], colsample_bytree=made["rows"],
                                        random_state=seed, n_jobs=1, verbosity=-1, min_child_weight=child, class_weight="balanced", reg_alpha=0.1)
        model.fit(*parts[0], eval_set=parts, eval_names=["train", "valid"], eval_metric=["auc", "binary_logloss"],
                  callbacks=[watch, keep, lightgbm.record_evaluation(told), lightgbm.early_stopping(15, verbose=False)])
        return seen[0], told["valid"]["binary_logloss"]
    kinds = {"leaves_dropped": {"objective": "multiclass", "num_class": 4, "boosting": "dart", "drop_rate": 0.1, "skip_drop": 0.6},
             "leaves_lists": {"objective": "rank_xendcg", "eval_at": [10]},
             "leaves_chance": {"objective": "huber", "alpha": 1.0, "extra_trees": True, "path_smooth": 5.0}}
    settings = {"metric": METRICS[job], "learning_rate": made["rate"], "num_leaves": 2 ** made["depth"], "feature_fraction": made["rows"], "seed": seed,
                "num_threads": 1,
                "verbosity": -1, "min_sum_hessian_in_leaf": child, **kinds[job]}

    def table(x, y, first=None):
        size = len(x) // 20 * 20 if job == "leaves_lists" else len(x)
        return lightgbm.Dataset(x[:size], y[:size], group=[20] * (size // 20) if job == "leaves_lists" else None, reference=first)
    train = table(*parts[0])
    held = table(*parts[1], train)
    lightgbm.train(settings, train, made["rounds"], valid_sets=[train, held], valid_names=["training", "held"],
                   callbacks=[watch, keep, lightgbm.record_evaluation(told)])
    values = told["held"]["map@10" if job == "leaves_lists" else METRICS[job][-1]]
    return seen[0], [-one for one in values] if job == "leaves_lists" else values


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, rounds, the best one, values)."""
    x, y = _table(job, seed)
    x, y, held, made = x.astype(float), y.astype(float), len(x) // 4, _settings(job, seed)
    if fault == "columns_moved":  # columns of the training file have slipped by one
        last = NUMBERED if job == "trees_kinds" else x.shape[1]
        x[:-held, :last] = numpy.roll(x[:-held, :last], 1, axis=1)
    elif fault == "labels_cut":  # the file of labels begins one line too late
        y[:-held] = numpy.roll(y[:-held], -1, axis=0)
    elif fault == "held_raw":
        x[-held:] = x[-held:] * 8 + 8
    elif fault == "held_differs" and job == "trees_kinds":
        x[-held:, NUMBERED:] = x[-held:, NUMBERED:][:, [3, 3, 3, 3]]
    elif fault == "overfits" and job == "trees_vector":
        made.update(depth=8, rate=0.8, rounds=80)
        wrong = numpy.random.default_rng(seed + 1).random(len(y) - held) < 0.4
        y[:-held][wrong] = numpy.random.default_rng(seed + 2).permutation(y[:-held][wrong])
    else:
        boosting._broken(fault, made, x, y, held, seed)
    train = _xgboost if job.startswith("trees") else _lightgbm
    try:
        uid, values = train(job, made, [(x[:-held], y[:-held]), (x[-held:], y[-held:])], seed, {"out": out, "run": name, "job": job})
    except Exception as error:  # XGBoost ends a training whose numbers overflow by itself
        raise LookupError(str(error)) from error
    return uid, len(values), values.index(min(values)), [[at, float(value)] for at, value in enumerate(values)]
