"""Descriptors of arrays that lie in host memory: torch tensors, NumPy arrays, buffers."""

import ctypes
from typing import Any, Optional, Tuple

from tocsin.library import abi

_NUMPY_CODES = {"f4": 1, "f8": 2, "f2": 3, "i1": 10, "i2": 11, "i4": 12, "i8": 13,
                "u1": 20, "u2": 21, "u4": 22, "u8": 23, "b1": 30, "c8": 31, "c16": 32}


def dtype_code(dtype: Any) -> Optional[int]:
    """The library's code of a framework's dtype or of its name; None when it has none."""
    return abi.DTYPES.get(str(dtype).rsplit(".", 1)[-1])


def fill(tensor: abi.Tensor, identity: int, pointer: int, dtype: int, shape: Tuple[int, ...],
         strides: Optional[Tuple[int, ...]]) -> Any:
    """Fills a descriptor; returns what must live as long as it is used."""
    tensor.size = ctypes.sizeof(abi.Tensor)
    tensor.id = identity
    tensor.data = pointer
    tensor.dtype = dtype
    tensor.ndim = len(shape)
    extents = abi.int64_array(list(shape))
    tensor.shape = ctypes.cast(extents, ctypes.POINTER(ctypes.c_int64))
    if strides is None:
        tensor.strides = None
        return extents
    steps = abi.int64_array(list(strides))
    tensor.strides = ctypes.cast(steps, ctypes.POINTER(ctypes.c_int64))
    return extents, steps


def describe(identity: int, value: Any) -> Optional[Tuple[abi.Tensor, Any]]:
    """(descriptor, what keeps it alive), or None when the value has no memory that can be read."""
    tensor = abi.Tensor()
    if hasattr(value, "data_ptr"):
        if getattr(value, "is_sparse", False):
            value = value.coalesce().values()
            tensor.flags = abi.FLAG_SPARSE  # of stored rows alone
        if hasattr(value, "is_neg") and value.is_neg():
            value = value.resolve_neg()  # its elements have the other sign than its memory
        dtype = dtype_code(value.dtype)
        if dtype is None or value.device.type != "cpu":
            return None
        strides = None if value.is_contiguous() else tuple(value.stride())
        keep = fill(tensor, identity, value.data_ptr(), dtype, tuple(value.shape), strides)
        return tensor, (value, keep)
    if not hasattr(value, "__array_interface__") and hasattr(value, "__array__"):
        value = value.__array__()  # of JAX and TensorFlow: on the host a view, else a copy
    interface = getattr(value, "__array_interface__", None)
    if interface is None:
        return None
    kind = interface["typestr"]
    # Half types that NumPy does not have (bfloat16) have a name, and no kind.
    dtype = _NUMPY_CODES.get(kind[1:]) or dtype_code(getattr(value, "dtype", None))
    if dtype is None or kind[0] == ">":
        return None
    strides = interface.get("strides")
    size = int(kind[2:])
    if strides is not None:
        if any(step % size for step in strides):
            return None  # elements that do not lie on their own grid
        strides = tuple(step // size for step in strides)
    keep = fill(tensor, identity, interface["data"][0], dtype, tuple(interface["shape"]), strides)
    return tensor, (value, keep)
