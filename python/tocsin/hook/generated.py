"""How many directions the samples of a generator have beside those of the data (docs/ledger.md, ``ledger/samples/…``): what the rule ``collapse``
reads. Nothing of an element is sent."""

import sys
from typing import Any, Dict, Optional, Tuple

from tocsin.process.contain import contained

MAX_ROWS, MAX_COLUMNS = 64, 1024  # that are looked at, evenly spaced
LEAST = 8  # rows
DENSE = 64  # the first words are all told; then
PER_DOUBLING = 32  # of each doubling


class Generated:
    """Of one sink."""

    def __init__(self, sink: Any) -> None:
        from tocsin.loop.marks import Marks

        self._sink = sink
        self._marks: Dict[str, Any] = {}
        self._make = lambda name: Marks(sink, "samples/" + name)
        self._calls: Dict[str, int] = {}

    def tell(self, name: str, made: Any, data: Any) -> None:
        number = self._calls[name] = self._calls.get(name, 0) + 1
        if number > DENSE and number % max(1, (1 << number.bit_length() - 1) // PER_DOUBLING):
            return
        found = _directions(made, data)
        if found is None:
            return
        marks = self._marks.get(name)
        if marks is None:
            marks = self._marks[name] = self._make(name)
        marks.tell(["made", "data"], found)


class TellsGenerated:
    """Of a :class:`tocsin.Hook`."""

    sink: Any

    @contained()
    def samples(self, made: Any, data: Any, name: str = "samples") -> None:
        """Compare a generator's samples with a batch of the data, for the rule ``collapse``.

        ``made``, ``data``: tensors or arrays with one sample per row, at least 8. Call it in each training step, or in
        every n-th. The rule compares in how many directions the samples differ. No element leaves the process.
        ``name``: of the generator, when there are several.
        """
        sink = self.sink
        if not sink.active or not sink.wants_ledger or sink.rank != 0:
            return
        if sink.generated is None:
            sink.generated = Generated(sink)
        sink.generated.tell(name, made, data)


def _directions(made: Any, data: Any) -> Optional[Any]:
    """[those of what was made, those of the data]; None: these are no samples of the same shape."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(made, torch.Tensor) and isinstance(data, torch.Tensor):
        with torch.no_grad():
            chosen = _chosen(made.detach(), data.detach())
            return None if chosen is None else torch.stack([_of_tensor(torch, one) for one in chosen])
    import numpy

    chosen = _chosen(numpy.asarray(made), numpy.asarray(data))
    return None if chosen is None else [_of_array(numpy, one) for one in chosen]


def _chosen(made: Any, data: Any) -> Optional[Tuple[Any, Any]]:
    """As many rows of each: few rows have few directions."""
    if min(len(made.shape), len(data.shape)) < 2 or made.shape[1:] != data.shape[1:]:
        return None
    number = min(made.shape[0], data.shape[0], MAX_ROWS)
    if number < LEAST:
        return None
    rows = (one[::one.shape[0] // number][:number].reshape(number, -1) for one in (made, data))
    some, others = (one[:, ::max(1, -(-one.shape[1] // MAX_COLUMNS))] for one in rows)
    return some, others


def _of_tensor(torch: Any, rows: Any) -> Any:
    """Participation ratio (tr G)² / ‖G‖² of the centred Gram matrix G; 1: the rows lie on a line, or are all the same."""
    apart = rows.float()
    apart = apart - apart.mean(0)
    size = apart.norm()
    apart = apart / size.clamp(min=torch.finfo(apart.dtype).tiny)
    gram = apart @ apart.t() if apart.shape[0] <= apart.shape[1] else apart.t() @ apart
    return torch.where(size > 0, 1 / (gram * gram).sum().clamp(min=1e-30), torch.ones_like(size))


def _of_array(numpy: Any, rows: Any) -> float:
    apart = rows.astype("float64")
    apart = apart - apart.mean(0)
    size = numpy.linalg.norm(apart)
    if not size > 0:
        return 1.0
    apart = apart / size
    gram = apart @ apart.T if apart.shape[0] <= apart.shape[1] else apart.T @ apart
    return float(1 / (gram * gram).sum())
