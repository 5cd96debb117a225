"""Times of the forward and the backward pass of a PyTorch model, where they were asked for.

A hook on the model is traced by a compiler, so there is none without ``watch(..., phases=True)``.
"""

from time import time_ns
from typing import Any, List

from ..sink import Sink


class Passes:
    """Of one model. The backward pass lasts from the gradient of the model's output to the update, or
    to the next forward pass: with micro-batches, to that of the next one."""

    def __init__(self, sink: Sink, model: Any) -> None:
        self._sink = sink
        self._forward: List[int] = []  # when it began; a model may be applied inside of itself
        self._backward = 0  # 0: none goes on
        self._handles = [model.register_forward_pre_hook(self._begin),
                         model.register_forward_hook(self._end)]

    def detach(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _begin(self, module: Any, inputs: Any) -> None:
        del inputs
        if not self._sink.active or not module.training:
            return
        try:  # guard() by hand, here and below: these are calls of every step
            if self._backward:
                self.end_backward()
            self._sink.clock.begin_forward()
            self._forward.append(time_ns())
        except Exception as error:  # noqa: BLE001
            self._sink.failed("phases", error)

    def _end(self, module: Any, inputs: Any, output: Any) -> None:
        del inputs
        if not self._forward or not module.training:
            return
        try:
            began = self._forward.pop()
            self._sink.phases.get("forward").add(began, time_ns() - began)
            if not self._forward:
                tensor = _first_with_gradient(output)
                if tensor is not None:
                    tensor.register_hook(self._begin_backward)
        except Exception as error:  # noqa: BLE001
            self._sink.failed("phases", error)

    def _begin_backward(self, gradient: Any) -> None:
        del gradient
        self._backward = self._backward or time_ns()

    def end_backward(self) -> None:
        """The update begins, or the next forward pass."""
        began, self._backward = self._backward, 0
        if began:
            self._sink.phases.get("backward").add(began, time_ns() - began)


def _first_with_gradient(output: Any) -> Any:
    if getattr(output, "requires_grad", False):
        return output
    values = list(output.values()) if isinstance(output, dict) else output
    if not isinstance(values, (list, tuple)):
        return None
    return next((value for value in values if getattr(value, "requires_grad", False)), None)
