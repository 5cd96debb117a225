"""Where the elements of a PyTorch tensor lie on its device: one run of memory, whatever its strides.

No statistic of the columns depends on the order of elements, so a dense tensor is read as it lies, however
its dimensions are permuted, and a dimension that is only repeated is not read again.
"""

import sys
from typing import Any, Tuple

from tocsin.library import vocabulary

# What a device leaves of each tensor, binary64; the rest of the row is known here. `big`: elements of 2^53
# or more, which makes sums of 64-bit integers approximate.
COLUMNS = ("sum", "sumsq", "m2", "abs_sum", "min", "max", "nan", "posinf", "neginf", "zero", "negative", "big")

MAX_GATHERED = 64 << 20  # bytes of a view that is copied because its elements lie apart

# Kinds of elements, in the order of torch_kernels.py; those from WIDE_FROM on are read in binary64.
_NAMES = ("f32", "f16", "bf16", "i8", "u8", "i16", "u16", "bool", "f8_e4m3", "f8_e5m2",
          "f64", "i32", "u32", "i64", "u64", "c64", "c128")
WIDE_FROM = _NAMES.index("f64")
COMPLEX = frozenset((_NAMES.index("c64"), _NAMES.index("c128")))
LONG = frozenset((_NAMES.index("i64"), _NAMES.index("u64")))
KINDS = {vocabulary.DTYPES[name]: kind for kind, name in enumerate(_NAMES)}  # by the library's code


class NotRead(Exception):
    """A tensor whose elements are not read; the text is the reason under which it is counted."""


def run_of(tensor: Any) -> Tuple[Any, int]:
    """(a contiguous tensor of the elements of ``tensor``, how often each occurs). Launches nothing, but for
    views with gaps, which are copied, and for sparse tensors with repeated indices.

    :raises NotRead: ``view_too_large``, ``no_memory`` (a wrapper, or storage that was given back), ``layout``.
    """
    if tensor.is_sparse:
        tensor = tensor.coalesce().values()
    elif tensor.layout is not sys.modules["torch"].strided:
        raise NotRead("layout")
    if tensor.is_neg():  # a view whose elements have the other sign than its memory
        tensor = tensor.resolve_neg()
    repeats = 1
    if not tensor.is_contiguous():
        tensor, repeats = _joined(tensor)
    if tensor.numel() and not _has_memory(tensor):
        raise NotRead("no_memory")
    return tensor, repeats


def waits(tensor: Any) -> bool:
    """Reading it waits for its device: a sparse tensor's repeated indices are counted there."""
    return bool(tensor.is_sparse) and not tensor.is_coalesced()


def _joined(tensor: Any) -> Tuple[Any, int]:
    dimensions, repeats = [], 1
    for extent, stride in zip(tensor.shape, tensor.stride()):
        if extent == 0:
            return tensor.new_empty(0), 1
        if stride == 0:
            repeats *= extent
        elif extent > 1:
            dimensions.append((stride, extent))
    dimensions.sort()
    count, dense = 1, True
    for stride, extent in dimensions:
        dense = dense and stride == count
        count *= extent
    if dense:
        return tensor.as_strided((count,), (1,)), repeats
    if count * tensor.element_size() > MAX_GATHERED:
        raise NotRead("view_too_large")
    view = tensor.as_strided([extent for _, extent in dimensions], [stride for stride, _ in dimensions])
    return view.contiguous().reshape(-1), repeats


def _has_memory(tensor: Any) -> bool:
    """Wrappers have no memory of their own, and a sharded parameter's may have been given back: reading
    there would end the process."""
    if tensor.data_ptr() == 0:
        return False
    offset = tensor.storage_offset()
    if offset == 0:
        return True
    storage = getattr(tensor, "untyped_storage", None) or getattr(tensor, "storage")
    return bool(storage().nbytes() >= (offset + tensor.numel()) * tensor.element_size())
