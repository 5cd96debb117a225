"""Losses of quantities, switches and distributions, for the ledger: each has a loss at every unit of a sample."""

import math
from typing import Any, Dict, NamedTuple

from .constants import constant_of, learn
from .rows import Rows, compare, partner, rows_of, spread

MAX_UNITS = 1 << 12  # of a sample that are looked at

# What a constant answer is, by function (constants.py).
FAMILIES = {"binary_cross_entropy": "switch", "binary_cross_entropy_with_logits": "switch", "mse_loss": "mean",
            "l1_loss": "median", "smooth_l1_loss": "root", "huber_loss": "root", "gaussian_nll_loss": "normal",
            "poisson_nll_loss": "rate", "kl_div": "shares"}
_BESIDE = ("weight", "pos_weight", "var")  # tensors that have a value for each unit, or are made to


class _Units(NamedTuple):
    """Rows of units: outputs, targets and what stands beside them."""

    outputs: Any
    targets: Any
    beside: Dict[str, Any]


def measure_units(torch: Any, given: Any, state: Dict[str, Any], learns: bool) -> Dict[str, Any]:
    """Sums of one call (docs/ledger.md), and ``past``: whether there was a target before. The loss of a sample is the mean
    over its units, or with the reduction ``batchmean`` their sum."""
    units = _taken(torch, given)
    count, width = units.outputs.shape
    rows = Rows(None, None, count, count, None, count // 2)
    every = _every(given, units)
    arguments = given.plain()
    whole = given.reduction() == "batchmean"

    def losses(outputs: Any, targets: Any, beside: Dict[str, Any]) -> Any:
        if "var" in beside:
            found = _normal(outputs, targets, beside["var"], **arguments)
        else:
            found = given.function(outputs, targets, reduction="none", **beside, **arguments)
        return found.sum(1) if whole else found.mean(1)

    loss = losses(units.outputs, units.targets, units.beside)
    first, second = partner(torch, rows)
    half = rows.half
    mine, others = units.targets[first], units.targets[second]
    crossed = losses(units.outputs[:2 * half], torch.cat((others, mine)), _exchanged(torch, units.beside, first, second))
    pair = compare(torch, loss[first] + loss[second], crossed[:half] + crossed[half:], (mine != others).any(1))
    pair.update(straight=pair["straight"] * every, crossed=pair["crossed"] * every)
    constant = constant_of(torch, given, state, units, FAMILIES[given.name])
    out = {"samples": count, "loss": loss.sum(dtype=torch.float64) * every, "past": 0.0 if constant is None else 1.0, **pair,
           "output_spread": spread(torch, units.outputs, None, count), "target_spread": spread(torch, units.targets, None, count),
           "one_target": (units.targets == units.targets[:1]).all()}
    out["trivial"] = 0.0
    if constant is not None:
        answer, beside = constant
        out["trivial"] = losses(answer, units.targets, {**units.beside, **beside}).sum(dtype=torch.float64) * every
    if FAMILIES[given.name] == "switch":
        _add_answers(out, units, 0.5 if given.name == "binary_cross_entropy" else 0.0, count)
    if learns:
        learn(torch, given, state, units, FAMILIES[given.name])
    return out


def _normal(outputs: Any, targets: Any, variance: Any, full: bool, eps: float) -> Any:
    """gaussian_nll_loss: torch's own asks for the sign of the variance, and so waits for a device."""
    variance = variance.clamp(min=eps)
    found = 0.5 * (variance.log() + (outputs - targets) ** 2 / variance)
    return found + 0.5 * math.log(2 * math.pi) if full else found


def _every(given: Any, units: _Units) -> float:
    """Of units that are not all looked at each stands for several in a sum over them."""
    if given.reduction() != "batchmean":
        return 1.0
    return float(given.output[0].numel() / max(units.outputs.shape[1], 1)) if given.output.dim() else 1.0


def _taken(torch: Any, given: Any) -> _Units:
    """As the function broadcasts them. Only views are made of what is not looked at."""
    beside = {name: given.values[name] for name in _BESIDE if getattr(given.values.get(name), "dim", None) is not None}
    named = {"input": given.output, "target": given.target, **beside}
    if "var" in named and named["var"].dim() == given.output.dim() - 1:
        named["var"] = named["var"][..., None]  # as gaussian_nll_loss has it
    shape = torch.broadcast_shapes(*(one.shape for one in named.values()))
    shape = shape or (1,)
    width = 1
    for size in shape[1:]:
        width *= size
    apart, _ = rows_of(shape[0], min(width, MAX_UNITS))
    between = -(-width // MAX_UNITS)

    def rows(one: Any) -> Any:
        one = one.detach().broadcast_to(shape)[::apart].reshape(-1, width)
        one = one[:, ::between] if between > 1 else one
        return one if one.dtype is torch.float64 else one.float()

    found = {name: rows(one) for name, one in named.items()}
    return _Units(found.pop("input"), found.pop("target"), found)


def _exchanged(torch: Any, beside: Dict[str, Any], first: Any, second: Any) -> Dict[str, Any]:
    """A weight goes with its target, a variance with its output."""
    return {name: torch.cat((one[first], one[second])) if name == "var" else torch.cat((one[second], one[first]))
            for name, one in beside.items()}


def _add_answers(out: Dict[str, Any], units: _Units, middle: float, count: int) -> None:
    """Yes and no are classes. Of several switches for each sample: their mean."""
    answers, labels, width = units.outputs > middle, units.targets > 0.5, units.outputs.shape[1]
    yes, wanted = answers.sum() / width, labels.sum() / width
    out["right"] = (answers == labels).sum() / width
    out["answers"] = yes.maximum(count - yes)
    out["labels"] = wanted.maximum(count - wanted)
