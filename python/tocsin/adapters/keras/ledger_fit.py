"""The ledger of a Keras training: which batches are measured, and when what they gave is told."""

from time import perf_counter
from typing import Any, Optional

import keras

from tocsin.ledger.book import Book, Pace
from .ledger import Attachment


class FitLedger:
    """Of one model and one hook. Each call is the callback's, inside a guard."""

    def __init__(self, sink: Any, model: Any) -> None:
        self._sink = sink
        self._broken = False
        self._training = True
        self._wanted = self._measured = False
        self._began = self._cost = 0.0
        self._attachment: Optional[Attachment] = Attachment.of(model) if sink.wants_ledger else None
        if self._attachment is None:
            return
        if not isinstance(sink.ledger, Book):
            if sink.ledger is not None:
                sink.ledger.detach()  # that of PyTorch's functions would count what Keras calls, too
            sink.ledger = Book(sink)
            sink.attach(sink.ledger)
        self.book: Book = sink.ledger
        self._attachment.attach(self.book.skip, self._failed)
        if any(isinstance(layer, keras.layers.BatchNormalization) for layer in model._flatten_layers()):
            self.book.batches.worlds.has_averages()

    def _failed(self, error: BaseException) -> None:
        if not self._broken:  # each time that it is traced, and with PyTorch at each step
            self._sink.failed("ledger", error)
        self._broken = True

    def before(self, training: bool, reads: bool = True) -> None:
        """A batch comes. ``reads``: the callback will wait for what it gives."""
        if self._attachment is None:
            return
        now, pace = perf_counter(), self._pace(training)
        if self._began and training == self._training:
            pace.took(self._measured, now - self._began, self._cost)
        self._training, self._began, self._cost = training, now, 0.0
        self._wanted = pace.due() or (self._wanted and training)
        self._measured = self._wanted and reads and not self._broken
        if self._measured:
            self._wanted = False
        self._attachment.ask(self._measured)
        self._add_cost(now)

    def after(self, training: bool) -> None:
        """The batch is done, and its loss was read."""
        if self._attachment is None or not self._measured:
            return
        now = perf_counter()
        for name, form, vector, held in self._attachment.take(training):
            self.book.add(name, form, vector, training, held)
        self._add_cost(now)

    def begins_epoch(self) -> None:
        """Training reads its data once more."""
        if self._attachment is not None:
            self.book.batches.passes += 1
            if self.book.batches.passes > 1:
                self._tell_passes()

    def _tell_passes(self) -> None:
        """Not where samples are weighed: a loss of training is then none that an evaluation can be compared with."""
        if self._attachment is not None and not self._attachment.weighted:
            self.book.batches.worlds.begins_pass(self.book.batches.passes)

    def publish(self) -> None:
        """As scalars of the present step."""
        if self._measured:
            now = perf_counter()
            if self._training:
                self._tell_passes()
            self.book.publish()
            self._add_cost(now)

    def pause(self) -> None:
        """What comes next is no batch of this kind."""
        self._began = 0.0

    def end(self) -> None:
        """The training is over."""
        if self._attachment is not None:
            self._attachment.detach()
            self._attachment = None

    def _pace(self, training: bool) -> Pace:
        return self.book.training if training else self.book.evaluation

    def _add_cost(self, since: float) -> None:
        spent = perf_counter() - since
        self._cost += spent
        self.book.seconds += spent
