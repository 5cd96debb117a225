"""ctypes bindings of libtocsin_client.so.0 (app/client/tocsin_client.h, ABI version 1).

Two handles on one library: ``fast`` keeps the interpreter's lock (calls of well under a
microsecond), ``slow`` releases it (reductions, flush, close).
"""

import ctypes
import functools
import glob
import json
import os
import struct
from typing import Any, Callable, Dict, Iterator, List, Optional

from . import _vocabulary

ABI_VERSION = 1
LIBRARY = "libtocsin_client.so.0"

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

# Nanoseconds, and how many: what a step that lasts long may hold back until it ends.
SHORT_TIME, MOST_TIMES = 20_000_000, 32
_COUNTS = [ctypes.c_size_t(count) for count in range(MOST_TIMES + 1)]
_PACKED = [struct.Struct("=" + "Qqq" * count) for count in range(MOST_TIMES + 1)]

_c_int64_p = ctypes.POINTER(ctypes.c_int64)


class Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("run", ctypes.c_char_p),
        ("job", ctypes.c_char_p),
        ("worker", ctypes.c_char_p),
        ("out", ctypes.c_char_p),
        ("config", ctypes.c_char_p),
        ("capture", ctypes.c_char_p),
        ("labels", ctypes.c_char_p),
        ("framework", ctypes.c_char_p),
        ("script", ctypes.c_char_p),
        ("rank", ctypes.c_int32),
        ("world_size", ctypes.c_int32),
        ("attempt", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("queue_bytes", ctypes.c_uint64),
        ("rules", ctypes.c_char_p),
        ("stop", ctypes.c_char_p),
    ]


class NameInfo(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("dtype", ctypes.c_int32),
        ("role", ctypes.c_int32),
        ("ndim", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("dims", _c_int64_p),
        ("attrs", ctypes.c_char_p),
        ("collection", ctypes.c_char_p),
    ]


class Tensor(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64),
        ("id", ctypes.c_uint64),
        ("data", ctypes.c_void_p),
        ("shape", _c_int64_p),
        ("strides", _c_int64_p),
        ("ndim", ctypes.c_uint32),
        ("dtype", ctypes.c_int32),
        ("flags", ctypes.c_uint64),
    ]


class Row(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
        ("sum", ctypes.c_double),
        ("sumsq", ctypes.c_double),
        ("m2", ctypes.c_double),
        ("abs_sum", ctypes.c_double),
        ("min", ctypes.c_double),
        ("max", ctypes.c_double),
        ("nan", ctypes.c_uint64),
        ("posinf", ctypes.c_uint64),
        ("neginf", ctypes.c_uint64),
        ("zero", ctypes.c_uint64),
        ("negative", ctypes.c_uint64),
        ("meta", ctypes.c_uint64),
    ]


def int64_array(values: List[int]) -> ctypes.Array:
    return (ctypes.c_int64 * max(len(values), 1))(*values)


def _candidates() -> Iterator[str]:
    given = os.environ.get("TOCSIN_LIBRARY")
    if given:
        yield given  # the user's word is final: nothing else is tried
        return
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, LIBRARY)  # a wheel
    yield os.path.normpath(os.path.join(here, *[".."] * 3, LIBRARY))  # an installation's lib/python3/dist-packages
    root = os.path.dirname(os.path.dirname(here))
    builds = glob.glob(os.path.join(root, "build", "*", "app", "client", LIBRARY))
    yield from sorted(builds, key=lambda path: "release" not in path)
    yield LIBRARY  # the system's search path


class Library:
    """The loaded library; ``OSError`` when there is none or it speaks another ABI."""

    def __init__(self) -> None:
        tried = []
        path: Optional[str] = None
        for candidate in _candidates():
            if os.sep in candidate and not os.path.exists(candidate):
                tried.append(candidate)
                continue
            try:
                self.slow = ctypes.CDLL(candidate)
                path = candidate
                break
            except OSError as error:
                tried.append(f"{candidate} ({error})")
        if path is None:
            raise OSError(f"{LIBRARY} not found; set TOCSIN_LIBRARY. Tried: {', '.join(tried)}")
        self.path = path
        self.fast = ctypes.PyDLL(path)
        self._declare()
        version = self.fast.tocsin_abi_version()
        if version != ABI_VERSION:
            raise OSError(f"{path} has ABI version {version}, this package needs {ABI_VERSION}")

    def last_error(self) -> str:
        return self.fast.tocsin_last_error().decode("utf-8", "replace")

    def _declare(self) -> None:
        p, i32, u32, u64, i64 = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint64,
                                 ctypes.c_int64)
        text, size = ctypes.c_char_p, ctypes.c_size_t
        length = ctypes.POINTER(ctypes.c_size_t)
        signatures = {
            "tocsin_abi_version": [],
            "tocsin_open": [ctypes.POINTER(Options), ctypes.POINTER(p)],
            "tocsin_name": [p, i32, text, size, ctypes.POINTER(NameInfo), ctypes.POINTER(u64)],
            "tocsin_wanted": [p, text, size, i32],
            "tocsin_plan_changes": [p],
            "tocsin_set_mode": [p, i32],
            "tocsin_due": [p, u64],
            "tocsin_due_at": [p, u64, u32],
            "tocsin_due_of": [p, ctypes.POINTER(u64), size, u32, ctypes.POINTER(ctypes.c_uint8)],
            "tocsin_tensors": [p, p, size],
            "tocsin_statistics": [p, p, size],
            "tocsin_span": [p, u64, u64, i64, i64, u64],
            "tocsin_stop_requested": [p],
            "tocsin_command": [p, text, text, size, length],
            "tocsin_ack": [p, text, size],
            "tocsin_lifecycle": [p, text, size],
            "tocsin_counters": [p, text, size, length],
            "tocsin_collections": [p, text, size, length],
            "tocsin_define": [p, text, size],
            "tocsin_issues": [p, u64, text, size, length],
            "tocsin_wait_issues": [p, u64, u32],
            "tocsin_wake": [p],
            "tocsin_flush": [p, u32],
            "tocsin_close": [p, text, u32],
            "tocsin_close_at_exit": [p, text, u32],
            "tocsin_closed": [text, size, length],
            "tocsin_after_fork": [p],
            "tocsin_reduce": [ctypes.POINTER(Tensor), ctypes.POINTER(ctypes.c_double), i32],
        }
        for library in (self.fast, self.slow):
            for name, arguments in signatures.items():
                function = getattr(library, name)
                function.argtypes = arguments
                function.restype = i32
            library.tocsin_last_error.argtypes = []
            library.tocsin_last_error.restype = text


