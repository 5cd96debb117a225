"""PyTorch: reads gradients and weights before the optimizer's step, and ends the step after it.

Works with the optimizer's own step hooks (torch 2) and, where there are none (torch 1.13), by a bound
method on the optimizer instance that calls the one before it. torch is never imported by us: it is
taken from ``sys.modules``.
"""

import ctypes
import functools
import sys
import types
from typing import Any, Callable, List, Optional, Tuple

from . import _abi

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
    """Watches one model and its optimizer. All errors go to the hook's containment."""

    def __init__(self, hook: Any, model: Any, optimizer: Any, loss: Any = None) -> None:
        self.hook = hook
        self.model = model
        self.optimizer = optimizer
        self._slots: List[_Slot] = []
        self._known_count = -1
        self._publishes = True
        self._rate: Optional[float] = None
        self._undo: List[Callable[[], None]] = []
        if optimizer is not None:
            self._install(optimizer)
        if loss is not None and hasattr(loss, "register_forward_hook"):
            handle = loss.register_forward_hook(self._loss_output)
            self._undo.append(handle.remove)

    # ---- installing

    def _install(self, optimizer: Any) -> None:
        if hasattr(optimizer, "register_step_pre_hook") and hasattr(optimizer,
                                                                    "register_step_post_hook"):
            before = optimizer.register_step_pre_hook(lambda *_: self._before())
            after = optimizer.register_step_post_hook(lambda *_: self._after())
            self._undo += [before.remove, after.remove]
            return
        inner = optimizer.step
        had_own = "step" in optimizer.__dict__
        adapter = self

        def step(self: Any, *args: Any, **kwargs: Any) -> Any:
            adapter._before()
            result = inner(*args, **kwargs)
            adapter._after()
            return result

        # Copies __dict__ too: the marks `hooked` (profiler) and `_with_counter` (schedulers) stay, and a
        # scheduler made later finds __self__ and __func__ because this is a bound method.
        functools.update_wrapper(step, inner)
        bound = types.MethodType(step, optimizer)
        optimizer.step = bound

        def undo() -> None:
            # Somebody may have wrapped us since; then we stay, and do nothing.
            if optimizer.__dict__.get("step") is bound:
                if had_own:
                    optimizer.step = inner
                else:
                    del optimizer.__dict__["step"]

        self._undo.append(undo)

    def detach(self) -> None:
        for undo in self._undo:
            undo()
        self._undo = []
        self._slots = []

    # ---- around the optimizer's step

    def _before(self) -> None:
        hook = self.hook
        if not hook.enabled:
            return
        try:
            hook._before_optimizer()
            rate = self.optimizer.param_groups[0].get("lr")
            if rate is not self._rate:
                changed = type(rate) is not float or rate != self._rate
                self._rate = rate
                if changed:
                    self._log_rate(rate)
            if self._publishes and hook._is_due() and not _capturing():
                self._sample()
        except Exception as error:  # noqa: BLE001
            hook._failed("optimizer", error)

    def _after(self) -> None:
        hook = self.hook
        if not hook.enabled:
            return
        try:
            hook._after_optimizer()
        except Exception as error:  # noqa: BLE001
            hook._failed("optimizer", error)

    def _log_rate(self, rate: Any) -> None:
        scalar = self.hook._scalar_ids.get("learning_rate")
        if scalar is None:
            scalar = self.hook._name(_abi.NAME_SCALAR, "learning_rate")
            self.hook._scalar_ids["learning_rate"] = scalar
        if not getattr(rate, "is_cuda", False):
            self.hook._scalar(scalar, float(rate))

    def _loss_output(self, module: Any, inputs: Any, output: Any) -> None:
        del inputs
        if getattr(output, "numel", lambda: 0)() == 1:
            self.hook.log(loss=output)

    # ---- capturing

    def _named_parameters(self) -> List[Tuple[str, Any]]:
        wanted = None
        if self.optimizer is not None:
            wanted = {id(parameter) for group in self.optimizer.param_groups
                      for parameter in group["params"]}
        if self.model is not None:
            wrapped = _is_wrapped(self.model)
            return [(plain_name(name, wrapped), parameter)
                    for name, parameter in self.model.named_parameters()
                    if parameter.requires_grad and (wanted is None or id(parameter) in wanted)]
        return [(f"group{i}.parameter{j}", parameter)
                for i, group in enumerate(self.optimizer.param_groups)
                for j, parameter in enumerate(group["params"]) if parameter.requires_grad]

    def _prepare(self) -> None:
        """Registers names and makes the descriptors; again whenever the optimizer's list grows."""
        named = self._named_parameters()
        hook = self.hook
        if hook._workers == "one" or (hook._workers == "auto" and not _is_sharded(
                self.model, [parameter for _, parameter in named])):
            self._publishes = hook.rank == 0
        self._array = (_abi.Tensor * max(2 * len(named), 1))()
        self._slots = []
        for i, (name, parameter) in enumerate(named):
            slot = _Slot()
            slot.parameter = parameter
            local = parameter.to_local() if hasattr(parameter, "to_local") else parameter
            dtype = _abi.DTYPES.get(str(parameter.dtype).rsplit(".", 1)[-1], 0)
            dims = list(local.shape)
            role = _abi.ROLES["bias" if name.endswith("bias") else "weight"]
            slot.weight_id = hook._name(_abi.NAME_TENSOR, name, dtype=dtype, role=role, dims=dims)
            slot.gradient_id = hook._name(_abi.NAME_TENSOR, "gradient/" + name, dtype=dtype,
                                          role=_abi.ROLES["gradient"], dims=dims)
            slot.gradient, slot.weight = self._array[2 * i], self._array[2 * i + 1]
            slot.weight_pointer = slot.gradient_pointer = 0
            slot.keep = [None, None]
            slot.on_host = parameter.device.type == "cpu"
            self._slots.append(slot)
        self._known_count = self._count()

    def _count(self) -> int:
        if self.optimizer is None:
            return 0
        return sum(len(group["params"]) for group in self.optimizer.param_groups)

    def _sample(self) -> None:
        if self._known_count != self._count():
            self._prepare()
            if not self._publishes:
                return
        hook = self.hook
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
            if hook._later:
                hook._drain(wait=True)
            hook._slow.tocsin_tensors(hook._handle, self._array, 2 * len(self._slots))
        if on_device:
            rows, event = device_rows(on_device)
            hook._publish_rows(rows, event)
            hook._fast.tocsin_tensors(hook._handle, None, 0)  # ends the governor's measurement
        del kept

    def _point(self, slot: _Slot, which: int, descriptor: _abi.Tensor, identity: int, tensor: Any,
               kept: List[Any]) -> None:
        from .arrays import fill

        tensor = _local(tensor.detach())
        if tensor.is_sparse:
            tensor = tensor.coalesce().values()
            kept.append(tensor)
        dtype = _abi.DTYPES.get(str(tensor.dtype).rsplit(".", 1)[-1], 0)
        strides = None if tensor.is_contiguous() else tuple(tensor.stride())
        slot.keep[which] = fill(descriptor, identity, tensor.data_ptr(), dtype, tuple(tensor.shape),
                                strides)


