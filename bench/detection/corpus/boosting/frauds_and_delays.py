"""Boosted trees.

xgb_fraud         xgboost.train: three payments in a hundred are fraud, scale_pos_weight, log loss and the area under precision and recall
xgb_leaves        XGBClassifier: which of six plants, from measures of their leaves; sampled columns
xgb_yield         XGBRegressor: what a field yields, absolute error, early stopping
lgb_clicks        lightgbm.train: who clicks, categories, bagging; log loss and AUC
lgb_delays        LGBMRegressor: minutes of delay by the median, hours and lines; early stopping

Their faults: below, at the end."""
import importlib.util

import numpy

import tocsin

from ..scripts.shapes import entered, from_start


def _fraud(seed, count=4000):
    drawn = numpy.random.default_rng(seed)
    x = numpy.column_stack([drawn.lognormal(3.5, 1.1, count), drawn.integers(0, 24, count), drawn.integers(0, 12, count), drawn.gamma(2, 9, count),
                            drawn.normal(0, 1, (count, 6))])
    night, shop = (x[:, 1] < 6) | (x[:, 1] > 22), drawn.normal(0, 0.8, 12)
    score = (1.2 * numpy.log(x[:, 0] / 33) + 1.6 * night + shop[x[:, 2].astype(int)] - 0.05 * x[:, 3] + 0.9 * x[:, 4] * (x[:, 5] > 0)
             + 0.4 * drawn.logistic(0, 1, count))
    return x, (score > numpy.quantile(score, 0.97)).astype(float)


def _leaves(seed, count=2400):
    drawn = numpy.random.default_rng(seed)
    y = drawn.integers(0, 6, count)
    centres = numpy.random.default_rng(21).standard_normal((6, 2, 8)) * 1.1
    x = centres[y, drawn.integers(0, 2, count)] + drawn.standard_normal((count, 8))
    return numpy.column_stack([numpy.exp(0.4 * x), x[:, 0] * x[:, 1], drawn.normal(0, 1, (count, 3))]), y.astype(float)


def _yields(seed, count=1500):
    drawn = numpy.random.default_rng(seed)
    rain, heat, soil, seedling = drawn.gamma(8, 60, count), drawn.normal(17, 3, count), drawn.integers(0, 8, count), drawn.uniform(80, 220, count)
    x = numpy.column_stack([rain, heat, soil, seedling, drawn.normal(0, 1, (count, 4))])
    y = (6 - ((rain - 520) / 180) ** 2 - ((heat - 18) / 3.5) ** 2 + drawn.normal(0, 0.8, 8)[soil] + 0.01 * seedling + 0.8 * x[:, 4] * x[:, 5]
         + 0.7 * drawn.standard_t(4, count))
    return x, y


def _clicks(seed, count=4000):
    drawn = numpy.random.default_rng(seed)
    x = numpy.column_stack([drawn.integers(0, 40, count), drawn.integers(0, 12, count), drawn.integers(0, 24, count), drawn.beta(2, 5, count),
                            drawn.poisson(3, count), drawn.normal(0, 1, (count, 3))])
    score = (drawn.normal(0, 1, 40)[x[:, 0].astype(int)] + drawn.normal(0, 0.7, 12)[x[:, 1].astype(int)] + numpy.cos((x[:, 2] - 20) / 24 * 6.28)
             + 3 * (x[:, 3] - 0.3) + 0.5 * x[:, 5] * (x[:, 4] > 3) - 1)
    return x, (score + drawn.logistic(0, 0.5, count) > 0).astype(float)


def _delays(seed, count=3000):
    drawn = numpy.random.default_rng(seed)
    line, hour, snow = drawn.integers(0, 30, count), drawn.integers(4, 24, count), drawn.gamma(0.4, 3, count)
    x = numpy.column_stack([line, hour, snow, drawn.integers(0, 7, count), drawn.normal(0, 1, (count, 3))])
    rush = numpy.exp(-((hour - 8) / 1.5) ** 2) + numpy.exp(-((hour - 17) / 2) ** 2)
    y = drawn.gamma(2, 2, 30)[line] * (0.5 + rush) + 1.2 * snow + 0.8 * x[:, 4] + drawn.exponential(1.2, count)
    return x, y


