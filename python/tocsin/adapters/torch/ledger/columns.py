"""Which inputs of a PyTorch model have columns that could be their target (ledger/columns.py)."""

from typing import Any

from tocsin.ledger.batch import MOST_CLASSES, MOST_COLUMNS, MOST_PRODUCTS
from tocsin.ledger.columns import Columns


def columns_of(given: Any, inputs: Any) -> Any:
    """For the inputs of a loss call; None: these have no columns that could be a target."""
    target, count = given.target, int(inputs.shape[0])
    if not inputs.is_floating_point() or inputs.dim() < 2 or target.shape[0] != count or target.requires_grad:
        return None
    width, units = int(inputs.numel()) // count, int(target.numel()) // count
    if width > MOST_COLUMNS:
        return None
    if not target.is_floating_point():
        fits = given.output.dim() == 2 and target.dim() == 1 and 2 <= given.output.shape[1] <= MOST_CLASSES
        return Columns(width, True, 1) if fits else None
    if units * width > MOST_PRODUCTS or (units == width and units > 1) or given.name == "kl_div":
        return None  # what is to be given is of the same kind as what is given: a reconstruction
    return Columns(width, False, units)
