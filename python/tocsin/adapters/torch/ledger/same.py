"""Whether whole numbers that a model is to give are the ones that it was given, at the same places."""

import sys
from typing import Any

from .calls import Measured

MOST = 1 << 12  # places of a call that are compared


def add_same(measured: Measured, given: Any, whole: Any) -> None:
    """Adds ``same_as_input``, ``same_by_chance`` and ``input_places`` to what was measured of a call of classes. ``whole``:
    what the model was given, or None. On a device it is not looked at: that would wait, or launch more than it tells."""
    if whole is None or given.name not in ("cross_entropy", "nll_loss") or given.target.is_floating_point():
        return
    target = given.target
    if target.numel() != whole.numel() or target.numel() < 2 or target.is_cuda or whole.is_cuda:
        return
    torch = sys.modules["torch"]
    apart = -(-target.numel() // MOST)
    targets, inputs = target.detach().reshape(-1)[::apart].long(), whole.detach().reshape(-1)[::apart].long()
    counts = targets != given.values["ignore_index"]
    targets, inputs = targets[counts], inputs[counts]
    places = len(targets)
    if not places:
        return
    measured.known["input_places"] = float(places)
    measured.known["same_as_input"] = float((targets == inputs).sum())
    values, shares = torch.cat((targets, inputs)).unique(return_inverse=True)
    one, other = (torch.bincount(part, minlength=len(values)).double() / places for part in (shares[:places], shares[places:]))
    measured.known["same_by_chance"] = float((one * other).sum() * places)
