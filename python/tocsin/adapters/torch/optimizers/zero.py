"""DeepSpeed's own optimizers: ZeRO keeps of each parameter, and of its averaged gradient, only this rank's part.

Nothing here calls a collective, and DeepSpeed is not imported: what is read are the fields that its optimizers keep their parts in
(``deepspeed/runtime/zero/stage_1_and_2.py``, ``stage3.py``; tried with 0.19).
"""

from typing import Any, Callable, Dict, Iterator, Optional, Sequence, Tuple

from .scaling import Scaling

# Lists of lists of the model's parameters: of ZeRO 1 and 2, of bfloat16, of ZeRO 3 and of float16 without ZeRO.
_GROUPS = ("bit16_groups", "bf16_groups", "fp16_groups")


def is_deepspeed(optimizer: Any) -> bool:
    """One that wraps the optimizer that updates, and gives it flat tensors instead of the model's parameters."""
    return type(optimizer).__module__.startswith("deepspeed.") and any(
        hasattr(optimizer, name) for name in _GROUPS)


def held(optimizer: Any) -> Iterator[Any]:
    """The model's parameters that an optimizer updates, whatever it makes of them."""
    if is_deepspeed(optimizer):
        name = next(name for name in _GROUPS if hasattr(optimizer, name))
        groups: Sequence[Sequence[Any]] = getattr(optimizer, name)
    else:
        groups = [group["params"] for group in optimizer.param_groups]
    for group in groups:
        yield from group


def count(optimizer: Any) -> int:
    """Of what held() gives."""
    if is_deepspeed(optimizer):
        return sum(1 for _ in held(optimizer))
    return sum(len(group["params"]) for group in optimizer.param_groups)


def parts(optimizer: Any) -> Optional[Dict[int, "Part"]]:
    """This rank's parts, by id() of the model's parameter; None: the optimizer does not share them out."""
    if not is_deepspeed(optimizer):
        return None
    if hasattr(optimizer, "fp32_partitioned_groups_flat"):
        return {id(parameter): _PartOf3(optimizer, parameter, group, place)
                for group, members in enumerate(optimizer.fp16_groups)
                for place, parameter in enumerate(members)}
    found = {id(parameter): _PartOf12(optimizer, parameter) for parameter in held(optimizer)
             if hasattr(parameter, "_hp_mapping")}
    return found or None  # type: ignore[return-value]


class Part:
    """Looks like the parameter of a sharded model: ``to_local()`` is what of it lies here, one-dimensional."""

    requires_grad = True
    is_sparse = False

    def __init__(self, optimizer: Any, parameter: Any) -> None:
        self._optimizer, self._parameter = optimizer, parameter
        here = self.to_local()
        self.dtype, self.device = here.dtype, here.device

    def detach(self) -> "Part":
        return self

    def to_local(self) -> Any:
        raise NotImplementedError

    @property
    def grad(self) -> Any:
        """As reduced over the ranks, still times the loss scale; None: there is none, or none here."""
        raise NotImplementedError


class _PartOf12(Part):
    """ZeRO 1 and 2: a stretch of the flat tensor of the group, or nothing at all."""

    def to_local(self) -> Any:
        mapping = self._parameter._hp_mapping
        if mapping is not None:
            return mapping.hp_fragment.detach()
        return self._parameter.detach().reshape(-1)[:0]

    @property
    def grad(self) -> Any:
        mapping = self._parameter._hp_mapping
        if mapping is None:
            return None
        kept = mapping.offload_gradient_dict if mapping.use_offload else mapping.gradient_dict
        group = (kept or {}).get(mapping.param_group_index)
        if group is None:
            return None
        return group[self._parameter._index_in_param_group].reshape(-1)


class _PartOf3(Part):
    """ZeRO 3: an equal part for each rank, of which the last ones are filled up with zeros."""

    def __init__(self, optimizer: Any, parameter: Any, group: int, place: int) -> None:
        self._group, self._place = group, place
        position = optimizer.grad_position[optimizer.get_param_id(parameter)]
        self._offset, self._size = position[1], position[2]
        rank = getattr(parameter, "ds_zero_partition_rank", None)
        if rank is None:
            rank = optimizer.dp_process_group.rank()
        self._filled = max(0, min(self._size, parameter.ds_numel - rank * self._size))
        super().__init__(optimizer, parameter)

    def to_local(self) -> Any:
        flat = self._optimizer.fp32_partitioned_groups_flat[self._group]
        return flat.detach().narrow(0, self._offset, self._filled)

    @property
    def grad(self) -> Any:
        averaged = getattr(self._optimizer, "averaged_gradients", {}).get(self._group)
        if averaged is not None:
            return averaged[self._place].reshape(-1)[:self._filled]
        flat = self._optimizer.fp32_partitioned_groups_flat[self._group].grad  # with offload they are here
        return None if flat is None else flat.narrow(0, self._offset, self._filled)


class ZeroScaling(Scaling):
    """DeepSpeed divides by its loss scale, and looks for overflows, inside of its ``step()``."""

    __slots__ = ("_optimizer", "_named", "_found")

    def __init__(self, optimizer: Any, named: Callable[[], Sequence[Tuple[str, Any]]]) -> None:
        self._optimizer, self._named, self._found = optimizer, named, None
        self.scale = float(optimizer.loss_scale)
        flat = optimizer.param_groups[0]["params"]
        self.on_host = all(tensor.device.type == "cpu" for tensor in flat[:1])

    @property
    def found_inf(self) -> Any:  # type: ignore[override]
        """Of this rank's gradients: those of another are no matter of its rows. Only asked when they are sampled."""
        if self._found is None:
            gradients = [piece.grad for _, piece in self._named()]
            bad = [(~gradient.isfinite()).any().float() for gradient in gradients if gradient is not None]
            self._found = sum(bad[1:], bad[0]) if bad else 0.0
        return self._found

    def skipped_later(self) -> Tuple[Callable[[], bool], Optional[Any]]:
        """After ``step()`` DeepSpeed knows, of all ranks."""
        answer = bool(getattr(self._optimizer, "overflow", False))
        return (lambda: answer), None


def scaling(optimizer: Any, named: Callable[[], Sequence[Tuple[str, Any]]]) -> Optional[Scaling]:
    """As scaling_of() does for others. ``named``: gives what the gradients are looked at of."""
    scaled = getattr(optimizer, "dynamic_loss_scale", False) or getattr(optimizer, "loss_scale", 1.0) != 1.0
    return ZeroScaling(optimizer, named) if scaled else None
