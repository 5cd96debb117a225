"""PyTorch tensors on a device: statistics and copies that nobody waits for.

All tensors of a call are measured together, by ``torch_triton`` or, where that cannot be, ``torch_packed``;
the numbers come back through pinned memory and are read at a later step (``torch_staging``). Like all of the
package it takes torch from ``sys.modules`` and never imports it; Triton is imported when it is needed.
"""

import math
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from tocsin.library import abi
from .arrays import dtype_code
from .device_counts import DeviceCounts
from .torch_layout import COLUMNS, COMPLEX, KINDS, LONG, NotRead, run_of, waits
from .torch_names import local
from .torch_packed import PackedStatistics
from .torch_staging import Arrival, Flight, Staging, capturing
from .torch_triton import LAUNCHES, TritonStatistics, why_not

Rows = Tuple[Callable[[], Any], Optional[Arrival]]

_NAN = float("nan")
_APPROXIMATE = abi.FLAG_APPROXIMATE


def copy_of_scalar(tensor: Any) -> Tuple[Any, Any]:
    """(a pinned copy of one element, the event after which it holds the value)."""
    torch = sys.modules["torch"]
    kept = torch.empty((), dtype=tensor.dtype, pin_memory=True)
    kept.copy_(tensor.detach().reshape(()), non_blocking=True)
    event = torch.cuda.Event()
    event.record(torch.cuda.current_stream(tensor.device))
    return kept, Arrival(event)


class _Line(NamedTuple):
    """A row to be: what is known of it here, and where the device's numbers for it will be."""

    identity: int
    count: int
    flags: int
    dtype: int
    kind: Optional[int] = None  # None: a type without statistics
    repeats: int = 1
    batch: Optional["_Batch"] = None  # None: nothing to measure
    place: int = 0


class _Batch:
    """What is measured together on one device."""

    def __init__(self, device: "_Device") -> None:
        self.device = device
        self.runs: List[Tuple[Any, int]] = []
        self.flight: Optional[Flight] = None
        self.numbers: List[float] = []

    def add(self, run: Any, kind: int) -> int:
        self.runs.append((run, kind))
        return len(self.runs) - 1

    def of(self, place: int) -> List[float]:
        return self.numbers[len(COLUMNS) * place:len(COLUMNS) * (place + 1)]


class _Device:
    """A device that tensors were seen on: how they are measured there, and its pinned memory."""

    def __init__(self, device: Any) -> None:
        self.name = str(device)
        self.staging = Staging(device)
        self._device = device
        self._statistics: Union[TritonStatistics, PackedStatistics]
        self._why = why_not(device)
        if self._why is None:
            try:
                self._statistics = TritonStatistics(device)
                return
            except Exception as error:  # noqa: BLE001
                self._why = f"{type(error).__name__}: {error}"[:200]
        self._statistics = PackedStatistics(device)

    @property
    def kernel(self) -> str:
        """What measures here, and why it is not Triton."""
        return self._statistics.name if self._why is None else f"{self._statistics.name} ({self._why})"

    def measure(self, batch: _Batch, counts: DeviceCounts) -> None:
        """Has a batch computed and copied; waits for nothing. Where Triton fails (no compiler, an old driver)
        it is not tried again in this process."""
        if isinstance(self._statistics, TritonStatistics):
            flight = Flight(self.staging)
            try:
                flight.download(self._statistics(batch.runs, flight))
                counts.launches += LAUNCHES
            except Exception as error:  # noqa: BLE001
                flight.abandon()
                self._why = f"{type(error).__name__}: {error}"[:200]
                self._statistics = PackedStatistics(self._device)
            else:
                batch.flight = flight
        if batch.flight is None:
            flight = Flight(self.staging)
            try:
                flight.download(self._statistics(batch.runs, flight))
            except Exception:
                flight.abandon()
                raise
            batch.flight = flight
        counts.kernels[self.name] = self.kernel
        counts.batches += 1
        if self.staging.waits:
            counts.wait("device")


_devices: Dict[Any, _Device] = {}


def _device_of(device: Any) -> _Device:
    known = _devices.get(device)
    if known is None:
        known = _devices[device] = _Device(device)
    return known


def warm(tensors: List[Any], counts: DeviceCounts) -> None:
    """Compiles now what will measure tensors of these types on these devices: it takes seconds the first time
    on a machine, and would count as the first captured step's."""
    if capturing():
        return
    torch = sys.modules["torch"]
    types = {(tensor.device, tensor.dtype) for tensor in tensors if tensor.device.type == "cuda"}
    for device in {device for device, _ in types}:
        made = device_rows([(0, torch.zeros(1, dtype=dtype, device=device), 0)
                            for where, dtype in types if where == device], None, DeviceCounts())
        if made is not None:
            rows, ready = made
            if ready is not None:
                ready.synchronize()
            rows()
        counts.kernels[_device_of(device).name] = _device_of(device).kernel


