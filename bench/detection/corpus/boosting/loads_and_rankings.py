"""Boosted trees.

xgb_energy        xgboost.train: regression of a load by hour and weather, squared error, early stopping on what is held out
xgb_ranking       XGBRanker: which of twelve answers to a query suit, ndcg
xgb_soils         XGBClassifier for five classes, multi:softprob, log loss and error
lgb_sales         LGBMRegressor of sales by store, week and price, l2, early stopping

Their faults: below, at the end."""
import importlib.util

import numpy

import tocsin

from ..scripts.support import entered, from_start


def _energy(seed, count=800):
    drawn = numpy.random.default_rng(seed)
    hour, warm, wind, week = drawn.integers(0, 24, count), drawn.normal(12, 8, count), drawn.gamma(2, 2, count), drawn.integers(0, 7, count)
    x = numpy.column_stack([hour, warm, wind, week, drawn.normal(0, 1, (count, 4))])
    y = 40 + 12 * numpy.sin((hour - 7) / 24 * 6.28) + 0.08 * (warm - 16) ** 2 - 6 * (week > 4) + 2 * x[:, 4] * (hour > 12) + 9 * drawn.standard_normal(count)
    return x, y


def _soils(seed, count=2800):
    drawn = numpy.random.default_rng(seed)
    x = drawn.standard_normal((count, 12))
    scores = numpy.stack([x[:, 0] * x[:, 1] + drawn.normal(0, 0.3), x[:, 2] + 0.8 * (x[:, 3] > 0.5), 1.5 * numpy.sin(2 * x[:, 4]), x[:, 5] - x[:, 0],
                          0.7 * x[:, 6] ** 2 - 0.4], 1)
    return x, (scores + 0.25 * drawn.gumbel(0, 1, scores.shape)).argmax(1).astype(float)


def _sales(seed, count=3200):
    drawn = numpy.random.default_rng(seed)
    store, week, price = drawn.integers(0, 30, count), drawn.integers(0, 52, count), drawn.uniform(1, 5, count)
    x = numpy.column_stack([store, week, price, drawn.integers(0, 2, count), drawn.normal(0, 1, (count, 3))])
    size = drawn.gamma(4, 20, 30)
    y = size[store] * (1.3 + 0.4 * numpy.sin(week / 52 * 6.28)) * (3 / price) ** 0.8 * (1 + 0.5 * x[:, 3]) + 45 * drawn.standard_normal(count)
    return x, y


def _queries(seed, queries=260, answers=12):
    """Answers with nine features, and how well they suit: 0 to 3. What counts is where one stands among its query's."""
    drawn = numpy.random.default_rng(seed)
    x = drawn.standard_normal((queries, answers, 9)) + drawn.normal(0, 2, (queries, 1, 9))
    score = x[..., 0] + 0.8 * x[..., 1] * (x[..., 2] > 0) - 0.6 * numpy.abs(x[..., 3]) + 0.5 * drawn.standard_normal((queries, answers))
    place = (-score).argsort(1).argsort(1)
    y = numpy.select([place < 1, place < 3, place < 6], [3, 2, 1], 0)
    return x.reshape(-1, 9), y.ravel().astype(float)


