"""Values of a sink that a device still computes, or that were computed elsewhere: they follow in order, and nobody waits."""

import ctypes
from typing import Any, Callable, Dict, List, Mapping, Sequence

from tocsin.library import abi
from tocsin.tensors.arrays import describe
from tocsin.tensors.device_queue import DeviceQueue

MAX_NAMES = 10_000  # of scalars that are logged, and of tensors that are saved by name


class LateValues:
    """Part of :class:`tocsin.sink.Sink`."""

    abi: "abi.Client"
    queue: DeviceQueue
    _tensors: Dict[str, int]
    tensor: Callable[..., int]

    def publish_later(self, tensors: Callable[[], List[Any]], ready: Any) -> None:
        """``tensors()`` gives (name, tensor in host memory, role) of what is to be published of the present
        step, once the event ``ready`` (None: at once) is done. Those that are not due are skipped."""

        def publish() -> None:
            for name, value, role in tensors():
                identity = self._tensors.get(name)
                if identity is None:
                    bounded(self._tensors)
                    identity = self._tensors[name] = self.tensor(name, dtype=value.dtype, shape=value.shape,
                                                                 role=role)
                described = describe(identity, value)
                if described is not None:
                    self._client.tensors(ctypes.byref(described[0]), 1)

        if ready is None and not self.queue.waiting:
            publish()
        else:
            self.queue.put(publish, after=ready)

    def publish_known(self, scalar: int, value: float, quiet: bool) -> None:
        """A number of the present step under an id of ``scalar()``, where nothing waits for a device. ``quiet``: nothing
        else is captured at this step. Takes no clock back."""
        self._client.scalar(scalar, value, quiet)

    def publish_copies(self, copies: List[Any], ready: Any, arrived: Callable[[], None]) -> None:
        """(id, tensor in host memory, flags) of the present step, once ``ready`` (None: at once) is done."""

        def publish() -> None:
            arrived()
            for identity, value, flags in copies:
                described = describe(identity, value)
                if described is not None:
                    described[0].flags = flags
                    self._client.tensors(ctypes.byref(described[0]), 1)

        self.queue.put(publish, after=ready)
        self._client.tensors(None, 0)  # ends the measurement that wants() began

    def publish_rows_now(self, rows: Sequence[Any]) -> None:
        """Statistics that were computed elsewhere and are there; whether they are due is not asked."""
        self.publish_rows(lambda: (abi.Row * len(rows))(*rows), None)

    def publish_rows(self, rows: Callable[[], Any], ready: Any) -> None:
        """Statistics that were computed elsewhere. ``rows()`` gives an array of rows once the event
        ``ready`` (``query()``, ``synchronize()``; None: at once) is done."""

        def publish() -> None:
            array = rows()
            self._client.statistics(array, len(array))

        self.queue.put(publish, after=ready)
        self._client.tensors(None, 0)  # ends the measurement that wants() began


def bounded(names: Mapping[str, int]) -> None:
    """Each name is kept by every reader of the run: one with a value in it grows without end."""
    if len(names) >= MAX_NAMES:
        raise ValueError(f"more than {MAX_NAMES} names: is there a number in them that changes?")
