"""Cross-entropy of classes, for the ledger: from scores (``cross_entropy``) or from their logarithms (``nll_loss``), of
one label for each sample or place, or of shares; with weights of classes, smoothed labels, and what is ignored."""

import math
from typing import Any, Dict

from tocsin.ledger.moments import CLEAR
from .by_class import add_on_device, table_of
from .host import ANY, HostClasses, numpy_of
from .rows import Rows, compare, partner, rows_that_count, spread

_CERTAIN = 8  # samples from which on scores that are all probabilities are no accident


def measure_classes(torch: Any, given: Any, state: Dict[str, Any], learns: bool) -> Dict[str, Any]:
    """Sums of one call (docs/ledger.md) and, for itself: ``past``, whether there was a target before, and ``_ceiling``."""
    scores, target = given.output.detach(), given.target.detach()
    if scores.dim() == 1:
        scores, target = scores[None], target[None]
    classes = scores.shape[1]
    soft = target.is_floating_point()
    if soft:
        valid = torch.ones(scores.shape[0] * math.prod(scores.shape[2:]), dtype=torch.bool, device=scores.device)
    else:
        target = target.reshape(-1)
        valid = target != given.values["ignore_index"]
    rows = rows_that_count(torch, valid, classes, scores.dim() == 2 or scores.shape[0] > 1)
    if rows is None:
        return {"samples": torch.zeros(())}
    scores = _taken(scores, rows)
    target = _taken(target, rows) if soft else target if rows.index is None else target[rows.index]
    if rows.mask is not None and not soft:
        target = torch.where(rows.mask, target, torch.zeros_like(target))
    if scores.dtype is not torch.float64:
        scores = scores.float()
    np = None if soft or rows.mask is not None else numpy_of(scores, ANY)
    if np is not None:
        return HostClasses(given, scores, target, rows).told(np, torch, state, learns, _rough(torch, given), _CERTAIN)
    return _Classes(torch, given, scores, target, rows, soft).told(state, learns)


def _rough(torch: Any, given: Any) -> float:
    """How far a sum of probabilities may lie from 1."""
    return 1e-4 if given.output.dtype in (torch.float32, torch.float64) else 2e-2


def _taken(values: Any, rows: Rows) -> Any:
    """The rows of (N, C) or (N, C, places …) that are looked at, as (rows, C)."""
    if values.dim() == 2:
        return values if rows.index is None else values[rows.index]
    values = values.flatten(2)
    if rows.index is None:
        return values.movedim(1, -1).reshape(-1, values.shape[1])
    places = values.shape[2]
    return values[rows.index.div(places, rounding_mode="floor"), :, rows.index % places]


