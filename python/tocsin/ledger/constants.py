"""The loss that the best constant answer would have had: made of the targets before, judged on those of now.

It is plug-in (prequential), so nothing that is judged has helped to make it. Reads what ``moments.moments`` gives.
"""

from typing import Any, Dict, List, Optional

import numpy

from .moments import EPSILON, HEAD, Form

_KEPT_VALUES = 1024  # of a unit's past targets, where its constant is a median or the like
_HALVINGS = 60       # of the interval that Huber's constant lies in


class Constant:
    """Of one loss call. ``loss()`` with what the steps before have shown, then ``learn()``."""

    def __init__(self) -> None:
        self._form: Optional[Form] = None
        self._sums: Any = None            # classes: weighted counts; binary, poisson: Σ w·t; squared: Σ w·t and w
        self._weight = 0.0
        self._past: Any = None            # (values, weights), each (kept, units), sorted by value

    def loss(self, form: Form, head: Dict[str, float], tail: Any) -> Optional[float]:
        """Σ over the samples of the loss at the constant; None without a past, or where it cannot be known."""
        if form.kind == "other" or self._form is None or self._form[:2] != form[:2] or self._weight <= 0:
            return None
        total = head["weight"]
        if form.kind == "cross_entropy":
            if numpy.count_nonzero(self._sums) < 2:
                return None  # of one class alone the constant knows nothing
            share = _smoothed((self._sums + 0.5) / (self._weight + form.units / 2), form.smoothing, 1.0)
            value = -float(numpy.sum(_smoothed(tail, form.smoothing, total) * numpy.log(share)))
        elif form.kind == "binary":
            share = (self._sums + 0.5) / (self._weight + 1)
            share, on = (one * (1 - form.smoothing) + 0.5 * form.smoothing * whole for one, whole in ((share, 1.0), (tail, total)))
            value = -float(numpy.mean(on * numpy.log(share) + (total - on) * numpy.log1p(-share)))
        elif form.kind == "squared":
            mean, apart = tail.reshape(2, form.units)
            value = float(numpy.mean(apart + total * (mean - self._sums / self._weight) ** 2))
        elif form.kind == "poisson":
            rate = (self._sums + 0.5) / self._weight
            value = float(numpy.mean(total * rate - tail * numpy.log(rate + (0.0 if form.from_logits else EPSILON))))
        else:
            targets = _rows(form, head, tail)
            if targets is None or self._past is None:
                return None
            values, weights = targets
            far = numpy.abs(values - self._middle(form))
            if form.kind == "huber":
                far = numpy.where(far <= form.delta, 0.5 * far * far, form.delta * far - 0.5 * form.delta ** 2)
            value = float(numpy.sum(weights[:, None] * far) / form.units)
        return form.scale * value

    def learn(self, form: Form, head: Dict[str, float], tail: Any) -> None:
        """The targets of a step of training that has ended."""
        if self._form is None or self._form[:2] != form[:2]:
            self._form, self._sums, self._weight, self._past = form, 0.0, 0.0, None
        if form.kind == "other" or not head["weight"] > 0:
            return
        if form.kind in ("absolute", "huber"):
            targets = _rows(form, head, tail)
            if targets is not None:
                self._keep(*targets)
                self._weight += head["weight"]
            return
        sums = tail[:form.units] * head["weight"] if form.kind == "squared" else tail
        self._sums, self._weight = self._sums + sums, self._weight + head["weight"]

    def _keep(self, values: Any, weights: Any) -> None:
        weights = numpy.broadcast_to(weights[:, None], values.shape)
        if self._past is not None:
            values, weights = numpy.concatenate([self._past[0], values]), numpy.concatenate([self._past[1], weights])
        order = numpy.argsort(values, axis=0, kind="stable")
        values, weights = (numpy.take_along_axis(one, order, axis=0) for one in (values, weights))
        if len(values) > _KEPT_VALUES:  # neighbours become one, at the first or the second of them by turns
            even = len(values) // 2 * 2
            pairs = values[:even].reshape(-1, 2, values.shape[1])
            turn = numpy.arange(len(pairs)) % 2
            merged = numpy.where(turn[:, None] == 0, pairs[:, 0], pairs[:, 1])
            heavy = weights[:even].reshape(-1, 2, values.shape[1]).sum(axis=1)
            values, weights = numpy.concatenate([merged, values[even:]]), numpy.concatenate([heavy, weights[even:]])
        self._past = values, weights

    def _middle(self, form: Form) -> Any:
        """For each unit the constant with the least loss on the past: the median, or where Huber's slopes cancel."""
        values, weights = self._past
        if form.kind == "absolute":
            reached = numpy.cumsum(weights, axis=0) >= weights.sum(axis=0) / 2
            return numpy.take_along_axis(values, reached.argmax(axis=0)[None], axis=0)[0]
        low, high = values[0].copy(), values[-1].copy()
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            above = numpy.sum(weights * numpy.clip(values - middle, -form.delta, form.delta), axis=0) > 0
            low, high = numpy.where(above, middle, low), numpy.where(above, high, middle)
        return (low + high) / 2


def _smoothed(counts: Any, smoothing: float, total: float) -> Any:
    return counts if not smoothing else (1 - smoothing) * counts + smoothing * total / len(counts)


def _rows(form: Form, head: Dict[str, float], tail: Any) -> Any:
    """(values, weights) of the targets that came one by one; None if there were more than are kept."""
    rows = int(head["rows"])
    if not 0 < rows <= form.kept:
        return None
    values = tail[:form.kept * form.units].reshape(form.kept, form.units)[:rows]
    return values, tail[form.kept * form.units:][:rows]


def split(form: Form, vector: Any) -> Any:
    """(head by name, tail) of what ``moments`` gave, but for its sums per class."""
    numbers: List[float] = vector[:len(HEAD)].tolist()
    return dict(zip(HEAD, numbers)), vector[len(HEAD):len(vector) - form.by_class]


def by_class(form: Form, vector: Any) -> Any:
    """A row for each of ``FIELDS``; None: it has none."""
    return vector[-form.by_class:].reshape(-1, form.units) if form.by_class else None
