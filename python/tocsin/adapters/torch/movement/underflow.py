"""Gradients that are below what float16 can hold (docs/ledger.md, ``ledger/precision/underflow``).

What float16 has below its smallest normal number, 2⁻¹⁴, are multiples of 2⁻²⁴; what is less than half of that is zero. A gradient whose
elements are zeros and small multiples of 2⁻²⁴ went through it, whatever the type it is kept in now. A float32 gradient has
such an element once in thousands, and zeros of units that are dead stand beside normal numbers.
"""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from tocsin.loop.marks import Marks
from tocsin.loop.sink import Sink

NORMAL, UNIT = 2.0 ** -14, 2.0 ** -24
ZEROS = 0.5  # of the elements, from which a tensor is told
SMALL = 0.5  # of the others, that are such multiples
LEAST = 8  # others, to judge by
MOST = 8  # names


class Underflow:
    """Of the tensors of one optimizer that are looked at."""

    def __init__(self, sink: Sink) -> None:
        self._marks = Marks(sink, "precision")
        self._told: List[str] = []

    def tell(self, torch: Any, gradient: Any, scale: Optional[Any], of_each: Callable[[Any], Any], sizes: Sequence[int],
             names: Sequence[Optional[str]]) -> None:
        """``gradient``: without the loss scale; ``scale``: a tensor of one element; None: the loss is not scaled."""
        given = gradient if scale is None else gradient * scale.to(gradient.device)
        size = given.abs()
        small = (size > 0) & (size < NORMAL) & (torch.remainder(size, UNIT) == 0)
        ones = torch.ones(len(sizes), device=gradient.device)
        numbers = torch.stack([of_each((size == 0).float()), of_each(small.float()), ones if scale is None else ones * scale.to(gradient.device)])
        self._marks.tell_found(numbers, lambda found: self._read(found.tolist(), sizes, names))

    def _read(self, numbers: List[List[float]], sizes: Sequence[int], names: Sequence[Optional[str]]) -> Dict[str, float]:
        zeros, small, scales = numbers
        out = {"scale": scales[0], "scale_tensors": float(len(sizes))}
        ill: Dict[str, float] = {}
        for zero, some, size, name in zip(zeros, small, sizes, names):
            others = size - zero
            if name is not None and zero > ZEROS * size and others >= LEAST and some > SMALL * others:
                ill[name] = zero / size
        out["beside"] = float(sum(zero == 0 for zero in zeros))
        told = sorted(ill, key=lambda name: -ill[name])[:MOST]
        out.update({"underflow/" + name: 0.0 for name in self._told if name not in told})
        out.update({"underflow/" + name: ill[name] for name in told})
        self._told = told
        return out


def worth(torch: Any, chosen: Sequence[Tuple[Any, int]], scaled: bool) -> bool:
    """Whether float16 is used at all, as far as that is known: a scaler is asked, or weights are stored in it, or a device computes in it."""
    return scaled or any(parameter.dtype is torch.float16 or parameter.is_cuda for parameter, _ in chosen)
