"""Settings that are hardly ever meant: seen once, before anything is lost by them."""

import math
from typing import Any, List, Optional, Set, Tuple

_DROPS_MOST = 0.9  # where a tenth was to be dropped: other libraries ask for the share that is kept


def betas_swapped(optimizer: Any) -> Optional[Tuple[float, float]]:
    """The betas of a kind of Adam that does not converge by them: β1 is not below √β2 (Zou et al. 2019, "A Sufficient Condition for
    Convergences of Adam and RMSProp"). (0.999, 0.9) is (0.9, 0.999) in the wrong order. Lion's and Adan's mean other things."""
    if "adam" not in type(optimizer).__name__.lower():
        return None
    for group in getattr(optimizer, "param_groups", ()):
        betas = group.get("betas")
        if isinstance(betas, (tuple, list)) and len(betas) == 2 and all(isinstance(one, float) for one in betas):
            if 0 <= betas[1] < betas[0] and betas[0] >= math.sqrt(betas[1]):
                return betas[0], betas[1]
    return None


def decay_negative(optimizer: Any) -> Optional[float]:
    """The weight decay of the first group that has one below zero. Optimizers refuse it when they are made, not when a group is changed."""
    for group in getattr(optimizer, "param_groups", ()):
        decay = group.get("weight_decay")
        if isinstance(decay, (int, float)) and decay < 0:
            return float(decay)
    return None


def dropouts(model: Any) -> List[str]:
    """Names of the modules that drop nine tenths and more of what they are given, in training."""
    found = []
    for name, module in model.named_modules() if model is not None else ():
        share = getattr(module, "p", None) if "dropout" in type(module).__name__.lower() else None
        if share is None and type(module).__name__ == "MultiheadAttention":
            share = getattr(module, "dropout", None)
        if isinstance(share, float) and share >= _DROPS_MOST and module.training:
            found.append(name or type(module).__name__)
    return found


def dropouts_in_eval(model: Any, updated: Set[int]) -> List[str]:
    """Names of the dropouts that drop nothing although the model trains, in parts whose parameters are updated: a body that
    ``from_pretrained()`` gives is in its eval state, and who trains it must call ``train()``. A frozen part may well be so.
    ``updated``: id() of the parameters that the optimizer holds."""
    if model is None or not model.training:
        return []
    modules = dict(model.named_modules())
    found = []
    for name, module in modules.items():
        if _drops(module) and not module.training:
            path, part = name.split("."), module
            for depth in range(1, len(path)):  # the outermost part that is in its eval state
                outer = modules.get(".".join(path[:depth]))
                if outer is not None and not outer.training:
                    part = outer
                    break
            if part is module and len(path) > 1:
                part = modules.get(".".join(path[:-1]), module)
            if any(id(parameter) in updated for parameter in part.parameters()):
                found.append(name)
    return found


def _drops(module: Any) -> bool:
    share = getattr(module, "p", None) if "dropout" in type(module).__name__.lower() else None
    if share is None and type(module).__name__ == "MultiheadAttention":
        share = getattr(module, "dropout", None)
    return isinstance(share, float) and share > 0
