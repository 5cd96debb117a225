"""Descriptors of arrays that lie in host memory: torch tensors, NumPy arrays, buffers."""

from .tensors.arrays import describe, dtype_code, fill

__all__ = ["describe", "dtype_code", "fill"]
