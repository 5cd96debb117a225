"""PyTorch: reads gradients and weights before the optimizer's step, and ends the step after it.

Works with the optimizer's own step hooks (torch 2) and, where there are none (torch 1.13), by a bound
method on the optimizer instance that calls the one before it. torch is never imported by us.

The optimizer and the loss module keep the adapter, through those hooks; the adapter holds the model
and the optimizer weakly.
"""

import functools
import types
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

from ..sink import Sink
from .torch_capture import Capture
from .torch_device import capturing
from .torch_names import is_sharded, is_wrapped, plain_name
from .torch_scaling import Scaling, scaling_of


class TorchAdapter:
    """Watches one model and its optimizer. All errors go to the sink's containment."""

    def __init__(self, sink: Sink, model: Any, optimizer: Any, loss: Any = None) -> None:
        self._sink = sink
        self._model = _weak(model)
        self._optimizer = _weak(optimizer)
        self._names: Dict[int, str] = {}  # by id(parameter)
        self._capture: Optional[Capture] = None
        self._known_count = -1
        self._publishes = True
        self._rate: Optional[float] = None
        self._scale: Optional[float] = None
        self._scaling: Optional[Scaling] = None  # of the update that goes on
        self._undo: List[Callable[[], None]] = []
        if optimizer is not None:
            self._named_parameters()
            self._install(optimizer)
        if loss is not None and hasattr(loss, "register_forward_hook"):
            handle = loss.register_forward_hook(self._loss_output)
            self._undo.append(handle.remove)
        sink.attach(self, ends_steps=optimizer is not None)

    def watches(self, model: Any, optimizer: Any) -> bool:
        return self._model() is model and self._optimizer() is optimizer

    # ---- installing

    def _install(self, optimizer: Any) -> None:
        if hasattr(optimizer, "register_step_pre_hook") and hasattr(optimizer,
                                                                    "register_step_post_hook"):
            before = optimizer.register_step_pre_hook(lambda *_: self.before_update())
            after = optimizer.register_step_post_hook(lambda *_: self.after_update())
            self._undo += [before.remove, after.remove]
            return
        inner = optimizer.step
        had_own = "step" in optimizer.__dict__
        adapter, watched = self, self._optimizer

        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            adapter.before_update()
            result = inner(*args, **kwargs)
            adapter.after_update()
            return result

        # Copies __dict__ too: the marks `hooked` (profiler) and `_with_counter` (schedulers) stay, and a
        # scheduler made later finds __self__ and __func__ because this is a bound method.
        functools.update_wrapper(step, inner)
        bound = types.MethodType(step, optimizer)
        optimizer.step = bound

        def undo() -> None:
            # Somebody may have wrapped us since; then we stay, and do nothing.
            own = watched()
            if own is not None and own.__dict__.get("step") is bound:
                if had_own:
                    own.step = inner
                else:
                    del own.__dict__["step"]

        self._undo.append(undo)

    def detach(self) -> None:
        for undo in self._undo:
            undo()
        self._undo = []
        self._capture = None

    # ---- around the optimizer's step

    def before_update(self) -> None:
        sink = self._sink
        if not sink.active:
            return
        try:
            sink.begin_update()
            rate = self._optimizer().param_groups[0].get("lr")
            if rate is not self._rate:
                changed = type(rate) is not float or rate != self._rate
                self._rate = rate
                if changed and not getattr(rate, "is_cuda", False):
                    sink.publish_scalar("learning_rate", rate)
            self._scaling = scaling_of(self._optimizer())
            if self._scaling is not None:
                self._say_scale(self._scaling)
            if self._publishes and sink.wants() and not capturing():
                self._sample()
        except Exception as error:  # noqa: BLE001
            sink.failed("optimizer", error)

    def after_update(self) -> None:
        sink = self._sink
        if not sink.active:
            return
        try:
            scaling, self._scaling = self._scaling, None
            if scaling is None or capturing():
                sink.end_update()
            else:
                sink.end_update(*scaling.skipped_later())
        except Exception as error:  # noqa: BLE001
            sink.failed("optimizer", error)

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

    # ---- capturing

    def _named_parameters(self) -> List[Tuple[str, Any]]:
        """Trainable parameters of the optimizer, by the names that the model gives them. Of a model
        that is gone (a script may keep its parts only) by the names that it gave them last."""
        held = {id(parameter): parameter for group in self._optimizer().param_groups
                for parameter in group["params"] if parameter.requires_grad}
        model = self._model()
        if model is not None:
            wrapped = is_wrapped(model)
            self._names = {id(parameter): plain_name(name, wrapped)
                           for name, parameter in model.named_parameters()}
        if self._names:
            return [(name, held[key]) for key, name in self._names.items() if key in held]
        return [(f"group{i}.parameter{j}", parameter)
                for i, group in enumerate(self._optimizer().param_groups)
                for j, parameter in enumerate(group["params"]) if parameter.requires_grad]

    def _prepare(self) -> None:
        """Registers names and makes the descriptors; again whenever the optimizer's list grows."""
        named = self._named_parameters()
        self._publishes = self._sink.publishes(
            is_sharded(self._model(), [parameter for _, parameter in named]))
        self._capture = Capture(self._sink, named)
        self._known_count = self._count()

    def _count(self) -> int:
        return sum(len(group["params"]) for group in self._optimizer().param_groups)

    def _sample(self) -> None:
        if self._known_count != self._count():
            self._prepare()
            if not self._publishes:
                return
        scaling = self._scaling
        if scaling is not None and scaling.scale is not None and not scaling.on_host:
            self._sink.publish_scalar("loss_scale", scaling.scale)  # no oftener: it costs a copy
        if self._capture is not None:
            self._capture.sample(scaling)


def _weak(value: Any) -> Callable[[], Any]:
    return _nobody if value is None else weakref.ref(value)


def _nobody() -> None:
    return None
