"""Moments of one loss call (docs/ledger.md): what its outputs and targets say of the task, as one small array.

The arithmetic is written once, over a table of operations (operations.py), so that the same lines run inside a compiled step. No operation depends on values, draws a
random number or needs a shape that is not known before: what a step gives back always has the length of its
:class:`Form`. Shapes: losses have one number for each sample, ``(n,)``, or for each place of n rows, ``(n, …)``.
Classes have outputs ``(n, …, K)``; quantities and switches have outputs ``(n, …, units)``.
"""

import math
from typing import Any, List, NamedTuple, Optional, Tuple

from .by_class import FIELDS, MOST, MOST_LOSS

HEAD = ("rows", "samples", "weight", "loss", "pairs", "wins", "straight", "crossed", "one_target", "output_spread",
        "target_spread", "right", "answers", "labels", "same_as_input", "same_by_chance", "input_places", "ceiling")
KINDS = ("cross_entropy", "binary", "squared", "absolute", "huber", "poisson", "other")
CLASSES = ("cross_entropy", "binary")  # whose targets are classes, not quantities
MAX_UNITS = 4096  # places · channels that have a constant each; of more, places share that of their channel
MOST_UNITS = 65536  # outputs of more have no constant
MAX_KEPT = 2048   # numbers that a step gives back of targets whose constant needs them all
LEAST_CHANGE = 1e-6  # of the loss of a pair: an exchange that changes less is rounding
EPSILON = 1e-7    # as Keras clips probabilities
CLEAR = 0.9       # share of a class from which on a target of several is one of this class


class Form(NamedTuple):
    """What is known of a call before its numbers are. ``units``: classes, or units that have a constant each;
    ``kept``: targets that are given back one by one (``absolute``, ``huber``). ``scale``: of the loss against its
    textbook form."""

    kind: str
    units: int = 1
    kept: int = 0
    from_logits: bool = True
    smoothing: float = 0.0
    delta: float = 1.0
    scale: float = 1.0
    answers: bool = False  # right, answers and labels are known
    same: bool = False     # inputs and targets are whole numbers of one shape
    squashed: bool = False  # binary: the model ends in a sigmoid

    @property
    def by_class(self) -> int:
        """Numbers at the end that are sums per class, class by class for each of ``FIELDS``."""
        return self.units * len(FIELDS) if self.kind == "cross_entropy" and self.units <= MOST else 0

    @property
    def length(self) -> int:
        return self.by_class + len(HEAD) + {"squared": 2 * self.units, "absolute": self.kept * (self.units + 1), "other": 0,
                            "huber": self.kept * (self.units + 1)}.get(self.kind, self.units)


class Call(NamedTuple):
    """One loss call, prepared: ``own`` and ``exchanged`` are losses with the sample's own target, and with that of
    the other of its pair; ``weights`` has their shape. ``targets``: ids of the losses' shape, or (…, units)."""

    form: Form
    own: Any
    exchanged: Any
    weights: Any
    outputs: Any
    targets: Any
    inputs: Any = None


def partners(ops: Any, rows: Any) -> Any:
    """For each of n rows the number of the row that it is paired with, i and i + n/2; itself, if it is the odd one.
    ``rows``: anything of n."""
    xp = ops.module
    ones = xp.ones_like(ops.cast(rows, "int32"))
    at, half = xp.cumsum(ones, axis=0) - 1, xp.sum(ones) // 2
    at, half = ops.cast(at, "int32"), ops.cast(half, "int32")
    return xp.where(at < half, at + half, xp.where(at < 2 * half, at - half, at))


def column(value: Any) -> Any:
    """The first number of each row."""
    while len(value.shape) > 1:
        value = value[:, 0]
    return value