_library: Optional[Library] = None


def library() -> Library:
    """Loads the library at the first call."""
    global _library
    if _library is None:
        _library = Library()
    return _library


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
        # Times of phases that go out with the end of the step: name, start, duration, and again.
        self.times: List[int] = []
        self._bind()

    def _bind(self) -> None:
        """The calls of every step, bound to the handle once: that is quicker than passing it."""
        fast, slow = self._library.fast, self._library.slow
        bind, handle = functools.partial, self._handle
        self.due: Callable[[int], int] = bind(fast.tocsin_due, handle)
        self.due_at: Callable[[int, int], int] = bind(fast.tocsin_due_at, handle)
        self.due_of: Callable[..., int] = bind(fast.tocsin_due_of, handle)
        self.tensors: Callable[..., int] = bind(slow.tocsin_tensors, handle)
        self.statistics: Callable[..., int] = bind(fast.tocsin_statistics, handle)
        # The calls of every step take ctypes objects that were made before: nothing is looked up to convert them. In a
        # loop such a call is the first in milliseconds, and what it touches comes from memory, not from a cache.
        ready = ctypes.c_void_p(handle)
        self.scalars: Callable[..., int] = bind(fast["tocsin_scalars"], ready)
        self.span: Callable[..., int] = bind(fast.tocsin_span, handle)
        self._step_next: Callable[..., int] = bind(fast["tocsin_step_next"], ready)
        self._set_mode: Callable[[int], int] = bind(fast.tocsin_set_mode, handle)
        self.plan_changes: Callable[[], int] = bind(fast.tocsin_plan_changes, handle)
        self.stop_requested: Callable[[int], int] = bind(fast["tocsin_stop_requested_at"], ready)

    @property
    def open(self) -> bool:
        return self._handle is not None

    def step_end(self, flags: int) -> None:
        """Ends the step, with what was timed in it."""
        times = self.times
        if times:
            count = len(times) // 3
            packed = _PACKED[count].pack(*times)
            times.clear()
            self.quiet = self._step_next(flags, packed, _COUNTS[count]) == NOT_DUE
        else:
            self.quiet = self._step_next(flags, None, _COUNTS[0]) == NOT_DUE

    def set_mode(self, mode: int) -> None:
        self.tell_times()
        self.quiet = False
        self._set_mode(mode)

    def time(self, name: int, start: int, duration: int) -> None:
        """A span of the track ``phase``: a short one goes out with the end of the step, others at once."""
        times = self.times
        if duration < SHORT_TIME and len(times) < 3 * MOST_TIMES:
            times += (name, start, duration)
        else:
            self.tell_times()
            self.span(name, 0, start, duration, 0)

    def tell_times(self) -> None:
        """What waits for the end of the step goes out now."""
        times, self.times[:] = self.times[:], ()
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
        self.tell_times()
        return self._library.slow.tocsin_flush(self._handle, max(milliseconds, 0)) == OK

    def close(self, ending: Dict[str, Any], milliseconds: int) -> None:
        self.tell_times()
        self._library.slow.tocsin_close(self._taken(), json.dumps(ending).encode("utf-8"),
                                        max(milliseconds, 0))

    def close_at_exit(self, ending: Dict[str, Any], milliseconds: int) -> None:
        self.tell_times()
        self._library.fast.tocsin_close_at_exit(self._taken(), json.dumps(ending).encode("utf-8"),
                                                milliseconds)

    def forget(self) -> None:
        """In a forked child: the client is the parent's. Frees nothing."""
        self.times.clear()
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
