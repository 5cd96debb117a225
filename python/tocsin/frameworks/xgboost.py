"""XGBoost::

    from tocsin.xgboost import TocsinCallback
    booster = xgboost.train(params, data, evals=[(data, "train"), (held, "validation")],
                            callbacks=[TocsinCallback()])

Logs every evaluation metric of every round (``validation-rmse``), the depth of its trees, the importance
of the features, the parameters of the booster, and ends training when a rule asks for it. The scikit-learn interface takes it as ``callbacks=[…]`` too.
"""

from typing import Any, Dict, Iterable, Optional, Sequence, Tuple

import xgboost
from xgboost.callback import EarlyStopping, TrainingCallback

from tocsin.hook.commands import StopRequest
from tocsin.ledger.boosting import BoosterLedger, DataSet, tables
from tocsin.process.callers import any_named, locals_of
from .callback import Watcher
from .copies import Copyable
from .scoring import scored
from .trees import TREE_COLUMNS, contributions, hyperparameters, objective, shrinks, tree_columns

_LARGE = frozenset(["auc", "aucpr", "ndcg", "map", "pre", "acc", "accuracy", "f1", "precision",
                    "recall"])
_VALIDATED = (("predictions", "prediction"), ("labels", "label"))


class TocsinCallback(Copyable, TrainingCallback):
    """A round is a step. ``importance``: types that are logged at every ``importance_every``-th round
    as ``feature_importance/<type>/<feature>``, with a sum of 1 per type; features that no tree uses are
    left out. ``trees``: whether ``trees/depth`` is logged, the longest path from a root to a leaf among
    the round's trees, in edges, with ``trees/leaves``, those of that tree, and ``trees/deepest``, its number where a
    round has several; linear boosters have none. ``validation``: a DMatrix whose ``labels``
    and ``predictions`` are captured when a rule asks for them or ``capture`` names their collections; with them
    goes what only both together say: the receiver operating characteristic, or the residuals. ``shap``: a
    DMatrix (None: ``validation``) of which the contributions of the features are captured, and only then computed,
    when ``capture`` names ``average_shap`` or ``full_shap``.
    ``dtrain`` and ``evals``: the arguments of ``xgboost.train`` by these names, for the ledger; left out, they are read once from
    the call that runs the callback. ``ledger=False``: labels and columns are not looked at.
    ``options`` are those of :func:`tocsin.watch` (``out``, ``run``, ``job``, …). A pickle holds none of
    ``validation``, ``shap``, ``dtrain`` and ``evals``: data is no part of a model's file.

    After training ``stopped`` is the :class:`tocsin.StopRequest` that ended it, or None.
    """

    _left_out = ("validation", "shap", "dtrain", "evals")

    def __init__(self, importance: Sequence[str] = ("gain", "weight", "total_gain"), importance_every: int = 5, *,
                 trees: bool = True, validation: Any = None, shap: Any = None, dtrain: Any = None, evals: Any = None,
                 ledger: bool = True, **options: Any) -> None:
        super().__init__()
        self._watcher = Watcher(options)
        self._importance, self._every = tuple(importance), max(importance_every, 1)
        self._trees, self._validation = trees, validation
        self._shap = validation if shap is None else shap
        self._data: Tuple[Any, Any] = (dtrain, evals)
        self._reads, self._ledger = ledger, None  # type: bool, Optional[BoosterLedger]
        self._once: Dict[str, float] = {}  # goes with the first round
        self._begun = False  # of this training
        self._scored: Dict[str, float] = {}  # of the present round
        self._objective = ""
        self._scheduled = False  # another callback sets the learning rate

    @property
    def stopped(self) -> Optional[StopRequest]:
        return self._watcher.stopped

    def before_training(self, model: Any) -> Any:
        rounds = getattr(model, "num_boosted_rounds", lambda: 0)()
        self._watcher.open(None, [], rounds)
        self._begun = False
        self._ledger, self._once = None, {}
        if self._watcher.active:
            with self._watcher.hook.sink.guard("xgboost"):
                self._plan(rounds)
        if self._watcher.active and self._reads:
            with self._watcher.hook.sink.guard("ledger"):
                self._look(model, rounds)
        return model

    def _plan(self, before: int) -> None:
        """Callbacks are not told how many rounds there will be; who calls them knows."""
        known = locals_of("xgboost.", ("train", "cv"))
        rounds, callbacks = known.get("num_boost_round"), known.get("callbacks")
        self._scheduled = any_named(callbacks, "LearningRateScheduler")
        if isinstance(rounds, int):
            self._watcher.hook.sink.plan.say(
                rounds=before + rounds,
                early_stopping=float(bool(known.get("early_stopping_rounds")) or any_named(callbacks, "EarlyStopping")))

    def _look(self, model: Any, rounds: int) -> None:
        """At the data, once. A cross-validation has none that is whole."""
        call = locals_of("xgboost.training", ("train",))
        dtrain = self._data[0] if self._data[0] is not None else call.get("dtrain")
        evals = list(self._data[1] if self._data[1] is not None else call.get("evals") or ())
        params = dict(call.get("params") or {})
        if dtrain is None:
            return
        named = params.get("objective")
        if named is None and rounds > 0:
            named = objective(model.save_config())
        settings = {"alpha": params.get("quantile_alpha"), "factorials": True, "other_gains": params.get("ndcg_exp_gain") in (False, "false", 0),
                    "scale_pos_weight": params.get("scale_pos_weight", 1)}
        own, held = tables(locals_of("xgboost.sklearn", ("fit",)), len(evals))
        others = [_data_set(name, data, table) for (data, name), table in zip(evals, held) if data is not dtrain]
        self._ledger = BoosterLedger(_data_set("train", dtrain, own), others, [name for data, name in evals if data is dtrain],
                                     dtrain.feature_names or (), str(named or ""), settings,
                                     lambda error: self._watcher.hook.sink.failed("ledger", error))
        self._once.update(self._ledger.facts)
        stops = _stops_by(call, evals)
        if stops is not None:
            name = "train" if stops[0] is dtrain else stops[1].replace("/", "_")
            self._once[f"ledger/data/{name}/stops"] = 1.0

    def after_iteration(self, model: Any, epoch: int, evals_log: Dict[str, Any]) -> bool:
        """True ends training."""
        watcher = self._watcher
        if watcher.active:
            values: Dict[str, Any] = {}
            with watcher.hook.sink.guard("xgboost"):
                for data, metrics in evals_log.items():
                    for metric, history in metrics.items():
                        value = history[-1]  # of a cross-validation: mean and deviation
                        values[f"{data}-{metric}"] = value[0] if isinstance(value, tuple) else value
                if self._ledger is not None:
                    values.update(self._ledger.judge({(data, metric): history[-1] for data, metrics in evals_log.items()
                                                      for metric, history in metrics.items()}))
                values.update(self._once)
                self._once = {}
                if epoch % self._every == 0 and hasattr(model, "get_score"):
                    values.update(self._importances(model))
            values.update(self._depth(model))
            self._parameters(model)
            self._scored = {}
            watcher.tensors(lambda: self._tensors(model))
            values.update(self._scored)
            watcher.log_metrics(values, {name: _role(name) for name in values})
            watcher.hook.step()
        watcher.agreed = _agreed(watcher.asked() is not None)
        return watcher.agreed

    def _importances(self, model: Any) -> Dict[str, float]:
        out: Dict[str, float] = {}
        for kind in self._importance:
            scores = model.get_score(importance_type=kind)
            total = sum(scores.values())
            if total > 0:
                out.update({f"feature_importance/{kind}/{feature}": score / total
                            for feature, score in scores.items()})
        return out

    def _depth(self, model: Any) -> Dict[str, float]:
        """Of the trees of the newest round; nothing of models without trees, or in a cross-validation."""
        if not self._trees or not hasattr(model, "__getitem__"):
            return {}
        try:
            last = model.num_boosted_rounds() - 1
            dumps = model[last:last + 1].get_dump()
            depths = [_depth_of(dump) for dump in dumps]
            deepest = depths.index(max(depths))
            out = {"trees/depth": float(depths[deepest]), "trees/leaves": float(dumps[deepest].count(":leaf="))}
            if len(dumps) > 1:
                out["trees/deepest"] = float(deepest)
            return out
        except Exception as error:  # noqa: BLE001
            self._trees = False  # a linear booster cannot be sliced, in any round
            self._watcher.hook.sink.failed("xgboost", error)
            return {}

    def _parameters(self, model: Any) -> None:
        """Once: they are those of the training."""
        if self._begun or not hasattr(model, "save_config"):  # a cross-validation has many boosters
            return
        self._begun = True
        watcher = self._watcher
        with watcher.hook.sink.guard("xgboost"):
            config = model.save_config()
            self._objective = objective(config)
            found = hyperparameters(config)
            watcher.log_metrics(found, dict.fromkeys(found, "hyperparameter"))
            if shrinks(config) and not self._scheduled:
                watcher.hook.sink.plan.say(shrinkage=found.get("hyperparameters/learning_rate", found.get("hyperparameters/eta")))

    def _tensors(self, model: Any) -> Iterable[Tuple[str, Any, str]]:
        yield from self._columns(model)
        yield from self._contributions(model)
        yield from self._validated(model)

    def _columns(self, model: Any) -> Iterable[Tuple[str, Any, str]]:
        """Of the trees of the newest round."""
        wants = self._watcher.hook.sink.wants_tensor
        if not self._trees or not hasattr(model, "__getitem__") or not any(
                wants(f"trees/{name}", "tree") for name in TREE_COLUMNS):
            return
        last = model.num_boosted_rounds() - 1
        dumps = model[last:last + 1].get_dump(with_stats=True, dump_format="json")
        for name, column in tree_columns(dumps).items():
            yield name, column, "tree"

    def _contributions(self, model: Any) -> Iterable[Tuple[str, Any, str]]:
        wants = self._watcher.hook.sink.wants_tensor
        if self._shap is None or not hasattr(model, "num_features"):
            return
        features = model.feature_names or [f"f{number}" for number in range(model.num_features())]
        if not (wants("full_shap/contributions", "shap") or any(wants(f"average_shap/{name}", "other") for name in features)):
            return
        yield from contributions(model.predict(self._shap, pred_contribs=True), features)

    def _validated(self, model: Any) -> Iterable[Tuple[str, Any, str]]:
        """First what is predicted: the statistic ``classes`` pairs it with the labels that follow."""
        sink = self._watcher.hook.sink
        if self._validation is None or not any(
                sink.wants_tensor(name, role) for name, role in _VALIDATED):
            return
        predictions, labels = model.predict(self._validation), self._validation.get_label()
        self._scored = scored(predictions, labels, self._objective)
        yield "predictions", predictions, "prediction"
        yield "labels", labels, "label"

    def after_training(self, model: Any) -> Any:
        self._watcher.end()
        return model


