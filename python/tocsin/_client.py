"""The open client of this process, and the codes and flags of its interface (app/client/tocsin_client.h)."""

import ctypes
import functools
import json
import struct
from time import time_ns
from typing import Any, Callable, Dict, List, Optional

from . import _vocabulary
from ._library import NameInfo, Options, Row, Tensor, int64_array, library

__all__ = ["Client", "NameInfo", "Options", "Row", "Tensor", "int64_array", "library"]

OK, DROPPED, NOT_DUE, DISABLED, TIMEOUT, NOT_FOUND = 0, 1, 2, 3, 4, 5
TOO_SMALL = -4
WANTS_STOP, WANTS_ATTENTION = 1, 2
STEP_OPTIMIZER_SKIPPED = 1
TENSOR_OFF_GRID, TENSOR_RAW = 1, 2
DUE_RAW = 3  # of due_of()

NAME_TENSOR, NAME_SCALAR, NAME_SPAN, NAME_TRACK, NAME_SPAN_ARGS = 1, 2, 6, 7, 8
NAME_COLLECTION, NAME_COMMAND = 128, 129

MODES, ROLES = _vocabulary.MODES, _vocabulary.ROLES
# By the last part of a framework's dtype name.
DTYPES = {name: _vocabulary.DTYPES[word] for name, word in {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "f8_e4m3", "float8_e5m2": "f8_e5m2",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "bool": "bool", "complex64": "c64", "complex128": "c128",
}.items()}
# Flags of a row (docs/wire.md, meta).
FLAG_APPROXIMATE, FLAG_SPARSE, FLAG_UNSCALED, FLAG_SKIPPED, FLAG_EMPTY_HERE = 1 << 16, 1 << 17, 1 << 18, 1 << 20, 1 << 22

# Nanoseconds, and how many: what may be held back until the step ends.
SHORT_TIME, MOST_TIMES = 20_000_000, 32
_COUNTS = [ctypes.c_size_t(count) for count in range(MOST_TIMES + 1)]
_PACKED_TIMES = [struct.Struct("=" + "Qqq" * count) for count in range(MOST_TIMES + 1)]
_PACKED_VALUES = [struct.Struct("=" + "Qd" * count) for count in range(MOST_TIMES + 1)]

_c_int64_p = ctypes.POINTER(ctypes.c_int64)


def encoded(value: Optional[str]) -> Optional[bytes]:
    return None if value is None else str(value).encode("utf-8")


