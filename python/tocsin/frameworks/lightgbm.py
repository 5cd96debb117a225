"""LightGBM::

    import tocsin.lightgbm
    booster = lightgbm.train(params, data, valid_sets=[held], valid_names=["validation"],
                             callbacks=[tocsin.lightgbm.callback()])

Logs every evaluation metric of every round (``validation-l2``), how large its trees are and which
features they use, and ends training, as early stopping does, when a rule asks for it. The scikit-learn
interface takes it as ``callbacks=[…]`` too. At the first round it looks at labels and columns once (docs/ledger.md).
"""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from lightgbm.callback import EarlyStopException

from tocsin.hook.commands import StopRequest
from tocsin.ledger.boosting import BoosterLedger, DataSet
from tocsin.process.callers import any_named, locals_of
from .callback import Watcher
from .copies import Copyable

_OWN = {"feature_importance": "importance", "ledger": "ledger"}  # roles of names that begin like this


class callback(Copyable):  # noqa: N801 - lightgbm's own are functions with small names
    """A round is a step. ``importance``: types that are logged at every ``importance_every``-th round as
    ``feature_importance/<type>/<feature>``, with a sum of 1 per type; features that no tree uses are left
    out. ``gain`` is a sum over trees here, so it also goes by the name ``total_gain``. ``ledger=False``: labels and columns are not looked at.
    ``trees``: whether ``trees/leaves`` is logged, of the round's largest tree; 1 too where LightGBM finds
    nothing to split and adds none. ``options`` are those of :func:`tocsin.watch` (``out``, ``run``, ``job``, …).

    After training ``stopped`` is the :class:`tocsin.StopRequest` that ended it, or None.
    """

    _begun: Optional[Watcher] = None  # last, by any of them: early stopping ends the rounds and tells nobody

    def __init__(self, importance: Sequence[str] = ("gain",), importance_every: int = 5, *,
                 trees: bool = True, ledger: bool = True, **options: Any) -> None:
        self._watcher = Watcher(options)
        self._importance, self._every, self._trees = tuple(importance), max(importance_every, 1), trees
        self._reads, self._ledger = ledger, None  # type: bool, Optional[BoosterLedger]
        self._tables: List[Tuple[Any, Any]] = []  # until the first round: data sets and what they were made of
        self.order = 5  # before early stopping; of the instance, else lightgbm gives one of its own

    @property
    def before_iteration(self) -> bool:
        """False: it is called after each round. ``lightgbm.train`` asks that before it lets go of the tables that it was given."""
        try:
            call = locals_of("lightgbm.engine", ("train",)) if self._reads else None
            if call:
                sets = [call.get("train_set"), *(call.get("valid_sets") or ())]
                self._tables = [(one, one.data) for one in sets if getattr(one, "data", None) is not None]
        except Exception:  # noqa: BLE001 - there is no hook yet that counts it; labels are read nevertheless
            self._tables = []
        return False

    @property
    def stopped(self) -> Optional[StopRequest]:
        return self._watcher.stopped

    def __call__(self, env: Any) -> None:
        watcher = self._watcher
        if env.iteration == env.begin_iteration:
            former, callback._begun = callback._begun, watcher
            if former is not None:
                former.end()
            watcher.open(None, [], env.begin_iteration)
            if watcher.active:
                with watcher.hook.sink.guard("lightgbm"):
                    watcher.hook.sink.plan.say(**_planned(env))
            self._ledger, tables, self._tables = None, self._tables, []
            if watcher.active and self._reads:
                with watcher.hook.sink.guard("ledger"):
                    self._ledger = self._look(env, tables)
        results = env.evaluation_result_list or []
        # (data, metric, value, higher is better, …); of a cross-validation the value is a mean.
        values = {f"{data}-{metric}": value for data, metric, value, *_ in results}
        roles = {f"{data}-{metric}": "metric" if large else "loss" for data, metric, _, large, *_ in results}
        if watcher.active:
            values.update(self._grown(env))
            if self._ledger is not None:
                with watcher.hook.sink.guard("ledger"):
                    values.update(self._ledger.judge({(data, metric): value for data, metric, value, *_ in results}))
                    if env.iteration == env.begin_iteration:
                        values.update(self._ledger.facts)
        watcher.log_metrics(values, {name: _OWN.get(name.split("/")[0], roles.get(name, "metric")) for name in values})
        if watcher.active:
            watcher.hook.step()
        if watcher.asked() is not None:
            watcher.end()
            raise EarlyStopException(env.iteration, results)
        if env.iteration == env.end_iteration - 1:
            watcher.end()

    def _look(self, env: Any, tables: List[Tuple[Any, Any]]) -> Optional[BoosterLedger]:
        """At the data, once. A cross-validation has none that is whole."""
        if hasattr(env.model, "boosters"):
            return None
        train, params = env.model.train_set, env.params

        def read(name: str, data: Any) -> DataSet:
            table = next((table for one, table in tables if one is data), getattr(data, "data", None))
            return DataSet(name, data.get_label(), data.get_weight(), data.get_group(), table)

        objective = next((params[name] for name in ("objective", "application", "app", "objective_type", "loss") if name in params), "regression")
        settings = {"alpha": params.get("alpha", 0.9), "other_gains": "label_gain" in params,
                    "tweedie_variance_power": params.get("tweedie_variance_power", 1.5), "scale_pos_weight": params.get("scale_pos_weight", 1),
                    "balanced": any(params.get(name) in (True, "true", 1) for name in ("is_unbalance", "unbalance", "unbalanced_sets"))}
        others = [read(name, data) for name, data in zip(env.model.name_valid_sets, env.model.valid_sets)]
        return BoosterLedger(read("train", train), others, [env.model._train_data_name], env.model.feature_name(),
                             objective if isinstance(objective, str) else "", settings,
                             lambda error: self._watcher.hook.sink.failed("ledger", error))

    def _grown(self, env: Any) -> Dict[str, float]:
        """Of the newest round; nothing of a cross-validation, which has several models."""
        out: Dict[str, float] = {}
        with self._watcher.hook.sink.guard("lightgbm"):
            if hasattr(env.model, "boosters"):
                return out
            if self._trees:
                grown = env.model.dump_model(num_iteration=1, start_iteration=env.iteration)["tree_info"]
                out["trees/leaves"] = float(max((one["num_leaves"] for one in grown), default=1))
            if (env.iteration - env.begin_iteration) % self._every == 0:
                names = env.model.feature_name()
                for kind in self._importance:
                    scores = env.model.feature_importance(kind)
                    total = float(scores.sum())
                    for spoken in (kind, "total_gain") if kind == "gain" else (kind,):
                        out.update({f"feature_importance/{spoken}/{name}": float(score) / total
                                    for name, score in zip(names, scores) if score > 0})
        return out


