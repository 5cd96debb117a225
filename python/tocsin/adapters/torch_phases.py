"""Times of the forward and the backward pass of a PyTorch model, where they were asked for.

A hook on the model is traced by a compiler, so there is none without ``watch(..., phases=True)``.
"""

from collections import OrderedDict
from time import time_ns
from typing import Any, List

from ..sink import Sink


class Passes:
    """Of one model. The backward pass lasts from the gradient of the model's output to the update, or
    to the next forward pass: with micro-batches, to that of the next one."""

    def __init__(self, sink: Sink, model: Any) -> None:
        self._sink = sink
        self._forward: List[int] = []  # when it began; a model may be applied inside of itself
        self.backward = 0  # when it began; 0: none goes on
        self._add_forward, self._add_backward = sink.phases.of("forward"), sink.phases.of("backward")
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
            if self.backward:
                self.end_backward()
            self._sink.clock.begin_forward()
            self._forward.append(time_ns())
        except Exception as error:  # noqa: BLE001
            self._sink.failed("phases", error)

    def _end(self, module: Any, inputs: Any, output: Any) -> None:
        del inputs
        forward = self._forward
        if not forward or not module.training:
            return
        try:
            began = forward.pop()
            self._add_forward(began, time_ns() - began)
            if not forward:
                tensor = _first_with_gradient(output)
                if tensor is not None:
                    _call_with_gradient(tensor, self._begin_backward)
        except Exception as error:  # noqa: BLE001
            self._sink.failed("phases", error)

    def _begin_backward(self, gradient: Any) -> None:
        del gradient
        self.backward = self.backward or time_ns()

    def end_backward(self) -> None:
        """The update begins, or the next forward pass."""
        began, self.backward = self.backward, 0
        if began:
            self._add_backward(began, time_ns() - began)


def _first_with_gradient(output: Any) -> Any:
    if getattr(output, "requires_grad", False):
        return output
    values = list(output.values()) if isinstance(output, dict) else output
    if not isinstance(values, (list, tuple)):
        return None
    return next((value for value in values if getattr(value, "requires_grad", False)), None)


def _call_with_gradient(tensor: Any, function: Any) -> None:
    """``tensor.register_hook(function)`` without its handle, which nobody keeps: after a forward pass, which has
    pushed everything of ours out of the caches, making that takes longer than all else here."""
    made_by = tensor.grad_fn
    if made_by is None or tensor._backward_hooks is not None or not hasattr(made_by, "_register_hook_dict"):
        tensor.register_hook(function)
        return
    # No id of torch's own handles is negative, and whoever registers another hook adds it to this dictionary.
    tensor._backward_hooks = OrderedDict(((-1, function),))
    made_by._register_hook_dict(tensor)