def moments(ops: Any, call: Call) -> Any:
    """The array of ``call.form.length`` numbers: those of HEAD, then what the constant of the next steps needs."""
    xp, form = ops.module, call.form
    number = lambda value: ops.cast(value, ops.floats)  # noqa: E731
    own, exchanged = number(call.own), number(call.exchanged)
    weights = number(call.weights) * xp.ones_like(own)
    counts = weights != 0
    ones = number(counts)
    zero = xp.zeros_like(own)
    samples, total = xp.sum(ones), xp.sum(weights)
    partner = partners(ops, column(own))
    other = lambda value: xp.take(value, partner, axis=0)  # noqa: E731

    rows = xp.cumsum(xp.ones_like(own), axis=0) - 1
    first = rows < xp.floor(xp.sum(column(xp.ones_like(own))) / 2)
    exchangeable = first & counts & other(counts) & _differ(xp, call, other)
    straight = xp.where(exchangeable, own + other(own), zero)
    crossed = xp.where(exchangeable, exchanged + other(exchanged), zero)
    far = exchangeable & (xp.abs(crossed - straight) > LEAST_CHANGE * xp.maximum(xp.abs(crossed), xp.abs(straight)))

    flat = xp.reshape(ones, (-1,))
    outputs = number(xp.reshape(call.outputs, (-1, call.outputs.shape[-1])))
    spread = _spread(xp, outputs, flat, samples)
    about, tail = _about_targets(ops, call, ones, weights, samples, total)
    same = _same(ops, call, ones) if form.same else [xp.zeros_like(samples)] * 3
    head = [xp.sum(xp.ones_like(own)), samples, total, xp.sum(xp.where(counts, own * weights, zero)),
            xp.sum(number(far)), xp.sum(number(far & (straight < crossed))), xp.sum(straight), xp.sum(crossed),
            about[0], spread, *about[1:], *same, _ceiling(ops, call, outputs, own)]
    return xp.concatenate([xp.stack([number(one) for one in head]), *(number(xp.reshape(one, (-1,))) for one in tail)], axis=0)


def _differ(xp: Any, call: Call, other: Any) -> Any:
    """Which samples have another target than their partner."""
    differ = call.targets != other(call.targets)
    while len(differ.shape) > len(call.own.shape):
        differ = xp.any(differ, axis=-1)
    return differ


def _spread(xp: Any, values: Any, ones: Any, samples: Any) -> Any:
    """Mean over units of the variance over samples, times samples."""
    held = xp.where(ones[:, None] > 0, values, xp.zeros_like(values))
    many = xp.maximum(xp.sum(ones), xp.ones_like(samples))
    mean = xp.sum(held, axis=0) / many
    apart = xp.where(ones[:, None] > 0, values - mean, xp.zeros_like(values))
    return xp.sum(apart * apart) / many / values.shape[-1] * samples


def _about_targets(ops: Any, call: Call, ones: Any, weights: Any, samples: Any, total: Any) -> Tuple[List[Any], List[Any]]:
    """([one_target, target_spread, right, answers, labels], arrays for the constant of the next steps)."""
    xp, form = ops.module, call.form
    if form.kind == "cross_entropy":
        return _about_classes(ops, call, xp.reshape(ones, (-1,)), xp.reshape(weights, (-1,)), samples)
    number = lambda value: ops.cast(value, ops.floats)  # noqa: E731
    width = call.targets.shape[-1]
    values = number(xp.reshape(call.targets, (-1, width)))
    flat, heavy = xp.reshape(ones, (-1,)), xp.reshape(weights, (-1,))
    held = flat[:, None] > 0
    nothing = xp.zeros_like(samples)
    some = xp.max(xp.where(held, values, xp.min(values, axis=0)), axis=0)  # of what counts
    alike = number(xp.all(xp.where(held, values, some) == some))
    answers = [nothing, nothing, nothing]
    if form.answers:
        said = number(xp.reshape(call.outputs, (-1,)) > (0.0 if form.from_logits else 0.5))
        yes, on = xp.sum(said * flat), xp.sum(number(values[:, 0] > 0.5) * flat)
        right = xp.sum(flat * number(said == number(values[:, 0] > 0.5)))
        answers = [right, xp.maximum(yes, samples - yes), xp.maximum(on, samples - on)]
    one = alike * number(samples > 1)
    return [one, _spread(xp, values, flat, samples), *answers], _tail(ops, form, values, heavy, total)


