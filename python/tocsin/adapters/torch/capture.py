"""Statistics of an optimizer's gradients and weights, read where they lie."""

import ctypes
from typing import Any, List, Optional, Tuple

from tocsin.adapters.torch.optimizers.scaling import Scaling
from tocsin.library import abi
from tocsin.loop.sink import Sink
from tocsin.tensors.arrays import dtype_code, fill
from tocsin.tensors.torch_device import device_rows
from tocsin.tensors.torch_names import local
from tocsin.tensors.torch_raw import publish_copies
from tocsin.tensors.torch_roles import Roles


class _Slot:
    """A parameter with the two descriptors that stand for it in the call of a sampled step."""

    __slots__ = ("parameter", "weight", "gradient", "weight_id", "gradient_id", "weight_pointer",
                 "gradient_pointer", "keep", "on_host", "sharded", "part", "here")


class Capture:
    """The parameters of one optimizer, made ready once: a sampled step only looks where they lie."""

    def __init__(self, sink: Sink, named: List[Tuple[str, Any]], roles: Optional[Roles] = None) -> None:
        """Registers the names of all (name, parameter). ``roles``: which of them other ranks hold something else under."""
        self._sink = sink
        self._array = (abi.Tensor * max(2 * len(named), 1))()
        self._slots: List[_Slot] = []
        self._flags = (0, 0)  # of weights and gradients
        # What the descriptors pointed to when all of it lay in host memory, and stood for no piece of a larger tensor.
        self._weights: List[int] = []
        self._gradients: List[int] = []
        for i, (name, parameter) in enumerate(named):
            slot = _Slot()
            slot.parameter = parameter
            shape = local(parameter).shape
            role = "bias" if name.endswith("bias") else "weight"
            slot.weight_id = sink.tensor(name, dtype=parameter.dtype, shape=shape, role=role)
            slot.gradient_id = sink.tensor("gradient/" + name, dtype=parameter.dtype,
                                           shape=shape, role="gradient")
            slot.gradient, slot.weight = self._array[2 * i], self._array[2 * i + 1]
            # Of what they point to, so that they are filled when it changes; an empty tensor's is 0.
            slot.weight_pointer = slot.gradient_pointer = -1
            slot.keep = [None, None]
            slot.on_host = on_host(parameter)
            slot.sharded = hasattr(parameter, "to_local")  # its own pointer is none
            slot.part = abi.FLAG_PARTIAL if roles is not None and roles.is_part(parameter) else 0
            slot.here = slot.part
            self._point_nowhere(slot)
            self._slots.append(slot)

    def sample(self, scaling: Optional[Scaling] = None, off_grid: int = 0) -> None:
        """Publishes what is due of the present step. ``scaling``: what the update is still to do;
        without it the gradients are those that it uses. ``off_grid``: 0, or the flag that has all
        captured although the step is not due."""
        flags, divisor = abi.FLAG_UNSCALED, 1.0
        if scaling is not None:
            divisor = scaling.divisor()
            flags |= abi.FLAG_SKIPPED if scaling.skipped() else 0
        self._flag(off_grid, flags | off_grid)
        if divisor == 1.0 and self._steady():
            self._sink.publish_lent(self._array, 2 * len(self._slots))
            return
        on_device: List[Tuple[int, Any, int]] = []  # (id, tensor, row flags)
        kept: List[Any] = []  # tensors made for this call live until it is over
        filled = False
        for slot in self._slots:
            parameter = slot.parameter
            gradient = parameter.grad
            if slot.on_host and slot.sharded:
                parameter, gradient = local(parameter.detach()), gradient if gradient is None else local(gradient)
            pointer = parameter.data_ptr() if slot.on_host else 0
            if slot.on_host and pointer != slot.weight_pointer and not on_host(parameter):
                slot.on_host = False  # it has moved
                self._mark(slot, slot.part)
                self._point_nowhere(slot)
            if not slot.on_host:
                weight = local(parameter.detach()) if slot.sharded else parameter
                here = _here(slot, weight)
                on_device.append((slot.weight_id, weight, here))
                if gradient is not None or here & abi.FLAG_EMPTY_HERE:
                    if gradient is not None and gradient.is_sparse:
                        here |= abi.FLAG_SPARSE  # its statistics are of stored rows
                    on_device.append((slot.gradient_id, weight if gradient is None else gradient, flags | here))
                continue
            filled = True
            if pointer != slot.weight_pointer:
                self._point(slot, 1, slot.weight, slot.weight_id, parameter, kept)
                slot.weight_pointer = pointer
            self._mark(slot, _here(slot, parameter))
            if gradient is None:
                if slot.gradient_pointer != 0:
                    _point_to_nothing(slot.gradient, slot.gradient_id)
                    slot.gradient_pointer = 0
                continue
            self._point_gradient(slot, gradient, divisor, kept)
        plain = filled and divisor == 1.0 and all(slot.on_host and not slot.sharded and slot.parameter.requires_grad
                                                  for slot in self._slots)
        self._weights = [slot.weight_pointer for slot in self._slots] if plain else []
        self._gradients = [slot.gradient_pointer for slot in self._slots]
        if filled:
            self._sink.publish_lent(self._array, 2 * len(self._slots))
        if on_device and not off_grid:
            due = self._sink.due_of([identity for identity, _, _ in on_device])
            elements = [one for one, wanted in zip(on_device, due) if wanted == abi.DUE_RAW]
            if elements:
                publish_copies(self._sink, elements, scaling)
            on_device = [one for one, wanted in zip(on_device, due) if wanted not in (0, abi.DUE_RAW)]
        rows = device_rows(on_device, scaling, self._sink.device_counts) if on_device else None
        if rows is not None:
            self._sink.publish_rows(*rows)
        elif not filled:
            self._sink.publish_lent(None, 0)
        del kept

    def _steady(self) -> bool:
        """Everything lies where it lay at the sample before, or only gradients do not: then their descriptors are
        right again. Whoever looks at all tensors in one go calls Python's functions once, not a dozen times for each."""
        if not self._weights:
            return False
        parameters = [slot.parameter for slot in self._slots]
        try:
            weights = [parameter.data_ptr() for parameter in parameters]
            gradients = [parameter.grad.data_ptr() for parameter in parameters]
        except (AttributeError, RuntimeError, NotImplementedError):  # one has none, or is sparse
            return False
        if weights != self._weights or not all([parameter.requires_grad for parameter in parameters]):
            return False
        if gradients != self._gradients:
            for slot, pointer in zip(self._slots, gradients):
                if pointer != slot.gradient_pointer:
                    self._point_gradient(slot, slot.parameter.grad, 1.0, [])
            self._gradients = [slot.gradient_pointer for slot in self._slots]
        return True

    def _point_nowhere(self, slot: _Slot) -> None:
        """Until it lies in host memory: the array of descriptors goes out as a whole."""
        _point_to_nothing(slot.gradient, slot.gradient_id)
        _point_to_nothing(slot.weight, slot.weight_id)
        slot.weight_pointer = slot.gradient_pointer = -1

    def _flag(self, weights: int, gradients: int) -> None:
        if self._flags != (weights, gradients):
            self._flags = weights, gradients
            for slot in self._slots:
                slot.weight.flags, slot.gradient.flags = weights | slot.here, gradients | slot.here

    def _mark(self, slot: _Slot, here: int) -> None:
        """``here``: what its rows say of it on this rank."""
        if slot.here != here:
            slot.here = here
            weights, gradients = self._flags
            slot.weight.flags, slot.gradient.flags = weights | here, gradients | here

    def _point_gradient(self, slot: _Slot, gradient: Any, divisor: float, kept: List[Any]) -> None:
        if gradient.is_sparse or divisor != 1.0:
            if divisor != 1.0:
                gradient = gradient.detach() / divisor
                kept.append(gradient)
            self._point(slot, 0, slot.gradient, slot.gradient_id, gradient, kept)
            _mark_sparse(slot, gradient.is_sparse)
            slot.gradient_pointer = -1
            return
        pointer = gradient.data_ptr()
        if pointer == slot.gradient_pointer:
            return
        # Most often only the address has changed since the last time.
        if slot.gradient_pointer > 0 and gradient.is_contiguous() and \
                not slot.gradient.strides and gradient.dtype is slot.parameter.dtype:
            slot.gradient.data = pointer
        else:
            self._point(slot, 0, slot.gradient, slot.gradient_id, gradient, kept)
            _mark_sparse(slot, False)
        slot.gradient_pointer = pointer

    def _point(self, slot: _Slot, which: int, descriptor: abi.Tensor, identity: int,
               tensor: Any, kept: List[Any]) -> None:
        tensor = local(tensor.detach())
        if tensor.is_sparse:
            tensor = tensor.coalesce().values()
            kept.append(tensor)
        strides = None if tensor.is_contiguous() else tuple(tensor.stride())
        slot.keep[which] = fill(descriptor, identity, tensor.data_ptr(),
                                dtype_code(tensor.dtype) or 0, tuple(tensor.shape), strides)


