"""What a PyTorch model is trained towards, where the loss is no module: read from the gradient of its output.

Cross-entropy of logits z has the gradient s · (softmax(z) − target), with one s for all samples of a pass:
so z and the gradient that arrives at it tell the target. Whether the loss is one is checked on the numbers,
every time; of other losses nothing is told. Nothing is wrapped or replaced. Outputs with a row at each place of a
sample, (N, T, C) of words or (N, C, T) and (N, C, H, W) of signals and images, are read as so many rows; a place whose
gradient is zero was left out of the loss (padding), and is told as IGNORED.
"""

import sys
from typing import Any, List, NamedTuple, Optional, Tuple

from tocsin.loop.sink import Sink
from tocsin.tensors.torch_staging import Arrival, capturing

MAX_NUMBERS = 1 << 16  # that are looked at in an output; with a row at each place as many samples as hold them
MAX_PASSES = 64  # of one step
TRIES = 3  # sampled steps: who has told nothing in them is not asked again
_NEAR = 0.02  # how far a target may lie from 0 and 1, for the precision of half types
_SAME = 1e-4  # of the gradient's size: what a straight line may leave over

LOGITS = "cross_entropy_input"  # as the inputs of a loss module are named
SWITCHES = "binary_cross_entropy_with_logits_input"
QUANTITY = "squared_error_input"
IGNORED = -100  # as PyTorch's losses call what they leave out


class Found(NamedTuple):
    """Of one pass. ``loss``: LOGITS, SWITCHES, or QUANTITY, which is told only where all targets are one."""

    loss: str
    predictions: Any
    targets: Any


class Targets:
    """Of one model. ``passed()`` for its outputs in a step that is sampled, ``take()`` before the update."""

    def __init__(self, sink: Sink, prefix: str) -> None:
        self._sink = sink
        self._prefix = prefix
        self._passes: List[Tuple[Any, Any]] = []  # (output, its gradient) of the present step
        self._left = TRIES

    def wanted(self) -> bool:
        """Whether anybody asks for labels or predictions, and the model's loss is one that tells them."""
        return self._left > 0 and any(
            self._sink.wants_tensor(f"{self._prefix}{LOGITS}_{place}", role)
            for place, role in enumerate(("prediction", "label")))

    def begin(self) -> None:
        """A step that is sampled: what is left of one that had no update is not of this one."""
        self._passes[:] = []

    def passed(self, values: List[Any]) -> None:
        """The model has given these in a step that is sampled. The first of them with a number or a row for
        each sample gets a hook, which goes when the tensor does."""
        if self._left == 0 or len(self._passes) >= MAX_PASSES:
            return
        told = [one for one in values if _fits(one)]
        if not told:
            return
        # Beside one row for each sample, rows for each place are what it was made of.
        output = min(told, key=lambda one: one.dim() > 2)
        samples = _samples(output)
        whole, kept = output.shape, output.detach()
        if samples < whole[0]:
            kept = kept[:samples].clone()  # the rest of it is not held until the update
        passes, guard = self._passes, self._sink.guard

        def arrived(gradient: Any) -> None:
            with guard("targets"):
                if len(passes) < MAX_PASSES and gradient.shape == whole:
                    some = gradient.detach()
                    passes.append((kept, some[:samples].clone() if samples < whole[0] else some))

        output.register_hook(arrived)

    def take(self) -> None:
        """Publishes what the passes of this step were compared with."""
        if not self._passes:
            return
        passes, self._passes[:] = list(self._passes), []
        if capturing():
            self._sink.device_counts.skip("graph_capture", len(passes))
            return
        moved, ready = _on_host(passes)
        self._sink.publish_later(lambda: self._told(moved), ready)

    def _told(self, passes: List[Tuple[Any, Any]]) -> List[Tuple[str, Any, str]]:
        """(name, tensor, role) of what is to be published: of n passes every n-th sample, as many as a pass has.
        A judge of true and of made images is no model that knows one class only."""
        torch = sys.modules["torch"]
        with torch.no_grad():
            # A gradient that overflowed, as the first of mixed precision do, is no answer.
            if not all(bool(torch.isfinite(one).all() & (one != 0).any()) for pair in passes for one in pair):
                return []
            found = [read_targets(output, gradient) for output, gradient in passes]
            one = found[0]
            if one is None or any(other is None or other.loss != one.loss for other in found):
                self._left -= 1 if self._left <= TRIES else 0
                return []
            self._left = TRIES + 1  # from now on it is asked every time
            every = len(found)
            targets = torch.cat([other.targets for other in found if other is not None])[::every].contiguous()
            predictions = torch.cat([other.predictions for other in found if other is not None])[::every].contiguous()
        if one.loss is QUANTITY and bool((targets.max() - targets.min()).abs() > _NEAR * targets.abs().max()):
            return []  # passes with a target each
        return [(f"{self._prefix}{one.loss}_0", predictions, "prediction"),
                (f"{self._prefix}{one.loss}_1", targets, "label")]


def read_targets(output: Any, gradient: Any) -> Optional[Found]:
    """What ``output`` was compared with, if ``gradient`` is that of a loss that tells."""
    torch = sys.modules["torch"]
    z, g = output.double(), gradient.double()
    if not bool(torch.isfinite(z).all() and torch.isfinite(g).all()):
        return None
    if z.dim() > 2:
        return _places(torch, output, z, g) or _switches(torch, output, z, g)
    if z.dim() == 2 and z.shape[1] > 1:
        return _classes(torch, output, z, g)
    return _switches(torch, output, z.reshape(-1), g.reshape(-1)) or \
        _one_quantity(torch, output, z.reshape(-1), g.reshape(-1))


