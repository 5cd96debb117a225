"""What waits for a device: values that it still computes or copies, and all that was said after them."""

from collections import deque
from typing import Any, Callable, Deque, Optional, Tuple


class DeviceQueue:
    """Keeps the order of a loop's words without waiting for the device.

    An event is anything with ``query()`` (is it done?) and ``synchronize()`` (waits), as
    ``torch.cuda.Event`` has them.
    """

    def __init__(self) -> None:
        # Looked at before every call into the library: while something waits, the call waits too.
        self.waiting: Deque[Tuple[Optional[Any], Callable[..., Any], Tuple[Any, ...]]] = deque()
        self.lent: Optional[Callable[[], None]] = None  # as of the client

    def put(self, function: Callable[..., Any], *arguments: Any, after: Optional[Any] = None) -> None:
        """``function(*arguments)``, once ``after`` is done and all that was put before has run."""
        if self.lent is not None:
            self.lent()
        self.waiting.append((after, function, arguments))

    def drain(self, wait: bool = False) -> None:
        """Runs what waits, in order, as far as the device is; with ``wait`` all of it."""
        waiting = self.waiting
        while waiting:
            event, function, arguments = waiting[0]
            if event is not None and not event.query():
                if not wait:
                    return
                event.synchronize()
            waiting.popleft()
            function(*arguments)

    def clear(self) -> None:
        self.waiting.clear()
