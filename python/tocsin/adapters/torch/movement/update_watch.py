"""What is asked of each update beside tensors: does it survive its precision and go along the gradient, and do ranks share out the data?"""

from typing import Any, Callable, List, Optional, Tuple

from tocsin.adapters.torch.optimizers.scalers import asked
from tocsin.adapters.torch.optimizers.scaling import Scaling
from tocsin.adapters.torch.optimizers.zero import is_deepspeed
from tocsin.loop.marks import Marks
from tocsin.loop.sink import Sink
from .movement import Movement
from .precision import Precision
from .ranks import Batches

TELL_EVERY = 50  # updates that a scaler was asked for, where it left out none


class UpdateWatch:
    """Of one optimizer, and the model that it updates. ``before()`` and ``after()`` stand around each update without a closure."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._marks = Marks(sink, "precision")
        self._precision: Optional[Precision] = Precision(sink) if sink.rank == 0 else None
        self._movement: Optional[Movement] = Movement(sink) if sink.rank == 0 and sink.wants_ledger else None
        self._batches: Optional[Batches] = None
        self._begun = self._scaled = False
        self._asked = 0

    def before(self, model: Any, optimizer: Any, count: int, named: Callable[[], List[Tuple[str, Any]]],
               scaling: Optional[Scaling]) -> Optional["UpdateWatch"]:
        """None: nothing of the next updates is to be seen. ``count``: of parameters that the optimizer holds; ``named``: those that
        train."""
        with self._sink.guard("update_watch"):
            if not is_deepspeed(optimizer) and self._look(model, optimizer, count, named, scaling):
                return self
        self.detach()
        return None

    def after(self, optimizer: Any, scaling: Optional[Scaling]) -> None:
        if self._precision is not None and optimizer is not None:
            with self._sink.guard("update_watch"):
                self._precision.after(optimizer, scaling)
        if self._movement is not None and optimizer is not None:
            with self._sink.guard("update_watch"):
                self._movement.after(optimizer)

    def rests(self) -> bool:
        """Nothing of the next update is to be seen."""
        return self._precision is None and self._batches is None and not self._scaled and (
            self._movement is None or self._movement.rests())

    def detach(self) -> None:
        if self._batches is not None:
            self._batches.detach()

    def _look(self, model: Any, optimizer: Any, count: int, named: Callable[[], List[Tuple[str, Any]]],
              scaling: Optional[Scaling]) -> bool:
        if not self._begun:
            self._begun = True
            self._batches = Batches.of(self._sink, model)
        if self._batches is not None:
            self._batches.tell()
        if self._precision is not None and not self._precision.before(optimizer, count):
            self._precision = None
        if self._movement is not None:
            movement, self._movement = self._movement, None
            with self._sink.guard("movement"):
                movement.before(optimizer, count, named, scaling)
                self._movement = movement
        if self._sink.rank == 0:
            self._count(optimizer)
        return any(one is not None for one in (self._precision, self._movement, self._batches)) or self._scaled

    def _count(self, optimizer: Any) -> None:
        """This update was asked for, and those before that were left out."""
        count = asked(optimizer)
        if count is None:
            return
        self._scaled = True
        self._asked += count
        left_out = max(count - 1, 0)
        fused = getattr(optimizer, "found_inf", None) is not None  # it leaves updates out in its kernel: the step says so
        if left_out > 0 or fused or self._asked >= TELL_EVERY:
            self._marks.tell(["scaled", "left_out"], [float(self._asked), float(left_out)])
            self._asked = 0
