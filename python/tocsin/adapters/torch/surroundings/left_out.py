"""Updates that are left out: a loop computes losses and gradients, and its optimizer is not called any more.

``GradScaler`` does not call an ordinary optimizer after an overflow. It lowers the scale until the gradients are finite: where they are
NaN whatever the scale, no update is made for the rest of the run, while the loss stays as it is. A step of the hook is an update, so
nothing is captured then that a rule could judge. PyTorch's own scaler is seen to ask in vain (adapters/torch/optimizers/scalers.py); of any other one the
gradients say it, as long as the loop has not cleared them. Looked at from the thread that says where the process stands, never in the loop.
"""

from typing import Any, Dict, List, Optional, Tuple

from tocsin.adapters.torch.optimizers.scalers import in_vain
from tocsin.tensors.torch_names import local

# Losses without an update. A scale of 2^16 is halved at most this often before float16 holds what it is multiplied with.
LEAST = 16
TIMES = 8  # and of the values that an update has otherwise: micro-batches may each log one
MOST_ELEMENTS = 1 << 20  # that one look reads
_MAX_NAMES = 20


class LeftOut:
    """Of one hook. ``look()`` is called once a second, and once at the end."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._told = False

    def look(self, counters: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        """A finding (docs/wire.md, ``preflight``), once; else None. ``counters``: of the library."""
        if self._told:
            return None
        for adapter in self._sink.adapters():
            optimizer = getattr(adapter, "parts", lambda: (None, None))()[1]
            times = 0 if optimizer is None else in_vain(optimizer)
            if times >= LEAST:
                model, names = _without_finite_gradients(adapter)
                self._told = True
                logged = int(counters.get("scalars_since_step", 0)) or times  # a loss for each, where it logs none
                return {"kind": "updates_left_out", "model": model, "count": logged, "names": names[:_MAX_NAMES]}
        if counters.get("mode") != "train":  # an evaluation logs without updates, and gradients of an overflow stay
            return None
        steps, count = int(counters.get("global_step", 0)), int(counters.get("scalars_since_step", 0))
        logged = int(counters.get("scalars_total", 0)) - int(counters.get("ledger_scalars_total", 0))
        usual = (logged - count) / steps if steps > 0 else 1.0
        if count < max(LEAST, TIMES * usual):
            return None
        for adapter in self._sink.adapters():
            model, names = _without_finite_gradients(adapter)
            if names:
                self._told = True
                return {"kind": "updates_left_out", "model": model, "count": count, "names": names[:_MAX_NAMES]}
        return None


def sentence(finding: Dict[str, Any]) -> str:
    """For the person at the terminal."""
    names = finding["names"]
    shown = ": " + ", ".join(names[:3]) + (", …" if len(names) > 3 else "") if names else ""
    return (f"the optimizer of {finding['model']} has made no update while {finding['count']} values were logged: gradients are not "
            f"finite, and a gradient scaler leaves out every such update{shown}")


def _without_finite_gradients(adapter: Any) -> Tuple[str, List[str]]:
    """(class of the model, names of parameters whose gradients are not finite). The loop may clear them at the same time."""
    parts = getattr(adapter, "parts", None)
    named = getattr(adapter, "named_parameters", None)
    if parts is None or named is None or parts()[1] is None:
        return "", []
    left, found = MOST_ELEMENTS, []
    for name, parameter in named():
        gradient = getattr(parameter, "grad", None)
        if gradient is None or gradient.is_sparse or not gradient.is_floating_point() or gradient.numel() > left:
            continue
        left -= gradient.numel()
        if not bool(local(gradient).detach().isfinite().all()):
            found.append(name)
    model = parts()[0]
    return ("the model" if model is None else type(model).__name__), found