class _Classes:
    def __init__(self, torch: Any, given: Any, scores: Any, target: Any, rows: Rows, soft: bool) -> None:
        self._torch, self._rows, self._soft = torch, rows, soft
        self._scores, self._target = scores, target.to(scores.dtype) if soft else target
        self._logs = scores if given.name == "nll_loss" else torch.log_softmax(scores, 1)
        self._classes = scores.shape[1]
        weight = given.values.get("weight")
        self._weight = None if weight is None else weight.detach().to(scores.dtype)
        self._smoothing = float(given.values.get("label_smoothing", 0.0))
        self._scaled = given.reduction() == "mean" and weight is not None and not soft
        self._probabilities = given.name == "cross_entropy" and self._classes >= 2
        self._rough = _rough(torch, given)

    def told(self, state: Dict[str, Any], learns: bool) -> Dict[str, Any]:
        torch, rows, mask = self._torch, self._rows, self._rows.mask
        own, logs = self._target, self._logs
        flat = self._flat(logs)
        loss = self._losses(logs, own, flat)
        label = own.argmax(1) if self._soft else own
        here = self._counts(label)
        shares = own.sum(0, dtype=torch.float64) if self._soft else here
        first, second = partner(torch, rows)
        mine, others = own[first], own[second]
        crossed = self._losses(logs[first], others, None if flat is None else flat[first]) \
            + self._losses(logs[second], mine, None if flat is None else flat[second])
        pair = compare(torch, loss[first] + loss[second], crossed, self._differ(mine, others))
        trivial, past = self._trivial(state, own)
        if learns:
            state["counts"] = shares if past is None else state["counts"] + shares
        factor = 1.0 if not self._scaled else rows.count / self._sum(self._weight[own])  # as the reduction divides
        answer = self._scores.argmax(1)
        table = table_of(torch, state, learns, self._classes, label.device)
        if table is not None:
            clear = mask if not self._soft else own.max(1)[0] > CLEAR if mask is None else mask & (own.max(1)[0] > CLEAR)
            add_on_device(torch, table, logs, label, clear, answer, first, second, rows.pairs)
        part = shares / shares.sum()
        out = {"samples": rows.count, "loss": self._sum(loss) * factor, "trivial": self._sum(trivial) * factor,
               # Of one class alone the constant knows nothing: that it stands at this place is how the loss is written (one true pair among many).
               "past": 0.0 if past is None else ((past > 0).sum() > 1).double(), **pair,
               "output_spread": spread(torch, self._scores, mask, rows.count),
               "target_spread": (1.0 - (part * part).sum()) * rows.count,
               "one_target": self._alike(own, here), "right": self._sum(answer == label),
               "answers": self._counts(answer).max(), "labels": here.max()}
        if self._scaled:
            out["straight"], out["crossed"] = out["straight"] * factor, out["crossed"] * factor
        if self._probabilities:
            out["ceiling"] = math.log(math.e + self._classes - 1) - 1
            out["_ceiling"] = self._all_probabilities()
        return out

    def _flat(self, logs: Any) -> Any:
        """Of each row what smoothing adds, whatever the label."""
        if self._soft or not self._smoothing:
            return None
        all_of_it = logs.sum(1) if self._weight is None else logs @ self._weight
        return all_of_it * (-self._smoothing / self._classes)

    def _losses(self, logs: Any, target: Any, flat: Any) -> Any:
        """Of each row with its target. The weight of a class goes with the target."""
        if self._soft:
            smoothed = target * (1 - self._smoothing) + self._smoothing / self._classes
            return -(logs * (smoothed if self._weight is None else smoothed * self._weight)).sum(1)
        found = logs.gather(1, target[:, None])[:, 0]
        if self._weight is not None:
            found = found * self._weight[target]
        return -found if flat is None else flat - found * (1 - self._smoothing)

    def _trivial(self, state: Dict[str, Any], own: Any) -> Any:
        """(of each row the loss of the constant that the targets before give, what is known of those)."""
        torch, counts = self._torch, state.get("counts")
        weight = 1.0 if self._weight is None else self._weight.double()
        weighted = (0.0 if counts is None else counts * weight) + torch.full(
            (self._classes,), 0.5, dtype=torch.float64, device=self._scores.device)
        share = weighted / weighted.sum()
        if self._smoothing:
            share = share * (1 - self._smoothing) + self._smoothing / self._classes
        logs = share.log().to(self._logs.dtype)[None]
        if self._soft:
            return self._losses(logs, own, None), counts
        found = logs[0][own] if self._weight is None else (logs[0] * self._weight)[own]
        if not self._smoothing:
            return -found, counts
        return self._flat(logs) - found * (1 - self._smoothing), counts

    def _counts(self, label: Any) -> Any:
        torch, mask = self._torch, self._rows.mask
        ones = torch.ones(label.shape, dtype=torch.float64, device=label.device) if mask is None else mask.double()
        return torch.zeros(self._classes, dtype=torch.float64, device=label.device).scatter_add_(0, label, ones)

    def _differ(self, mine: Any, others: Any) -> Any:
        differ = (mine != others).any(1) if self._soft else mine != others
        return differ if self._rows.pairs is None else differ & self._rows.pairs

    def _alike(self, own: Any, here: Any) -> Any:
        return (own == own[:1]).all() if self._soft else here.max() == self._rows.count

    def _sum(self, values: Any) -> Any:
        torch, mask = self._torch, self._rows.mask
        values = values.double()
        return values.sum() if mask is None else torch.where(mask, values, torch.zeros_like(values)).sum()

    def _all_probabilities(self) -> Any:
        """Certain only in all of several rows."""
        scores, count = self._scores, self._rows.count
        if not scores.is_cuda and not bool((scores[0].sum() - 1).abs() < self._rough):
            return 0.0
        near = (scores.sum(1) - 1).abs().max() < self._rough
        return (scores.min() >= 0) & (scores.max() <= 1) & near & (count >= _CERTAIN)
