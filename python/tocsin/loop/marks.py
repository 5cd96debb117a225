"""Numbers of the ledger that are no loss call's: ``ledger/<room>/<field>``, of the present step (docs/ledger.md)."""

import sys
from math import isfinite
from typing import Any, Callable, Dict, List, Sequence

from tocsin.tensors.torch_staging import Arrival
from .sink import Sink


class Marks:
    """Of one room."""

    def __init__(self, sink: Sink, room: str) -> None:
        self._sink, self._room = sink, room
        self._ids: Dict[str, int] = {}

    def tell(self, fields: Sequence[str], values: Any) -> None:
        """``values``: one number of each, a tensor that may be on a device, or a list. On a device they are read when it is done."""
        self.tell_later(fields, values, lambda numbers: numbers if isinstance(numbers, list) else numbers.tolist())

    def tell_later(self, fields: Sequence[str], values: Any, read: Callable[[Any], List[float]]) -> None:
        """``read`` makes the numbers of the same values in host memory."""
        queue, event = self._sink.queue, None
        if getattr(values, "is_cuda", False):
            torch = sys.modules["torch"]
            kept = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            kept.copy_(values, non_blocking=True)
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(values.device))
            values, event = kept, Arrival(event)
        if event is None and not queue.waiting:
            self._told(fields, read(values), self._sink.clock.nothing_due())
        else:
            queue.put(lambda: self._told(fields, read(values), False), after=event)

    def tell_found(self, values: Any, read: Callable[[Any], Dict[str, float]]) -> None:
        """The same where only the numbers say which fields there are."""
        found: List[str] = []

        def listed(numbers: Any) -> List[float]:
            fields = read(numbers)
            found.extend(fields)
            return list(fields.values())

        self.tell_later(found, values, listed)

    def _told(self, fields: Sequence[str], numbers: List[float], quiet: bool) -> None:
        if not all(isfinite(one) for one in numbers):
            return  # the ledger has no such number; tensors that are not finite are told as themselves
        for field, number in zip(fields, numbers):
            identity = self._ids.get(field)
            if identity is None:
                identity = self._ids[field] = self._sink.scalar(f"ledger/{self._room}/{field}", "ledger")
            self._sink.publish_known(identity, number, quiet)
