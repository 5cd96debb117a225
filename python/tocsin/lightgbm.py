"""LightGBM::

    import tocsin.lightgbm
    booster = lightgbm.train(params, data, valid_sets=[held], valid_names=["validation"],
                             callbacks=[tocsin.lightgbm.callback()])

Logs every evaluation metric of every round (``validation-l2``) and ends training, as early stopping
does, when a rule asks for it. The scikit-learn interface takes it as ``callbacks=[…]`` too.
"""

from typing import Any, Optional

from lightgbm.callback import EarlyStopException

from ._callback import Watcher
from ._commands import StopRequest


class callback:  # noqa: N801 - lightgbm's own are functions with small names
    """A round is a step. ``options`` are those of :func:`tocsin.watch` (``out``, ``run``, ``job``, …).

    After training ``stopped`` is the :class:`tocsin.StopRequest` that ended it, or None.
    """

    before_iteration = False

    def __init__(self, **options: Any) -> None:
        self._watcher = Watcher(options)
        self.order = 5  # before early stopping; of the instance, else lightgbm gives one of its own

    @property
    def stopped(self) -> Optional[StopRequest]:
        return self._watcher.stopped

    def __call__(self, env: Any) -> None:
        watcher = self._watcher
        if env.iteration == env.begin_iteration:
            watcher.open(None, [], env.begin_iteration)
        results = env.evaluation_result_list or []
        # (data, metric, value, higher is better, …); of a cross-validation the value is a mean.
        watcher.log_metrics({f"{data}-{metric}": value for data, metric, value, *_ in results},
                            {f"{data}-{metric}": not large for data, metric, _, large, *_ in results})
        if watcher.active:
            watcher.hook.step()
        if watcher.asked() is not None:
            watcher.end()
            raise EarlyStopException(env.iteration, results)
        if env.iteration == env.end_iteration - 1:
            watcher.end()
