"""How long a backward pass waits for the other ranks at its end, where DistributedDataParallel averages gradients.

The reducer works inside of the engine of autograd, where no function of Python's is called. But it waits in a callback that
it leaves for the end of the pass: one of ours that was left before runs when the gradients are computed, and one that this
one leaves runs when the reducer is done.
"""

import sys
import weakref
from typing import Any, Optional

from tocsin.loop.sink import Sink


class Reduces:
    """Of one model. What NCCL still does on a GPU is not waited for by anybody, and not told."""

    def __init__(self, sink: Sink, model: Any) -> None:
        self._model = weakref.ref(model)
        self._queue = sys.modules["torch"].autograd.Variable._execution_engine.queue_callback
        self._enter, self._leave = sink.phases.around("communication")
        self._computed = self._when_computed  # made once: it is called at every step

    def begin(self) -> None:
        """The gradient of the model's output has arrived."""
        model = self._model()
        if model is not None and model.require_backward_grad_sync:
            self._queue(self._computed)

    def _when_computed(self) -> None:
        self._enter()
        self._queue(self._leave)


def reduces_of(sink: Sink, model: Any) -> Optional[Reduces]:
    """None: it does not average gradients, or on a device: nobody waits for that here."""
    parallel = getattr(sys.modules["torch"].nn.parallel, "DistributedDataParallel", None)
    for one in (model, getattr(model, "_orig_mod", None)):
        if parallel is not None and isinstance(one, parallel) and all(
                parameter.device.type == "cpu" for parameter in one.parameters()):
            return Reduces(sink, one)
    return None
