"""Statistics of many tensors by plain PyTorch operations, where there is no Triton: small tensors together.

What is to be measured becomes matrices of one block to a row: large tensors are read where they lie, small
ones and remainders are copied side by side. Every statistic is then one operation over all blocks, and the
blocks of a tensor are joined on the device. The number of launches depends on the amount of data (some 80 for
each 8 Mi elements), not on the number of tensors; it is none of the handful that ``torch_triton`` needs.
"""

import math
import sys
import warnings
from typing import Any, Dict, Iterator, List, Tuple

from .torch_layout import COLUMNS, COMPLEX, WIDE_FROM
from .torch_staging import Flight

ROW = 4096  # elements that are added up before they are joined in binary64
MATRIX = 1 << 23  # elements of one matrix: 32 MiB in binary32, and some 100 MiB more for what is computed
_BIG = 2.0 ** 53


class PackedStatistics:
    """Of one device. As ``TritonStatistics``."""

    name = "torch"

    def __init__(self, device: Any) -> None:
        self._device = device

    def __call__(self, runs: List[Tuple[Any, int]], flight: Flight) -> Any:
        torch = sys.modules["torch"]
        flats = [(number, _numbers(torch, tensor.reshape(-1), kind), kind)
                 for number, (tensor, kind) in enumerate(runs)]
        blocks: List[Any] = []
        owners: List[int] = []
        sizes: List[int] = []
        for matrix, who, lengths in _matrices(torch, flats):
            blocks.append(_of_rows(torch, matrix, lengths, flight))
            owners += who
            sizes += lengths
        both = flight.upload(torch.tensor(owners + sizes))
        return _joined(torch, torch.cat(blocks), both[:len(owners)], both[len(owners):].double(), len(runs))


def _numbers(torch: Any, flat: Any, kind: int) -> Any:
    """Of rare types the numbers that are added, of all others the elements: what can be joined."""
    if kind in COMPLEX:
        parts = torch.view_as_real(flat.resolve_conj()).double()
        return torch.where(torch.isnan(parts).any(1), math.nan, torch.hypot(parts[:, 0], parts[:, 1]))
    common = flat.dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64)
    return flat if common else _as(torch, flat, kind >= WIDE_FROM)


