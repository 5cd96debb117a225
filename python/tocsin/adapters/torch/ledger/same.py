"""Whether whole numbers that a model is to give are the ones that it was given, at the same places."""

import sys
from typing import Any, Tuple

from .calls import Measured
from .host import numpy_of

MOST = 1 << 12  # places of a call that are compared


def add_same(measured: Measured, given: Any, whole: Any) -> None:
    """Adds ``same_as_input``, ``same_by_chance`` and ``input_places`` to what was measured of a call of classes. ``whole``:
    what the model was given, or None. On a device it is not looked at: that would wait, or launch more than it tells."""
    if whole is None or given.name not in ("cross_entropy", "nll_loss") or given.target.is_floating_point():
        return
    target = given.target
    if target.numel() != whole.numel() or target.numel() < 2 or target.is_cuda or whole.is_cuda:
        return
    apart = -(-target.numel() // MOST)
    targets, inputs = target.detach().reshape(-1)[::apart].long(), whole.detach().reshape(-1)[::apart].long()
    np = numpy_of(targets)
    if np is not None:
        same, chance, places = _by_numpy(np, targets.numpy(), inputs.numpy(), given.values["ignore_index"])
    else:
        same, chance, places = _by_torch(sys.modules["torch"], targets, inputs, given.values["ignore_index"])
    if places:
        measured.known.update(input_places=float(places), same_as_input=float(same), same_by_chance=float(chance))


def _by_numpy(np: Any, targets: Any, inputs: Any, ignored: int) -> Tuple[float, float, int]:
    counts = targets != ignored
    if not counts.all():
        targets, inputs = targets[counts], inputs[counts]
    if not len(targets):
        return 0.0, 0.0, 0
    values, numbers = np.unique(targets, return_counts=True)
    others, times = np.unique(inputs, return_counts=True)
    place = np.minimum(np.searchsorted(values, others), len(values) - 1)
    pairs = (numbers[place] * times)[values[place] == others].sum()
    return np.count_nonzero(targets == inputs), pairs / len(targets), len(targets)


def _by_torch(torch: Any, targets: Any, inputs: Any, ignored: int) -> Tuple[float, float, int]:
    counts = targets != ignored
    targets, inputs = targets[counts], inputs[counts]
    places = len(targets)
    if not places:
        return 0.0, 0.0, 0
    values, shares = torch.cat((targets, inputs)).unique(return_inverse=True)
    one, other = (torch.bincount(part, minlength=len(values)).double() / places for part in (shares[:places], shares[places:]))
    return float((targets == inputs).sum()), float((one * other).sum() * places), places