def _about_classes(ops: Any, call: Call, ones: Any, weights: Any, samples: Any) -> Tuple[List[Any], List[Any]]:
    xp, form = ops.module, call.form
    number = lambda value: ops.cast(value, ops.floats)  # noqa: E731
    answer = ops.cast(xp.reshape(xp.argmax(call.outputs, axis=-1), (-1,)), "int32")
    if len(call.targets.shape) == len(call.outputs.shape):
        shares = number(xp.reshape(call.targets, (-1, form.units)))
        target = ops.cast(xp.argmax(shares, axis=-1), "int32")
        counts, heavy = xp.sum(shares * ones[:, None], axis=0), xp.sum(shares * weights[:, None], axis=0)
    else:
        target = ops.cast(xp.reshape(call.targets, (-1,)), "int32")
        target = xp.minimum(xp.maximum(target, xp.zeros_like(target)), form.units - 1 + xp.zeros_like(target))
        counts, heavy = ops.segment_sum(ones, target, form.units), ops.segment_sum(weights, target, form.units)
    many = xp.maximum(xp.sum(counts), 1e-30 + xp.zeros_like(samples))
    said = ops.segment_sum(ones, answer, form.units)
    labels = xp.max(ops.segment_sum(ones, target, form.units))
    one = number(xp.max(counts) >= xp.sum(counts)) * number(samples > 1)
    spread = (1 - xp.sum((counts / many) ** 2)) * samples
    right = xp.sum(ones * number(answer == target))
    tail = [heavy, *_by_class(ops, call, ones, target, answer)] if form.by_class else [heavy]
    return [one, spread, right, xp.max(said), labels], tail


def _by_class(ops: Any, call: Call, ones: Any, target: Any, answer: Any) -> List[Any]:
    """``FIELDS`` of each class. A target of several classes counts for one that has nearly all of it. Pairs: of each sample whose partner has
    another class, whether its own class is more probable for it than for the partner."""
    xp, form = ops.module, call.form
    number = lambda value: ops.cast(value, ops.floats)  # noqa: E731
    partner = partners(ops, column(call.outputs))
    if len(call.targets.shape) == len(call.outputs.shape):
        ones = ones * number(xp.reshape(xp.max(call.targets, axis=-1), (-1,)) > CLEAR)
    shape = xp.sum(call.outputs, axis=-1)
    ids, counts = ops.like(target, shape), ops.like(ones, shape)
    logs = _logs(ops, form, number(call.outputs))
    own = xp.take_along_axis(logs, ids[..., None], axis=-1)[..., 0]
    other = xp.take_along_axis(xp.take(logs, partner, axis=0), ids[..., None], axis=-1)[..., 0]
    differ = (ids != xp.take(ids, partner, axis=0)) & (counts * xp.take(counts, partner, axis=0) > 0)
    known = differ & (xp.abs(own - other) > LEAST_CHANGE * xp.maximum(xp.abs(own), xp.abs(other)))
    loss = counts * xp.where(own > -MOST_LOSS, -own, 0 * counts + MOST_LOSS)
    flat = lambda value: xp.reshape(number(value), (-1,))  # noqa: E731
    sums = [ones, None, ones * number(answer == target), flat(loss), flat(known), flat(known & (own > other))]
    return [ops.segment_sum(ones, answer, form.units) if one is None else ops.segment_sum(one, target, form.units) for one in sums]


def _tail(ops: Any, form: Form, values: Any, weights: Any, total: Any) -> List[Any]:
    """What the constants of quantities and switches are made of. ``values``: (samples, units)."""
    xp = ops.module
    if form.kind == "other":
        return []
    if form.kind in ("absolute", "huber"):
        if form.kept == 0:
            return []
        at = ops.cast(xp.arange(form.kept), "int32")
        last = ops.cast(xp.sum(xp.ones_like(values[:, 0])) - 1, "int32")
        taken = xp.minimum(at, last + xp.zeros_like(at))
        heavy = xp.where(at <= last, xp.take(weights, taken, axis=0), 0 * xp.take(weights, taken, axis=0))
        return [xp.take(values, taken, axis=0), heavy]
    sums = xp.sum(values * weights[:, None], axis=0)
    if form.kind != "squared":
        return [sums]
    mean = sums / xp.where(total > 0, total, xp.ones_like(total))
    apart = values - mean
    return [mean, xp.sum(weights[:, None] * apart * apart, axis=0)]