def device_rows(named: List[Tuple[int, Any, int]], scaling: Optional[Any],
                counts: DeviceCounts) -> Optional[Rows]:
    """Statistics of (id, tensor, row flags) on the devices that hold the tensors: launches, copies to pinned
    memory, waits for nothing. Returns (a function that gives the rows, the event after which it may be
    called), or None when nothing could be measured. Rows flagged as divided by the loss scale are divided by
    that of ``scaling``. Shards and DTensors: their local part.

    What cannot be read has no row and is counted.
    """
    if capturing():
        counts.skip("graph_capture", len(named))
        return None
    torch = sys.modules["torch"]
    batches: Dict[Any, _Batch] = {}
    with torch.no_grad():
        lines = _lines(named, batches, counts)
        divided = None if scaling is None else _Divided(scaling, batches)
        flights = _measured(batches, counts)
    unknown = 0 if divided is None or divided.known() else abi.FLAG_UNSCALED
    lines = [line for line in lines
             if not line.flags & unknown and (line.batch is None or line.batch.flight is not None)]
    events = [flight.ended for flight in flights if flight.ended is not None]
    counts.tensors += len(lines)
    if not lines and not flights:
        return None

    def rows() -> Any:
        for batch in batches.values():
            if batch.flight is not None:
                batch.numbers = batch.flight.numbers()
                counts.seconds += batch.flight.seconds()
        divisor, skipped = (1.0, False) if divided is None else divided.told()
        array = (abi.Row * len(lines))()
        for row, line in zip(array, lines):
            _fill(row, line, divisor, skipped)
        return array

    return rows, Arrival(*events) if events else None


def _lines(named: List[Tuple[int, Any, int]], batches: Dict[Any, _Batch], counts: DeviceCounts) -> List[_Line]:
    lines: List[_Line] = []
    for identity, tensor, flags in named:
        try:
            tensor = local(tensor)
            code = _code(tensor.dtype)
            if tensor.numel() == 0:
                lines.append(_Line(identity, 0, flags, code))
                continue
            kind = KINDS.get(code)
            if kind is None:
                lines.append(_Line(identity, tensor.numel(), flags, code))
                continue
            if waits(tensor):
                counts.wait("sparse")
            run, repeats = run_of(tensor)
            count = run.numel()
            if count == 0:
                lines.append(_Line(identity, 0, flags, code))
                continue
            batch = _batch_of(run, batches)
            lines.append(_Line(identity, count * repeats, flags, code, kind, repeats, batch, batch.add(run, kind)))
        except NotRead as reason:
            counts.skip(str(reason))
        except Exception:  # noqa: BLE001 - one tensor of a kind of its own is no reason to lose the others
            counts.skip("unreadable")
    return lines


def _batch_of(run: Any, batches: Dict[Any, _Batch]) -> _Batch:
    batch = batches.get(run.device)
    if batch is None:
        if run.device.type in ("mps", "meta"):
            raise NotRead("device")
        batch = batches[run.device] = _Batch(_device_of(run.device))
    return batch


_codes: Dict[Any, int] = {}


def _code(dtype: Any) -> int:
    code = _codes.get(dtype)
    if code is None:
        code = _codes[dtype] = dtype_code(dtype) or 0
    return code


class _Divided:
    """What the others are divided by and whether the update is skipped: read like tensors of one element."""

    def __init__(self, scaling: Any, batches: Dict[Any, _Batch]) -> None:
        self._places: List[Optional[Tuple[_Batch, int]]] = []
        for value in (scaling.scale, scaling.found_inf):
            if value is None:
                self._places.append(None)
                continue
            run = local(value).reshape(-1)[:1]
            batch = _batch_of(run, batches)
            self._places.append((batch, batch.add(run, KINDS[_code(run.dtype)])))

    def known(self) -> bool:
        """Once batches are measured: whether all of it will be there."""
        return all(place is None or place[0].flight is not None for place in self._places)

    def told(self) -> Tuple[float, bool]:
        """(divisor, skipped), once the numbers are there."""
        scale, found_inf = (None if place is None else place[0].of(place[1])[0] for place in self._places)
        return 1.0 if scale is None else scale, found_inf is not None and found_inf != 0.0


def _measured(batches: Dict[Any, _Batch], counts: DeviceCounts) -> List[Flight]:
    flights = []
    for batch in batches.values():
        if not batch.device.staging.has_room(len(COLUMNS) * len(batch.runs)):
            counts.skip("in_flight", len(batch.runs))
            continue
        batch.device.measure(batch, counts)
        batch.runs.clear()  # what was made for the call may go: memory of a device is given back in its order
        if batch.flight is not None:
            flights.append(batch.flight)
    return flights


def _fill(row: abi.Row, line: _Line, divisor: float, skipped: bool) -> None:
    row.name, row.count = line.identity, line.count
    flags = line.flags
    if line.kind is None:
        if line.count:
            row.sum = row.sumsq = row.m2 = row.abs_sum = row.min = row.max = _NAN
    elif line.batch is not None:
        values = line.batch.of(line.place)
        times = line.repeats
        if times != 1:
            values = [value if name in ("min", "max") else value * times for name, value in zip(COLUMNS, values)]
        row.sum, row.sumsq, row.m2, row.abs_sum, row.min, row.max = values[:6]
        row.nan, row.posinf, row.neginf, row.zero, row.negative = map(int, values[6:11])
        if line.kind in COMPLEX:
            row.sum = row.m2 = _NAN
        if line.kind in LONG and values[11]:
            flags |= _APPROXIMATE
    if flags & abi.FLAG_UNSCALED:
        _divide(row, divisor)
        flags |= abi.FLAG_SKIPPED if skipped else 0
    row.meta = flags | line.dtype


def _divide(row: abi.Row, divisor: float) -> None:
    if divisor == 1.0:
        return
    divisor = divisor or math.nan
    for column in ("sum", "abs_sum", "min", "max"):
        setattr(row, column, getattr(row, column) / divisor)
    for column in ("sumsq", "m2"):
        setattr(row, column, getattr(row, column) / divisor / divisor)
