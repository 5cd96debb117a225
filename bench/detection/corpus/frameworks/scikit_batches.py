"""scikit-learn's estimators, a batch at a time, through the product's own loop: losses and coefficients, no gradients."""
import random
import warnings

import numpy
import sklearn.datasets
import sklearn.linear_model
import sklearn.metrics
import sklearn.neural_network

import tocsin.sklearn

from ..recipes.training import CAPTURE

TUNING = {"partial_linear": True, "partial_network": True}
# Name of the fault, share of the run before it.
FAULTS = {"rate_too_large": 0.0, "rate_zero": 0.0, "labels_random": 0.0, "labels_break": 0.4, "input_unscaled": 0.0, "input_lost": 0.4,
          "weights_lost": 0.4}


def _estimator(job, chance, fault):
    factor = {"rate_too_large": 1000, "rate_zero": 1e-9}.get(fault, 1)
    if job == "partial_linear":
        return sklearn.linear_model.SGDClassifier("log_loss", alpha=1e-4, learning_rate="constant",
                                                  eta0=factor * chance.uniform(0.003, 0.02), random_state=chance.randrange(10**6))
    return sklearn.neural_network.MLPClassifier((chance.choice((32, 48)),), learning_rate_init=factor * chance.uniform(1e-3, 4e-3),
                                                random_state=chance.randrange(10**6))


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, steps, 0): nothing here is slow."""
    warnings.simplefilter("ignore")
    chance, source = random.Random(f"{job}/{seed}"), numpy.random.default_rng(seed)
    x, y = sklearn.datasets.load_digits(return_X_y=True)
    order = source.permutation(len(x))
    x, y = (x[order] - 8) / 8, y[order]
    estimator = _estimator(job, chance, fault)
    steps, batch = 240, chance.choice((32, 64))
    late = int(FAULTS.get(fault, 0) * steps)
    training = tocsin.sklearn.watch(estimator, out=out, run=name, job=job, capture=CAPTURE)
    uid = tocsin.get_hook().run
    for step in range(steps):
        part = source.integers(0, len(x) - 300, batch)
        here, labels = x[part], y[part]
        if fault == "labels_random":
            labels = source.permutation(labels)
        elif fault == "labels_break" and step >= late:
            labels = (labels + 1) % 10
        elif fault == "input_unscaled":
            here = here * 128 + 128
        elif fault == "input_lost" and step >= late:
            here = numpy.zeros_like(here)
        elif fault == "weights_lost" and step == late:
            for values in (estimator.coefs_ if job == "partial_network" else [estimator.coef_]):
                values[...] = source.standard_normal(values.shape) * 0.3
        before = sklearn.metrics.log_loss(labels, estimator.predict_proba(here), labels=range(10)) if step else numpy.log(10)
        estimator.partial_fit(here, labels, classes=range(10))
        training.step(loss=float(before))
    training.close()
    return uid, steps, 0