def _matrices(torch: Any, flats: List[Tuple[int, Any, int]]) -> Iterator[Tuple[Any, List[int], List[int]]]:
    """(matrix of ROW columns, the tensor of each row, its elements; beyond them there are zeros)."""
    packed: Dict[Any, List[Tuple[int, Any]]] = {}
    for number, flat, kind in flats:
        wide = kind >= WIDE_FROM
        whole = flat.numel() // ROW * ROW
        if whole < 16 * ROW:
            whole = 0
        for begin in range(0, whole, MATRIX):
            end = min(begin + MATRIX, whole)
            rows = (end - begin) // ROW
            yield _as(torch, flat[begin:end], wide).reshape(rows, ROW), [number] * rows, [ROW] * rows
        if whole < flat.numel():
            packed.setdefault((flat.dtype, wide), []).append((number, flat[whole:]))
    for (_, wide), pieces in packed.items():
        batch: List[Tuple[int, Any]] = []
        elements = 0
        for number, piece in pieces:
            rounded = -(-piece.numel() // ROW) * ROW
            if batch and elements + rounded > MATRIX:
                yield _side_by_side(torch, batch, wide)
                batch, elements = [], 0
            batch.append((number, piece))
            elements += rounded
        yield _side_by_side(torch, batch, wide)


def _as(torch: Any, values: Any, wide: bool) -> Any:
    return values.to(torch.float64 if wide else torch.float32)


def _side_by_side(torch: Any, pieces: List[Tuple[int, Any]], wide: bool) -> Tuple[Any, List[int], List[int]]:
    zeros = torch.zeros(ROW, dtype=pieces[0][1].dtype, device=pieces[0][1].device)
    parts: List[Any] = []
    owners: List[int] = []
    lengths: List[int] = []
    for number, piece in pieces:
        count = piece.numel()
        rows = -(-count // ROW)
        parts.append(piece)
        if count < rows * ROW:
            parts.append(zeros[:rows * ROW - count])
        owners += [number] * rows
        lengths += [ROW] * (rows - 1) + [count - (rows - 1) * ROW]
    return _as(torch, torch.cat(parts), wide).reshape(-1, ROW), owners, lengths


def _of_rows(torch: Any, matrix: Any, lengths: List[int], flight: Flight) -> Any:
    """COLUMNS of each row."""
    double = torch.float64
    padded = any(length != ROW for length in lengths)
    total = matrix.sum(1, dtype=double)
    if padded:
        n = flight.upload(torch.tensor(lengths))
        real = torch.arange(ROW, device=matrix.device).unsqueeze(0) < n.unsqueeze(1)
        low = torch.where(real, matrix, math.inf).amin(1)
        high = torch.where(real, matrix, -math.inf).amax(1)
        zero = ((matrix == 0) & real).sum(1)
        n = n.to(double)
    else:
        real, n = None, float(ROW)
        low, high = matrix.amin(1), matrix.amax(1)
        zero = (matrix == 0).sum(1)
    apart = matrix.double() - (total / n).unsqueeze(1)
    if real is not None:
        apart = torch.where(real, apart, 0.0)
    size = matrix.abs()
    return torch.stack([
        total, _squares(torch, matrix), _squares(torch, apart), size.sum(1, dtype=double),
        low.to(double), high.to(double),
        torch.isnan(matrix).sum(1).to(double), torch.isposinf(matrix).sum(1).to(double),
        torch.isneginf(matrix).sum(1).to(double), zero.to(double), (matrix < 0).sum(1).to(double),
        (size >= _BIG).sum(1).to(double)], 1)


def _squares(torch: Any, matrix: Any) -> Any:
    return torch.linalg.vector_norm(matrix, 2, 1, dtype=torch.float64).square()


def _joined(torch: Any, blocks: Any, owners: Any, sizes: Any, tensors: int) -> Any:
    """Rows of one tensor, by Chan, Golub and LeVeque (1979) around the mean of all."""
    def added(values: Any) -> Any:
        return torch.zeros((tensors, *values.shape[1:]), dtype=values.dtype, device=values.device) \
            .index_add_(0, owners, values)

    place = {name: number for number, name in enumerate(COLUMNS)}
    sums = added(torch.cat([blocks, sizes.unsqueeze(1)], 1))
    count = sums[:, -1]
    mean = sums[:, place["sum"]] / count
    apart = blocks[:, place["sum"]] / sizes - mean[owners]
    m2 = added(blocks[:, place["m2"]] + sizes * apart * apart)
    low = _extreme(torch, blocks[:, place["min"]], owners, tensors, "amin", math.inf)
    high = _extreme(torch, blocks[:, place["max"]], owners, tensors, "amax", -math.inf)
    finite = sums[:, place["nan"]] + sums[:, place["posinf"]] + sums[:, place["neginf"]] == 0
    m2 = torch.where(torch.isnan(m2), math.inf, m2)  # of finite numbers: their squares overflow
    m2 = torch.where(low == high, 0.0, m2)
    out = sums[:, :-1].clone()
    out[:, place["m2"]] = torch.where(finite, m2, math.nan)
    some_nan = sums[:, place["nan"]] > 0
    out[:, place["min"]] = torch.where(some_nan, math.nan, low)
    out[:, place["max"]] = torch.where(some_nan, math.nan, high)
    return out


def _extreme(torch: Any, values: Any, owners: Any, tensors: int, which: str, start: float) -> Any:
    out = torch.full((tensors,), start, dtype=values.dtype, device=values.device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch 1 calls it beta, once
        return out.scatter_reduce_(0, owners, values, which)