def _same(ops: Any, call: Call, ones: Any) -> List[Any]:
    """How many targets are the input at their place, how many would be by chance, places that were compared."""
    xp, units = ops.module, call.form.units
    number = lambda value: ops.cast(value, ops.floats)  # noqa: E731
    flat = xp.reshape(ones, (-1,))
    ids = [ops.cast(xp.reshape(one, (-1,)), "int32") for one in (call.inputs, call.targets)]
    many = xp.sum(flat)
    counts = []
    for one in ids:
        inside = (one >= 0) & (one < units)
        counts.append(ops.segment_sum(flat * number(inside), xp.where(inside, one, xp.zeros_like(one)), units))
    chance = xp.sum(counts[0] * counts[1] / xp.maximum(many, xp.ones_like(many)))
    return [xp.sum(flat * number(ids[0] == ids[1])), chance, many]


def _ceiling(ops: Any, call: Call, outputs: Any, own: Any) -> Any:
    """The least loss of a sample where probabilities stand for scores, and the loss is indeed what softmax (of switches sigmoid) makes of
    them once more; 0 otherwise. Switches do not add up to 1 and scores may lie in 0 … 1 by chance: their model's end must be known."""
    xp, form = ops.module, call.form
    nothing = xp.zeros_like(xp.sum(own))
    if not form.from_logits or form.smoothing or not (form.kind == "cross_entropy" or (form.kind == "binary" and form.squashed)):
        return nothing
    inside = xp.all((outputs >= 0) & (outputs <= 1))
    if form.kind == "cross_entropy":
        inside = inside & xp.all(xp.abs(xp.sum(outputs, axis=-1) - 1) < 1e-3)
    twice = sample_losses(ops, form, call.outputs, call.targets)
    counts = ops.cast(call.weights, ops.floats) * xp.ones_like(own) != 0
    agree = xp.all(xp.where(counts, xp.abs(twice - own), 0 * own) <= 1e-3 * form.scale)
    least = form.scale * (math.log(math.e + form.units - 1) - 1 if form.kind == "cross_entropy" else math.log1p(math.exp(-1)))
    return xp.where(inside & agree, least + nothing, nothing)


# ---- losses by their formula


def sample_losses(ops: Any, form: Form, outputs: Any, targets: Any) -> Any:
    """The loss of each sample: the mean over its units, as frameworks have it. Classes: ids or shares."""
    xp = ops.module
    z = ops.cast(outputs, ops.floats)
    if form.kind == "cross_entropy":
        return form.scale * _cross_entropy(ops, form, z, targets)
    t = ops.cast(targets, ops.floats)
    if form.kind == "binary":
        t = t * (1 - form.smoothing) + 0.5 * form.smoothing
        if form.from_logits:
            each = xp.maximum(z, 0 * z) - z * t + xp.log(1 + xp.exp(-xp.abs(z)))
        else:
            p = xp.minimum(xp.maximum(z, 0 * z + EPSILON), 0 * z + 1 - EPSILON)
            each = -t * xp.log(p) - (1 - t) * xp.log(1 - p)
    elif form.kind == "squared":
        each = (z - t) ** 2
    elif form.kind == "absolute":
        each = xp.abs(z - t)
    elif form.kind == "huber":
        far = xp.abs(z - t)
        each = xp.where(far <= form.delta, 0.5 * far * far, form.delta * far - 0.5 * form.delta ** 2)
    elif form.kind == "poisson":
        each = xp.exp(z) - t * z if form.from_logits else z - t * xp.log(z + EPSILON)
    else:
        raise ValueError(f"no formula for a loss of the kind {form.kind!r}")
    return form.scale * xp.mean(each, axis=-1)


def _cross_entropy(ops: Any, form: Form, z: Any, targets: Any) -> Any:
    xp = ops.module
    logs = _logs(ops, form, z)
    if len(targets.shape) == len(z.shape):
        hit = xp.sum(ops.cast(targets, ops.floats) * logs, axis=-1)
    else:
        ids = ops.cast(targets, "int32")
        ids = xp.minimum(xp.maximum(ids, xp.zeros_like(ids)), form.units - 1 + xp.zeros_like(ids))
        hit = xp.take_along_axis(logs, ids[..., None], axis=-1)[..., 0]
    if not form.smoothing:
        return -hit
    return -(1 - form.smoothing) * hit - form.smoothing * xp.mean(logs, axis=-1)


