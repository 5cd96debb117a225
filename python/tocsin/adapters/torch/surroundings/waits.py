"""Times of what the thread that trains does outside of its model: it waits for batches of a data loader and for other
ranks, and writes checkpoints. Each is a function of PyTorch's that is replaced as long as the hook is open.

What is replaced keeps its name, its class and its place, so that nobody who asks for one of these sees a difference:
an iterator is of the class that it was of, a pickled reference is one to PyTorch's own function. Threads that do not
train, forked children and whatever a compiler traces run through to what was there.
"""

import functools
import sys
from threading import get_ident
from time import time_ns
from typing import Any, Callable, Collection, Dict, Tuple

from tocsin.loop.sink import Sink
from tocsin.process.replacing import Replacing
from .checkpoints import Checkpoints

# (module, class or None, function) of each phase. `Work.wait` is where every collective operation that is called from
# Python ends, however it was imported; a barrier of NCCL waits before it is there.
PLACES: Dict[str, Tuple[Tuple[str, str, str], ...]] = {
    "data_wait": (("torch.utils.data.dataloader", "_BaseDataLoaderIter", "__next__"),),
    "communication": (("torch.distributed", "Work", "wait"), ("torch.distributed", "ProcessGroup", "barrier"),
                      ("torch.distributed", "ProcessGroup", "monitored_barrier")),
    "checkpoint": (("torch", "", "save"), ("torch.serialization", "", "save")),
}


class Waits(Replacing):
    """Of one hook, and of the thread that called ``watch()``. What the script times itself is not timed here."""

    def __init__(self, sink: Sink, wanted: Collection[str]) -> None:
        super().__init__()
        self.sink = sink
        self.thread = get_ident()
        self._off: Dict[str, Callable[[], None]] = {}
        self._checkpoints = Checkpoints(sink) if sink.rank == 0 else None
        for phase, places in PLACES.items():
            if phase in wanted:
                with sink.guard("waits"):
                    self._time(phase, places)
        sink.phases.automatic(self)
        sink.attach(self)  # held weakly: what is replaced keeps it

    def by_hand(self, phase: str) -> None:
        """The script times this phase itself."""
        off = self._off.pop(phase, None)
        if off is not None:
            off()

    def _time(self, phase: str, places: Tuple[Tuple[str, str, str], ...]) -> None:
        timed = _Timed(self, self.sink.phases.of(phase))
        self._off[phase] = timed.stop
        self._undo.append(timed.stop)
        made: Dict[int, Any] = {}  # two names of one function stay so: it is pickled by one of them
        for module, name, function in places:
            owner: Any = sys.modules.get(module)
            if name:
                owner = getattr(owner, name, None)
            inner = getattr(owner, "__dict__", {}).get(function)
            if inner is not None:
                ours = made.get(id(inner)) or made.setdefault(id(inner), timed.around(self._looked_at(phase, inner)))
                self.replace(owner, function, ours)


    def _looked_at(self, phase: str, inner: Any) -> Any:
        return inner if phase != "checkpoint" or self._checkpoints is None else self._checkpoints.around_saving(inner)


class _Timed:
    """One phase."""

    def __init__(self, waits: Waits, add: Callable[[int, int], None]) -> None:
        self._waits, self._add = waits, add
        self.stopped = self.inside = False

    def stop(self) -> None:
        self.stopped = True

    def around(self, inner: Any) -> Any:
        waits, add, ident, now = self._waits, self._add, get_ident, time_ns
        sink, thread = waits.sink, waits.thread
        # Constant where a compiler traces; torch 1 has none.
        compiling = getattr(getattr(sys.modules["torch"], "compiler", None), "is_compiling", None) or _never

        @functools.wraps(inner)
        def timed(*args: Any, **kwargs: Any) -> Any:
            # Inside of itself (a data set that reads another loader) it is one time, that of the outermost.
            if compiling() or self.stopped or self.inside or not sink.active or ident() != thread:
                return inner(*args, **kwargs)
            self.inside = True
            began = now()
            try:
                return inner(*args, **kwargs)
            finally:
                add(began, now() - began)
                self.inside = False

        return timed


def _never() -> bool:
    return False
