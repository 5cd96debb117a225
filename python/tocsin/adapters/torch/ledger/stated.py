"""What a script says of its outputs and targets itself (``hook.targets()``), where no function of torch is called for them."""

import re
import sys
from typing import Any, Callable, Dict, List, Optional

from .calls import Arguments
from .functions import NAMES
from .rows import MAX_SAMPLES, Rows, compare, partner, spread


def stated(outputs: Any, targets: Any, loss: Any) -> Any:
    """``loss``: the name of a function of torch, a function of (outputs, targets), or None: what their types suggest."""
    if loss is None:
        loss = "mse_loss" if targets.is_floating_point() else "cross_entropy"
    if not callable(loss):
        if loss not in NAMES:
            raise ValueError(f"no loss {loss!r}: one of {', '.join(NAMES)}, or a function of (outputs, targets)")
        return _Named(loss, (outputs, targets), {})
    return _Own(outputs, targets, loss)


class _Named(Arguments):
    __slots__ = ()
    learns = True


class _Own:
    """A loss of the script's. What the best constant would cost is not known of it."""

    learns = True

    def __init__(self, outputs: Any, targets: Any, loss: Callable[[Any, Any], Any]) -> None:
        if len(outputs) != len(targets):
            raise ValueError(f"{len(outputs)} outputs, {len(targets)} targets: one for each sample")
        self.name = re.sub(r"\W", "_", getattr(loss, "__name__", type(loss).__name__)).strip("_") or "loss"
        self.output, self.target, self._loss = outputs, targets, loss

    def tensors(self) -> List[Any]:
        return [self.output, self.target]

    def with_tensors(self, output: Any, target: Any) -> "_Own":
        """The same loss of others."""
        return _Own(output, target, self._loss)

    def kind(self) -> Any:
        return self.output.dim()

    def sums(self, torch: Any, state: Dict[str, Any], learns: bool) -> Dict[str, Any]:
        apart = -(-len(self.output) // MAX_SAMPLES)
        outputs, targets = self.output.detach()[::apart], self.target.detach()[::apart]
        count = len(outputs)
        rows = Rows(None, None, count, count, None, count // 2)
        first, second = partner(torch, rows)
        mine, others = targets[first], targets[second]
        loss = self._losses(outputs, targets)
        out = {"samples": count, "loss": loss.sum(dtype=torch.float64), "past": 0.0}
        if rows.half:
            crossed = self._losses(outputs[:2 * rows.half], torch.cat((others, mine)))
            differ = (mine != others).reshape(rows.half, -1).any(1)
            out.update(compare(torch, loss[first] + loss[second], crossed[:rows.half] + crossed[rows.half:], differ))
        flat = outputs.reshape(count, -1)
        if flat.is_floating_point():
            out["output_spread"] = spread(torch, flat.float() if flat.dtype is not torch.float64 else flat, None, count)
        if targets.is_floating_point():
            out["target_spread"] = spread(torch, targets.reshape(count, -1).double(), None, count)
        out["one_target"] = (targets == targets[:1]).all()
        return out

    def _losses(self, outputs: Any, targets: Any) -> Any:
        found: Optional[Any] = self._loss(outputs, targets)
        if not isinstance(found, sys.modules["torch"].Tensor) or found.dim() == 0 or len(found) != len(outputs):
            raise ValueError("loss: a function that gives a number for each sample (reduction='none')")
        return found.detach().reshape(len(outputs), -1).mean(1)