def _parts(made, fault, seed):
    """[(x, y)] of training and of what is held out, with the fault."""
    x, y = made(seed)
    held, drawn = len(x) // 4, numpy.random.default_rng(seed + 1)
    if fault == "target_leaks":
        x = numpy.column_stack([x, y + 0.01 * y.std() * drawn.standard_normal(len(y))])
    (train_x, train_y), (told_x, told_y) = (x[:-held], y[:-held]), (x[-held:], y[-held:])
    if fault == "labels_shuffled":
        train_y = drawn.permutation(train_y)
    elif fault == "labels_misaligned":
        train_y = numpy.roll(train_y, 1)
    elif fault == "labels_inverted":
        train_y = 1 - train_y
    elif fault == "class_mislabelled":
        train_y = numpy.where((train_y == 1) & (drawn.random(len(train_y)) < 0.9), 0, train_y)
    elif fault == "labels_off_by_one":
        train_y = (train_y + 1) % 6
    elif fault == "held_other_classes":
        told_y = told_y.max() - told_y
    elif fault == "sets_unlike":
        told_x = told_x + 3 * told_x.std(0)
    elif fault == "held_recoded":
        told_x = numpy.column_stack([drawn.permutation(int(x[:, 0].max()) + 1)[told_x[:, 0].astype(int)], told_x[:, 1:]])
    elif fault == "columns_moved":
        told_x = numpy.roll(told_x, 1, 1)
    elif fault == "held_in_training":
        train_x, train_y = numpy.concatenate([train_x, told_x]), numpy.concatenate([train_y, told_y])
    elif fault == "few_rows":
        train_x, train_y = train_x[:40], train_y[:40]
    elif fault == "inputs_constant":
        train_x = numpy.repeat(train_x[:1], len(train_x), 0)
    return [(train_x, train_y), (told_x, told_y)]


def _settings(fault, chance):
    """Rate, rounds, depth."""
    value, rounds, depth = chance.uniform(0.07, 0.14), chance.choice((80, 110)), chance.choice((3, 4, 5))
    return {"eta_tiny": 1e-4, "eta_small": 0.004, "depth_huge": 1.0}.get(fault, value), rounds, 16 if fault == "depth_huge" else depth


def _kept(seen):
    import xgboost

    class Keep(xgboost.callback.TrainingCallback):
        """Stands before the product's, and notes the run's name while it is open."""

        def after_iteration(self, model, epoch, evals_log):
            seen[:] = [tocsin.get_hook().run]
            return False
    return Keep()


def _told(values, first, rounds):
    """The evaluations, the first one that of the base score. A run that stopped goes on as its best model."""
    values = [*values, *[min(values)] * (rounds - len(values))]
    return [[0, float(first)], *([at, float(value)] for at, value in enumerate(values) if at)]


