"""Times of the forward and the backward pass of a PyTorch model, and of its evaluations: two hooks on the root module.

A model that is watched may be compiled, scripted, copied and pickled as one that is not: a compiler that traces the hooks
finds nothing in them, scripting takes them out, and a copy has some that do nothing and know nothing of this package.
"""

import sys
import weakref
from collections import OrderedDict
from time import time_ns
from typing import Any, Callable, Collection, List, Optional

from tocsin.loop.phases import PHASES
from tocsin.loop.sink import Sink
from tocsin.loop.step_arrows import HELD
from .copies import Hook, uncount
from .reduces import Reduces, reduces_of
from .scripting import hide_from_scripting, show_to_scripting, taken_out
from .tracing import looking, on_whose_behalf


def can_be_timed(model: Any) -> bool:
    """A module that takes hooks: a scripted one does not."""
    return hasattr(model, "register_forward_pre_hook") and not isinstance(model, sys.modules["torch"].jit.ScriptModule)


class Passes:
    """Of one model. The backward pass lasts from the gradient of the model's output to the update, or to the next forward
    pass: with micro-batches, to that of the next one. Passes in the eval state are an evaluation, from the first of them to
    the last; those without gradients in training are nobody's. What the script times itself is not timed here."""

    def __init__(self, sink: Sink, model: Any, wanted: Collection[str] = PHASES) -> None:
        self.sink = sink
        self.clock = sink.clock
        self.forward: List[int] = []  # when it began; a model may be applied inside of itself
        self.backward = 0  # when it began; 0: none goes on
        self.add_forward, self.add_backward = sink.phases.of("forward"), sink.phases.of("backward")
        self._add_evaluation = sink.phases.of("evaluation")
        self._forward, self._backward = sink.phases.name_of("forward"), sink.phases.name_of("backward")
        self._reduces: Optional[Reduces] = reduces_of(sink, model)
        self.pending = True  # something ends with the next forward pass of training
        self._opened = sink.phases.take_opened()
        self.evaluated = (0, 0)  # begin of the first pass, end of the last one
        torch = sys.modules["torch"]
        looked_at = looking()  # constant where a compiler traces, so that there is nothing of ours in what it makes
        uncount(model, [model])
        self._hooks: "OrderedDict[int, Any]" = OrderedDict()
        self._native = self._of_library(torch.is_grad_enabled)
        if self._native:
            self.begin_update = self._native["update"]  # type: ignore[method-assign]
        hooks = (_Native(self, self._native["begin"], looked_at), _Native(self, self._native["end"], looked_at)) \
            if self._native else (_Begin(self, looked_at, torch.is_grad_enabled), _End(self, looked_at))
        self._on_model = hooks
        self._model = weakref.ref(model)
        self._handles: List[Any] = []
        self.look(model)
        sink.phases.automatic(self, wanted)

    def detach(self) -> None:
        if self.evaluated[0]:
            self.end_pending()
        for handle in self._handles:
            handle.remove()
        show_to_scripting([self._model()])

    def look(self, model: Any) -> None:
        """Hooks the model, again after ``torch.jit.script`` has taken the hooks out."""
        if self._handles and not taken_out(self._handles):
            return
        for handle in self._handles:
            handle.remove()
        self._handles = [model.register_forward_pre_hook(self._on_model[0]), model.register_forward_hook(self._on_model[1])]
        hide_from_scripting([model])

    def _of_library(self, with_gradients: Callable[[], bool]) -> Any:
        """What is done at every pass, as functions of the library (collectors/hook/abi/abi_passes.cc); {}: it cannot be. They know
        nothing of this object that would keep it."""
        mine, guard = weakref.ref(self), self.sink.guard

        def rare(method: Callable[["Passes", Any], None]) -> Callable[[Any], None]:
            def call(argument: Any) -> None:
                passes = mine()
                if passes is not None and passes.sink.active:
                    with guard("phases"):
                        method(passes, argument)
            return call

        native = self.sink.phases.passes(with_gradients, self.clock, HELD, rare(Passes.begin_rare), rare(Passes.end_rare),
                                         rare(Passes.end_outermost)) or {}
        if native:
            self._hooks[-1] = self.begin_backward if self._reduces is not None else native["gradient"]
            native["tell"](self._forward, self._backward, self._hooks)
        return native

    def going_on(self) -> Any:
        """How many forward passes go on, and when the backward pass began (0: none goes on)."""
        return self._native["going_on"]() if self._native else (len(self.forward), self.backward)

    def by_hand(self, name: str) -> None:
        """The script times this phase itself."""
        if name == "forward":
            self.add_forward, self._forward = _nothing, 0
        elif name == "backward":
            self.add_backward, self._backward = _nothing, 0
        elif name == "evaluation":
            self._add_evaluation = _nothing
        elif name == "initialization":
            self._opened = 0
        elif name == "communication":
            self._reduces = None
        if self._native:
            self._native["tell"](self._forward, self._backward, self._hooks)

    def call_with_gradient(self, tensor: Any) -> None:
        """``tensor.register_hook(self.begin_backward)`` without its handle, which nobody keeps: after a forward pass, which
        has pushed everything of ours out of the caches, making that takes longer than all else here."""
        made_by = tensor.grad_fn
        register = getattr(made_by, "_register_hook_dict", None)
        if register is None or tensor._backward_hooks is not None:
            tensor.register_hook(self.begin_backward)
            return
        # No id of torch's own handles is negative, and whoever registers another hook of this tensor adds it to this
        # dictionary, which is then left to it.
        if len(self._hooks) != 1:
            self._hooks = OrderedDict(((-1, self.begin_backward),))
            if self._native:
                self._native["tell"](self._forward, self._backward, self._hooks)
        tensor._backward_hooks = self._hooks
        register(tensor)

    def begin_backward(self, gradient: Any) -> None:
        if self.going_on()[1]:
            return
        if self._native:
            self._native["gradient"](gradient)
        else:
            self.backward = time_ns()
        if self._reduces is not None:
            try:
                self._reduces.begin()
            except Exception as error:  # noqa: BLE001
                self._reduces = None
                self.sink.failed("phases", error)

    def begin_rare(self, module: Any) -> None:
        """A forward pass in the eval state, or one before which something of training ends."""
        if not module.training:
            if on_whose_behalf():
                return
            self.clock.evaluates = True
            if not self.evaluated[0]:
                self.evaluated, self.pending = (time_ns(), 0), True
            return
        if self.clock.state is HELD:
            self.clock.begin_forward()
        if self.pending:
            self.end_pending()

    def end_rare(self, _: Any) -> None:
        """A forward pass in the eval state is over."""
        if not on_whose_behalf():
            self.evaluated = (self.evaluated[0], time_ns())

    def end_outermost(self, output: Any) -> None:
        """A forward pass of training is over, and none around it goes on."""
        tensor = output if getattr(output, "requires_grad", False) else _first_with_gradient(output)
        if tensor is not None:
            self.call_with_gradient(tensor)

    def begin_update(self) -> None:
        """No pass goes on: of what is left here the model has raised something."""
        began = self.backward
        if began:  # end_backward(), without the call
            self.backward = 0
            self.add_backward(began, time_ns() - began)
        if self.forward:
            self.forward.clear()

    def end_backward(self) -> None:
        """The update begins, or the next forward pass."""
        began, self.backward = self.backward, 0
        if began:
            self.add_backward(began, time_ns() - began)

    def end_pending(self) -> None:
        """Training goes on: what was evaluated, or initialized, is done."""
        self.pending = self.clock.evaluates = False
        opened, self._opened = self._opened, 0
        (began, ended), self.evaluated = self.evaluated, (0, 0)
        if began:
            self._add_evaluation(began, max(0, ended - began))
        if opened and not self.clock.begun():
            self.sink.phases.of("initialization")(opened, time_ns() - opened)
        self.clock.follow()  # what follows is of training


