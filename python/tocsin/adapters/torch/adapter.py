"""PyTorch: reads gradients and weights before the optimizer's update, and ends the step after it.

torch is never imported by us. The optimizer and the loss module keep the adapter, through their hooks;
the adapter holds the model and the optimizer weakly.
"""

import sys
import weakref
from typing import Any, Callable, Collection, Dict, List, Optional, Tuple

from tocsin.adapters.torch.first_updates.preflight import Preflight
from tocsin.adapters.torch.models.copies import Calls
from tocsin.adapters.torch.models.modules import Modules, path_of
from tocsin.adapters.torch.models.phases import Passes, can_be_timed
from tocsin.adapters.torch.movement.update_watch import UpdateWatch
from tocsin.adapters.torch.optimizers.hooks import Before, Closure, install
from tocsin.adapters.torch.optimizers.memory import OptimizerMemory
from tocsin.adapters.torch.optimizers.names import Names
from tocsin.adapters.torch.optimizers.scaling import Scaling, scaling_of
from tocsin.adapters.torch.optimizers.zero import count, is_deepspeed, scaling as scaling_of_deepspeed
from tocsin.loop.phases import PASSES, PHASES
from tocsin.loop.sink import Sink
from tocsin.tensors.torch_device import warm
from tocsin.tensors.torch_names import is_sharded
from tocsin.tensors.torch_roles import Roles
from tocsin.tensors.torch_staging import capturing
from . import capture
from .capture import Capture

LOW_RATE = 0.01  # of the largest: what the rule `budget` calls the end of a schedule


