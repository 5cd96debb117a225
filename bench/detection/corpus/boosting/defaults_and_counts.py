"""Boosted trees, on tables that come with scikit-learn and some of our own.

xgb_default       XGBClassifier: who defaults on a credit, categories as numbers, some cells empty; log loss and AUC
xgb_counts        xgboost.train: Poisson regression of counts, train and held-out
xgb_digits        XGBClassifier for ten digits, merror and mlogloss
lgb_prices        lightgbm.train: regression of prices, l2, early stopping
lgb_rare          LGBMClassifier: a twentieth is positive, is_unbalance, average precision and log loss

Their faults: below, at the end; what the names mean says support.WORDS."""
import importlib.util

import numpy
import sklearn.datasets

import tocsin

from ..scripts.support import entered, from_start


def _credit(seed, count=2600):
    """Ten columns, a tenth of the cells empty, and who does not pay."""
    drawn = numpy.random.default_rng(seed)
    x = numpy.column_stack([drawn.lognormal(10, 0.5, count), drawn.integers(18, 75, count), drawn.integers(0, 6, count), drawn.gamma(2, 3000, count),
                            drawn.poisson(2, count), drawn.integers(0, 30, count), drawn.beta(2, 3, count), *drawn.normal(0, 1, (3, count))])
    of_kind = drawn.normal(0, 0.8, 6)
    score = (of_kind[x[:, 2].astype(int)] + 2.5 * (x[:, 6] - 0.4) - 1.1 * numpy.log(x[:, 0] / 22000) + 0.45 * (x[:, 4] - 2) * (x[:, 6] > 0.4)
             + 0.00012 * (x[:, 3] - 6000) - 0.4)
    y = (score + drawn.logistic(0, 0.5, count) > 0).astype(float)
    x[drawn.random(x.shape) < 0.1] = numpy.nan
    return x, y


def _counts(seed, count=2600):
    """Counts that depend on a season, a price and on what one another column allows."""
    drawn = numpy.random.default_rng(seed)
    x = drawn.uniform(0, 1, (count, 8))
    return x, drawn.poisson(numpy.exp(0.6 + numpy.sin(6.3 * x[:, 0]) + 1.2 * x[:, 1] * (x[:, 2] > 0.4) - 1.5 * (x[:, 3] - 0.5) ** 2)).astype(float)


def _rare(seed, count=4000):
    """A twentieth is positive."""
    return sklearn.datasets.make_classification(count, 14, n_informative=7, weights=(0.95,), flip_y=0.01, class_sep=1.0, random_state=seed)


def _digits(seed):
    x, y = sklearn.datasets.load_digits(return_X_y=True)
    order = numpy.random.default_rng(seed).permutation(len(x))[:1400]
    return x[order], y[order]


def _prices(seed):
    x, y = sklearn.datasets.make_friedman1(2400, 9, noise=1.0, random_state=seed)
    return x, 12000 * y + 50000


def _parts(made, fault, seed):
    """[(x, y)] of training and of what is held out, with the fault."""
    x, y = made(seed)
    x, y, held, drawn = x.astype(float), y.astype(float), len(x) // 5, numpy.random.default_rng(seed + 1)
    if fault == "target_leaks":
        x = numpy.column_stack([x, y])
    elif fault == "inputs_constant":
        x[:] = 1.0
    elif fault == "nan_filled":
        x[drawn.random(x.shape) < 0.33] = -999
    train, told = (x[:-held], y[:-held].copy()), (x[-held:].copy(), y[-held:])
    if fault == "labels_shuffled":
        train = train[0], drawn.permutation(train[1])
    elif fault == "labels_misaligned":
        train = train[0], numpy.roll(train[1], 1)
    elif fault == "labels_off_by_one":
        train = train[0], (train[1] + 1) % (train[1].max() + 1)
    elif fault == "class_mislabelled":
        train = train[0], numpy.where((train[1] == 1) & (drawn.random(len(train[1])) < 0.9), 0, train[1])
    elif fault == "held_unscaled":
        told = ((told[0] - x[:-held].mean(0)) / x[:-held].std(0), told[1])
    elif fault == "held_shuffled":
        told = told[0], drawn.permutation(told[1])
    elif fault == "held_in_training":
        train = numpy.concatenate([train[0], told[0]]), numpy.concatenate([train[1], told[1]])
    elif fault == "columns_moved":
        told = numpy.roll(told[0], 1, 1), told[1]
    elif fault == "few_rows":
        train = train[0][:32], train[1][:32]
    return [train, told]


def _settings(fault, chance):
    out = {"rounds": chance.choice((80, 100, 120)), "rate": chance.uniform(0.05, 0.15), "depth": chance.choice((3, 4, 5)),
           "rows": chance.uniform(0.7, 1.0), "child": 1.0, "alpha": 1.0}
    return {**out, **{"eta_tiny": {"rate": 1e-4}, "never_splits": {"child": 1e6}, "depth_huge": {"depth": 16, "rate": 1.0, "alpha": 0.0},
                      "rate_hundredfold": {"rate": 100 * out["rate"]}}.get(fault, {})}


def _kept(seen):
    import xgboost

    class Keep(xgboost.callback.TrainingCallback):
        """Stands before the product's, and notes the run's name while it is open."""

        def after_iteration(self, model, epoch, evals_log):
            seen[:] = [tocsin.get_hook().run]
            return False
    return Keep()


def _told(values, first):
    """The evaluations: the first one is that of the base score."""
    return [[0, float(first)], *([at, float(value)] for at, value in enumerate(values) if at)]