class _Begin(Hook):
    __slots__ = ("_passes", "_looked_at", "_with_gradients")

    def __init__(self, passes: Passes, looked_at: Callable[[Any], bool], with_gradients: Callable[[], bool]) -> None:
        self._passes, self._looked_at, self._with_gradients = passes, looked_at, with_gradients

    def __call__(self, module: Any, inputs: Any) -> None:
        if self._looked_at(inputs):
            return
        passes = self._passes
        if not passes.sink.active:
            return
        try:  # guard() by hand, here and below: these are calls of every step
            if not module.training:
                passes.begin_rare(module)
            elif self._with_gradients():
                if passes.backward:
                    passes.end_backward()
                if passes.pending or passes.clock.state is HELD:
                    passes.begin_rare(module)
                passes.forward.append(time_ns())
        except Exception as error:  # noqa: BLE001
            passes.sink.failed("phases", error)


class _End(Hook):
    __slots__ = ("_passes", "_looked_at")

    def __init__(self, passes: Passes, looked_at: Callable[[Any], bool]) -> None:
        self._passes, self._looked_at = passes, looked_at

    def __call__(self, module: Any, inputs: Any, output: Any) -> None:
        if self._looked_at(inputs):
            return
        passes = self._passes
        forward = passes.forward
        try:
            if not module.training:
                passes.end_rare(module)
            elif forward:
                began = forward.pop()
                passes.add_forward(began, time_ns() - began)
                if not forward:
                    passes.end_outermost(output)
        except Exception as error:  # noqa: BLE001
            passes.sink.failed("phases", error)


class _Native(Hook):
    """A function of the library, where the model is run: who looks at it finds nothing to call. Keeps ``passes``, of which the
    function only borrows."""

    __slots__ = ("_passes", "_looked_at", "_function")

    def __init__(self, passes: Passes, function: Callable[..., None], looked_at: Callable[[Any], bool]) -> None:
        self._passes, self._function, self._looked_at = passes, function, looked_at

    def __call__(self, module: Any, inputs: Any, *output: Any) -> None:
        if not self._looked_at(inputs):
            self._function(module, inputs, *output)


def _first_with_gradient(output: Any) -> Any:
    values = list(output.values()) if isinstance(output, dict) else output
    if not isinstance(values, (list, tuple)):
        return None
    return next((value for value in values if getattr(value, "requires_grad", False)), None)


def _nothing(begin: int, duration: int) -> None:
    del begin, duration