def _logs(ops: Any, form: Form, z: Any) -> Any:
    """Logarithms of the classes' probabilities."""
    xp = ops.module
    if form.from_logits:
        top = xp.max(z, axis=-1, keepdims=True)
        return z - top - xp.log(xp.sum(xp.exp(z - top), axis=-1, keepdims=True))
    p = z / xp.sum(z, axis=-1, keepdims=True)
    return xp.log(xp.minimum(xp.maximum(p, 0 * p + EPSILON), 0 * p + 1 - EPSILON))


# ---- a call from what a script has


def prepared(ops: Any, form: Form, outputs: Any, targets: Any, weights: Any = None, inputs: Any = None,
             loss: Any = None) -> Optional[Call]:
    """Outputs and targets as a call; None for shapes that do not fit. ``form``: its units and what is known are
    filled in. ``loss(outputs, targets)``: in the place of the formula; a number for each sample, or for each unit,
    of which the mean is taken."""
    xp = ops.module
    if len(outputs.shape) == 0 or len(targets.shape) == 0:
        return None
    formula = form
    if form.kind == "cross_entropy":
        if len(targets.shape) == len(outputs.shape) and targets.shape[-1] == 1 != outputs.shape[-1]:
            targets = targets[..., 0]
        soft = len(targets.shape) == len(outputs.shape)
        if not soft and len(targets.shape) != len(outputs.shape) - 1:
            return None
        formula = form = form._replace(units=int(outputs.shape[-1]), answers=True)
    else:
        if len(outputs.shape) == 1:
            outputs = outputs[:, None]
        if len(targets.shape) == len(outputs.shape) - 1 and outputs.shape[-1] == 1:
            targets = targets[..., None]
        if len(targets.shape) != len(outputs.shape):
            return None
        found = _unfolded(xp, form, outputs, targets, weights)
        if found is None:
            return None
    partner = partners(ops, column(outputs))
    compare = loss or (lambda z, t: sample_losses(ops, formula, z, t))
    own, exchanged = compare(outputs, targets), compare(outputs, xp.take(targets, partner, axis=0))
    if form.kind != "cross_entropy":
        form, outputs, targets = found
    while len(own.shape) > max(len(outputs.shape) - 1, 1):
        own, exchanged = xp.mean(own, axis=-1), xp.mean(exchanged, axis=-1)
    if len(own.shape) != max(len(outputs.shape) - 1, 1):
        return None
    whole = form.kind == "cross_entropy" and inputs is not None and len(targets.shape) == len(inputs.shape) < len(outputs.shape)
    whole = whole and tuple(inputs.shape) == tuple(targets.shape) and ops.is_whole(inputs) and ops.is_whole(targets)
    weights = xp.ones_like(own) if weights is None else weights
    while len(weights.shape) > len(own.shape) and weights.shape[-1] == 1:
        weights = weights[..., 0]
    while len(weights.shape) < len(own.shape):
        weights = weights[..., None]
    return Call(form._replace(same=bool(whole)), own, exchanged, weights, outputs, targets, inputs if whole else None)


def _unfolded(xp: Any, form: Form, outputs: Any, targets: Any, weights: Any) -> Optional[Tuple[Form, Any, Any]]:
    """Quantities as (n, units), if all their places are known, few enough and weigh the same; else each place is a
    sample, and all share the constants of its channels."""
    sizes, others = tuple(outputs.shape[1:]), tuple(targets.shape[1:])
    known = all(isinstance(size, int) for size in sizes) and sizes == others
    by_row = weights is None or all(size == 1 for size in weights.shape[1:])
    if form.kind != "binary" and len(sizes) > 1 and known and by_row and math.prod(sizes) <= MAX_UNITS:
        outputs, targets = (xp.reshape(one, (-1, math.prod(sizes))) for one in (outputs, targets))
    elif sizes[:-1] != others[:-1] or (sizes[-1] != others[-1] and 1 not in (sizes[-1], others[-1])):
        return None  # or one is broadcast over the places of the other
    units = int(targets.shape[-1])
    kind = form.kind if units <= MOST_UNITS else "other"
    kept = MAX_KEPT // (units + 1) if kind in ("absolute", "huber") else 0
    answers = kind == "binary" and int(outputs.shape[-1]) == 1
    return form._replace(kind=kind, units=units, kept=kept, answers=answers), outputs, targets
