"""Hugging Face Transformers: the callback (docs/frameworks/transformers.md)."""

from .frameworks.transformers import TocsinCallback

__all__ = ["TocsinCallback"]
