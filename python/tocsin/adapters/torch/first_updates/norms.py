"""Normalizations whose running statistics do not follow what they are trained on: evaluations use them as they were made."""

import sys
from typing import Any, Dict, List, Tuple

_MOST = 8  # of the smallest
_LARGEST = 65_536
SENTENCE = ("running statistics of {1} normalizations of {0} do not change while they train, and evaluations use them, give them a momentum "
            "above 0")


class Norms:
    """Of one model, between its first updates. A norm counts whose weight gets a gradient: it is used, with the statistics of its batch."""

    def __init__(self) -> None:
        self._before: Dict[str, Tuple[Any, Any, Any]] = {}  # the module, copies of its mean and variance

    def begin(self, model: Any) -> None:
        """At the first update."""
        found = [(name, one) for name, one in model.named_modules() if _learns(one)]
        found.sort(key=lambda one: int(one[1].running_mean.numel()))
        self._before = {name: (one, one.running_mean.detach().clone(), one.running_var.detach().clone()) for name, one in found[:_MOST]}

    def look(self) -> None:
        """At each further one: those that change, or may not be in use, are left out."""
        self._before = {name: kept for name, kept in self._before.items() if _learns(kept[0])}

    def names(self) -> List[str]:
        """Of those that have not changed."""
        return sorted(name for name, (one, mean, variance) in self._before.items()
                      if _same(one.running_mean, mean) and _same(one.running_var, variance))


def _learns(module: Any) -> bool:
    nn = sys.modules["torch"].nn
    if type(module) not in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm):
        return False  # classes of a script keep their statistics as they like
    weight, mean, variance = module.weight, module.running_mean, module.running_var
    gradient = None if weight is None else weight.grad
    return (module.training and gradient is not None and not hasattr(weight, "to_local") and mean is not None and variance is not None
            and 0 < mean.numel() <= _LARGEST and bool((gradient != 0).any()))


def _same(now: Any, before: Any) -> bool:
    return now is not None and now.shape == before.shape and now.device == before.device and bool((now == before).all())
