"""LightGBM: the callback (docs/frameworks/lightgbm.md)."""

from .frameworks.lightgbm import callback

__all__ = ["callback"]
