"""Fingerprints of the samples of a batch, made where it lies: sums of whole numbers under a salt that the process draws and keeps.

A zero adds nothing. So a text has one fingerprint, however far it is padded with zeros.
"""

import secrets
import sys
from typing import Any, Dict, List, Optional

import numpy

MOST_WORDS = 256  # of a sample: of whole numbers the first, of others evenly spaced
MOST_TENSORS = 2
MOST_TARGETS = 16
MOST_NUMBERS = 1 << 17  # of a batch
_MIX: Any = 0x9E3779B97F4A7C15 - (1 << 64)


class Salt:
    """Odd numbers, one for each word of a sample: of NumPy, and on each device where they are asked for."""

    def __init__(self) -> None:
        numbers = [(secrets.randbits(64) | 1) - (1 << 63) for _ in range(MOST_TENSORS * MOST_WORDS + MOST_TARGETS)]
        self.host = numpy.array(numbers, dtype=numpy.int64)
        self._at: Dict[Any, Any] = {}

    def on(self, device: Any) -> Any:
        if device not in self._at:
            made = sys.modules["torch"].from_numpy(self.host)
            self._at[device] = made.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else made
        return self._at[device]


def fingerprints(inputs: List[Any], target: Any, salt: Salt) -> Optional[Any]:
    """(rows,) of 64 bits: an array of NumPy, or a tensor on the device of ``inputs``. None: to read them would take a copy of all
    of the batch."""
    torch = sys.modules["torch"]
    rows, host = int(inputs[0].shape[0]), inputs[0].device.type == "cpu"
    words = sum(min(int(one.numel()) // max(rows, 1), MOST_WORDS) for one in inputs)
    apart = max(1, -(-rows * words // MOST_NUMBERS))
    numbers = salt.host if host else salt.on(inputs[0].device)
    out = None
    for at, (tensor, most) in enumerate([*((one, MOST_WORDS) for one in inputs), (target, MOST_TARGETS)]):
        some = _some(tensor.detach()[::apart] if apart > 1 else tensor.detach(), most)
        if some is None:
            return None
        bits = _host_words(some) if host else _words(torch, some)
        begin = at * MOST_WORDS if at < len(inputs) else MOST_TENSORS * MOST_WORDS
        bits = bits * _MIX
        bits ^= bits >> 29
        bits *= numbers[begin:begin + bits.shape[1]]
        mine = bits.sum(1)
        out = mine if out is None else out + mine
    return out


def _some(tensor: Any, most: int) -> Optional[Any]:
    """(rows, elements)."""
    if tensor.dim() == 4 and not tensor.is_contiguous() and not tensor[0].is_contiguous():
        tensor = tensor.permute(0, 2, 3, 1)  # images with their channels last
    if tensor.is_complex() or (tensor.dim() > 2 and not tensor.is_contiguous() and not tensor[0].is_contiguous()):
        return None
    flat = tensor.reshape(tensor.shape[0], -1) if tensor.dim() > 1 else tensor[:, None]
    width = int(flat.shape[1])
    if width <= most:
        return flat
    spread = flat.is_floating_point() or flat.element_size() == 1
    return flat[:, ::-(-width // most)] if spread else flat[:, :most]


def _words(torch: Any, some: Any) -> Any:
    """Whole numbers of 64 bits that stand for the elements; one for both zeros."""
    if not some.is_floating_point():
        return some.long()
    some = some if some.dtype is torch.float64 else some.float()
    return (some + 0).contiguous().view(torch.int64 if some.dtype is torch.float64 else torch.int32).long()


def _host_words(some: Any) -> Any:
    """The same."""
    if some.is_floating_point() and some.element_size() < 4:
        some = some.float()
    found = some.numpy()
    if found.dtype.kind == "f":
        found = numpy.ascontiguousarray(found + found.dtype.type(0)).view(numpy.int64 if found.itemsize == 8 else numpy.int32)
    return found.astype(numpy.int64)
