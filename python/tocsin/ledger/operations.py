"""The operations that the arithmetic of the ledger is written in, with NumPy. JAX and Keras bring tables of their own."""

from typing import Any


class Operations:
    """NumPy. Functions of the same name that JAX and Keras have are called through ``self.module``."""

    floats = "float64"
    fixed = False  # whether all batches must have one form, whatever their size

    def __init__(self) -> None:
        import numpy

        self.module = numpy

    def cast(self, value: Any, dtype: str) -> Any:
        return self.module.asarray(value).astype(dtype)

    def segment_sum(self, values: Any, ids: Any, count: int) -> Any:
        return self.module.bincount(ids, weights=values, minlength=count)[:count]

    def like(self, flat: Any, values: Any) -> Any:
        """In the shape of ``values``."""
        return self.module.reshape(flat, self.module.shape(values))

    def is_whole(self, value: Any) -> bool:
        return str(value.dtype).startswith(("int", "uint"))

    def is_floating(self, value: Any) -> bool:
        return str(value.dtype).startswith(("float", "bfloat"))

    # ---- words of 32 bits (batch.py)

    def has_words(self, value: Any) -> bool:
        return value.dtype.kind in "fiub"

    def is_byte(self, value: Any) -> bool:
        return bool(value.dtype.itemsize == 1)

    def count(self, value: Any) -> Any:
        """Rows, where they are not known before."""
        return value.shape[0]

    def words(self, value: Any) -> Any:
        """(rows, words) that stand for the elements; one for both zeros."""
        numpy = self.module
        if value.dtype.kind != "f":
            return value.astype("int64").astype("uint32")
        value = value.astype("float32") if value.dtype.itemsize not in (4, 8) else value
        return numpy.ascontiguousarray(value + value.dtype.type(0)).view("uint32")

    def whole(self, value: Any) -> Any:
        """As numbers of the kind that words are."""
        return self.module.asarray(value, "uint32")

    def low(self, value: Any) -> Any:
        """Their last 32 bits."""
        return value & self.module.uint32(0xFFFFFFFF)

    def times(self, value: Any, factor: Any) -> Any:
        return value * factor

    def shifted(self, value: Any, bits: int) -> Any:
        return value >> self.module.uint32(bits)

    def total(self, value: Any) -> Any:
        """Of each row."""
        return value.sum(1, dtype="uint32")
