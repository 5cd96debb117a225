"""The ledger of a loop that says itself what its outputs are compared with (docs/ledger.md)."""

from time import perf_counter
from typing import Any, Callable, Iterable, List, Optional, Tuple, Union

from .batch import Batch, Wanted, batch
from .book import Book, Pace
from .moments import EPSILON, KINDS, Form, moments, prepared
from .operations import Operations

_TORCH = {"mse_loss": ("squared", False), "l1_loss": ("absolute", False), "huber_loss": ("huber", False),  # as torch calls them
          "binary_cross_entropy": ("binary", False), "binary_cross_entropy_with_logits": ("binary", True),
          "poisson_nll_loss": ("poisson", True), "cross_entropy": ("cross_entropy", None)}
Told = Tuple[str, Form, Any, Optional[Batch]]  # name of the call, its form, its moments; what the batch holds
MAX_INPUTS = 4  # of a batch
Loss = Union[str, Callable[[Any, Any], Any], None]


class LoopLedger:
    """Of one loop. Nothing here raises."""

    def __init__(self, watcher: Any) -> None:
        self._watcher = watcher
        self._book: Optional[Book] = None
        self._asked: Optional[bool] = None  # of the step that comes, if the script wanted to know
        self._began = self._cost = 0.0
        self._measured = False

    def wanted(self) -> bool:
        """Whether the step that comes now is measured."""
        if not self._watcher.active or not self._watcher.hook.sink.wants_ledger:
            return False
        if self._asked is None:
            self._asked = self._pace(True).due()
        return self._asked

    def tell(self, found: Callable[[Wanted], Iterable[Told]], training: bool = True) -> None:
        """Before the present step ends. ``found(what is wanted)`` is called if it is measured."""
        if not self._watcher.active or not self._watcher.hook.sink.wants_ledger:
            return
        with self._watcher.hook.sink.guard("ledger"):
            now, pace = perf_counter(), self._pace(training)
            if training and self._began:
                pace.took(self._measured, now - self._began, self._cost)
            due = self.wanted() if training else pace.due()
            if due:
                book = self._opened()
                for name, form, vector, held in found(book.batches.wanted(training, book.training.steps)):
                    book.add(name, form, vector, training, held)
                book.publish()
                if not training:
                    book.classes.passes.ended()
                spent = perf_counter() - now
                book.seconds += spent
            if training:
                self._asked, self._measured, self._began = None, due, now
                self._cost = perf_counter() - now

    def skip(self, reason: str) -> None:
        self._opened().skip(reason)

    def _opened(self) -> Book:
        sink = self._watcher.hook.sink
        if self._book is None:
            if not isinstance(sink.ledger, Book):
                if sink.ledger is not None:
                    sink.ledger.detach()  # that of PyTorch's functions: the script speaks for itself
                sink.ledger = Book(sink)
                sink.attach(sink.ledger)
            self._book = sink.ledger
        return self._book

    def _pace(self, training: bool) -> Pace:
        book = self._opened()
        return book.training if training else book.evaluation


class Stated:
    """What ``hook.targets()`` says of arrays. One per hook; its step may have several calls, and ends anywhere."""

    def __init__(self, sink: Any) -> None:
        self._sink, self.book = sink, Book(sink)
        self._at: Any = None  # the step of training that was heard of last
        self._due = False
        self._began = self._cost = 0.0
        sink.attach(self.book)
        if sink.ledger is None:
            sink.ledger = self.book

    def tell(self, outputs: Any, targets: Any, loss: Loss, inputs: Any = None) -> None:
        clock, now, due = self._sink.clock, perf_counter(), True
        training = clock.mode == "train"
        if training:
            at = clock.position()
            if at != self._at:
                self.book.learn()
                if self._began:
                    self.book.training.took(self._due, now - self._began, self._cost)
                self._at, self._due, self._began, self._cost = at, self.book.training.due(), now, 0.0
            due = self._due
        elif clock.mode in ("eval", "predict"):
            due = self.book.evaluation.due()
        if due:
            wanted = self.book.batches.wanted(training, self.book.training.steps)
            for name, form, vector, held in of_arrays(outputs, targets, loss, inputs=inputs, wanted=wanted):
                self.book.add(name, form, vector, training, held)
            self.book.publish(ends=False)
            spent = perf_counter() - now
            self.book.seconds += spent
            self._cost += spent