def _xgb_classes(made, metrics, measured, first):
    def train(fault, seed, chance, options):
        import xgboost

        from tocsin.xgboost import TocsinCallback
        parts, own, seen = _parts(made, fault, seed), _settings(fault, chance), []
        model = xgboost.XGBClassifier(n_estimators=own["rounds"], learning_rate=own["rate"], max_depth=own["depth"], subsample=own["rows"],
                                      min_child_weight=own["child"], reg_lambda=own["alpha"], n_jobs=1, random_state=seed, eval_metric=metrics,
                                      callbacks=[_kept(seen), TocsinCallback(**options)])
        model.fit(*parts[0], eval_set=parts, verbose=False)
        values = model.evals_result()["validation_1"][measured]
        values = [1 - one for one in values] if measured == "auc" else values
        return seen[0], len(values), _told(values, first)
    return train


def _xgb_counts(fault, seed, chance, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    (train, held), own, seen, told = _parts(_counts, fault, seed), _settings(fault, chance), [], {}
    sets = [xgboost.DMatrix(*train), xgboost.DMatrix(*held)]
    settings = {"objective": "count:poisson", "eval_metric": ["poisson-nloglik", "rmse"],
                "eta": 3 * own["rate"] if own["rate"] > 1e-3 else own["rate"], "max_depth": own["depth"], "subsample": own["rows"],
                "min_child_weight": own["child"], "lambda": own["alpha"], "seed": seed, "nthread": 1}
    xgboost.train(settings, sets[0], own["rounds"], evals=[(sets[0], "train"), (sets[1], "eval")], evals_result=told, verbose_eval=False,
                  callbacks=[_kept(seen), TocsinCallback(**options)])
    values = told["eval"]["rmse"]
    return seen[0], len(values), _told(values, numpy.std(held[1]))


def _keeps(seen):
    def keep(env):
        if env.iteration > env.begin_iteration:
            seen[:] = [tocsin.get_hook().run]
    keep.order = 4
    return keep


def _lgb_prices(fault, seed, chance, options):
    import lightgbm

    from tocsin.lightgbm import callback
    (train, held), own, seen, told = _parts(_prices, fault, seed), _settings(fault, chance), [], {}
    settings = {"objective": "regression", "metric": "l2", "learning_rate": own["rate"], "num_leaves": 2 ** own["depth"] - 1,
                "bagging_fraction": own["rows"], "bagging_freq": 1, "min_sum_hessian_in_leaf": 1e-3 if own["child"] == 1 else 1e9,
                "min_data_in_leaf": 1 if fault == "depth_huge" else 20, "seed": seed, "num_threads": 1, "verbosity": -1}
    first = lightgbm.Dataset(*train)
    sets = [first, lightgbm.Dataset(*held, reference=first)]
    lightgbm.train(settings, first, own["rounds"], valid_sets=sets, valid_names=["train", "valid"],
                   callbacks=[callback(**options), _keeps(seen), lightgbm.record_evaluation(told), lightgbm.early_stopping(15, verbose=False)])
    values = [one / 1e9 for one in told["valid"]["l2"]]
    return seen[0], len(values), _told(values, numpy.var(held[1]) / 1e9)


def _lgb_rare(fault, seed, chance, options):
    import lightgbm

    from tocsin.lightgbm import callback
    (train, held), own, seen = _parts(_rare, fault, seed), _settings(fault, chance), []
    model = lightgbm.LGBMClassifier(n_estimators=own["rounds"], learning_rate=own["rate"], num_leaves=2 ** own["depth"] - 1, is_unbalance=True,
                                    subsample=own["rows"], subsample_freq=1, min_child_weight=1e-3 if own["child"] == 1 else 1e9, random_state=seed,
                                    n_jobs=1, verbosity=-1)
    model.fit(*train, eval_set=[train, held], eval_names=["train", "valid"], eval_metric=["average_precision", "binary_logloss"],
              callbacks=[callback(**options), _keeps(seen)])
    values = [1 - one for one in model.evals_result_["valid"]["average_precision"]]
    return seen[0], len(values), _told(values, 1 - held[1].mean())


def _ends(train):
    """XGBoost ends a training whose numbers overflow by itself: that is no run."""
    def safe(fault, seed, chance, options):
        try:
            return train(fault, seed, chance, options)
        except Exception as error:
            if type(error).__name__ not in ("XGBoostError", "LightGBMError"):
                raise
            raise LookupError(str(error)) from error
    return safe


_JOBS = {
    "xgb_default": (_xgb_classes(_credit, ["logloss", "auc"], "auc", 0.5), from_start(
        "eta_tiny", "target_leaks", "labels_shuffled", "nan_filled", "held_unscaled", "depth_huge", "held_in_training")),
    "xgb_counts": (_xgb_counts, from_start("never_splits", "labels_misaligned", "columns_moved", "labels_shuffled", "inputs_constant",
                                           "rate_hundredfold", "few_rows")),
    "xgb_digits": (_xgb_classes(_digits, ["merror", "mlogloss"], "merror", 0.9), from_start(
        "labels_off_by_one", "class_mislabelled", "eta_tiny", "columns_moved", "labels_shuffled", "target_leaks", "depth_huge")),
    "lgb_prices": (_lgb_prices, from_start("eta_tiny", "labels_misaligned", "held_unscaled", "target_leaks", "never_splits", "few_rows")),
    "lgb_rare": (_lgb_rare, from_start("labels_shuffled", "columns_moved", "held_shuffled", "nan_filled", "rate_hundredfold", "target_leaks"))}
TUNING, FAULTS, fault_names, run = entered({name: (_ends(made[0]), made[1]) for name, made in _JOBS.items()
                                            if importlib.util.find_spec("xgboost" if name.startswith("xgb") else "lightgbm")})
