"""Between host and device without waiting: copies through pinned memory, and the event after which they are there."""

import sys
from typing import Any, Dict, List, Optional

# Bytes on their way to and from one device. A device that falls so far behind is not asked for more.
MAX_IN_FLIGHT = 16 << 20
_SMALLEST = 1 << 12


def capturing() -> bool:
    """A CUDA graph is being captured: nothing may be launched, asked or waited for, or it becomes part of
    the graph or breaks the capture."""
    cuda = sys.modules["torch"].cuda
    asked = getattr(cuda, "is_current_stream_capturing", None)
    return bool(asked is not None and cuda.is_initialized() and asked())


class Arrival:
    """What the device does is done: an event that may also be asked while a graph is captured."""

    __slots__ = ("_events",)

    def __init__(self, *events: Any) -> None:
        self._events = events

    def query(self) -> bool:
        return not capturing() and all(event.query() for event in self._events)

    def synchronize(self) -> None:
        """:raises RuntimeError: while a graph is captured."""
        if capturing():
            raise RuntimeError("a CUDA graph is being captured: nothing can be waited for")
        for event in self._events:
            event.synchronize()


class Flight:
    """One batch: a table that goes to the device and the numbers that come back. On a device without pinned
    memory and events (CPU) both are there at once."""

    __slots__ = ("_staging", "_blocks", "_began", "ended", "_host")

    def __init__(self, staging: "Staging") -> None:
        self._staging = staging
        self._blocks: List[Any] = []
        self._began = staging.event(timing=True)
        self.ended: Optional[Any] = None
        self._host: Optional[Any] = None

    def upload(self, values: Any) -> Any:
        """A tensor of 64-bit integers in host memory, on the device."""
        staged = self._take(values.numel())[:values.numel()]
        staged.copy_(values)
        return staged.to(self._staging.device, non_blocking=self._staging.pinned, copy=True)

    def download(self, numbers: Any) -> None:
        """Has a binary64 tensor of the device copied, and ends the batch."""
        count = numbers.numel()
        torch = sys.modules["torch"]
        self._host = self._take(count)[:count].view(torch.float64)
        self._host.copy_(numbers.reshape(-1), non_blocking=self._staging.pinned)
        self.ended = self._staging.event(timing=True)

    def numbers(self) -> List[float]:
        """What came back; once, after ``ended``."""
        out: List[float] = self._host.tolist()  # type: ignore[union-attr]
        self._staging.give_back(self._blocks)
        return out

    def abandon(self) -> None:
        """It failed: its memory stays where copies may still go."""
        self._staging.forget(self._blocks)

    def seconds(self) -> float:
        """Between its first and its last moment on the device, whatever else that did in between."""
        return 0.0 if self._began is None else self._began.elapsed_time(self.ended) * 1e-3

    def _take(self, count: int) -> Any:
        block = self._staging.take(8 * count)
        self._blocks.append(block)
        return block


class Staging:
    """The pinned memory of one device. Blocks go round: allocating them may wait for the device."""

    def __init__(self, device: Any) -> None:
        self.device = device
        # Events and pinned copies of other accelerators are not tried: there the copy back waits.
        self.pinned = device.type == "cuda"
        self.waits = device.type not in ("cuda", "cpu")
        self._free: Dict[int, List[Any]] = {}
        self._in_flight = 0

    def has_room(self, count: int) -> bool:
        """Whether so many 64-bit numbers may be on their way too."""
        return self._in_flight + 16 * count + _SMALLEST <= MAX_IN_FLIGHT

    def event(self, timing: bool) -> Optional[Any]:
        if not self.pinned:
            return None
        cuda = sys.modules["torch"].cuda
        event = cuda.Event(enable_timing=timing)
        event.record(cuda.current_stream(self.device))
        return event

    def take(self, size: int) -> Any:
        """A block of at least ``size`` bytes, as 64-bit integers."""
        size = max(_SMALLEST, 1 << (size - 1).bit_length())
        self._in_flight += size
        free = self._free.setdefault(size, [])
        if free:
            return free.pop()
        torch = sys.modules["torch"]
        return torch.empty(size // 8, dtype=torch.int64, pin_memory=self.pinned)

    def give_back(self, blocks: List[Any]) -> None:
        for block in blocks:
            size = 8 * block.numel()
            self._in_flight -= size
            self._free[size].append(block)
        blocks.clear()

    def forget(self, blocks: List[Any]) -> None:
        self._in_flight -= sum(8 * block.numel() for block in blocks)
        blocks.clear()
