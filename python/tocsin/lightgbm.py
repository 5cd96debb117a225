"""LightGBM::

    import tocsin.lightgbm
    booster = lightgbm.train(params, data, valid_sets=[held], valid_names=["validation"],
                             callbacks=[tocsin.lightgbm.callback()])

Logs every evaluation metric of every round (``validation-l2``), how large its trees are and which
features they use, and ends training, as early stopping does, when a rule asks for it. The scikit-learn
interface takes it as ``callbacks=[…]`` too.
"""

from typing import Any, Dict, Optional, Sequence

from lightgbm.callback import EarlyStopException

from ._callback import Watcher
from ._callers import any_named, locals_of
from ._commands import StopRequest
from ._copies import Copyable


class callback(Copyable):  # noqa: N801 - lightgbm's own are functions with small names
    """A round is a step. ``importance``: types that are logged at every ``importance_every``-th round as
    ``feature_importance/<type>/<feature>``, with a sum of 1 per type; features that no tree uses are left
    out. ``trees``: whether ``trees/leaves`` is logged, of the round's largest tree; 1 too where LightGBM finds
    nothing to split and adds none. ``options`` are those of :func:`tocsin.watch` (``out``, ``run``, ``job``, …).

    After training ``stopped`` is the :class:`tocsin.StopRequest` that ended it, or None.
    """

    before_iteration = False
    _begun: Optional[Watcher] = None  # last, by any of them: early stopping ends the rounds and tells nobody

    def __init__(self, importance: Sequence[str] = ("gain",), importance_every: int = 5, *,
                 trees: bool = True, **options: Any) -> None:
        self._watcher = Watcher(options)
        self._importance, self._every, self._trees = tuple(importance), max(importance_every, 1), trees
        self.order = 5  # before early stopping; of the instance, else lightgbm gives one of its own

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
        results = env.evaluation_result_list or []
        # (data, metric, value, higher is better, …); of a cross-validation the value is a mean.
        values = {f"{data}-{metric}": value for data, metric, value, *_ in results}
        roles = {f"{data}-{metric}": "metric" if large else "loss" for data, metric, _, large, *_ in results}
        if watcher.active:
            values.update(self._grown(env))
        watcher.log_metrics(values, {name: "importance" if name.startswith("feature_importance/") else roles.get(name, "metric")
                                     for name in values})
        if watcher.active:
            watcher.hook.step()
        if watcher.asked() is not None:
            watcher.end()
            raise EarlyStopException(env.iteration, results)
        if env.iteration == env.end_iteration - 1:
            watcher.end()

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
                    out.update({f"feature_importance/{kind}/{name}": float(score) / total
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
