"""scikit-learn: loops of ``partial_fit``, and what an estimator remembers of its own fitting::

    import tocsin.sklearn
    training = tocsin.sklearn.watch(estimator)
    for x, y in batches:
        before = estimator.predict_proba(x)  # what it knows of the batch before it learns from it
        estimator.partial_fit(x, y)
        training.step(loss=log_loss(y, estimator.predict_proba(x)), outputs=before, targets=y)
        if training.should_stop():
            break
    training.close()

    tocsin.sklearn.history(MLPClassifier().fit(x, y), job="digits")
"""

from typing import Any, Dict, Iterator, List, Optional, Tuple

from tocsin.adapters.sklearn_given import GivenInputs
from tocsin.hook.commands import StopRequest
from tocsin.ledger.loop_ledger import Loss, LoopLedger, of_arrays
from .callback import Watcher

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
        self._ledger = LoopLedger(self._watcher)
        self._given: Optional[GivenInputs] = None
        if self._watcher.active and self._watcher.hook.sink.wants_ledger:
            self._given = GivenInputs(estimator)

    @property
    def stopped(self) -> Optional[StopRequest]:
        return self._watcher.stopped

    def step(self, *, outputs: Any = None, targets: Any = None, loss_kind: Loss = None, sample_weight: Any = None, inputs: Any = None,
             **scalars: Any) -> None:
        """The batch is fitted: logs ``scalars`` and the estimator's own ``loss_``, reads its
        coefficients when they are due. ``outputs`` (of ``predict_proba``, ``decision_function`` or ``predict``, best from
        before the batch was fitted) and ``targets``: for the ledger (docs/ledger.md). ``loss_kind``: ``squared``, ``absolute``,
        ``huber``, ``poisson``, ``binary``, ``cross_entropy``, or a function with a number for each sample; None: by the targets.
        ``inputs``: what the estimator was given; None: as it remembers it of these ``outputs``."""
        watcher = self._watcher
        if not watcher.active:
            return
        own = getattr(self._estimator, "loss_", None)
        if "loss" not in scalars and isinstance(own, float):
            scalars["loss"] = own
        watcher.log(scalars)
        watcher.tensors(self._weights)
        self._tell(outputs, targets, loss_kind, sample_weight, inputs, True)
        watcher.hook.step()

    def evaluated(self, *, outputs: Any = None, targets: Any = None, loss_kind: Loss = None, sample_weight: Any = None, inputs: Any = None,
                  **scalars: Any) -> None:
        """A batch, or all, of an evaluation: a step in mode ``eval``."""
        if self._watcher.active:
            self._watcher.hook.set_mode("eval")
            self._watcher.log(scalars)
            self._tell(outputs, targets, loss_kind, sample_weight, inputs, False)
            self._watcher.hook.step()
            self._watcher.hook.set_mode("train")

    def _tell(self, outputs: Any, targets: Any, loss: Loss, weights: Any, inputs: Any, training: bool) -> None:
        if outputs is not None and targets is not None:
            if inputs is None and self._given is not None:
                inputs = self._given.of(outputs)
            self._ledger.tell(lambda wanted: of_arrays(outputs, targets, loss, weights=weights, classes=getattr(self._estimator, "classes_", None),
                                                         inputs=inputs, wanted=wanted), training)
        if self._given is not None:
            self._given.forget()

    def should_stop(self) -> Optional[StopRequest]:
        return self._watcher.asked()

    def close(self) -> None:
        """Ends the run's record; as stopped, if a stop was seen."""
        if self._given is not None:
            self._given.detach()
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
    if watcher.active:
        with watcher.hook.sink.guard("sklearn"):
            watcher.hook.sink.plan.say(**_planned(estimator))
    for round_ in range(max((len(values) for values, _ in series.values()), default=0)):
        now = {name: float(values[round_]) for name, (values, _) in series.items()
               if round_ < len(values)}
        watcher.log_metrics(now, {name: "loss" if is_loss else "metric" for name, (_, is_loss) in series.items()})
        if watcher.active:
            watcher.hook.step()
    watcher.end()
    return sorted(series)


def _planned(estimator: Any) -> Dict[str, float]:
    """Rounds and shrinkage of gradient boosting."""
    kind = type(estimator).__name__
    if "GradientBoosting" not in kind:
        return {}
    if kind.startswith("Hist"):
        return {"rounds": float(estimator.max_iter), "shrinkage": float(estimator.learning_rate),
                "early_stopping": float(getattr(estimator, "do_early_stopping_", False))}
    return {"rounds": float(estimator.n_estimators), "shrinkage": float(estimator.learning_rate),
            "early_stopping": float(estimator.n_iter_no_change is not None)}


def _falls(estimator: Any) -> bool:
    """GradientBoosting keeps its loss in ``train_score_``, HistGradientBoosting a score."""
    return not type(estimator).__name__.startswith("Hist")