def _mark_sparse(slot: _Slot, sparse: bool) -> None:
    """The statistics of a sparse gradient are of its stored rows; whoever reads them is told so."""
    others = slot.gradient.flags & ~abi.FLAG_SPARSE
    slot.gradient.flags = others | abi.FLAG_SPARSE if sparse else others


def _here(slot: _Slot, local_part: Any) -> int:
    """Row flags of what lies here. Of a shard without elements a row says that this rank has none, so that nobody waits
    for it; one that was frozen stays in the optimizer's list."""
    flags: int = slot.part
    if not slot.parameter.requires_grad:
        flags |= abi.FLAG_NOT_TRAINABLE
    if local_part.numel() == 0:
        flags |= abi.FLAG_EMPTY_HERE
    return flags


def on_host(tensor: Any) -> bool:
    """Its elements can be read here."""
    return bool(tensor.device.type == "cpu")


_NOTHING = abi.int64_array([0])


def _point_to_nothing(descriptor: abi.Tensor, identity: int) -> None:
    """No elements, and so no row: a parameter without a gradient is not published."""
    descriptor.size = ctypes.sizeof(abi.Tensor)
    descriptor.id = identity
    descriptor.data = None
    descriptor.ndim = 1
    descriptor.shape = ctypes.cast(_NOTHING, ctypes.POINTER(ctypes.c_int64))
    descriptor.strides = None
