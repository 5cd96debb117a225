"""scikit-learn's boosting, some trees at a time, as a script that logs both losses itself: few points, in the modes train and eval."""
import random
import warnings

import numpy
import sklearn.datasets
import sklearn.ensemble
import sklearn.metrics

import tocsin

from ..recipes.training import CAPTURE

TUNING = {"warm_trees": True, "warm_forest": True}
# Name of the fault, share of the run before it.
FAULTS = {"rate_too_large": 0.0, "rate_zero": 0.0, "labels_random": 0.0, "overfits": 0.0, "input_constant": 0.0, "held_differs": 0.0}
SLOW = ("overfits", "held_differs")


def _made(job, seed, fault):
    chance = random.Random(f"{job}/{seed}")
    rate, depth = chance.uniform(0.05, 0.2), chance.choice((2, 3))
    if fault == "overfits":
        rate, depth = 0.8, 8
    rate *= {"rate_too_large": 60, "rate_zero": 1e-9}.get(fault, 1)
    kind = sklearn.ensemble.GradientBoostingClassifier if job == "warm_trees" else sklearn.ensemble.GradientBoostingRegressor
    return kind(warm_start=True, learning_rate=rate, max_depth=depth, subsample=chance.uniform(0.6, 1.0), random_state=seed), chance.choice((1, 2))


def _data(job, seed, fault):
    source = numpy.random.default_rng(seed)
    if job == "warm_trees":
        x, y = sklearn.datasets.make_classification(900, 16, n_informative=6, n_classes=3, flip_y=0.05, random_state=seed)
    else:
        x, y = sklearn.datasets.make_regression(900, 12, n_informative=6, noise=30, random_state=seed)
        y = (y - y.mean()) / y.std()
    if fault == "labels_random":
        y[:700] = source.permutation(y[:700])
    elif fault == "overfits":
        wrong = source.random(700) < 0.4
        y[:700][wrong] = source.permutation(y[:700])[wrong]
    elif fault == "input_constant":
        x[:700] = 0.5
    elif fault == "held_differs":
        x[700:] = x[700:][:, source.permutation(x.shape[1])]
    return x[:700], y[:700], x[700:], y[700:]


def _loss(job, model, x, y):
    if job == "warm_trees":
        return float(sklearn.metrics.log_loss(y, model.predict_proba(x), labels=model.classes_))
    return float(sklearn.metrics.mean_squared_error(y, model.predict(x)))


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, steps, the best one)."""
    warnings.simplefilter("ignore")
    x, y, held_x, held_y = _data(job, seed, fault)
    model, each = _made(job, seed, fault)
    rounds, losses = 60 if fault == "overfits" else 30, []
    hook = tocsin.watch(out=out, run=name, job=job, capture=CAPTURE)
    for at in range(rounds):
        model.n_estimators = each * (at + 1)
        model.fit(x, y)
        hook.log(loss=_loss(job, model, x, y))
        hook.step()
        losses.append(_loss(job, model, held_x, held_y))
        with hook.mode("eval"):
            hook.log(loss=losses[-1])
            hook.step()
    uid = hook.run
    hook.close(timeout=20)
    return uid, rounds, losses.index(min(losses))
