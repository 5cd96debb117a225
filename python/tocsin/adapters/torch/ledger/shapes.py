"""Outputs and targets that a loss compares all against all: (n, 1) with (n,) becomes (n, n) without an error.

Certain from the shapes: both have the same sizes but for ones, and together they have more elements than either. The loss is then of
every output with every target, and its best output is one constant. Pairs that are meant are written with as many
dimensions on both sides, as (n, K, 1) with (n, 1, K) of quantiles, or keep every element (``reduction='none'``): both are left alone.
"""

from typing import Any, Dict, Set

from tocsin.loop.sink import Sink
from .units import FAMILIES


class Shapes:
    """Of one ledger. ``look()`` at calls of training that are measured; each function is told of once."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._told: Set[str] = set()

    def look(self, given: Any) -> None:
        output, target = given.output, given.target
        if output.dim() == target.dim() or given.name not in FAMILIES or given.name in self._told \
                or not all_against_all(tuple(output.shape), tuple(target.shape)) or given.reduction() == "none":
            return
        self._told.add(given.name)
        finding = broadcast(given.name, tuple(output.shape), tuple(target.shape))
        self._sink.preflight([finding], [sentence(finding)])


def all_against_all(output: Any, target: Any) -> bool:
    """Whether two shapes of as many elements come to more of them when one is broadcast to the other."""
    if len(output) == len(target) or [one for one in output if one != 1] != [one for one in target if one != 1]:
        return False
    longer, shorter = (output, target) if len(output) > len(target) else (target, output)
    both = [*longer[:len(longer) - len(shorter)], *(max(pair) for pair in zip(longer[len(longer) - len(shorter):], shorter))]
    return both != list(longer)


def broadcast(name: str, output: Any, target: Any) -> Dict[str, Any]:
    """A finding (docs/wire.md, ``preflight``)."""
    return {"kind": "targets_broadcast", "model": name, "count": 2, "names": [_written(output), _written(target)]}


def sentence(finding: Dict[str, Any]) -> str:
    output, target = finding["names"]
    return (f"{finding['model']} compares outputs of shape {output} with targets of shape {target}: every output with every target. "
            "Give both the same shape, as with output.squeeze(-1)")


def _written(shape: Any) -> str:
    return "(" + ", ".join(str(one) for one in shape) + ("," if len(shape) == 1 else "") + ")"
