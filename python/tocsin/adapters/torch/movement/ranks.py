"""A fingerprint of what each data-parallel rank trains on (docs/ledger.md, ``ledger/ranks/batch``): ranks whose sampler does not know them all
read the same samples. What travels is a hash of at most 4 KiB with the run's uid as its salt.

Parts of a model, stages of a pipeline and experts share batches by design. So only a model in DistributedDataParallel or
FullyShardedDataParallel is looked at, and only where the wrapper's group holds all ranks of the job.
"""

import ctypes
import hashlib
import sys
from typing import Any, Callable, List, Optional

from tocsin.adapters.torch.models.modules import _compiling, _Untraced
from tocsin.adapters.torch.models.tracing import looking
from tocsin.loop.marks import Marks
from tocsin.loop.sink import Sink
from tocsin.tensors.torch_staging import capturing

TENSORS, BYTES = 4, 1024  # of each tensor of a batch
DENSE, EVERY = 16, 64  # the first updates all, then each so many
_WRAPPERS = (("torch.nn.parallel.distributed", "DistributedDataParallel"),
             ("torch.distributed.fsdp.fully_sharded_data_parallel", "FullyShardedDataParallel"))


class Batches:
    """Of one model on one rank."""

    def __init__(self, sink: Sink, model: Any, world: int) -> None:
        self._sink, self._world = sink, world
        self._marks = Marks(sink, "ranks")
        self._salt = str(sink.run_uid()).encode()
        self._updates = 0
        self._sample: Optional[Any] = None
        self._torch = sys.modules["torch"]
        self._looked_at = looking()
        hook: Callable[..., None] = _Untraced(self._given, _compiling())
        try:
            self._handle = model.register_forward_pre_hook(hook, with_kwargs=True)
        except TypeError:  # torch 1
            self._handle = model.register_forward_pre_hook(hook)

    @staticmethod
    def of(sink: Sink, model: Any) -> Optional["Batches"]:
        """None: this job has no replicas."""
        distributed = getattr(sys.modules.get("torch"), "distributed", None)
        if model is None or distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        world = distributed.get_world_size()
        return Batches(sink, model, world) if world > 1 else None

    def detach(self) -> None:
        self._handle.remove()
        self._sample = None

    def tell(self) -> None:
        """An update begins: what was given belongs to its step."""
        sample, self._sample = self._sample, None
        self._updates += 1
        if sample is not None:
            self._marks.tell_later(["batch"], sample, self._hash)

    def _given(self, module: Any, args: Any, kwargs: Any = None) -> None:
        """A forward pass begins. Of several in a step (micro-batches) the first that trains."""
        if self._sample is not None or not (self._updates < DENSE or self._updates % EVERY == 0):
            return
        sink = self._sink
        if not sink.active or sink.clock.mode != "train" or not module.training or not self._torch.is_grad_enabled():
            return
        with sink.guard("ranks"):
            if self._looked_at(args) or not self._replicated(module) or capturing():
                return
            with self._torch.no_grad():
                self._sample = self._some_of(_tensors([*args, *(kwargs or {}).values()]))

    def _replicated(self, module: Any) -> bool:
        """The ranks of the job are copies of one model, and nothing else."""
        for place, name in _WRAPPERS:
            kind = getattr(sys.modules.get(place), name, None)
            if kind is None:
                continue
            wrapper = module if isinstance(module, kind) else getattr(kind, "_active_ddp_module", None)
            if wrapper is not None and wrapper.process_group.size() == self._world and \
                    "HYBRID" not in str(getattr(wrapper, "sharding_strategy", "")):
                return True
        return False

    def _some_of(self, tensors: List[Any]) -> Optional[Any]:
        parts: List[Any] = []
        for tensor in tensors:
            flat = _flat(tensor.detach())
            if flat is None or (parts and tensor.device != parts[0].device):
                continue
            most = max(1, BYTES // tensor.element_size())
            some = flat[::max(1, -(-int(flat.numel()) // most))]
            parts.append(some.contiguous().view(self._torch.uint8))
            if len(parts) == TENSORS:
                break
        return self._torch.cat(parts) if parts else None

    def _hash(self, sample: Any) -> List[float]:
        data = ctypes.string_at(sample.data_ptr(), sample.numel())
        digest = hashlib.blake2b(data, digest_size=8, key=self._salt[:64]).digest()
        return [float(int.from_bytes(digest, "little") >> 12)]


def _flat(tensor: Any) -> Optional[Any]:
    """As it lies in memory, without a copy; None: that cannot be."""
    if tensor.layout is not sys.modules["torch"].strided or tensor.numel() == 0 or hasattr(tensor, "to_local"):
        return None
    if not tensor.is_contiguous() and tensor.dim() == 4:
        tensor = tensor.permute(0, 2, 3, 1)  # images with their channels last
    return tensor.reshape(-1) if tensor.is_contiguous() else None


def _tensors(values: List[Any]) -> List[Any]:
    out: List[Any] = []
    pending = list(values)
    while pending and len(out) < TENSORS:
        value = pending.pop(0)
        if type(value) is sys.modules["torch"].Tensor:
            out.append(value)
        elif isinstance(value, (tuple, list)):
            pending = list(value[:16]) + pending
        elif isinstance(value, dict) or hasattr(value, "values") and hasattr(value, "keys"):
            pending = list(value.values())[:16] + pending
    return out
