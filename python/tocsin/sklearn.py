"""scikit-learn: loops of ``partial_fit``, and what an estimator remembers of its own fitting::

    import tocsin.sklearn
    training = tocsin.sklearn.watch(estimator)
    for x, y in batches:
        estimator.partial_fit(x, y, classes=classes)
        training.step(loss=log_loss(y, estimator.predict_proba(x)))
        if training.should_stop():
            break
    training.close()

    tocsin.sklearn.history(MLPClassifier().fit(x, y), job="digits")
"""

from typing import Any, Dict, Iterator, List, Optional, Tuple

from ._callback import Watcher
from ._commands import StopRequest

# Fitted arrays that change with every batch, and what they are; lists of arrays get a number.
_WEIGHTS = (("coef_", "weight"), ("coefs_", "weight"), ("components_", "weight"),
            ("cluster_centers_", "weight"), ("theta_", "weight"),
            ("intercept_", "bias"), ("intercepts_", "bias"))
# A value per round, kept by the estimator: name of the series here, and whether it is a loss.
_HISTORIES = (("loss_curve_", "loss", True), ("validation_scores_", "validation_score", False),
              ("train_score_", "train_loss", True), ("train_score_", "train_score", False),
              ("validation_score_", "validation_score", False), ("scores_", "score", False))


class Training:
    """One loop. A batch is a step. Nothing here raises."""

    def __init__(self, estimator: Any, options: Dict[str, Any]) -> None:
        self._estimator = estimator
        self._watcher = Watcher(options)
        self._watcher.open(None, [])

    @property
    def stopped(self) -> Optional[StopRequest]:
        return self._watcher.stopped

    def step(self, **scalars: Any) -> None:
        """The batch is fitted: logs ``scalars`` and the estimator's own ``loss_``, reads its
        coefficients when they are due."""
        watcher = self._watcher
        if not watcher.active:
            return
        own = getattr(self._estimator, "loss_", None)
        if "loss" not in scalars and isinstance(own, float):
            scalars["loss"] = own
        watcher.log(scalars)
        watcher.tensors(self._weights)
        watcher.hook.step()

    def should_stop(self) -> Optional[StopRequest]:
        return self._watcher.asked()

    def close(self) -> None:
        """Ends the run's record; as stopped, if a stop was seen."""
        self._watcher.end()

    def _weights(self) -> Iterator[Tuple[str, Any, str]]:
        for attribute, role in _WEIGHTS:
            value = getattr(self._estimator, attribute, None)
            if isinstance(value, (list, tuple)):
                for number, one in enumerate(value):
                    yield f"{attribute}.{number}", one, role
            elif hasattr(value, "__array_interface__"):
                yield attribute, value, role


def watch(estimator: Any, **options: Any) -> Training:
    """``options`` are those of :func:`tocsin.watch` (``out``, ``run``, ``job``, …)."""
    return Training(estimator, options)


def history(estimator: Any, **options: Any) -> List[str]:
    """Publishes what a fitted estimator remembers (``loss_curve_``, ``train_score_``,
    ``validation_scores_``, …), a round per step, as a run that has ended. Gives the names."""
    series: Dict[str, Tuple[Any, bool]] = {}
    for attribute, name, is_loss in _HISTORIES:
        values = getattr(estimator, attribute, None)
        if values is None or getattr(values, "ndim", 1) != 1:
            continue
        if attribute == "train_score_" and is_loss != _falls(estimator):
            continue
        series[name] = values, is_loss
    watcher = Watcher(options)
    watcher.open(None, [])
    for round_ in range(max((len(values) for values, _ in series.values()), default=0)):
        now = {name: float(values[round_]) for name, (values, _) in series.items()
               if round_ < len(values)}
        watcher.log_metrics(now, {name: "loss" if is_loss else "metric" for name, (_, is_loss) in series.items()})
        if watcher.active:
            watcher.hook.step()
    watcher.end()
    return sorted(series)


def _falls(estimator: Any) -> bool:
    """GradientBoosting keeps its loss in ``train_score_``, HistGradientBoosting a score."""
    return not type(estimator).__name__.startswith("Hist")