class TorchAdapter:
    """Watches one model and its optimizer. All errors go to the sink's containment."""

    def __init__(self, sink: Sink, model: Any, optimizer: Any, loss: Any = None,
                 name: Optional[str] = None, phases: Collection[str] = PHASES) -> None:
        """``name``: prefix of all names; None: what keeps them apart from those of the loop's others.
        ``phases``: which are timed unasked."""
        self._sink = sink
        self._model = _weak(model)
        self._optimizer = _weak(optimizer)
        self._deepspeed = is_deepspeed(optimizer)
        self._names = Names(self._model, self._optimizer, name + "." if name else "")
        self._capture: Optional[Capture] = None
        self._memory = OptimizerMemory(sink)
        self._preflight: Optional[Preflight] = Preflight(sink, model, optimizer) if sink.rank == 0 else None
        self._watch: Optional[UpdateWatch] = UpdateWatch(sink)  # as long as there is something to be seen
        self._known_count = -1
        self._publishes = True
        self._rate: Optional[float] = None
        self._largest_rate = 0.0
        self._scale: Optional[float] = None
        self._scaling: Optional[Scaling] = None  # of the update that goes on
        self._undo: List[Callable[[], None]] = [self._watch.detach]
        self._native: Dict[str, Any] = {}
        if optimizer is not None:
            has_neighbours = not name and not sink.clock.begun()
            self._names.keep_apart([one._names for one in sink.clock.drivers() if isinstance(one, TorchAdapter)] if has_neighbours else [])
            self._native = self._of_library(sink, optimizer)
            self._undo.append(install(optimizer, *self.around_update(), self))
        if loss is not None and hasattr(loss, "register_forward_hook"):
            handle = loss.register_forward_hook(Calls(self._loss_output))
            self._undo.append(handle.remove)
        self._loss = _weak(loss)
        # Of several optimizers of one model one adapter looks at its modules.
        first = all(not isinstance(one, TorchAdapter) or one.parts()[0] is not model
                    for one in sink.adapters())
        self._modules = Modules(sink, model if first else None, loss, self._names.prefix)
        self._undo.append(self._modules.detach)
        self._passes: Optional[Passes] = None
        if not PASSES.isdisjoint(phases) and first and can_be_timed(model):
            with sink.guard("phases"):
                self._passes = Passes(sink, model, phases)
                self._undo.append(self._passes.detach)
        self._updating = False
        self._enter_update, self._leave_update = sink.phases.around("optimizer")
        sink.phases.automatic(self, phases)
        self._devices = devices()  # of this torch
        if not self._devices:
            sink.host_tensor = sys.modules["torch"].Tensor
        self._on_device = False  # one of the parameters was, when it began
        self._in_graph = False  # the last update was captured in a CUDA graph
        self._first = first
        if first and model is not None and hasattr(sink.ledger, "follow"):
            with sink.guard("ledger"):
                self._undo.append(sink.ledger.follow(model))
        sink.attach(self, ends_steps=optimizer is not None, name=name or "")
        with sink.guard("device"):
            self._warm()

    def _of_library(self, sink: Sink, optimizer: Any) -> Dict[str, Any]:
        """What is done around most updates, as functions of the library; {}: it cannot be. They know nothing of this
        object that would keep it."""
        mine = weakref.ref(self)

        def before(closure: Optional[Closure]) -> Optional[Closure]:
            adapter = mine()
            if adapter is None:
                return None
            adapter._sink.clock.bring_back()
            return adapter.before_update(closure)

        def after() -> None:
            adapter = mine()
            if adapter is not None:
                adapter._sink.clock.bring_back()  # it may have been wanted while the update went on
                adapter.after_update()

        if self._deepspeed or any(hasattr(type(optimizer), name) for name in ("grad_scale", "found_inf")):
            return {}
        return sink.driver(before, after, weakref.ref(optimizer)) or {}

    def around_update(self) -> Tuple[Before, Callable[[], None]]:
        """What is called before and after each update."""
        return self._native.get("before", self.before_update), self._native.get("after", self.after_update)

    def watches(self, model: Any, optimizer: Any) -> bool:
        return self._model() is model and self._optimizer() is optimizer

    def parts(self) -> Tuple[Any, Any]:
        """(model, optimizer), as far as they live."""
        return self._model(), self._optimizer()

    def detach(self) -> None:
        for undo in self._undo:
            undo()
        self._undo = []
        if self._preflight is not None:
            self._preflight.end()
        self._capture = self._watch = self._preflight = None

    def times_passes(self) -> bool:
        """The model's passes of training are seen, and end a step that is held open."""
        return self._passes is not None

    def moved(self) -> Any:
        """Something else than before when the model was applied in between."""
        return self._passes is not None and (self._passes.evaluated, *self._passes.going_on())

    def by_hand(self, phase: str) -> None:
        """The script times this phase itself."""
        if phase == "optimizer":
            self._sink.clock.take_back()
            self._enter_update = self._leave_update = lambda: None

    # ---- names

    def named_parameters(self) -> List[Tuple[str, Any]]:
        """The parameters that it updates, by the names under which they are published."""
        return self._names.named()

    def look_at_modules(self) -> None:
        """What is captured of them may have changed, or hooks were taken out."""
        model = self._model() if self._first else None
        self._modules.look(model, self._loss())
        if self._passes is not None and model is not None:
            self._passes.look(model)

    def path_of(self, module: Any) -> Optional[str]:
        """How names of its inputs and outputs begin; None: it is no module of this model."""
        return path_of(module, self._model(), self._loss(), self._names.prefix)

    # ---- around the optimizer's update

    def before_update(self, closure: Optional[Closure]) -> Optional[Closure]:
        """With a closure the gradients exist only after its backward: it is to be called by another
        one, which is given back."""
        sink = self._sink
        if not sink.active:
            return None
        quiet = False
        try:  # few calls of Python here and in after_update(): in a loop each is the first in milliseconds
            optimizer = self._optimizer()
            group = optimizer.param_groups[0]
            parameters = group["params"]
            self._in_graph = (self._on_device or (self._devices and bool(parameters) and parameters[0].is_cuda)) and capturing()
            if self._in_graph:  # it is not done now, but whenever the graph is replayed
                sink.device_counts.skip("graph_capture", self._count())
                return None
            if self._passes is not None:
                self._passes.begin_update()
            quiet = sink.begin_update(self)
            rate = group.get("lr")
            if rate is not self._rate:
                self._say_rate(rate)
                quiet = False
            self._scaling = self._scaling_of_deepspeed() if self._deepspeed else scaling_of(optimizer)
            if self._scaling is not None:
                self._say_scale(self._scaling)
                quiet = False
        except Exception as error:  # noqa: BLE001
            sink.failed("optimizer", error)
        if closure is None:
            if self._preflight is not None or not quiet:
                self._read()
            if self._watch is not None:
                self._watch = self._watch.before(self._model(), self._optimizer(), self._count(), self._names.named, self._scaling)
            self._updating = True
            self._enter_update()
            return None
        self._updating = False  # what a closure computes is no update
        read = [self._read]  # a line search calls it again and again, and moves the weights

        def instead(*args: Any, **kwargs: Any) -> Any:
            result = closure(*args, **kwargs)
            if read:
                read.pop()()
            return result

        return instead

    def _read(self) -> None:
        """The gradients are what the update will use, the weights what it will change."""
        sink = self._sink
        if not sink.active:
            return
        try:
            if self._preflight is not None:
                self._look(self._preflight)
            if self._publishes:
                flags = sink.due(self)
                if flags is not None:
                    self._sample(flags)
        except Exception as error:  # noqa: BLE001
            sink.failed("optimizer", error)

    def replayed(self) -> bool:
        """A CUDA graph may have been replayed with an update in it, of which Python sees nothing. If that is
        where this optimizer updates: reads its gradients, and the weights after it."""
        if self._in_graph:
            self._sink.begin_update(self)
            self._read()
        return self._in_graph

    def after_update(self) -> None:
        sink = self._sink
        if not sink.active or self._in_graph:
            return
        try:
            if self._updating:
                self._updating = False
                self._leave_update()
            scaling, self._scaling = self._scaling, None
            if self._watch is not None:
                self._watch.after(self._optimizer(), scaling)
            if scaling is None:
                sink.end_update(self)
            else:
                sink.end_update(self, *scaling.skipped_later())
            if self._native and scaling is None and self._preflight is None and not self._on_device and (
                    self._watch is None or self._watch.rests()):
                self._lend()
        except Exception as error:  # noqa: BLE001
            sink.failed("optimizer", error)

    def _lend(self) -> None:
        rate = self._sink.scalars.get(self._names.rate)
        if rate is not None and type(self._rate) is float:
            self._sink.clock.lend(self._native["lend"], self, _nobody if self._passes is None else self._passes.begin_update,
                                  self._enter_update, self._leave_update, self._rate, rate, sys.modules["torch"].Tensor,
                                  int(self._devices))

    def goes_on(self, rate: Any, updating: bool) -> None:
        """Here, what functions of the library have done until now."""
        self._rate = rate
        if updating:
            self._updating, self._scaling = True, None

    def _scaling_of_deepspeed(self) -> Optional[Scaling]:
        return scaling_of_deepspeed(self._optimizer(), self._names.named)

    def _say_rate(self, rate: Any) -> None:
        """The learning rate, when it has changed."""
        changed = type(rate) is not float or rate != self._rate
        self._rate = rate
        if changed and not getattr(rate, "is_cuda", False):
            self._sink.publish_scalar(self._names.rate, rate)
        if type(rate) is float and rate > self._largest_rate:
            self._largest_rate = rate
        if self._sink.plan.pending:
            self._sink.plan.flush()

    def rate_is_low(self) -> bool:
        """Below one in a hundred of its largest: how long that lasts is told by saying it again."""
        rate = self._rate
        return rate == 0 or (type(rate) is float and rate < LOW_RATE * self._largest_rate)

    def say_rate_again(self) -> None:
        """With the next update, though it be the same."""
        self._sink.clock.bring_back()
        self._rate = None

    def _say_scale(self, scaling: Scaling) -> None:
        """The loss scale in force, when it has changed."""
        if scaling.scale is not None and scaling.on_host:
            scale = float(scaling.scale)
            if scale != self._scale:
                self._scale = scale
                self._sink.publish_scalar("loss_scale", scale)

    def _loss_output(self, module: Any, inputs: Any, output: Any) -> None:
        del module, inputs
        if self._sink.active and getattr(output, "numel", lambda: 0)() == 1:
            with self._sink.guard("log"):
                self._sink.log({"loss": output})

    def _look(self, preflight: Preflight) -> None:
        model, optimizer = self.parts()
        if not preflight.look(model, optimizer):
            return
        self._preflight = None
        parameters = [parameter for _, parameter in self._names.named()]
        preflight.tell(self._sink, model, optimizer, self._names.known,
                       [one.parts() for one in self._sink.adapters()
                        if isinstance(one, TorchAdapter)], is_sharded(model, parameters))

    # ---- capturing

    def _warm(self) -> None:
        parameters = [parameter for _, parameter in self._names.named()]
        self._on_device = not all(capture.on_host(parameter) for parameter in parameters)
        if self._on_device and (self._sink.publishes(False) or self._told_here(Roles(self._model()))):
            warm(parameters, self._sink.device_counts)

    def _told_here(self, roles: Roles) -> List[Tuple[str, Any]]:
        """Those whose tensors this rank publishes: of what all hold alike one rank does."""
        return [(name, parameter) for name, parameter in self._names.named()
                if self._sink.publishes(roles.publishes(parameter))]

    def _prepare(self) -> None:
        """Registers names and makes the descriptors; again whenever the optimizer's list grows."""
        roles = Roles(self._model())
        named = self._told_here(roles)
        self._publishes = bool(named) or self._sink.publishes(False)
        # A rank that publishes nothing tells no names.
        self._capture = Capture(self._sink, named, roles) if self._publishes else None
        self._known_count = self._count()

    def _count(self) -> int:
        return count(self._optimizer())

    def _sample(self, flags: int) -> None:
        if self._known_count != self._count():
            self._prepare()
        self.look_at_modules()
        if self._capture is None:
            return
        self._modules.before_update()
        scaling = self._scaling
        if scaling is not None and scaling.scale is not None and not scaling.on_host:
            self._sink.publish_scalar("loss_scale", scaling.scale)  # no oftener: it costs a copy
        if self.rate_is_low():  # said once, it would be one value: nobody could tell how long it lasts
            self._sink.publish_scalar(self._names.rate, self._rate)
        self._memory.sample(self._optimizer(), self._names.named)
        self._capture.sample(scaling, flags)


def devices() -> bool:
    """Whether this torch can have tensors on a GPU that the hook reads there."""
    version = sys.modules["torch"].version
    return bool(getattr(version, "cuda", None) or getattr(version, "hip", None))


def _weak(value: Any) -> Callable[[], Any]:
    return _nobody if value is None else weakref.ref(value)


def _nobody() -> None:
    return None