class Client:
    """The open client of this process. After close() every call gives DISABLED."""

    def __init__(self, options: Options) -> None:
        """Opens; ``RuntimeError`` with the library's words when it cannot. ``open`` is False when
        the environment switches the hook off."""
        self._library = library()
        handle = ctypes.c_void_p()
        result = self._library.fast.tocsin_open(ctypes.byref(options), ctypes.byref(handle))
        if result < 0:
            raise RuntimeError(self._library.last_error())
        self._handle: Optional[int] = handle.value
        # True: nothing is due at the present step, so that nobody needs to ask. The end of a step says so; what may
        # change it takes it back.
        self.quiet = False
        # What goes out with the end of the step: times of phases (name, start, duration, and again), scalars (name,
        # value, and again). A call into the library, or another one of Python, is dear in a loop: it is the first in
        # milliseconds, and what it touches comes from memory, not from a cache.
        self.times: List[int] = []
        self.values: List[Any] = []
        self._first_value = 0  # when the step had its first scalar; 0: it had none
        self._prompt = False  # the last step that had some ended soon after the first
        self._one_id, self._one_value = (ctypes.c_uint64 * 1)(), (ctypes.c_double * 1)()
        self._one = (*(ctypes.c_void_p(ctypes.addressof(one)) for one in (self._one_id, self._one_value)), _COUNTS[1])
        self._bind()

    def _bind(self) -> None:
        """The calls of every step, bound to the handle once: that is quicker than passing it."""
        fast, slow = self._library.fast, self._library.slow
        bind, handle = functools.partial, self._handle
        self.due: Callable[[int], int] = bind(fast.tocsin_due, handle)
        self.due_at: Callable[[int, int], int] = bind(fast.tocsin_due_at, handle)
        self.due_of: Callable[..., int] = bind(fast.tocsin_due_of, handle)
        self._tensors: Callable[..., int] = bind(slow.tocsin_tensors, handle)
        self._statistics: Callable[..., int] = bind(fast.tocsin_statistics, handle)
        # The calls of every step take ctypes objects that were made before: nothing is looked up to convert them.
        ready = ctypes.c_void_p(handle)
        self._scalars: Callable[..., int] = bind(fast["tocsin_scalars"], ready)
        self.span: Callable[..., int] = bind(fast.tocsin_span, handle)
        self._step_next: Callable[..., int] = bind(fast["tocsin_step_next"], ready)
        self._set_mode: Callable[[int], int] = bind(fast.tocsin_set_mode, handle)
        self.plan_changes: Callable[[], int] = bind(fast.tocsin_plan_changes, handle)
        self.stop_requested: Callable[[int], int] = bind(fast["tocsin_stop_requested_at"], ready)

    @property
    def open(self) -> bool:
        return self._handle is not None

    def step_end(self, flags: int) -> None:
        """Ends the step, with what was timed and logged in it."""
        if self._first_value:
            self._prompt = time_ns() - self._first_value < SHORT_TIME
            self._first_value = 0
        values, times = self.values[:], self.times[:]  # another thread may add to them
        packed_values = packed_times = None
        if values:
            del self.values[:len(values)]
            packed_values = _PACKED_VALUES[len(values) // 2].pack(*values)
        if times:
            del self.times[:len(times)]
            packed_times = _PACKED_TIMES[len(times) // 3].pack(*times)
        self.quiet = self._step_next(flags, packed_values, _COUNTS[len(values) // 2],
                                     packed_times, _COUNTS[len(times) // 3]) == NOT_DUE

    def scalar(self, name: int, value: float) -> None:
        """A scalar of the present step. It goes out with the step's end where nothing else is captured at this step and
        the step before ended within SHORT_TIME of its first one; else at once."""
        if not self._first_value:
            self._first_value = time_ns()
        if self.quiet and self._prompt and len(self.values) < 2 * MOST_TIMES:
            self.values += (name, value)
        else:
            if self.values:
                self.tell_held()
            self._one_id[0], self._one_value[0] = name, value
            self._scalars(*self._one)

    def tensors(self, tensors: Any, count: int) -> int:
        if self.values:  # whoever judges a row on arrival sees the loss before what it comes from
            self.tell_held()
        return self._tensors(tensors, count)

    def statistics(self, rows: Any, count: int) -> int:
        if self.values:
            self.tell_held()
        return self._statistics(rows, count)

    def set_mode(self, mode: int) -> None:
        self.tell_held()
        self.quiet = False
        self._set_mode(mode)

    def time(self, name: int, start: int, duration: int) -> None:
        """A span of the track ``phase``: a short one goes out with the end of the step, others at once."""
        times = self.times
        if duration < SHORT_TIME and len(times) < 3 * MOST_TIMES:
            times += (name, start, duration)
        else:
            self.tell_held()
            self.span(name, 0, start, duration, 0)

    def tell_held(self) -> None:
        """What waits for the end of the step goes out now."""
        values, times = self.values[:], self.times[:]
        del self.values[:len(values)], self.times[:len(times)]
        for at in range(0, len(values), 2):
            self._one_id[0], self._one_value[0] = values[at], values[at + 1]
            self._scalars(*self._one)
        for at in range(0, len(times), 3):
            self.span(times[at], 0, times[at + 1], times[at + 2], 0)

    def name(self, kind: int, text: str, *, dtype: int = 0, role: int = -1,
             dims: Optional[List[int]] = None, collection: Optional[str] = None,
             attrs: Optional[str] = None) -> int:
        """Registers a name and gives its id; ``RuntimeError`` when it cannot be one."""
        info = NameInfo()
        info.size = ctypes.sizeof(info)
        info.dtype, info.role = dtype, role
        if dims:
            array = int64_array(dims)
            info.dims = ctypes.cast(array, _c_int64_p)
            info.ndim = len(dims)
        info.attrs, info.collection = encoded(attrs), encoded(collection)
        self.quiet = False
        data, out = text.encode("utf-8"), ctypes.c_uint64()
        if self._library.fast.tocsin_name(self._handle, kind, data, len(data), ctypes.byref(info),
                                          ctypes.byref(out)) < 0:
            raise RuntimeError(self._library.last_error())
        return out.value

    def wanted(self, text: str, role: int) -> bool:
        """Whether a tensor of this name and role would be captured."""
        data = text.encode("utf-8")
        return self._library.fast.tocsin_wanted(self._handle, data, len(data), role) == OK

    def command(self, slot: Optional[bytes]) -> Any:
        """The command of a slot, or None; without a slot the list of those not seen yet."""
        return _json_of(lambda *place: self._library.fast.tocsin_command(self._handle, slot, *place))

    def ack(self, answer: Dict[str, Any]) -> None:
        data = json.dumps(answer).encode("utf-8")
        self._library.fast.tocsin_ack(self._handle, data, len(data))

    def lifecycle(self, event: Dict[str, Any]) -> None:
        self.tell_held()
        self.quiet = False
        data = json.dumps(event).encode("utf-8")
        self._library.fast.tocsin_lifecycle(self._handle, data, len(data))

    def counters(self) -> Dict[str, Any]:
        return _json_of(lambda *place: self._library.fast.tocsin_counters(self._handle, *place)) or {}

    def collections(self) -> Dict[str, Any]:
        """name -> {"config", "tensors"}."""
        return _json_of(lambda *place: self._library.fast.tocsin_collections(self._handle, *place)) or {}

    def define(self, collections: str) -> None:
        """``RuntimeError`` with the library's words when it cannot."""
        self.quiet = False
        data = collections.encode("utf-8")
        if self._library.fast.tocsin_define(self._handle, data, len(data)) < 0:
            raise RuntimeError(self._library.last_error())

    def issues(self, since: int) -> List[Dict[str, Any]]:
        """What the rules in this process found, from number ``since`` on; after close() too."""
        return _json_of(lambda *place: self._library.fast.tocsin_issues(self._handle, since,
                                                                        *place)) or []

    def waiting_issues(self) -> Callable[[int, int], int]:
        """Waits for more than so many issues, so many milliseconds: for a thread beside the one that
        closes."""
        return functools.partial(self._library.slow.tocsin_wait_issues, self._handle)

    def wake(self) -> None:
        """Ends the waits for issues, for good."""
        self._library.fast.tocsin_wake(self._handle)

    def closed(self) -> Dict[str, Any]:
        """The last counters of the client that was closed last, and its ``loss``."""
        return _json_of(lambda *place: self._library.fast.tocsin_closed(*place)) or {}

    def flush(self, milliseconds: int) -> bool:
        self.tell_held()
        return self._library.slow.tocsin_flush(self._handle, max(milliseconds, 0)) == OK

    def close(self, ending: Dict[str, Any], milliseconds: int) -> None:
        self.tell_held()
        self._library.slow.tocsin_close(self._taken(), json.dumps(ending).encode("utf-8"),
                                        max(milliseconds, 0))

    def close_at_exit(self, ending: Dict[str, Any], milliseconds: int) -> None:
        self.tell_held()
        self._library.fast.tocsin_close_at_exit(self._taken(), json.dumps(ending).encode("utf-8"),
                                                milliseconds)

    def forget(self) -> None:
        """In a forked child: the client is the parent's. Frees nothing."""
        self.times.clear()
        self.values.clear()
        self._library.fast.tocsin_after_fork(self._taken())

    def _taken(self) -> Optional[int]:
        taken, self._handle = self._handle, None
        self.quiet = False
        self._bind()
        return taken


def _json_of(call: Callable[..., int]) -> Any:
    """What a call writes into a buffer of the caller's, or None when it has nothing to say."""
    size = 8192
    while True:
        buffer, length = ctypes.create_string_buffer(size), ctypes.c_size_t()
        result = call(buffer, size, ctypes.byref(length))
        if result != TOO_SMALL:
            return json.loads(buffer.value) if result == OK else None
        size = length.value + 1
