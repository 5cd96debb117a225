"""What the ledger says of a model's inputs beside its targets (docs/ledger.md, ``ledger/data/train`` and ``ledger/data/evaluation``): single
columns that know the target, and samples of an evaluation that were trained on.

Told at doubled numbers of rows, and of the 1st, 2nd, 4th, … evaluation after training has begun. Fingerprints are made where the
batch lies and nobody waits for them; no element leaves the process. It takes NumPy.
"""

import sys
from typing import Any, Callable, Dict, List, Optional

from tocsin.ledger.fingerprints import LEAST, Kept, Pass, mixed
from tocsin.tensors.torch_staging import Arrival
from .columns import columns_of
from .fingerprints import MOST_TENSORS, Salt, fingerprints


class Inputs:
    """Of one ledger: of the first loss whose targets fit the inputs row by row."""

    def __init__(self, sink: Any, given: Any) -> None:
        self._sink, self._given = sink, given
        self._ids: Dict[str, int] = {}
        self._call: Any = None
        self._columns: Any = None
        self._salt, self._train = Salt(), Kept()
        self._tensors = 0  # of a sample, in training
        self._pass: Optional[Pass] = None
        self._trained = -1  # calls of training before it
        self._before = 0  # calls of evaluations before it
        self._begun = False  # a call of it was measured
        self._passes = 0
        self._gone = 0  # calls whose inputs were not there any more

    def trained(self, call: Any, given: Any, calls: int) -> None:
        """A call of training was measured, after so many calls of evaluations."""
        self.over(calls)
        found = self._rows(given)
        if not found or (self._call is not None and call is not self._call):
            return
        if self._call is None:
            self._call, self._tensors = call, len(found[:MOST_TENSORS])
            self._columns = columns_of(given, _widest(found))
        columns = self._columns
        if columns is not None and not columns.done:
            self._add(columns, given, _widest(found))
        self._hash(given, found[:MOST_TENSORS], self._train.add)

    def passes(self, trained: int, calls: int) -> None:
        """There is the ``calls``-th call of evaluations, measured or not, after so many calls of training."""
        if self._trained != trained:
            self.over(calls - 1)
            self._trained = trained

    def evaluated(self, call: Any, given: Any) -> None:
        """This call of an evaluation was measured."""
        if call is not self._call:
            return
        if not self._begun:
            self._begun = True
            enough = self._train.visits >= LEAST
            self._passes += enough
            if enough and self._passes & (self._passes - 1) == 0:
                self._pass = Pass(self._trained)
        here = self._pass
        if here is None:
            return
        found = self._rows(given)
        if found and len(found[:MOST_TENSORS]) == self._tensors:
            self._hash(given, found[:MOST_TENSORS], here.add)

    def over(self, calls: int) -> None:
        """An evaluation has ended, if there was one. ``calls``: of evaluations until now."""
        ended, self._pass, self._begun = self._pass, None, False
        before, self._before = self._before, calls
        if ended is not None:
            look = float(self._passes.bit_length())
            self._when(None, lambda _: self._compared(ended, look, calls - before))

    def counts(self) -> Dict[str, Any]:
        """For ``hook.stats()``."""
        out: Dict[str, Any] = {"samples": self._train.visits}
        if self._gone:
            out["gone"] = self._gone
        return out

    # ---- what belongs together

    def _rows(self, given: Any) -> List[Any]:
        """The inputs of a call that have a row for each of its samples. A model that computes its own loss is given the targets, too: they
        are none, if it is given anything else."""
        target = given.target
        if target.dim() == 0 or target.numel() == 0:
            return []
        tensors = [one for one in self._given.tensors() if one.dim() > 0 and one.shape[0] > 0 and one.device == target.device]
        found = [one for one in tensors if one.shape[0] == target.shape[0]]
        if not found:  # a text's places, laid out in a row
            found = [one for one in tensors if one.dim() == 2 and one.numel() == target.numel()]
        self._gone += not found
        return [one for one in found if not _is_target(one, target)] or found

    def _add(self, columns: Any, given: Any, inputs: Any) -> None:
        flat, target = _matrix(inputs), _matrix(given.target)
        if flat.shape[1] != columns.width or len(flat) != len(target) or target.shape[1] != columns.units:
            return
        chosen = columns.some(len(flat))

        def read(numbers: Any) -> None:
            self._publish("train", columns.add(numbers[:, :columns.width].numpy(), numbers[:, columns.width:].numpy()))

        torch = sys.modules["torch"]
        some = flat[chosen].float(), target[chosen].float()
        self._when(torch.cat(some, 1), read)

    def _hash(self, given: Any, found: List[Any], add: Callable[[Any], None]) -> None:
        target = given.target.detach()
        count = int(found[0].shape[0])
        if target.shape[0] != count:
            target = target.reshape(count, -1)
        hashes = fingerprints(found, target, self._salt)
        if hashes is not None:
            self._when(hashes, lambda numbers: add(mixed(getattr(numbers, "numpy", lambda: numbers)().view("uint64"))))

    # ---- told

    def _compared(self, ended: Pass, look: float, calls: int) -> None:
        ended.missed = max(0, calls - ended.calls)
        fields = ended.compared(self._train)
        if fields is not None:
            self._publish("evaluation", {**fields, "look": look})

    def _publish(self, which: str, fields: Dict[str, float]) -> None:
        sink = self._sink
        for field, value in fields.items():
            name = f"ledger/data/{which}/{field}"
            if name not in self._ids:
                self._ids[name] = sink.scalar(name, "ledger")
            sink.publish_known(self._ids[name], value, False)

    def _when(self, numbers: Any, read: Callable[[Any], None]) -> None:
        """``read(numbers)``, once they are in host memory, and in the order of these calls."""
        queue, event = self._sink.queue, None
        if getattr(numbers, "is_cuda", False):
            torch = sys.modules["torch"]
            kept = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
            kept.copy_(numbers, non_blocking=True)
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(numbers.device))
            numbers, event = kept, Arrival(event)
        if event is None and not queue.waiting:
            read(numbers)
        else:
            queue.put(read, numbers, after=event)


def _is_target(tensor: Any, target: Any) -> bool:
    if tensor.numel() != target.numel():
        return False
    if tensor.data_ptr() == target.data_ptr() or tensor.is_cuda:
        return tensor.data_ptr() == target.data_ptr() or tensor.dim() == 1
    return bool((tensor.detach().reshape(-1) == target.detach().reshape(-1)).all())


def _widest(tensors: List[Any]) -> Any:
    """Of floating ones, or the first: beside a table, others are weights, times and the like."""
    return max(tensors, key=lambda one: (one.is_floating_point(), one.numel() if one.is_floating_point() else 0))


def _matrix(tensor: Any) -> Any:
    """(rows, all else)."""
    tensor = tensor.detach()
    return tensor[:, None] if tensor.dim() == 1 else tensor.reshape(tensor.shape[0], -1)
