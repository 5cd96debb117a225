"""Mixed precision: what a gradient still has to be divided by, and whether the update is left out.

``GradScaler`` divides the gradients before it calls an ordinary optimizer, and does not call it at all
after an overflow. A fused optimizer does both in its kernel: it gets ``grad_scale`` and ``found_inf``
as attributes for the length of ``step()``.
"""

from typing import Any, Callable, Optional, Tuple

from tocsin.tensors.torch_device import copy_of_scalar


class Scaling:
    """Of one update. ``scale``: tensor of one element to divide by, or None; ``found_inf``: tensor that
    is not 0 when the update is left out, or None. ``on_host``: both can be read without waiting."""

    __slots__ = ("scale", "found_inf", "on_host")

    def __init__(self, scale: Any, found_inf: Any) -> None:
        self.scale, self.found_inf = scale, found_inf
        self.on_host = not any(getattr(value, "is_cuda", False) for value in (scale, found_inf))

    def divisor(self) -> float:
        """Of values in host memory, which a GPU's scaler has nothing to do with."""
        return float(self.scale) if self.scale is not None and self.on_host else 1.0

    def skipped(self) -> bool:
        return self.on_host and self.found_inf is not None and bool(self.found_inf)

    def skipped_later(self) -> Tuple[Callable[[], bool], Optional[Any]]:
        """(a function that says whether the update was left out, the event after which it knows)."""
        if self.on_host:
            answer = self.skipped()
            return (lambda: answer), None
        if self.found_inf is None:
            return _no, None
        kept, event = copy_of_scalar(self.found_inf)
        return (lambda: bool(kept)), event


def scaling_of(optimizer: Any) -> Optional[Scaling]:
    """None: the gradients are what the update uses, and it happens."""
    found_inf = getattr(optimizer, "found_inf", None)
    scale = getattr(optimizer, "grad_scale", None)
    if found_inf is None and scale is None:
        return None
    return Scaling(scale, found_inf)


def _no() -> bool:
    return False
