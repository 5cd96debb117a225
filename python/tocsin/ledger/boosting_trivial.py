"""What the best constant costs: the metric that a booster has when it answers every row with one number (or one set of shares) taken from
the training labels. Arithmetic on labels alone; no model is asked."""

import math
from typing import Any, Callable, Dict, Optional, Tuple

import numpy

Array = Any
_LEAST = 1e-16  # of a probability, as XGBoost and LightGBM clip it
_MOST_SORTED = 1 << 16
_GROUPED = frozenset(["ndcg"])


class LabelSet:
    """Labels of one data set. ``weights``: one per row, or None; ``groups``: rows per query, or None."""

    def __init__(self, labels: Any, weights: Any = None, groups: Any = None) -> None:
        self.labels: Array = numpy.asarray(labels, dtype=numpy.float64).ravel()
        if not numpy.isfinite(self.labels).all():
            raise ValueError("labels that are no numbers")
        weights = None if weights is None else numpy.asarray(weights, dtype=numpy.float64).ravel()
        of_rows = weights is not None and weights.size == self.labels.size and weights.size > 0 and weights.sum() > 0
        self.weights: Array = weights if of_rows else numpy.ones(self.labels.size)
        groups = None if groups is None else numpy.asarray(groups, dtype=numpy.int64).ravel()
        self.groups = groups if groups is not None and groups.size and groups.sum() == self.labels.size else None

    def mean(self, values: Any) -> float:
        """Weighted, of one value per row."""
        return float(numpy.dot(self.weights, values) / self.weights.sum())


def trivial(metric: str, train: LabelSet, judged: LabelSet, settings: Dict[str, Any]) -> Optional[Tuple[float, Callable[[float], float]]]:
    """(mean loss of the constant on ``judged``, what turns the metric of a round into such a loss), or None where the metric is not known.
    Root mean squares are squared, so that losses are means over rows; of metrics that are to become large it is 1 − metric."""
    name, _, argument = metric.partition("@")
    if not train.labels.size or not judged.labels.size:
        return None
    if name in _GROUPED:
        value = _ndcg_at_random(judged, argument, settings)
        return None if value is None else (1 - value, _rest)
    for names, compute, turn in _TABLE:
        if name in names:
            value = compute(train, judged, argument, settings)
            return (float(value), turn) if value is not None and math.isfinite(value) else None
    return None


def _same(value: float) -> float:
    return value


def _square(value: float) -> float:
    return value * value


def _rest(value: float) -> float:
    return 1 - value


def quantile(labels: LabelSet, share: float) -> float:
    """The least label at or below which at least this share of the weight lies; of very many labels that of an even share of them."""
    size = labels.labels.size
    some = slice(None) if size <= _MOST_SORTED else numpy.arange(_MOST_SORTED, dtype=numpy.int64) * size // _MOST_SORTED
    values, weights = labels.labels[some], labels.weights[some]
    order = numpy.argsort(values, kind="stable")
    reached = numpy.cumsum(weights[order])
    at = int(numpy.searchsorted(reached, share * reached[-1]))
    return float(values[order][min(at, order.size - 1)])


def _squared(train: LabelSet, judged: LabelSet, _argument: str, _settings: Any) -> float:
    return judged.mean((judged.labels - train.mean(train.labels)) ** 2)


def _squared_log(train: LabelSet, judged: LabelSet, _argument: str, _settings: Any) -> Optional[float]:
    if min(train.labels.min(), judged.labels.min()) <= -1:
        return None
    return judged.mean((numpy.log1p(judged.labels) - train.mean(numpy.log1p(train.labels))) ** 2)


def _absolute(train: LabelSet, judged: LabelSet, _argument: str, _settings: Any) -> float:
    return judged.mean(numpy.abs(judged.labels - quantile(train, 0.5)))


def _pinball(train: LabelSet, judged: LabelSet, _argument: str, settings: Any) -> Optional[float]:
    share = settings.get("alpha")
    if not isinstance(share, (int, float)) or not 0 < share < 1:
        return None
    rest = judged.labels - quantile(train, share)
    return judged.mean(numpy.maximum(share * rest, (share - 1) * rest))


def _positive_share(train: LabelSet, judged: LabelSet) -> Optional[float]:
    if min(train.labels.min(), judged.labels.min()) < 0 or max(train.labels.max(), judged.labels.max()) > 1:
        return None
    return train.mean(train.labels)


def _plain_share(train: LabelSet, judged: LabelSet, settings: Any) -> Optional[float]:
    """The share of positives, None where training weighs them: there the metric is not what is trained, and what a booster answers that knows
    nothing moves from round to round."""
    weight = settings.get("scale_pos_weight")
    if settings.get("balanced") or (weight is not None and float(weight) != 1):
        return None
    return _positive_share(train, judged)


def _logistic(train: LabelSet, judged: LabelSet, _argument: str, settings: Any) -> Optional[float]:
    share = _plain_share(train, judged, settings)
    if share is None:
        return None
    share = min(max(share, _LEAST), 1 - _LEAST)
    return judged.mean(-judged.labels * math.log(share) - (1 - judged.labels) * math.log1p(-share))


