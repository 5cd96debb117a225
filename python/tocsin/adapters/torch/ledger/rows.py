"""Which samples of a loss call the ledger looks at, and what is told of any kind of loss: pairs and spreads."""

from typing import Any, Dict, NamedTuple, Optional, Tuple

from . import host as host

MAX_SAMPLES = 512  # of one call
MAX_NUMBERS = 1 << 20  # of its outputs, but for
MIN_SAMPLES = 64
MAX_CANDIDATES = 1 << 13  # places among which those are looked for that count
TIE = host.TIE  # of a pair's exchanged loss: constant outputs differ by rounding
_FAR = host.FAR  # in the place of an infinite loss, when a pair is compared


class Rows(NamedTuple):
    """``index``: places among all, None: all of them. ``mask``: 1 for each of ``index`` that counts, None: all do; there
    are ``count`` of these, and the first are these. ``half``: so many pairs (i, i + half); ``pairs``: 1 for each of those
    that are pairs, None: all. A number or a tensor: on a device nobody asks how many count."""

    index: Any
    mask: Any
    count: Any
    slots: int
    pairs: Any
    half: Any


def most(width: int) -> int:
    """Samples with outputs of so many numbers that are looked at."""
    return max(MIN_SAMPLES, min(MAX_SAMPLES, MAX_NUMBERS // max(width, 1)))


def rows_that_count(torch: Any, valid: Any, width: int, pairing: bool) -> Optional[Rows]:
    """Of ``valid``, one truth for each place. None: no place counts, as far as that is known without waiting."""
    places, limit = valid.shape[0], most(width)
    apart = -(-places // MAX_CANDIDATES)
    some = valid[::apart] if apart > 1 else valid
    if valid.is_cuda:
        return _rows_on_device(torch, some, apart, min(limit, some.shape[0]), pairing)
    index = None
    if not bool(some.all()):
        index = some.nonzero()[:, 0]
        if index.shape[0] == 0:
            return None
    count = places if index is None and apart == 1 else some.shape[0] if index is None else index.shape[0]
    if count > limit:
        chosen = torch.arange(limit).mul_(count).div_(limit, rounding_mode="floor")
        index, count = chosen if index is None else index[chosen], limit
    elif index is None and apart > 1:
        index = torch.arange(count)
    if index is not None and apart > 1:
        index = index * apart
    return Rows(index, None, count, count, None, count // 2 if pairing else 0)


def _rows_on_device(torch: Any, some: Any, apart: int, slots: int, pairing: bool) -> Rows:
    """The same without knowing how many count: those that do come first, by their order."""
    candidates, device = some.shape[0], some.device
    places = torch.arange(candidates, device=device)
    order = torch.sort(torch.where(some, places, places + candidates))[0]
    there = some.sum()
    slot = places[:slots]
    mask = slot < there
    chosen = order[torch.where(there > slots, (slot * there).div(slots, rounding_mode="floor"), slot)]
    chosen = torch.where(mask, chosen, chosen[:1]) % candidates  # none counts: any
    count = there.clamp(max=slots)
    half = count.div(2, rounding_mode="floor")
    pairs = slot[:slots // 2]
    if not pairing:
        half = half * 0
    return Rows(chosen * apart, mask, count, slots, pairs < half, half)


def rows_of(places: int, width: int) -> Tuple[int, int]:
    """(every so many-th of so many places, how many these are), where all count."""
    apart = -(-places // most(width))
    return apart, -(-places // apart)


def partner(torch: Any, rows: Rows) -> Tuple[Any, Any]:
    """Indices of the first and of the second ones of pairs; on a host slices."""
    if rows.pairs is None:
        return slice(0, rows.half), slice(rows.half, 2 * rows.half)
    first = torch.arange(rows.pairs.shape[0], device=rows.pairs.device)
    return first, (first + rows.half).clamp(max=rows.slots - 1)


def compare(torch: Any, straight: Any, crossed: Any, differ: Any) -> Dict[str, Any]:
    """Of pairs: their losses with their own targets and exchanged, and whether the targets differ."""
    np = host.numpy_of(straight)
    if np is not None:
        return host.compare(np, straight.numpy(), crossed.numpy(), differ.numpy())
    differ = differ & (straight == straight) & (crossed == crossed)
    near, far = straight.clamp(max=_FAR), crossed.clamp(max=_FAR)
    changed = differ & ((far - near).abs() > TIE * far.abs())
    wins = changed & (near < far)
    known = differ & (near < _FAR) & (far < _FAR)
    nothing = torch.zeros((), dtype=straight.dtype, device=straight.device)
    return {"pairs": changed.sum(), "wins": wins.sum(),
            "straight": torch.where(known, straight, nothing).sum(dtype=torch.float64),
            "crossed": torch.where(known, crossed, nothing).sum(dtype=torch.float64)}


def spread(torch: Any, values: Any, mask: Any, count: Any) -> Any:
    """The mean over columns of the variance over the rows that count, times their number."""
    np = None if mask is not None else host.numpy_of(values)
    if np is not None:
        return host.spread(np, values.numpy())
    if mask is None:
        apart = values - values.mean(0)
        return (apart * apart).sum(dtype=torch.float64) / max(values.shape[1], 1)
    weight = mask.to(values.dtype)
    apart = values - values[:1]  # of large numbers that are alike the squares say nothing
    number = weight.sum().clamp(min=1)
    mean, square = weight @ apart / number, weight @ (apart * apart) / number
    return (square - mean * mean).clamp(min=0).mean() * count
