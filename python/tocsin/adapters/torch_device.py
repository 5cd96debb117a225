"""PyTorch tensors on a device: statistics and copies that nobody waits for.

Like all of the package it takes torch from ``sys.modules`` and never imports it.
"""

import sys
from typing import Any, Callable, List, Optional, Tuple

from .. import _client


def copy_of_scalar(tensor: Any) -> Tuple[Any, Any]:
    """(a pinned copy of one element, the event after which it holds the value)."""
    torch = sys.modules["torch"]
    kept = torch.empty((), dtype=tensor.dtype, pin_memory=True)
    kept.copy_(tensor.detach().reshape(()), non_blocking=True)
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(tensor.device))
    return kept, event


def capturing() -> bool:
    """A CUDA graph is being captured: nothing may be launched or waited for."""
    cuda = sys.modules["torch"].cuda
    asked = getattr(cuda, "is_current_stream_capturing", None)
    return bool(asked is not None and cuda.is_initialized() and asked())


def device_rows(named: List[Tuple[int, Any, int]],
                scaling: Optional[Any] = None) -> Tuple[Callable[[], Any], Any]:
    """Statistics of (id, tensor, row flags) on the device that holds the tensors: launches, copies to
    pinned memory, waits for nothing. Returns (a function that gives the rows, the event after which it
    may be called). Rows flagged as divided by the loss scale are divided by that of ``scaling``.

    Plain torch operations, about a dozen launches per tensor; sums are in double precision on the
    device, no copy of a tensor in another precision is made except for half types' ``m2``.
    """
    torch = sys.modules["torch"]
    columns = []
    with torch.no_grad():
        for _, tensor, _ in named:
            columns.append(_device_columns(torch, tensor.detach()))
        if scaling is not None:
            columns.append(_scaling_columns(torch, scaling, columns[0]))
        stacked = torch.stack(columns)
        on_device = stacked.is_cuda
        host = torch.empty(stacked.shape, dtype=stacked.dtype, pin_memory=on_device)
        host.copy_(stacked, non_blocking=on_device)
    event = None
    if on_device:
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(stacked.device))
    counts = [(identity, tensor.numel(), flags) for identity, tensor, flags in named]

    def rows() -> Any:
        array = (_client.Row * len(counts))()
        lines = host.tolist()
        divisor, skipped = lines.pop()[:2] if scaling is not None else (1.0, 0.0)
        for row, (identity, count, flags), values in zip(array, counts, lines):
            row.name, row.count = identity, count
            row.sum, row.sumsq, row.m2, row.abs_sum, row.min, row.max = values[:6]
            row.nan, row.posinf, row.neginf, row.zero, row.negative = (int(v) for v in values[6:])
            if flags & _client.FLAG_UNSCALED:
                _divide(row, divisor)
                flags |= _client.FLAG_SKIPPED if skipped else 0
            row.meta = flags
        return array

    return rows, event


def _divide(row: _client.Row, divisor: float) -> None:
    if divisor == 1.0:
        return
    for column in ("sum", "abs_sum", "min", "max"):
        setattr(row, column, getattr(row, column) / divisor)
    for column in ("sumsq", "m2"):
        setattr(row, column, getattr(row, column) / divisor / divisor)


def _scaling_columns(torch: Any, scaling: Any, like: Any) -> Any:
    """One more line of the matrix: what the others are divided by, and whether the update is skipped."""
    line = torch.zeros_like(like)
    for place, (value, otherwise) in enumerate(((scaling.scale, 1.0), (scaling.found_inf, 0.0))):
        if value is None:
            line[place] = otherwise
        else:
            line[place].copy_(value.reshape(()), non_blocking=True)
    return line


def _device_columns(torch: Any, tensor: Any) -> Any:
    double = torch.float64
    if tensor.is_sparse:
        tensor = tensor.coalesce().values()
    if tensor.numel() == 0:
        return torch.zeros(11, dtype=double, device=tensor.device)
    flat = tensor.reshape(-1)
    if not flat.is_floating_point():
        flat = flat.to(double)
    wide = flat.float() if flat.element_size() < 4 else flat
    norm = torch.linalg.vector_norm
    low, high = torch.aminmax(wide)
    count = float(wide.numel())
    return torch.stack([
        wide.sum(dtype=double),
        norm(wide, 2, dtype=double).square(),
        torch.var(wide, unbiased=False).to(double) * count,
        norm(wide, 1, dtype=double),
        low.to(double),
        high.to(double),
        torch.isnan(wide).sum().to(double),
        torch.isposinf(wide).sum().to(double),
        torch.isneginf(wide).sum().to(double),
        (wide == 0).sum().to(double),
        (wide < 0).sum().to(double),
    ])