def _wrong(train: LabelSet, judged: LabelSet, argument: str, settings: Any) -> Optional[float]:
    share = _plain_share(train, judged, settings)
    if share is None:
        return None
    answer = share > (float(argument) if argument else 0.5)
    return judged.mean((judged.labels > 0.5) != answer)


def _shares(train: LabelSet, judged: LabelSet) -> Optional[Array]:
    both = numpy.concatenate([train.labels, judged.labels])
    if both.min() < 0 or both.max() >= 65536 or (both != numpy.floor(both)).any():
        return None
    counts = numpy.bincount(train.labels.astype(numpy.int64), train.weights, int(both.max()) + 1)
    return counts / counts.sum()


def _several_classes(train: LabelSet, judged: LabelSet, _argument: str, _settings: Any) -> Optional[float]:
    shares = _shares(train, judged)
    return None if shares is None else judged.mean(-numpy.log(numpy.maximum(shares, _LEAST))[judged.labels.astype(numpy.int64)])


def _several_wrong(train: LabelSet, judged: LabelSet, argument: str, _settings: Any) -> Optional[float]:
    shares = _shares(train, judged)
    return None if shares is None or argument else judged.mean(judged.labels.astype(numpy.int64) != int(shares.argmax()))


def _half(_train: LabelSet, _judged: LabelSet, _argument: str, _settings: Any) -> float:
    return 0.5


def _precision(train: LabelSet, judged: LabelSet, _argument: str, _settings: Any) -> Optional[float]:
    return None if _positive_share(train, judged) is None else 1 - judged.mean(judged.labels)


def _positive_mean(train: LabelSet) -> Optional[float]:
    mean = train.mean(train.labels)
    return mean if mean > 0 and train.labels.min() >= 0 else None


def _poisson(train: LabelSet, judged: LabelSet, argument: str, settings: Any) -> Optional[float]:
    mean = _positive_mean(train)
    if mean is None or judged.labels.min() < 0:
        return None
    loss = judged.mean(mean - judged.labels * math.log(mean))
    if not settings.get("factorials"):
        return loss
    if judged.labels.max() >= 65536 or (judged.labels != numpy.floor(judged.labels)).any():
        return None  # no counts
    factorials = numpy.array([math.lgamma(label + 1) for label in range(int(judged.labels.max()) + 1)])
    return loss + judged.mean(factorials[judged.labels.astype(numpy.int64)])


def _gamma(train: LabelSet, judged: LabelSet, _argument: str, _settings: Any) -> Optional[float]:
    mean = _positive_mean(train)
    return None if mean is None else judged.mean(judged.labels / mean) + math.log(mean)


def _tweedie(train: LabelSet, judged: LabelSet, argument: str, settings: Any) -> Optional[float]:
    mean, power = _positive_mean(train), float(argument or settings.get("tweedie_variance_power", 1.5))
    if mean is None or not 1 < power < 2:
        return None
    return judged.mean(mean ** (2 - power) / (2 - power) - judged.labels * mean ** (1 - power) / (1 - power))


def _ndcg_at_random(judged: LabelSet, argument: str, settings: Any) -> Optional[float]:
    """Mean over random orders of each query: every place has the query's mean gain. Exponential gains, which both libraries take by default."""
    if judged.groups is None or judged.labels.min() < 0 or judged.labels.max() > 31 or settings.get("other_gains"):
        return None
    most = int(argument.rstrip("-")) if argument.rstrip("-") else judged.labels.size
    if argument.endswith("-"):
        return None
    gains, start, values = 2.0 ** judged.labels - 1, 0, []
    discounts = 1 / numpy.log2(numpy.arange(2, 2 + int(judged.groups.max())))
    for size in judged.groups:
        gain = numpy.sort(gains[start:start + size])[::-1]
        start += size
        places = discounts[:min(size, most)]
        ideal = float(numpy.dot(gain[:places.size], places))
        values.append(float(gain.mean() * places.sum()) / ideal if ideal > 0 else 1.0)
    return float(numpy.mean(values))


_TABLE = (
    (frozenset(["l2", "mse"]), _squared, _same),
    (frozenset(["rmse"]), _squared, _square),
    (frozenset(["rmsle"]), _squared_log, _square),
    (frozenset(["mae", "l1"]), _absolute, _same),
    (frozenset(["quantile"]), _pinball, _same),
    (frozenset(["logloss", "binary_logloss", "cross_entropy"]), _logistic, _same),
    (frozenset(["error", "binary_error"]), _wrong, _same),
    (frozenset(["mlogloss", "multi_logloss"]), _several_classes, _same),
    (frozenset(["merror", "multi_error"]), _several_wrong, _same),
    (frozenset(["auc"]), _half, _rest),
    (frozenset(["aucpr", "average_precision"]), _precision, _rest),
    (frozenset(["poisson-nloglik", "poisson"]), _poisson, _same),
    (frozenset(["gamma-nloglik", "gamma"]), _gamma, _same),
    (frozenset(["tweedie-nloglik", "tweedie"]), _tweedie, _same),
)