def _parts(made, fault, seed, by=1):
    """[(x, y)] of training and of what is held out, with the fault."""
    x, y = made(seed)
    held, drawn = (len(x) // 5) // by * by, numpy.random.default_rng(seed + 1)
    if fault == "target_leaks":
        x = numpy.column_stack([x, y])
    train, told = (x[:-held], y[:-held].copy()), (x[-held:].copy(), y[-held:])
    if fault == "labels_shuffled":
        train = train[0], drawn.permutation(train[1])
    elif fault == "labels_misaligned":
        train = train[0], numpy.roll(train[1], 1)
    elif fault == "labels_inverted":
        train = train[0], train[1].max() - train[1]
    elif fault == "class_random":
        train = train[0], numpy.where(train[1] == 1, drawn.integers(0, 5, len(train[1])), train[1])
    elif fault == "held_other_classes":
        told = told[0], told[1].max() - told[1]
    elif fault == "sets_unlike":
        told = told[0] + 3 * told[0].std(0), told[1]
    elif fault == "held_recoded":
        told[0][:, 0] = drawn.permutation(30)[told[0][:, 0].astype(int)]
    elif fault == "columns_moved":
        told = numpy.roll(told[0], 1, 1), told[1]
    elif fault == "held_in_training":
        train = numpy.concatenate([train[0], told[0]]), numpy.concatenate([train[1], told[1]])
    elif fault == "few_rows":
        train = train[0][:36], train[1][:36]
    return [train, told]


def _settings(fault, chance):
    """Rate, rounds, depth."""
    value, rounds, depth = chance.uniform(0.08, 0.16), chance.choice((80, 100)), chance.choice((3, 4, 5))
    return {"eta_tiny": 1e-4, "eta_small": 0.004, "depth_huge": 1.0}.get(fault, value), rounds, 16 if fault == "depth_huge" else depth


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


def _xgb_energy(fault, seed, chance, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    (train, held), (eta, rounds, depth), seen, told = _parts(_energy, fault, seed), _settings(fault, chance), [], {}
    rounds, eta = 3 * rounds, 1.5 * eta
    sets = [(xgboost.DMatrix(*train), "train"), (xgboost.DMatrix(*held), "eval")]
    settings = {"objective": "reg:squarederror", "eval_metric": "rmse", "eta": eta, "max_depth": depth, "subsample": chance.uniform(0.7, 1.0),
                "reg_lambda": 0.0 if fault == "depth_huge" else 1.0, "seed": seed, "nthread": 1}
    xgboost.train(settings, sets[0][0], rounds, evals=sets[::-1] if fault == "stops_on_training" else sets, evals_result=told, verbose_eval=False,
                  early_stopping_rounds=15, callbacks=[_kept(seen), TocsinCallback(**options)])
    values = told["eval"]["rmse"]
    return seen[0], len(values), _told(values, numpy.std(held[1]), rounds)


def _xgb_ranking(fault, seed, chance, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    (train, held), (eta, rounds, depth), seen = _parts(_queries, fault, seed, 12), _settings(fault, chance), []
    queries = [numpy.repeat(numpy.arange(len(one[1]) // 12), 12) for one in (train, held)]
    if fault == "groups_moved":
        queries[0] = numpy.sort(numpy.random.default_rng(seed).integers(0, 5, len(queries[0])))
    model = xgboost.XGBRanker(objective="rank:ndcg", n_estimators=rounds, learning_rate=eta, max_depth=depth, n_jobs=1, random_state=seed,
                              reg_lambda=0.0 if fault == "depth_huge" else 1.0, eval_metric=["ndcg@5"], callbacks=[_kept(seen), TocsinCallback(**options)])
    model.fit(*train, qid=queries[0], eval_set=[train, held], eval_qid=queries, verbose=False)
    values = [1 - one for one in model.evals_result()["validation_1"]["ndcg@5"]]
    best, discount = numpy.array([3, 2, 2, 1, 1]), 1 / numpy.log2(numpy.arange(2, 7))
    mean = (numpy.array([7, 3, 3, 1, 1, 1]).sum() / 12 * discount).sum() / ((2.0**best - 1) * discount).sum()  # of a random order
    return seen[0], len(values), _told(values, 1 - mean, rounds)


def _xgb_soils(fault, seed, chance, options):
    import xgboost

    from tocsin.xgboost import TocsinCallback
    (train, held), (eta, rounds, depth), seen = _parts(_soils, fault, seed), _settings(fault, chance), []
    model = xgboost.XGBClassifier(objective="multi:softprob", n_estimators=rounds // 2, learning_rate=1.5 * eta, max_depth=depth, n_jobs=1, random_state=seed,
                                  subsample=chance.uniform(0.7, 1.0), reg_lambda=0.0 if fault == "depth_huge" else 1.0, eval_metric=["merror", "mlogloss"],
                                  callbacks=[_kept(seen), TocsinCallback(**options)])
    model.fit(*train, eval_set=[train, held], verbose=False)
    values = model.evals_result()["validation_1"]["mlogloss"]
    return seen[0], len(values), _told(values, numpy.log(5), rounds // 2)


def _keeps(seen):
    def keep(env):
        if env.iteration > env.begin_iteration:
            seen[:] = [tocsin.get_hook().run]
    keep.order = 4
    return keep


def _lgb_sales(fault, seed, chance, options):
    import lightgbm

    from tocsin.lightgbm import callback
    (train, held), (eta, rounds, depth), seen = _parts(_sales, fault, seed), _settings(fault, chance), []
    rounds, eta = 3 * rounds, 1.5 * eta
    model = lightgbm.LGBMRegressor(n_estimators=rounds, learning_rate=eta, num_leaves=2**min(depth, 8) - 1, subsample_freq=1,
                                   subsample=chance.uniform(0.7, 1.0), min_child_samples=1 if fault == "depth_huge" else 20,
                                   random_state=seed, n_jobs=1, verbosity=-1)
    model.fit(*train, eval_set=[held], eval_names=["valid"], eval_metric="l2",
              callbacks=[callback(**options), _keeps(seen), lightgbm.early_stopping(12, verbose=False)])
    steps = model.booster_.current_iteration()
    used = model.best_iteration_ if steps < rounds else rounds
    passes = [[at, float(((model.predict(held[0], num_iteration=min(at + 1, used)) - held[1]) ** 2).mean() / 1e3)] for at in range(9, rounds, 10)]
    return seen[0], steps, [[0, float(numpy.var(held[1]) / 1e3)], *passes]


_JOBS = {
    "xgb_energy": (_xgb_energy, from_start("eta_tiny", "eta_small", "sets_unlike", "target_leaks", "labels_misaligned", "stops_on_training",
                                           "depth_huge", "columns_moved")),
    "xgb_ranking": (_xgb_ranking, from_start("groups_moved", "labels_inverted", "labels_shuffled", "target_leaks", "columns_moved", "eta_tiny",
                                             "few_rows")),
    "xgb_soils": (_xgb_soils, from_start("target_leaks", "class_random", "held_other_classes", "sets_unlike", "eta_small", "held_in_training",
                                         "labels_misaligned", "depth_huge")),
    "lgb_sales": (_lgb_sales, from_start("eta_tiny", "eta_small", "target_leaks", "labels_shuffled", "held_recoded", "depth_huge",
                                         "sets_unlike"))}
TUNING, FAULTS, fault_names, run = entered({name: (_ends(made[0]), made[1]) for name, made in _JOBS.items()
                                            if importlib.util.find_spec("xgboost" if name.startswith("xgb") else "lightgbm")})
