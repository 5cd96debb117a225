"""Embeddings of a PyTorch job, for the ledger: whether the rows of a batch still point into different directions.

An embedding is what a script hands to ``normalize`` along its rows, to ``cosine_embedding_loss`` or as the anchor to a triplet loss:
two dimensions, 8 rows and 8 columns at least, computed with gradients. At most 128 rows of a call are looked at, evenly spaced, at
each of the first 16 updates and at 8 of each doubling after: some 145 times in a million.
"""

from math import isfinite
from time import thread_time
from typing import Any, Dict, List, Optional, Tuple

MAX_ROWS = 128
LEAST = 8  # rows, and columns
MAX_CALLS = 4  # of one function in a step, by their order
_FIRST = {"normalize": "input", "cosine_embedding_loss": "input1", "triplet_margin_loss": "anchor", "triplet_margin_with_distance_loss": "anchor"}
NAMES = tuple(_FIRST)


class Embedding:
    """Rows that a function was given, as the ledger asks for them."""

    def __init__(self, output: Any) -> None:
        self.output = output

    def tensors(self) -> List[Any]:
        return [self.output]


class EmbeddingCall:
    """The k-th call of a function in a step: its name, and what goes out of it."""

    def __init__(self, name: str) -> None:
        self.name = f"embedding/{name}"
        self.ids: Dict[str, int] = {}

    def rows(self, values: Dict[str, float], step: Any) -> List[Tuple[str, float]]:
        del step
        return list(values.items()) if all(isfinite(value) for value in values.values()) else []

    def take_not_finite(self) -> int:
        return 0


class Embeddings:
    """Of one ledger: which calls are looked at."""

    def __init__(self) -> None:
        self.measured = 0
        self.seconds = 0.0
        self._calls: Dict[str, EmbeddingCall] = {}
        self._step = -1
        self._number: Dict[str, int] = {}  # of this step, by function

    def call(self, name: str, step: int) -> Optional[EmbeddingCall]:
        """None: it is not looked at."""
        if step % (1 << max(0, step.bit_length() - 4)):
            return None
        if step != self._step:
            self._step, self._number = step, {}
        number = self._number[name] = self._number.get(name, 0) + 1
        if number > MAX_CALLS:
            return None
        full = name if number == 1 else f"{name}.{number}"
        return self._calls.setdefault(full, EmbeddingCall(full))

    def took(self, began: float) -> None:
        self.measured += 1
        self.seconds += thread_time() - began


def embedding_of(name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Embedding]:
    """None: what the function was given is no embedding."""
    rows = args[0] if args else kwargs[_FIRST[name]]
    if name == "normalize":
        exponent = args[1] if len(args) > 1 else kwargs.get("p", 2.0)
        if exponent != 2 or (args[2] if len(args) > 2 else kwargs.get("dim", 1)) not in (1, -1):
            return None
    if rows.dim() != 2 or min(rows.shape) < LEAST or rows.is_leaf or not rows.requires_grad or not rows.is_floating_point():
        return None
    return Embedding(rows)


def sums_of_embedding(torch: Any, given: Embedding) -> Dict[str, Any]:
    """Means over the rows that are looked at, times their number: ``alike``, the cosine of two rows, over all pairs; ``farthest``, the
    least cosine of a row with the mean direction; ``directions``, the participation ratio (tr G)² / ‖G‖² of the centred Gram
    matrix G, 1 where the rows lie on a line."""
    rows = given.output.detach()
    rows = rows[::-(-rows.shape[0] // MAX_ROWS)]
    rows = rows if rows.dtype is torch.float64 else rows.float()
    count, least = rows.shape[0], torch.finfo(rows.dtype).tiny
    unit = rows / rows.norm(dim=1, keepdim=True).clamp(min=least)
    total = unit.sum(0)
    alike = ((total * total).sum() - (unit * unit).sum()) / (count * (count - 1))
    farthest = (unit @ (total / total.norm().clamp(min=least))).min()
    apart = rows - rows.mean(0)
    size = apart.norm()
    apart = apart / size.clamp(min=least)
    gram = apart @ apart.t() if count <= rows.shape[1] else apart.t() @ apart  # of the same norm
    directions = torch.where(size > 0, 1 / (gram * gram).sum().clamp(min=least), torch.ones_like(size))
    return {"rows": float(count), "alike": alike * count, "farthest": farthest * count, "directions": directions * count}
