"""Lightning (``lightning`` or ``pytorch_lightning``): the callback (docs/frameworks/lightning.md)."""

from .frameworks.lightning import TocsinCallback, callbacks

__all__ = ["TocsinCallback", "callbacks"]
