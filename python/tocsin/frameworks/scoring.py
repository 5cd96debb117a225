"""Labels and predictions side by side, as far as a report needs them: reduced here, because they do not travel."""

import math
from typing import Any, Dict

import numpy

_MOST_CLASSES = 20
_INTERVALS = 10  # of the labels' range
_QUANTITIES = ("reg:", "count:", "survival:")
_FALSE_POSITIVE_RATES = [step / 20 for step in range(1, 20)]


def scored(predictions: Any, labels: Any, objective: str = "") -> Dict[str, float]:
    """Of two classes (0 and 1) the receiver operating characteristic: ``roc/area`` and the true positive rates at 19 false positive
    rates, ``roc/tpr/0.05`` …; of quantities the residuals (prediction less label): ``residual/mean``, ``std``, ``min``, ``max``
    and quantiles, and the mean absolute error of each tenth of the labels' range: ``residual/abs/0`` … ``9``, from ``residual/label_min`` to
    ``residual/label_max``; a tenth without labels has none. Whether labels are quantities says ``objective``, as XGBoost names it; where it is
    not known, that they are not few whole numbers. Nothing where the two are no pairs, of several classes, of one class alone, or of what is not finite."""
    scores = numpy.asarray(predictions, dtype=numpy.float64)
    truth = numpy.asarray(labels, dtype=numpy.float64)
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.ndim != 1 or scores.shape != truth.shape or scores.size == 0:
        return {}
    if not (numpy.isfinite(scores).all() and numpy.isfinite(truth).all()):
        return {}
    if objective.startswith(_QUANTITIES):
        return {**_residuals(scores - truth), **_errors(scores - truth, truth)}
    distinct = numpy.unique(truth)
    if distinct.tolist() == [0.0, 1.0]:
        return _characteristic(scores, truth)
    if distinct.size > _MOST_CLASSES or (distinct != numpy.floor(distinct)).any() or distinct[0] < 0:
        return {**_residuals(scores - truth), **_errors(scores - truth, truth)}
    return {}


def _characteristic(scores: Any, truth: Any) -> Dict[str, float]:
    order = numpy.argsort(-scores, kind="stable")
    falls = numpy.append(numpy.nonzero(numpy.diff(scores[order]))[0], scores.size - 1)  # equal scores are one threshold
    hits = numpy.cumsum(truth[order])[falls]
    false = falls + 1 - hits
    tpr = numpy.concatenate(([0.0], hits / hits[-1]))
    fpr = numpy.concatenate(([0.0], false / false[-1]))
    area = float(numpy.sum(numpy.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2))
    last = numpy.append(numpy.nonzero(numpy.diff(fpr))[0], fpr.size - 1)  # of each false positive rate the best
    rates = numpy.interp(_FALSE_POSITIVE_RATES, fpr[last], tpr[last])
    return {"roc/area": area, **{f"roc/tpr/{at:.2f}": float(rate) for at, rate in zip(_FALSE_POSITIVE_RATES, rates)}}


def _residuals(off: Any) -> Dict[str, float]:
    out = {"mean": off.mean(), "std": off.std(), "min": off.min(), "max": off.max()}
    out.update({f"p{q:02d}": numpy.quantile(off, q / 100) for q in (5, 25, 50, 75, 95)})
    return {f"residual/{name}": float(value) for name, value in out.items()}


def _errors(off: Any, truth: Any) -> Dict[str, float]:
    low, high = float(truth.min()), float(truth.max())
    out = {"residual/label_min": low, "residual/label_max": high}
    if high > low and math.isfinite(high - low):
        interval = numpy.minimum((truth - low) / (high - low) * _INTERVALS, _INTERVALS - 1).astype(int)  # the last one is closed
        for number in numpy.unique(interval):
            out[f"residual/abs/{number}"] = float(numpy.abs(off[interval == number]).mean())
    return out
