"""scikit-learn: loops of ``partial_fit``, and what an estimator remembers of its own fitting (docs/frameworks/sklearn.md)."""

from .frameworks.sklearn import Training, history, watch

__all__ = ["Training", "history", "watch"]
