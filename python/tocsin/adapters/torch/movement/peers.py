"""How far each tensor moves beside tensors of its role (docs/ledger.md, ``ledger/movement/slow``), and whether gradients have a direction.

Of the elements that are looked at three sums are kept: of the ways, of the gradients and of their squares. When the looks have doubled, they say
per tensor how far it went, as a share of its size. Elements that never had a gradient (rows of tables) do not count. Nothing is waited for.
"""

import math
import re
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from tocsin.loop.marks import Marks

FIRST = 16  # looks at which it is told first; then whenever they have doubled
SEEN = 4  # looks at which what is judged at the first word had a gradient already
TOLD = 0.01  # of the median of its role, below which a tensor is told
ALIKE, OTHERS = 3, 4  # tensors that stand at the same place of their layers; or any others with as many dimensions
TOUCHED = 0.5  # of its elements had a gradient
START = 10.0  # of its first step, that a tensor is larger: below, it began at zero
LEAST = 1e-8  # of its size, that the median goes per update: below, nothing moves
MOST = 8  # names
_DIGITS = re.compile(r"\d+")


class Peers:
    """Of the chosen tensors of one optimizer."""

    def __init__(self, marks: Marks, torch: Any, chosen: Sequence[Tuple[Any, int]], sizes: Sequence[int], device: Any) -> None:
        """``chosen``: (parameter, number of its group); ``sizes``: how many of its elements are looked at."""
        self._marks, self.chosen, self.sizes = marks, chosen, sizes
        self._ids = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(list(sizes))).to(device)
        self._looks, self._since = 0, 0
        self._next = FIRST
        self._ways, self._gradients, self._squares = (torch.zeros(sum(sizes), device=device) for _ in range(3))
        self._first = torch.zeros(len(sizes), device=device)  # Σ of squares of each tensor's first step
        self._had = torch.zeros(len(sizes), device=device)  # elements with a gradient at the word before
        self._slow: List[str] = []  # told at the newest word

    def add(self, torch: Any, gradient: Any, way: Any, moved: Any) -> None:
        """Of one update: the gradient, its way, and what changed. One with a number that is not finite counts as none moved: a scaler
        leaves it out. Nobody waits for a device to know."""
        fine = torch.isfinite(gradient.sum() + way.sum() + moved.sum())
        gradient, way, moved = (torch.where(fine, one, torch.zeros_like(one)) for one in (gradient, way, moved))
        self._ways.add_(way)
        self._gradients.add_(gradient)
        self._squares.addcmul_(gradient, gradient)
        self._looks += 1
        self._since += 1
        if self._looks <= 2 or self._looks == SEEN or self._looks == self._next:
            self._first = torch.where(self._first > 0, self._first, self.of_each(torch, moved * moved * (gradient != 0)))
        if self._looks == SEEN:
            self._had = self.of_each(torch, (self._squares > 0).float())

    @property
    def due(self) -> bool:
        return self._looks >= self._next

    def tell(self, torch: Any, held: Any, rate: Optional[float], named: Callable[[], List[Tuple[str, Any]]]) -> None:
        """``held``: the elements now."""
        self._next = 2 * self._looks
        touched = (self._squares > 0).float()
        having = self.of_each(torch, touched)
        numbers = torch.stack([self.of_each(torch, self._ways * self._ways * touched), self.of_each(torch, held * held * touched), self._first,
                               torch.minimum(self._had, having), self.of_each(torch, self._gradients * self._gradients),
                               self.of_each(torch, self._squares)])
        updates, self._since = self._since, 0
        self._had = having
        for sums in (self._ways, self._gradients, self._squares):
            sums.zero_()
        names = self.names(named)
        keys = [(name, group, parameter.dim()) for name, (parameter, group) in zip(names, self.chosen)]
        self._marks.tell_found(numbers, lambda found: self._read(found.tolist(), keys, updates, rate))

    def names(self, named: Callable[[], List[Tuple[str, Any]]]) -> List[Optional[str]]:
        """Of the tensors, in their order."""
        known = {id(one): name for name, one in named()}
        return [known.get(id(parameter)) for parameter, _ in self.chosen]

    def of_each(self, torch: Any, values: Any) -> Any:
        """Sums over the elements of each tensor."""
        return torch.zeros(len(self.sizes), device=values.device).index_add_(0, self._ids, values)

    def _read(self, numbers: List[List[float]], keys: Sequence[Tuple[Optional[str], int, int]], updates: int, rate: Optional[float]) -> Dict[str, float]:
        if not all(math.isfinite(one) for row in numbers for one in row):
            return {}  # weights that are not finite are told of elsewhere
        moved, size, first, touched, summed, squares = numbers
        out: Dict[str, float] = {"directed_updates": float(updates)}
        if sum(squares) > 0:
            out["directed"] = sum(summed) / sum(squares)
        went = {at: (moved[at] / size[at]) ** 0.5 for at in range(len(keys)) if keys[at][0] is not None and moved[at] > 0
                and touched[at] >= TOUCHED * self.sizes[at] and size[at] > START ** 2 * first[at]}
        out["compared"] = 0.0
        shares: Dict[str, float] = {}
        for at in went:
            median = _median(went, keys, at)
            if median is None or (rate is not None and median * rate / updates < LEAST):
                continue
            out["compared"] += 1
            name = str(keys[at][0])
            if went[at] < TOLD * median or name in self._slow:
                shares[name] = went[at] / median
        told = sorted(shares, key=lambda name: shares[name])[:MOST]
        for name in self._slow:
            if name not in told:
                out["slow/" + name] = shares.get(name, 1.0)
        out.update({"slow/" + name: shares[name] for name in told})
        self._slow = [name for name in told if shares[name] < TOLD]
        return out


def _median(went: Dict[int, float], keys: Sequence[Tuple[Optional[str], int, int]], at: int) -> Optional[float]:
    """Of its role. The lower one, so that of two kinds the faster is none's measure."""
    place = _place(keys[at])
    for least, same in ((ALIKE, lambda other: _place(keys[other]) == place), (OTHERS, lambda other: keys[other][1:] == keys[at][1:])):
        role = sorted(value for other, value in went.items() if same(other))
        if len(role) >= least:
            return role[(len(role) - 1) // 2]
    return None


def _place(key: Tuple[Optional[str], int, int]) -> Tuple[str, int, int]:
    return _DIGITS.sub("", str(key[0])), key[1], key[2]