def of_arrays(outputs: Any, targets: Any, loss: Loss = None, *, weights: Any = None, classes: Any = None,
              from_logits: Optional[bool] = None, inputs: Any = None, wanted: Wanted = Wanted()) -> List[Told]:
    """Of arrays in host memory; empty if their shapes do not fit. ``loss``: one of ``KINDS``, or a function of (outputs,
    targets) with a number for each sample; None: by the targets. ``classes``: what the columns of ``outputs`` stand for;
    None: whole numbers from 0. ``from_logits``: None: by the values, whether ``outputs`` are probabilities. ``inputs``: what the
    model was given, an array, or a list or dictionary of them."""
    import numpy

    z, t = numpy.asarray(outputs), numpy.asarray(targets)
    if classes is not None and z.ndim == t.ndim + 1:
        ids = numpy.searchsorted(classes, t).clip(0, len(classes) - 1)
        if not numpy.all(numpy.asarray(classes)[ids] == t):
            return []
        t = ids
    elif classes is not None and len(classes) == 2 and z.ndim == t.ndim:
        t, loss = (t == classes[1]).astype("float64"), loss or "binary"
    if loss is None:
        loss = "cross_entropy" if z.ndim == t.ndim + 1 and z.shape[-1] > 1 and t.dtype.kind in "iu" else "squared"
    function = loss if callable(loss) else None
    if isinstance(loss, str) and loss in _TORCH:
        loss, from_logits = _TORCH[loss]
    kind = "other" if function else str(loss)
    if kind not in KINDS or (kind == "other" and function is None):
        raise ValueError(f"loss {kind!r}: expected a function, or one of {', '.join(KINDS[:-1])}")
    if from_logits is None:
        from_logits = kind in ("cross_entropy", "binary") and not _shares(numpy, z, kind)
    ops = Operations()
    name = getattr(function, "__name__", "loss") if function else kind
    with numpy.errstate(all="ignore"):  # a loss that is not finite is left out later
        call = prepared(ops, Form(kind, from_logits=from_logits), z, t, None if weights is None else numpy.asarray(weights), None,
                        None if function is None else lambda a, b: numpy.asarray(function(a, b)))
        if call is None:
            return []
        held = batch(ops, kind, name, z, t, inputs_of(inputs, len(t)), wanted)
        return [(name, call.form, moments(ops, call), held)]


def inputs_of(inputs: Any, rows: int) -> List[Any]:
    """Arrays of NumPy with so many rows, of nested values too."""
    import numpy

    found: List[Any] = []
    pending = [inputs]
    while pending and len(found) < MAX_INPUTS:
        value = pending.pop(0)
        if isinstance(value, dict):
            pending[:0] = list(value.values())[:16]
        elif isinstance(value, (list, tuple)) and not (value and isinstance(value[0], (int, float))):
            pending[:0] = value[:16]
        elif value is not None and not hasattr(value, "tocsc"):  # a sparse matrix is no array
            one = numpy.asarray(value)
            if one.ndim > 0 and one.shape[0] == rows and one.dtype.kind in "fiub":
                found.append(one)
    return found


def _shares(numpy: Any, values: Any, kind: str) -> bool:
    """Whether they are probabilities."""
    inside = bool(numpy.all((values >= 0) & (values <= 1)))
    return inside and (kind == "binary" or bool(numpy.all(numpy.abs(values.sum(axis=-1) - 1) < 1e4 * EPSILON)))
