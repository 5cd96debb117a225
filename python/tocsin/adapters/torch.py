"""PyTorch: reads gradients and weights before the optimizer's step, and ends the step after it.

Works with the optimizer's own step hooks (torch 2) and, where there are none (torch 1.13), by a bound
method on the optimizer instance that calls the one before it. torch is never imported by us.

The optimizer and the loss module keep the adapter, through those hooks; the adapter holds the model
and the optimizer weakly.
"""

import ctypes
import functools
import types
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

from .. import _client
from ..arrays import dtype_code, fill
from ..sink import Sink
from .torch_device import capturing, device_rows

_WRAPPERS = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel",
             "DeepSpeedEngine")
_INNER = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "_forward_module")


def plain_name(name: str, wrapped: bool) -> str:
    """The parameter's own path, without what wrappers put into it."""
    parts = [part for part in name.split(".") if part not in _INNER]
    while wrapped and parts and parts[0] == "module":
        parts.pop(0)
    return ".".join(parts)


def _is_wrapped(model: Any) -> bool:
    inner = getattr(model, "_orig_mod", model)
    return type(inner).__name__ in _WRAPPERS


def _is_sharded(model: Any, parameters: List[Any]) -> bool:
    if any(hasattr(parameter, "to_local") for parameter in parameters[:1]):
        return True
    modules = getattr(model, "modules", None)
    return modules is not None and any("FullyShardedDataParallel" == type(module).__name__
                                       for module in modules())


class _Slot:
    """A parameter with the two descriptors that stand for it in the call of a sampled step."""

    __slots__ = ("parameter", "weight", "gradient", "weight_id", "gradient_id", "weight_pointer",
                 "gradient_pointer", "keep", "on_host")


class TorchAdapter:
    """Watches one model and its optimizer. All errors go to the sink's containment."""

    def __init__(self, sink: Sink, model: Any, optimizer: Any, loss: Any = None) -> None:
        self._sink = sink
        self._model = _weak(model)
        self._optimizer = _weak(optimizer)
        self._names: Dict[int, str] = {}  # by id(parameter)
        self._slots: List[_Slot] = []
        self._known_count = -1
        self._publishes = True
        self._rate: Optional[float] = None
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
        self._slots = []

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
            if self._publishes and sink.wants() and not capturing():
                self._sample()
        except Exception as error:  # noqa: BLE001
            sink.failed("optimizer", error)

    def after_update(self) -> None:
        sink = self._sink
        if not sink.active:
            return
        try:
            sink.end_update()
        except Exception as error:  # noqa: BLE001
            sink.failed("optimizer", error)

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
            wrapped = _is_wrapped(model)
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
            _is_sharded(self._model(), [parameter for _, parameter in named]))
        self._array = (_client.Tensor * max(2 * len(named), 1))()
        self._slots = []
        for i, (name, parameter) in enumerate(named):
            slot = _Slot()
            slot.parameter = parameter
            shape = _local(parameter).shape
            role = "bias" if name.endswith("bias") else "weight"
            slot.weight_id = self._sink.tensor(name, dtype=parameter.dtype, shape=shape, role=role)
            slot.gradient_id = self._sink.tensor("gradient/" + name, dtype=parameter.dtype,
                                                 shape=shape, role="gradient")
            slot.gradient, slot.weight = self._array[2 * i], self._array[2 * i + 1]
            slot.weight_pointer = slot.gradient_pointer = 0
            slot.keep = [None, None]
            slot.on_host = parameter.device.type == "cpu"
            self._slots.append(slot)
        self._known_count = self._count()

    def _count(self) -> int:
        return sum(len(group["params"]) for group in self._optimizer().param_groups)

    def _sample(self) -> None:
        if self._known_count != self._count():
            self._prepare()
            if not self._publishes:
                return
        on_device: List[Tuple[int, Any]] = []
        kept: List[Any] = []  # tensors made for this call live until it is over
        filled = False
        for slot in self._slots:
            parameter = slot.parameter
            gradient = parameter.grad
            if not slot.on_host:
                local = _local(parameter)
                on_device.append((slot.weight_id, local))
                if gradient is not None:
                    on_device.append((slot.gradient_id, _local(gradient)))
                continue
            filled = True
            pointer = parameter.data_ptr()
            if pointer != slot.weight_pointer:
                self._point(slot, 1, slot.weight, slot.weight_id, parameter, kept)
                slot.weight_pointer = pointer
            if gradient is None:
                if slot.gradient_pointer != 0 or slot.gradient.size == 0:
                    _point_to_nothing(slot.gradient, slot.gradient_id)
                    slot.gradient_pointer = 0
                continue
            if gradient.is_sparse:
                self._point(slot, 0, slot.gradient, slot.gradient_id, gradient, kept)
                slot.gradient_pointer = -1
                continue
            pointer = gradient.data_ptr()
            if pointer != slot.gradient_pointer:
                # Most often only the address has changed since the last time.
                if slot.gradient_pointer > 0 and gradient.is_contiguous() and \
                        not slot.gradient.strides and gradient.dtype is slot.parameter.dtype:
                    slot.gradient.data = pointer
                else:
                    self._point(slot, 0, slot.gradient, slot.gradient_id, gradient, kept)
                slot.gradient_pointer = pointer
        if filled:
            self._sink.publish_lent(self._array, 2 * len(self._slots))
        if on_device:
            self._sink.publish_rows(*device_rows(on_device))
        del kept

    def _point(self, slot: _Slot, which: int, descriptor: _client.Tensor, identity: int,
               tensor: Any, kept: List[Any]) -> None:
        tensor = _local(tensor.detach())
        if tensor.is_sparse:
            tensor = tensor.coalesce().values()
            kept.append(tensor)
        strides = None if tensor.is_contiguous() else tuple(tensor.stride())
        slot.keep[which] = fill(descriptor, identity, tensor.data_ptr(),
                                dtype_code(tensor.dtype) or 0, tuple(tensor.shape), strides)


def _weak(value: Any) -> Callable[[], Any]:
    return _nobody if value is None else weakref.ref(value)


def _nobody() -> None:
    return None


def _local(tensor: Any) -> Any:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


_NOTHING = _client.int64_array([0])


def _point_to_nothing(descriptor: _client.Tensor, identity: int) -> None:
    """No elements, and so no row: a parameter without a gradient is not published."""
    descriptor.size = ctypes.sizeof(_client.Tensor)
    descriptor.id = identity
    descriptor.data = None
    descriptor.ndim = 1
    descriptor.shape = ctypes.cast(_NOTHING, ctypes.POINTER(ctypes.c_int64))
    descriptor.strides = None