_RATE = ("learning_rate", "shrinkage_rate", "eta")
_BOOSTING = ("boosting", "boosting_type", "boost")
_OBJECTIVE = ("objective", "objective_type", "app", "application", "loss")
_ORDERS = ("lambdarank", "rank_xendcg", "xendcg", "xe_ndcg", "xe_ndcg_mart", "xendcg_mart")
_EARLY = ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change")


def _planned(env: Any) -> Dict[str, float]:
    """Rounds, and the shrinkage where each tree takes the same share of what is left."""
    def given(names: Sequence[str], default: Any) -> Any:
        return next((env.params[name] for name in names if env.params.get(name) is not None), default)

    known = locals_of("lightgbm.engine", ("train", "cv"))
    others = [*known.get("callbacks_before_iter", ()), *known.get("callbacks_after_iter", ())]
    early = float(given(_EARLY, 0) or 0) > 0 or any_named(others, "_EarlyStoppingCallback")
    out = {"rounds": float(env.end_iteration), "early_stopping": float(early)}
    if given(_BOOSTING, "gbdt") in ("gbdt", "gbrt", "goss") and given(_OBJECTIVE, "") not in _ORDERS \
            and not any_named(others, "_ResetParameterCallback"):
        out["shrinkage"] = float(given(_RATE, 0.1))
    return out