def _classes(torch: Any, output: Any, z: Any, g: Any) -> Optional[Found]:
    """Cross-entropy, of hard labels or of smoothed ones. Samples without a gradient are left out of it."""
    kept = g.abs().amax(1) > 0
    if int(kept.sum()) < 2:
        return None
    z, g = z[kept], g[kept]
    p = torch.softmax(z, 1)
    label = g.argmin(1)  # there alone the target is above what was said; of smoothed ones most often
    for smooth in (False, True, True):
        others = torch.ones_like(p).scatter_(1, label[:, None], 0)
        scale, share = _line(torch, p, g, others, smooth)
        if not scale > 0:
            continue
        target = p - g / scale
        label = target.argmax(1)
        expected = torch.full_like(p, share).scatter_(1, label[:, None], 1 - share * (p.shape[1] - 1))
        if float((target - expected).abs().max()) <= _NEAR and -_NEAR < share * p.shape[1] < 0.7:
            return Found(LOGITS, output[kept], label)
    return None


def _places(torch: Any, output: Any, z: Any, g: Any) -> Optional[Found]:
    """Cross-entropy at each place. What a row's gradient takes from one class it gives to others, so it sums to zero along
    the classes: on the last axis, as words have them, or on axis 1, where PyTorch's losses have them."""
    for axis in (z.dim() - 1, 1):
        if z.shape[axis] < 2 or bool(g.sum(axis).abs().sum() > _NEAR * g.abs().sum()):
            continue
        rows = [one.movedim(axis, -1).reshape(-1, z.shape[axis]) for one in (output, z, g)]
        found = _classes(torch, *rows)
        if found is None:
            continue
        targets = torch.full((len(rows[0]),), IGNORED, dtype=torch.long)
        targets[rows[2].abs().amax(1) > 0] = found.targets
        places = [size for at, size in enumerate(output.shape) if at != axis]
        return Found(LOGITS, output.movedim(axis, -1).contiguous(), targets.reshape(places))
    return None


def _line(torch: Any, p: Any, g: Any, others: Any, smooth: bool) -> Tuple[float, float]:
    """(s, what smoothing gives to each class) of g = s · (p − share), over the entries that are not the label's."""
    if not smooth:
        return float((others * g * p).sum() / (others * p * p).sum()), 0.0
    count = others.sum()
    mean_p, mean_g = (others * p).sum() / count, (others * g).sum() / count
    spread = (others * (p - mean_p) ** 2).sum()
    scale = float((others * (p - mean_p) * (g - mean_g)).sum() / spread)
    return scale, float(mean_p - mean_g / scale) if scale > 0 else 0.0


def _switches(torch: Any, output: Any, z: Any, g: Any) -> Optional[Found]:
    """Binary cross-entropy, of a number for each sample or for each place. Where all outputs are about the same, any loss
    has a gradient of one size."""
    places = output.dim() > 2
    p = torch.sigmoid(z)
    label = (g < 0).double()
    size = (p - label).abs()
    kept = g != 0  # what was masked
    if int(kept.sum()) < 2:
        return None
    scale = (g.abs() * size)[kept].sum() / (size * size)[kept].sum()
    left = ((g.abs() / scale - size)[kept] ** 2).mean().sqrt()
    spread = size[kept].std()
    if not bool(scale > 0) or not bool(spread > 1e-3) or bool(left > min(0.1 * float(spread), _NEAR)):
        return None
    told = label.long()
    told[~kept & (size >= 1 - _NEAR)] = 1  # sure and right is without a gradient too
    masked = ~kept & (size > _NEAR) & (size < 1 - _NEAR)
    if not places:
        return Found(SWITCHES, output.reshape(-1)[~masked], told[~masked])
    told[masked] = IGNORED
    return Found(SWITCHES, output.contiguous(), told)


def _one_quantity(torch: Any, output: Any, z: Any, g: Any) -> Optional[Found]:
    """A squared error whose gradient follows from the output alone: all samples have one target."""
    middle = z - z.mean()
    spread = (middle * middle).sum()
    if not bool(spread > 1e-12 * (z * z).sum()) or not bool(spread > 0):
        return None
    slope = (middle * g).sum() / spread
    left = g - g.mean() - slope * middle
    explained = slope * spread.sqrt()
    if not bool(explained > _NEAR * g.norm()) or bool(left.norm() > _SAME * explained):
        return None
    return Found(QUANTITY, output.reshape(-1), (z - g / slope).mean().expand(z.shape).contiguous())


def _fits(value: Any) -> bool:
    """Numbers that are learned, one or a row of them for each of several samples, or for each place of some."""
    if not value.requires_grad or not value.is_floating_point() or hasattr(value, "to_local") or value.dim() == 0:
        return False
    if value.dim() <= 2:
        return bool(value.shape[0] > 3 and value.numel() <= MAX_NUMBERS)
    return bool(value.dim() <= 5 and _samples(value) > 0)


def _samples(value: Any) -> int:
    """How many of the first samples hold MAX_NUMBERS; of outputs with a row for each sample all."""
    if value.dim() <= 2:
        return int(value.shape[0])
    return min(int(value.shape[0]), MAX_NUMBERS // max(value[0].numel(), 1)) if value.shape[0] > 0 else 0


def _on_host(passes: List[Tuple[Any, Any]]) -> Tuple[List[Tuple[Any, Any]], Any]:
    """The same where they can be read, once the event (None: now) is done."""
    torch = sys.modules["torch"]
    if not any(one.is_cuda for pair in passes for one in pair):
        return [(output.cpu(), gradient.cpu()) for output, gradient in passes], None
    moved = [tuple(torch.empty(one.shape, dtype=one.dtype, pin_memory=True).copy_(one, non_blocking=True)
                   for one in pair) for pair in passes]
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(passes[0][0].device))
    return moved, Arrival(event)  # type: ignore[return-value]
