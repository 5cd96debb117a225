"""What moments and fingerprints of a batch are computed with inside of Keras's steps: keras.ops, and words of 32 bits in each backend."""

from typing import Any, Optional

import keras

from tocsin.ledger.operations import Operations

_BITS = 0xFFFFFFFF


class KerasOperations(Operations):
    """keras.ops of the present backend. Words are numbers of 64 bits, whose first half is 0; with JAX, which may have none of these, of 32."""

    floats = "float32"
    fixed = True

    def __init__(self) -> None:  # pylint: disable=super-init-not-called
        self.module = keras.ops
        self._jax = keras.backend.backend() == "jax"

    def cast(self, value: Any, dtype: str) -> Any:
        return keras.ops.cast(value, dtype)

    def segment_sum(self, values: Any, ids: Any, count: int) -> Any:
        return keras.ops.segment_sum(values, ids, num_segments=count)

    def is_whole(self, value: Any) -> bool:
        return _kind(value).startswith(("int", "uint"))

    def is_floating(self, value: Any) -> bool:
        return _kind(value).startswith(("float", "bfloat"))

    # ---- words

    def has_words(self, value: Any) -> bool:
        return _kind(value).startswith(("float", "bfloat", "int", "uint", "bool")) and "float8" not in _kind(value)

    def is_byte(self, value: Any) -> bool:
        return _kind(value) in ("int8", "uint8", "bool")

    def count(self, value: Any) -> Any:
        return keras.ops.cast(keras.ops.shape(value)[0], "int32")

    def words(self, value: Any) -> Any:
        floating = self.is_floating(value)
        value = keras.ops.cast(value, "float32") + 0 if floating else value
        if self._jax:
            import jax

            return jax.lax.bitcast_convert_type(value, "uint32") if floating else keras.ops.cast(value, "uint32")
        if floating and keras.backend.backend() == "torch":
            import torch

            value = value.contiguous().view(torch.int32)
        elif floating:
            import tensorflow

            value = tensorflow.bitcast(value, "int32")
        return self.low(keras.ops.cast(value, "int64"))

    def whole(self, value: Any) -> Any:
        return keras.ops.convert_to_tensor(value, dtype="uint32" if self._jax else "int64")

    def low(self, value: Any) -> Any:
        return value if self._jax else value & self.whole(_BITS)

    def times(self, value: Any, factor: Any) -> Any:
        return self.low(value * factor)

    def shifted(self, value: Any, bits: int) -> Any:
        return keras.ops.bitwise_right_shift(value, self.whole(bits))

    def total(self, value: Any) -> Any:
        return value.sum(1, dtype="uint32") if self._jax else keras.ops.sum(value, axis=1)


def dense(value: Any) -> Optional[Any]:
    """The same, if it is an ordinary array: neither sparse nor ragged."""
    ordinary = hasattr(value, "shape") and not any(hasattr(value, name) for name in ("row_splits", "dense_shape", "todense")) and not getattr(value, "is_sparse", False)
    return value if ordinary and getattr(value.shape, "rank", 1) is not None and len(value.shape) > 0 else None


def _kind(value: Any) -> str:
    try:
        return str(keras.backend.standardize_dtype(value.dtype))
    except ValueError:
        return ""  # texts
