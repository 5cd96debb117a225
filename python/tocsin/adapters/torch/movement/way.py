"""The way that an update went, weight decay apart, beside the gradient that it was made of."""

import math
from typing import Any, Dict, List, Optional, Sequence, Tuple

# Of torch.optim: the decay is added to the gradient. AdamW multiplies the weight by it; groups may say so of the others.
_COUPLED = {"SGD", "Adam", "RMSprop", "Adagrad", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam"}
_DECOUPLED = {"AdamW", "Muon"}


class Way:
    """Of the chosen elements of one optimizer."""

    def __init__(self, optimizer: Any, parts: Sequence[Tuple[int, int]]) -> None:
        """``parts``: the group's number and the number of elements of each tensor, in order."""
        self._optimizer = type(optimizer).__name__ if type(optimizer).__module__.startswith("torch.optim") else ""
        self._places: List[List[int]] = []  # [group, first, end]
        end = 0
        for group, number in parts:
            if self._places and self._places[-1][0] == group:
                self._places[-1][2] += number
            else:
                self._places.append([group, end, end + number])
            end += number
        self._parts: List[Tuple[Dict[str, Any], int, int]] = []  # the same with the groups of this update

    def sums(self, torch: Any, optimizer: Any, gradient: Any, moved: Any, before: Any) -> Optional[Tuple[Any, Any]]:
        """[⟨g, Δ⟩, |g|², |Δ|²] of Δ / rate, and that way. Of an optimizer whose decay may be meant in either way, as it looks better.
        None: the rate is zero."""
        self._parts = [(optimizer.param_groups[group], first, end) for group, first, end in self._places]
        try:
            rate = self._rate()
            if rate is None:
                return None
            one, way = self._sums(torch, gradient, before, moved, rate, True)
            if not self._is_unsure():
                return one, way
            other, other_way = self._sums(torch, gradient, before, moved, rate, False)
            better = one[0] <= other[0]
            return torch.where(better, one, other), torch.where(better, way, other_way)
        finally:
            self._parts = []

    def _sums(self, torch: Any, gradient: Any, before: Any, moved: Any, rate: Any, decoupled: bool) -> Tuple[Any, Any]:
        way = moved / rate
        if any(group.get("maximize") or group.get("weight_decay") for group, _, _ in self._parts):
            gradient = gradient.clone()
        for group, first, end in self._parts:
            if group.get("maximize"):
                gradient[first:end].neg_()
            decay = group.get("weight_decay", 0)
            if not _is_number(decay) or decay == 0:
                continue
            if self._is_decoupled(group, decoupled):
                # What did not move at all was left out, or rounded away: with its decay.
                way[first:end] += before[first:end] * (group["lr"] * decay) * (moved[first:end] != 0) / rate
            else:
                gradient[first:end] += before[first:end] * decay
        return torch.stack([torch.dot(gradient, way), torch.dot(gradient, gradient), torch.dot(way, way)]), way

    def rate(self, optimizer: Any) -> Optional[float]:
        """The largest of the groups, as far as it is a number here."""
        rates = [optimizer.param_groups[group].get("lr") for group, _, _ in self._places]
        return max(abs(float(rate)) for rate in rates) if rates and all(_is_number(rate) for rate in rates) else None

    def _rate(self) -> Any:
        rates = [group.get("lr") for group, _, _ in self._parts]
        if any(rate is None for rate in rates):
            return 1.0
        if all(_is_number(rate) for rate in rates):
            largest = max(abs(float(rate)) for rate in rates)
            return largest if largest > 0 and math.isfinite(largest) else None
        return next(rate for rate in rates if not _is_number(rate)).abs()  # a tensor, perhaps on a device

    def _is_decoupled(self, group: Dict[str, Any], otherwise: bool) -> bool:
        said = group.get("decoupled_weight_decay")
        if said is not None and self._optimizer:
            return bool(said)
        return self._optimizer in _DECOUPLED or (self._optimizer not in _COUPLED and otherwise)

    def _is_unsure(self) -> bool:
        return self._optimizer not in _COUPLED and self._optimizer not in _DECOUPLED and any(
            _is_number(group.get("weight_decay", 0)) and group.get("weight_decay", 0) != 0 for group, _, _ in self._parts)


def flat(torch: Any, tensor: Any) -> Optional[Any]:
    """Its elements as they lie in memory; None: they do not lie side by side."""
    if tensor.is_contiguous():
        return tensor.view(-1)
    if tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last):
        return tensor.as_strided((tensor.numel(),), (1,))
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))
