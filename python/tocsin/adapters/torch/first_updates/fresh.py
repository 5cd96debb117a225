"""Weights that nobody will train and nobody has: frozen with the values that they were made with. Pretrained ones were not loaded."""

import collections
import itertools
import math
import weakref
from typing import Any, Iterator, List, Optional, Tuple

_SAMPLE = 4096  # elements of a tensor that are looked at
_LEAST = 256    # elements that tell a uniform distribution from others
_MODULES = 400  # looked at
_NORMS = ("LayerNorm", "GroupNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm", "RMSNorm")
_LAYERS = ("Linear", "Conv", "NonDynamicallyQuantizableLinear")


class FrozenFresh:
    """Of one model, when it is given to the library: nothing is waited for later.

    A layer still has the values that it was made with where its weights fill the interval ±1/√fan_in evenly and do not leave it
    (what PyTorch's layers begin with; He et al. 2015, with a = √5), where all elements of its bias are 0, or where a norm's are
    1 and 0. Training, however short, leaves none of it. Nothing is said where one frozen layer shows another origin, where fewer
    than half of them show any, where what is frozen is not most of the model, and of copies: tensors of the shape of one that is
    trained (a target or a teacher that follows).
    """

    def __init__(self) -> None:
        self._found: List[Tuple[str, Any, Any]] = []  # name, reference to the parameter, mark of its values

    def look(self, model: Any) -> None:
        """Reads samples of what is frozen."""
        if model is None or is_partial(model):
            return
        shapes = collections.Counter(tuple(one.shape) for one in model.parameters() if one.requires_grad)
        frozen = list(itertools.islice(_frozen(model), _MODULES)) if shapes else []
        verdicts = [layer_is_fresh(module) for _, module in frozen]
        if not frozen or False in verdicts or 2 * verdicts.count(True) < len(verdicts):
            return
        alone = []
        for prefix, module in frozen:
            for own, parameter in module.named_parameters(recurse=False):
                shape = tuple(parameter.shape)
                if len(shape) > 1 and shapes[shape] > 0:
                    shapes[shape] -= 1
                else:
                    alone.append((f"{prefix}.{own}" if prefix else own, parameter))
        if 2 * sum(one.numel() for _, one in alone) > sum(one.numel() for one in model.parameters()):
            self._found = [(name, weakref.ref(one), mark(one)) for name, one in alone]

    def names(self) -> List[str]:
        """Of those frozen, unless one was loaded or trained since."""
        for _, reference, before in self._found:
            parameter = reference()
            if parameter is None or parameter.requires_grad or mark(parameter) != before:
                return []
        return [name for name, _, _ in self._found]


def is_partial(model: Any) -> bool:
    """Whether a parameter is not all here: on no device, or this rank's part of it."""
    return any(parameter.is_meta or hasattr(parameter, "to_local") or parameter.numel() == 0
               or hasattr(parameter, "_is_flat_param") or hasattr(parameter, "ds_id")
               for parameter in model.parameters())


def mark(parameter: Any) -> Tuple[Any, ...]:
    """What an update changes: torch counts changes in place, but not those through ``.data``."""
    here = parameter.device.type == "cpu" and not hasattr(parameter, "to_local")
    first = tuple(parameter.detach().reshape(-1)[:8].tolist()) if here else ()
    return getattr(parameter, "_version", 0), first


def layer_is_fresh(module: Any) -> Optional[bool]:
    """None: it does not say."""
    kind = type(module).__name__
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    if kind in _NORMS:
        if weight is None:
            return None
        seen = getattr(module, "running_mean", None)  # one that is not scaled may have seen batches all the same
        fresh = _all(weight, 1.0) and (bias is None or _all(bias, 0.0))
        return None if fresh and seen is not None and not _all(seen, 0.0) else fresh
    if hasattr(module, "hidden_size") and hasattr(module, "weight_ih_l0"):  # recurrent
        return _fills(module.weight_ih_l0, 1 / math.sqrt(module.hidden_size))
    if not kind.startswith(_LAYERS) or not _is_matrix(weight):
        return None
    told = bias is not None and bias.numel() >= 8
    if told and _all(bias, 0.0):
        return True
    filled = _fills(weight, 1 / math.sqrt(weight[0].numel()))
    return filled if filled or told else None  # weights alone may be drawn otherwise


def _frozen(model: Any) -> Iterator[Tuple[str, Any]]:
    """Modules all of whose own parameters are frozen numbers."""
    for name, module in model.named_modules():
        own = list(module.parameters(recurse=False))
        if own and all(not one.requires_grad and one.is_floating_point() for one in own):
            yield name, module


def _is_matrix(weight: Any) -> bool:
    return hasattr(weight, "detach") and weight.dim() > 1


def _sample(tensor: Any) -> Any:
    return tensor.detach().reshape(-1)[:_SAMPLE].float()


def _all(tensor: Any, value: float) -> bool:
    return bool((_sample(tensor) == value).all())


def _fills(tensor: Any, bound: float) -> Optional[bool]:
    """Whether numbers are evenly distributed over ±bound; None: there are too few."""
    if tensor.numel() < _LEAST:
        return None
    numbers = _sample(tensor)
    slack = 1e-4 if tensor.element_size() >= 4 else 0.01
    largest, rms = float(numbers.abs().max()), float(numbers.square().mean().sqrt())
    return 0.95 * bound <= largest <= (1 + slack) * bound and abs(rms * math.sqrt(3) / bound - 1) < 0.12
