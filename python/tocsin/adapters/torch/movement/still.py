"""Parameters of an optimizer whose gradient was zero everywhere at each update so far (docs/ledger.md, ``ledger/movement/zero``)."""

import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from tocsin.loop.marks import Marks
from tocsin.loop.sink import Sink
from tocsin.tensors.torch_names import local

DENSE = 64  # updates that are all looked at
UPDATES = 200  # at which it was zero: told. Until then each is looked at
PATIENCE = 400  # updates, after which what thaws later is waited for no more
NAMES = 8  # of those, at most
SAMPLE = 64  # elements that mostly say it


class WithoutGradient:
    """Of one optimizer. What never had a gradient at all is counted apart: the first updates have told of it (Preflight)."""

    def __init__(self, sink: Sink) -> None:
        self._marks = Marks(sink, "movement")
        self._count = -1
        self._unseen: Dict[int, Any] = {}  # parameters by id(), as long as the optimizer holds them
        self._zeros: Dict[int, int] = {}  # of those that had one: updates at which it was zero
        self._updates = 0  # since the optimizer holds what it holds
        # Ids, whether they have one, the event after which it is known, and whether all elements were looked at.
        self._asked: Optional[Tuple[List[int], Any, Any, bool]] = None
        self._tell = DENSE

    def look(self, optimizer: Any, count: int, named: Callable[[], List[Tuple[str, Any]]]) -> None:
        if count != self._count:
            self._begin(optimizer, count)
        self._updates += 1
        if self._unseen:
            self._answer()
        if self._unseen:
            with_one = [(key, one.grad) for key, one in self._unseen.items() if one.requires_grad and one.grad is not None]
            if with_one and self._asked is None:
                self._ask(with_one)
        if self._updates >= self._tell and self._asked is None and (not self._unseen or self._known()):
            self._say(optimizer, named)

    def rests(self) -> bool:
        return self._tell > UPDATES or (not self._unseen and self._updates >= self._tell)

    def _known(self) -> bool:
        """Of each that is left, whether it has one: those that are frozen, or have none, may get one later."""
        if self._updates >= PATIENCE:
            return True
        return self._updates >= UPDATES and all(number >= UPDATES for key, number in self._zeros.items() if key in self._unseen)

    def _begin(self, optimizer: Any, count: int) -> None:
        self._count, self._updates, self._asked, self._tell = count, 0, None, DENSE
        self._zeros = {}
        held = [one for group in optimizer.param_groups for one in group["params"]]
        # A rank may hold nothing of a tensor that lies on several.
        whole = not any(hasattr(one, "to_local") or local(one.detach()).numel() == 0 for one in held)
        self._unseen = {id(one): one for one in held} if whole else {}

    def _ask(self, gradients: List[Tuple[int, Any]]) -> None:
        torch = sys.modules["torch"]
        dense = []
        for key, gradient in gradients:
            if not gradient.is_sparse:
                dense.append((key, gradient))
            elif gradient._nnz() > 0:
                self._unseen.pop(key, None)
        if not dense:
            return
        with torch.no_grad():
            few = self._updates == 1  # most are seen at once
            norms = [torch.linalg.vector_norm(_few(one) if few else one.detach(), ord=float("inf")).float() for _, one in dense]
            device = norms[0].device
            flags = torch.stack([norm if norm.device == device else norm.to(device, non_blocking=True) for norm in norms]) != 0
            event = None
            if flags.is_cuda:
                kept = torch.empty(flags.shape, dtype=flags.dtype, pin_memory=True)
                kept.copy_(flags, non_blocking=True)
                event = torch.cuda.Event()
                event.record(torch.cuda.current_stream(device))
                flags = kept
        self._asked = [key for key, _ in dense], flags, event, not few
        self._answer()

    def _answer(self) -> None:
        if self._asked is None or (self._asked[2] is not None and not self._asked[2].query()):
            return
        keys, flags, _, whole = self._asked
        self._asked = None
        for key, has in zip(keys, flags.tolist()):
            if has:
                self._unseen.pop(key, None)
            elif whole:
                self._zeros[key] = self._zeros.get(key, 0) + 1

    def _say(self, optimizer: Any, named: Callable[[], List[Tuple[str, Any]]]) -> None:
        self._tell = max(2 * self._updates, UPDATES + 1)
        trainable = [one for group in optimizer.param_groups for one in group["params"] if one.requires_grad]
        without = [one for one in trainable if id(one) in self._unseen]
        if len(without) == len(trainable) and all(one.grad is None for one in without):
            return  # its gradients are kept elsewhere
        names = {id(one): name for name, one in named()}
        # A loss of differences (a critic's, a ranking's) does not depend on a constant that is added: the rest of such a module moves.
        moving = {_module(names[id(one)]) for one in trainable if id(one) in names and id(one) not in self._unseen}
        zero = [one for one in without if self._zeros.get(id(one), 0) >= UPDATES and _module(names.get(id(one), "")) not in moving]
        told = {id(one) for one in zero}
        without = [one for one in without if id(one) not in told]
        fields = ["trainable", "without", "zero", "trainable_elements", "zero_elements"]
        numbers = [float(len(trainable)), float(len(without)), float(len(zero)), float(sum(one.numel() for one in trainable)),
                   float(sum(one.numel() for one in zero))]
        for one in [one for one in zero if id(one) in names][:NAMES]:
            fields.append(f"never/{names[id(one)]}")
            numbers.append(float(one.numel()))
        self._marks.tell(fields, numbers)


def _module(name: str) -> str:
    return name.rpartition(".")[0] or name


def _few(gradient: Any) -> Any:
    """Elements of it."""
    return gradient.detach().reshape(-1)[:: max(1, gradient.numel() // SAMPLE)] if gradient.is_contiguous() else gradient.detach()
