"""The loss of the newest batches of a Keras training."""

from typing import Any, Optional

import keras


class RunningMean:
    """Keras logs the mean of an epoch so far; what the newest batches had is the difference."""

    def __init__(self) -> None:
        self.passed = 0  # batches of this epoch
        self._tracker: Any = None
        self._sum = self._count = 0.0

    def reset(self, model: Any) -> None:
        self.passed, self._sum, self._count = 0, 0.0, 0.0
        # With JAX the metric's own state is elsewhere in the middle of an epoch.
        self._tracker = None if keras.backend.backend() == "jax" else next(
            (metric for metric in getattr(model, "metrics", ()) if metric.name == "loss"
             and hasattr(metric, "total") and hasattr(metric, "count")), None)

    def since(self, mean: Optional[float]) -> Optional[float]:
        """The loss since the last call; what is NaN or infinite stays so."""
        if self._tracker is not None:
            total, count = float(self._tracker.total), float(self._tracker.count)
        elif mean is not None:
            total, count = mean * self.passed, float(self.passed)  # batches of one size
        else:
            return None
        before, many = self._sum, count - self._count
        self._sum, self._count = total, count
        if many <= 0:
            return mean
        return (total - before) / many if abs(total) < float("inf") else total
