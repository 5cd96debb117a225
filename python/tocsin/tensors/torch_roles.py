"""Which of a model's parameters are the same on all ranks, and which are this rank's alone.

What lies in parts on several ranks (FSDP, tensor and expert parallel, ZeRO), and what belongs to a rank of another role (a
stage of a pipeline, a group of replicas among others), is published by each rank that has it and marked as a part: nobody
compares it with what other ranks call by the same name. No collective is called, and nothing is imported.
"""

import gc
import sys
from typing import Any, Optional, Set, Tuple

from tocsin.library import abi
from .torch_names import local

# Attributes by which Megatron, DeepSpeed and their like mark parameters: (name, the value that marks a part).
_MARKS = (("tensor_model_parallel", True), ("allreduce", False), ("is_expert", True), ("expert_model_parallel", True))
_FLATTENED = "_fsdp_flattened"  # as torch marks what FullyShardedDataParallel manages


class Roles:
    """Of one model, as it is when this is made."""

    def __init__(self, model: Any) -> None:
        """Borrows the model."""
        distributed = sys.modules.get("torch.distributed")
        ready = distributed is not None and distributed.is_available() and distributed.is_initialized()
        self._world = int(distributed.get_world_size()) if ready else 1  # type: ignore[union-attr]
        self._parts: Set[int] = set()  # by id(), as FullyShardedDataParallel shards them, or does not
        self._whole: Set[int] = set()
        self._group: Optional[Tuple[int, int]] = None  # this rank in the group of replicas, and how many they are
        if self._world > 1 and model is not None:
            self._group = _group_of(model) or _stage_of(model)
            self._parts, self._whole = _of_fsdp1(model)

    def is_part(self, parameter: Any) -> bool:
        """Whether other ranks hold something else under its name."""
        if self._world < 2:
            return False
        if self._group is not None and self._group[1] < self._world:
            return True
        return self._is_shard(parameter)

    def publishes(self, parameter: Any) -> bool:
        """Whether it is for this rank to tell of it where each thing is told once, although it is not rank 0."""
        if self._world < 2:
            return False
        return self._is_shard(parameter) or (
            self._group is not None and self._group[0] == 0 and self._group[1] < self._world)

    def _is_shard(self, parameter: Any) -> bool:
        if id(parameter) in self._parts or is_shard(parameter, self._world):
            return True
        if getattr(parameter, _FLATTENED, False) and id(parameter) not in self._whole:
            return True  # around the model, as Lightning has it
        return any(getattr(parameter, name, not value) is value for name, value in _MARKS)


def is_shard(tensor: Any, world: int = 0) -> bool:
    """Whether what lies here of it is not what all ``world`` ranks (0: those of its own mesh) have."""
    placements = getattr(tensor, "placements", None)
    if placements is None:
        return hasattr(tensor, "to_local")  # ZeRO's, and the shards of others
    mesh = tensor.device_mesh
    apart = any(mesh.size(dimension) > 1 and not placement.is_replicate()
                for dimension, placement in enumerate(placements))
    return apart or mesh.size() < world


def piece_of(tensor: Any) -> Tuple[Any, int]:
    """(what lies here of a tensor on several ranks, row flags that say so)."""
    return local(tensor), abi.FLAG_PARTIAL if is_shard(tensor) else 0


def _group_of(model: Any) -> Optional[Tuple[int, int]]:
    """(this rank, ranks) of the group over which DistributedDataParallel averages."""
    inner = getattr(model, "_orig_mod", model)
    group = getattr(inner, "process_group", None)
    if type(inner).__name__ != "DistributedDataParallel" or group is None:
        return None
    return int(group.rank()), int(group.size())


def _stage_of(model: Any) -> Optional[Tuple[int, int]]:
    """The same of a stage of a pipeline (torch.distributed.pipelining), whose module is this model, in it or around it."""
    pipelining = sys.modules.get("torch.distributed.pipelining.stage")
    kind = getattr(pipelining, "_PipelineStageBase", None)
    if kind is None:
        return None
    mine = set(map(id, model.modules()))
    for stage in gc.get_objects():
        if isinstance(stage, kind) and stage.num_stages > 1 and (
                id(stage.submod) in mine or any(one is model for one in stage.submod.modules())):
            # Who replicates a stage is not known here: each rank tells of its own.
            return 0, 1
    return None


def _of_fsdp1(model: Any) -> Tuple[Set[int], Set[int]]:
    """Parameters, by id(), that FullyShardedDataParallel shards, flat ones and views into flat ones; and those that it leaves whole."""
    parts: Set[int] = set()
    whole: Set[int] = set()
    modules = getattr(model, "modules", None)
    for module in modules() if modules is not None else ():
        if type(module).__name__ != "FullyShardedDataParallel":
            continue
        strategy = getattr(getattr(module, "sharding_strategy", None), "name", "")
        group = getattr(module, "process_group", None)
        ignored = {id(one) for one in getattr(module, "_ignored_params", ())}
        into = whole if strategy == "NO_SHARD" or (group is not None and group.size() < 2) else parts
        into.update(id(one) for one in module.parameters() if id(one) not in ignored)
    return parts - whole, whole