def _depth_of(dump: str) -> int:
    """Of a tree as text, in edges: each node is a line that begins with a tab per edge above it."""
    return max(len(line) - len(line.lstrip("\t")) for line in dump.splitlines())


def _stops_by(call: Any, evals: Any) -> Optional[Tuple[Any, str]]:
    """The evaluation set that early stopping goes by: the last one, unless its callback names another."""
    stops, named = bool(call.get("early_stopping_rounds")), None
    for one in call.get("callbacks") or ():
        if isinstance(one, EarlyStopping) and one.data is not None:
            named = one.data
        stops = stops or isinstance(one, EarlyStopping)
    if not stops or not evals:
        return None
    return next(((data, name) for data, name in evals if name == named), tuple(evals[-1]) if named is None else None)


def _data_set(name: str, data: Any, table: Any = None) -> DataSet:
    """``table``: the rows as they were given, where ``data`` has only their bins."""
    groups = data.get_group() if hasattr(data, "get_group") else None
    return DataSet(name, data.get_label(), data.get_weight(), groups, data if table is None else table)


def _role(name: str) -> str:
    if name.startswith("ledger/"):
        return "ledger"
    if name.startswith("feature_importance/"):
        return "importance"
    return "loss" if _is_loss(name) else "metric"


def _is_loss(name: str) -> bool:
    """Of ``validation-ndcg@3`` and the like: whether the metric is to become small."""
    data, _, metric = name.partition("-")
    return bool(metric) and "/" not in data and metric.split("@")[0].rstrip("-") not in _LARGE


def _agreed(stop: bool) -> bool:
    """Rank 0's word, so that all workers leave at the same round."""
    if xgboost.collective.get_world_size() == 1:
        return stop
    return bool(xgboost.collective.broadcast(stop, 0))
