"""Keras 3 (``keras``, ``tf.keras`` since TensorFlow 2.16): callback and loops (docs/frameworks/keras.md)."""

from .frameworks.keras import COLUMNS, PREFLIGHT_AFTER, TocsinCallback, Training, statistics, watch

__all__ = ["COLUMNS", "PREFLIGHT_AFTER", "TocsinCallback", "Training", "statistics", "watch"]