def _xgb_fraud(fault, seed, chance, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    (train, held), (eta, rounds, depth), seen, told = _parts(_fraud, fault, seed), _settings(fault, chance), [], {}
    sets = [(xgboost.DMatrix(*train), "train"), (xgboost.DMatrix(*held), "validation")]
    weight = 1 / 200 if fault == "weight_upside_down" else 5
    settings = {"objective": "binary:logistic", "eval_metric": ["logloss", "aucpr"], "eta": eta, "max_depth": depth, "scale_pos_weight": weight,
                "subsample": chance.uniform(0.7, 1.0), "gamma": 1e5 if fault == "never_enough_gain" else 0.0, "reg_lambda": 0.0 if fault == "depth_huge" else 1.0,
                "seed": seed, "nthread": 1}
    xgboost.train(settings, sets[0][0], rounds, evals=sets, evals_result=told, verbose_eval=False, callbacks=[_kept(seen), TocsinCallback(**options)])
    values = [1 - one for one in told["validation"]["aucpr"]]
    return seen[0], rounds, _told(values, 0.97, rounds)


def _xgb_leaves(fault, seed, chance, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    (train, held), (eta, rounds, depth), seen = _parts(_leaves, fault, seed), _settings(fault, chance), []
    rounds //= 2
    model = xgboost.XGBClassifier(objective="multi:softprob", n_estimators=rounds, learning_rate=eta if fault in ("eta_tiny", "eta_small") else 1.5 * eta,
                                  max_depth=depth, colsample_bytree=chance.uniform(0.6, 0.9), n_jobs=1, random_state=seed,
                                  eval_metric=["merror", "mlogloss"], callbacks=[_kept(seen), TocsinCallback(**options)])
    model.fit(*train, eval_set=[train, held], verbose=False)
    return seen[0], rounds, _told(model.evals_result()["validation_1"]["mlogloss"], numpy.log(6), rounds)


def _xgb_yield(fault, seed, chance, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    (train, held), (eta, rounds, depth), seen = _parts(_yields, fault, seed), _settings(fault, chance), []
    rounds, value = 3 * rounds, 1e4 if fault == "base_unfit" else None
    model = xgboost.XGBRegressor(objective="reg:squarederror", eval_metric="mae", n_estimators=rounds, learning_rate=eta, max_depth=depth, n_jobs=1,
                                 random_state=seed, subsample=chance.uniform(0.7, 1.0), reg_lambda=0.0 if fault == "depth_huge" else 1.0,
                                 base_score=value, early_stopping_rounds=20, callbacks=[_kept(seen), TocsinCallback(**options)])
    model.fit(*train, eval_set=[train, held], verbose=False)
    values = model.evals_result()["validation_1"]["mae"]
    return seen[0], len(values), _told(values, numpy.abs(held[1] - held[1].mean()).mean(), rounds)


def _keeps(seen):
    def keep(env):
        if env.iteration > env.begin_iteration:
            seen[:] = [tocsin.get_hook().run]
    keep.order = 4
    return keep


def _lgb_clicks(fault, seed, chance, options):
    import lightgbm

    from tocsin.lightgbm import callback
    (train, held), (eta, rounds, depth), seen, told = _parts(_clicks, fault, seed), _settings(fault, chance), [], {}
    sets = [lightgbm.Dataset(*one, categorical_feature=[0, 1], free_raw_data=False) for one in (train, held)]
    settings = {"objective": "binary", "metric": ["binary_logloss", "auc"], "learning_rate": eta, "num_leaves": 2**min(depth, 9) - 1,
                "min_data_in_leaf": {"depth_huge": 1, "never_splits": 5000}.get(fault, 20), "bagging_fraction": chance.uniform(0.7, 0.95), "bagging_freq": 1,
                "seed": seed, "num_threads": 1, "verbosity": -1}
    lightgbm.train(settings, sets[0], rounds, valid_sets=sets, valid_names=["train", "validation"],
                   callbacks=[callback(**options), _keeps(seen), lightgbm.record_evaluation(told)])
    share = held[1].mean()
    return seen[0], rounds, _told(told["validation"]["binary_logloss"], -share * numpy.log(share) - (1 - share) * numpy.log(1 - share), rounds)


def _lgb_delays(fault, seed, chance, options):
    import lightgbm

    from tocsin.lightgbm import callback
    (train, held), (eta, rounds, depth), seen = _parts(_delays, fault, seed), _settings(fault, chance), []
    rounds = 2 * rounds
    model = lightgbm.LGBMRegressor(objective="quantile", alpha=0.99 if fault == "quantiles_swapped" else 0.5, n_estimators=rounds, learning_rate=eta,
                                   num_leaves=2**min(depth, 8) - 1, subsample=chance.uniform(0.7, 1.0), subsample_freq=1,
                                   min_child_samples=1 if fault == "depth_huge" else 20, random_state=seed, n_jobs=1, verbosity=-1)
    model.fit(*train, eval_set=[held], eval_names=["valid"], eval_metric="l1",
              callbacks=[callback(**options), _keeps(seen), lightgbm.early_stopping(15, verbose=False)])
    steps = model.booster_.current_iteration()
    used = model.best_iteration_ if steps < rounds else rounds
    passes = [[at, float(numpy.abs(model.predict(held[0], num_iteration=min(at + 1, used)) - held[1]).mean())] for at in range(9, rounds, 10)]
    return seen[0], steps, [[0, float(numpy.abs(held[1] - numpy.median(held[1])).mean())], *passes]


def _ends(train):
    """A library that ends a training by itself, because its numbers overflow, leaves no run."""
    def safe(fault, seed, chance, options):
        try:
            return train(fault, seed, chance, options)
        except Exception as error:
            if type(error).__name__ not in ("XGBoostError", "LightGBMError"):
                raise
            raise LookupError(str(error)) from error
    return safe


_JOBS = {
    "xgb_fraud": (_xgb_fraud, from_start("weight_upside_down", "never_enough_gain", "labels_misaligned", "labels_inverted", "columns_moved",
                                         "target_leaks", "depth_huge", "eta_tiny")),
    "xgb_leaves": (_xgb_leaves, from_start("eta_tiny", "class_mislabelled", "labels_off_by_one", "held_other_classes", "sets_unlike", "labels_shuffled",
                                           "held_in_training", "few_rows")),
    "xgb_yield": (_xgb_yield, from_start("base_unfit", "eta_small", "few_rows", "target_leaks", "labels_misaligned", "sets_unlike",
                                         "depth_huge", "columns_moved")),
    "lgb_clicks": (_lgb_clicks, from_start("never_splits", "eta_tiny", "held_recoded", "labels_shuffled", "labels_inverted", "depth_huge", "target_leaks",
                                           "held_in_training")),
    "lgb_delays": (_lgb_delays, from_start("eta_tiny", "eta_small", "target_leaks", "labels_misaligned", "sets_unlike", "held_recoded", "depth_huge",
                                           "inputs_constant"))}
TUNING, FAULTS, fault_names, run = entered({name: (_ends(made[0]), made[1]) for name, made in _JOBS.items()
                                            if importlib.util.find_spec("xgboost" if name.startswith("xgb") else "lightgbm")})
