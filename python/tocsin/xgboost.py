"""XGBoost: the callback (docs/frameworks/xgboost.md)."""

from .frameworks.xgboost import TocsinCallback

__all__ = ["TocsinCallback"]
