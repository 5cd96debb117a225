"""What the batches of one job held: collected call by call, told with the step that they belong to (docs/ledger.md)."""

from typing import Any, Callable, Dict, List, Optional, Tuple

from .batch import EVALUATION_ROWS, ROWS, Batch, Wanted, moments_of
from .by_class import FIELDS
from .constants import by_class
from .moments import Form
from .samples import Samples
from .worlds import Held, Worlds

_LABELS = FIELDS.index("labels")


class BatchBook:
    """Of one ledger. ``tell(name, value)``: a scalar of the present step."""

    def __init__(self, tell: Callable[[str, float], None]) -> None:
        self.worlds = Worlds(lambda field, value: tell(f"ledger/world/{field}", value))
        self.samples = Samples(lambda field, value: tell(f"ledger/data/{field}", value))
        self.passes = 0  # over the training data, as far as the framework says it
        self._held: List[Held] = []
        self._given: List[Tuple[str, Batch]] = []

    def wanted(self, learns: bool, trained: int) -> Wanted:
        """``trained``: as of ``publish()``."""
        return Wanted(ROWS if learns else EVALUATION_ROWS, self.worlds.wants(trained, learns), learns and self.samples.wants_table())

    def add(self, name: str, form: Form, vector: Any, batch: Optional[Batch]) -> None:
        """Of a loss call that was measured; ``batch``: with arrays in host memory."""
        table = by_class(form, vector)
        labels = None if table is None else table[_LABELS]
        moments = []
        if batch is not None:
            if batch.numbers is not None:
                numbers = batch.numbers.astype("float64")
                batch, moments = batch._replace(numbers=numbers), moments_of(batch.form, numbers)
            self._given.append((name, batch))
        self._held.append(Held(name, labels, moments))

    def publish(self, learns: bool, trained: int, calls: int) -> None:
        """``trained``, ``calls``: steps of training and batches of evaluations so far, measured or not."""
        held, given = self._held, self._given
        self._held, self._given = [], []
        if not held:
            return
        if learns:
            self.samples.over(calls)
            self.worlds.trained(trained, held)
        else:
            self.worlds.evaluated(calls, held)
        for name, batch in given:
            if learns:
                self.samples.trained(name, batch.form, batch.numbers, batch.prints)
            else:
                self.samples.evaluated(name, batch.prints, trained, calls)

    def over(self, calls: int) -> None:
        """The run ends, after so many batches of evaluations."""
        self.samples.over(calls)

    def counts(self) -> Dict[str, Any]:
        """For ``hook.stats()``."""
        return self.samples.counts()