def _local(tensor: Any) -> Any:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


_NOTHING = _abi.int64_array([0])


def _point_to_nothing(descriptor: _abi.Tensor, identity: int) -> None:
    """No elements, and so no row: a parameter without a gradient is not published."""
    descriptor.size = ctypes.sizeof(_abi.Tensor)
    descriptor.id = identity
    descriptor.data = None
    descriptor.ndim = 1
    descriptor.shape = ctypes.cast(_NOTHING, ctypes.POINTER(ctypes.c_int64))
    descriptor.strides = None


def _capturing() -> bool:
    """A CUDA graph is being captured: nothing may be launched or waited for."""
    cuda = sys.modules["torch"].cuda
    asked = getattr(cuda, "is_current_stream_capturing", None)
    return bool(asked is not None and cuda.is_initialized() and asked())


def device_rows(named: List[Tuple[int, Any]]) -> Tuple[Callable[[], Any], Any]:
    """Statistics on the device that holds the tensors: launches, copies to pinned memory, waits for
    nothing. Returns (a function that gives the rows, the event after which it may be called).

    Plain torch operations, about a dozen launches per tensor; sums are in double precision on the
    device, no copy of a tensor in another precision is made except for half types' ``m2``.
    """
    torch = sys.modules["torch"]
    columns = []
    with torch.no_grad():
        for _, tensor in named:
            columns.append(_device_columns(torch, tensor.detach()))
        stacked = torch.stack(columns)
        on_device = stacked.is_cuda
        host = torch.empty(stacked.shape, dtype=stacked.dtype, pin_memory=on_device)
        host.copy_(stacked, non_blocking=on_device)
    event = None
    if on_device:
        event = torch.cuda.Event()
        event.record(torch.cuda.current_stream(stacked.device))
    counts = [(identity, tensor.numel()) for identity, tensor in named]

    def rows() -> Any:
        array = (_abi.Row * len(counts))()
        for row, (identity, count), values in zip(array, counts, host.tolist()):
            row.name, row.count = identity, count
            row.sum, row.sumsq, row.m2, row.abs_sum, row.min, row.max = values[:6]
            row.nan, row.posinf, row.neginf, row.zero, row.negative = (int(v) for v in values[6:])
        return array

    return rows, event


def _device_columns(torch: Any, tensor: Any) -> Any:
    double = torch.float64
    if tensor.is_sparse:
        tensor = tensor.coalesce().values()
    if tensor.numel() == 0:
        return torch.zeros(11, dtype=double, device=tensor.device)
    flat = tensor.reshape(-1)
    if not flat.is_floating_point():
        flat = flat.to(double)
    wide = flat.float() if flat.element_size() < 4 else flat
    norm = torch.linalg.vector_norm
    low, high = torch.aminmax(wide)
    count = float(wide.numel())
    return torch.stack([
        wide.sum(dtype=double),
        norm(wide, 2, dtype=double).square(),
        torch.var(wide, unbiased=False).to(double) * count,
        norm(wide, 1, dtype=double),
        low.to(double),
        high.to(double),
        torch.isnan(wide).sum().to(double),
        torch.isposinf(wide).sum().to(double),
        torch.isneginf(wide).sum().to(double),
        (wide == 0).sum().to(double),
        (wide < 0).sum().to(double),
    ])
