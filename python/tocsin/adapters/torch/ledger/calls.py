"""One call of a loss function, read for the ledger: its arguments by name, and the sums that are published of it.

At most some 512 samples of a call are looked at, evenly spaced; all sums, ``samples`` among them, are of these.
"""

import inspect
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

from .by_class import add_pair
from .classes import measure_classes
from .embeddings import Embedding, sums_of_embedding
from .functions import original
from .units import FAMILIES, measure_units

MAX_HELD = 1 << 16  # numbers
_TENSORS = ("input", "target", "weight", "pos_weight", "var")
_signatures: Dict[Any, Tuple[List[str], Dict[str, Any]]] = {}  # by function


class Measured(NamedTuple):
    """``fields``: the names of ``numbers``, a tensor of binary64 on the device of the call. ``known``: what is known here."""

    known: Dict[str, float]
    fields: Tuple[str, ...]
    numbers: Any


class Arguments:
    """Of one call, by name; what was not given has its default."""

    __slots__ = ("name", "function", "values", "output", "target")
    learns = False  # unless its output needs a gradient

    def __init__(self, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        """It has returned: its arguments fit."""
        self.name, self.function = name, original(name)
        names, defaults = _signature(self.function)
        self.values = {**defaults, **dict(zip(names, args)), **kwargs}
        self.output, self.target = self.values["input"], self.values["target"]

    def tensors(self) -> List[Any]:
        return [self.values[name] for name in _TENSORS if getattr(self.values.get(name), "dim", None) is not None]

    def reduction(self) -> str:
        """Also as the arguments of old say it."""
        average, reduce = self.values.get("size_average"), self.values.get("reduce")
        if average is None and reduce is None:
            return str(self.values["reduction"])
        if reduce is False:
            return "none"
        return "sum" if average is False else "mean"

    def plain(self, *but: str) -> Dict[str, Any]:
        """Its arguments beside tensors and reductions."""
        return {name: value for name, value in self.values.items()
                if name not in _TENSORS and name not in ("size_average", "reduce", "reduction") and name not in but}

    def with_tensors(self, output: Any, target: Any) -> "Arguments":
        """The same call of others."""
        return Arguments(self.name, (), {**self.values, "input": output, "target": target})

    def kind(self) -> Any:
        """Tells calls of a function with other outputs apart: classes, or units of a sample; of outputs whose samples have
        places only their channels, since lengths vary."""
        shape = self.output.shape
        if self.name not in FAMILIES:
            return shape[1 if len(shape) > 1 else 0]
        return len(shape), shape[1] if len(shape) > 1 else 1

    def sums(self, torch: Any, state: Dict[str, Any], learns: bool) -> Dict[str, Any]:
        """Numbers, and tensors of one element."""
        return (measure_units if self.name in FAMILIES else measure_classes)(torch, self, state, learns)


def _signature(function: Callable[..., Any]) -> Tuple[List[str], Dict[str, Any]]:
    found = _signatures.get(function)
    if found is None:
        parameters = inspect.signature(function).parameters
        found = _signatures[function] = (list(parameters), {
            name: one.default for name, one in parameters.items() if one.default is not one.empty})
    return found


def measure(given: Any, state: Dict[str, Any], learns: bool) -> Measured:
    """What is to be told of it (:class:`Arguments`, or another with the same methods). ``state``: what is known of the targets of this loss, to which these are
    added where it ``learns``."""
    torch = sys.modules["torch"]
    with torch.no_grad(), _without_autocast(torch, given.output.device.type):
        if given.output.numel() == 0:
            return Measured({"samples": 0.0}, (), None)
        found = given.sums(torch, state, learns)
        if given.output.dim() > 0 and given.output.shape[0] == 1 and given.target.dim() > 0 \
                and (given.output.dim() == 2 or given.name in FAMILIES):
            found.update(_pair_with_held(torch, given, state, learns))
        if isinstance(given, Arguments) and given.reduction() == "none":
            found["past"] = 0.0  # the script weighs or masks these itself: what it trains is another loss, whose constant nobody knows
        return _measured(torch, found)


def measure_embedding(given: Embedding) -> Measured:
    """The same of rows that a script has embedded."""
    torch = sys.modules["torch"]
    with torch.no_grad(), _without_autocast(torch, given.output.device.type):
        return _measured(torch, sums_of_embedding(torch, given))


def _measured(torch: Any, found: Dict[str, Any]) -> Measured:
    known = {name: float(one) for name, one in found.items() if not hasattr(one, "dim")}
    numbers = {name: one for name, one in found.items() if name not in known}
    return Measured(known, tuple(numbers), torch.stack([one.double() for one in numbers.values()]) if numbers else None)


def _pair_with_held(torch: Any, given: Any, state: Dict[str, Any], learns: bool) -> Dict[str, Any]:
    """Sums of the pair of a call's one sample with that of the call before; every other call has one. A copy of the other's
    sample waits for it."""
    output, target = given.output.detach(), given.target.detach()
    key, apart = "held" if learns else "held in evaluation", {}
    held = state.pop(key, None)
    if held is None or held[0].shape != output.shape or held[1].shape != target.shape:
        if output.numel() + target.numel() <= MAX_HELD:
            state[key] = output.clone(), target.clone()
        return {}
    found = given.with_tensors(torch.cat((held[0], output)), torch.cat((held[1], target))).sums(torch, apart, False)
    add_pair(state, learns, apart)
    return {name: found[name] for name in ("pairs", "wins", "straight", "crossed") if name in found}


class _Nothing:
    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        pass


def _without_autocast(torch: Any, device: str) -> Any:
    return torch.autocast(device, enabled=False) if device in ("cuda", "cpu") and _autocast(torch, device) else _Nothing()


def _autocast(torch: Any, device: str) -> bool:
    if device == "cuda":
        return bool(torch.is_autocast_enabled())
    if hasattr(torch, "get_autocast_dtype"):  # torch 2.4: the other is deprecated
        return bool(torch.is_autocast_enabled("cpu"))
    return bool(torch.is_autocast_cpu_enabled())
