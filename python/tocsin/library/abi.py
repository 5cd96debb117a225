"""The open client of this process, and the codes and flags of its interface (collectors/hook/tocsin_client.h)."""

import ctypes
import functools
import json
from typing import Any, Callable, Dict, List, Optional

from . import lane as _lane, vocabulary
from .loading import NameInfo, Options, Row, Tensor, int64_array, library
from .texts import fits, text_of

__all__ = ["Client", "NameInfo", "Options", "Row", "Tensor", "int64_array", "library"]

OK, DROPPED, NOT_DUE, DISABLED, TIMEOUT, NOT_FOUND = 0, 1, 2, 3, 4, 5
TOO_SMALL = -4
WANTS_STOP, WANTS_ATTENTION = 1, 2
STEP_OPTIMIZER_SKIPPED = 1
TENSOR_OFF_GRID, TENSOR_RAW = 1, 2
DUE_RAW = 3  # of due_of()

NAME_TENSOR, NAME_SCALAR, NAME_SPAN, NAME_TRACK, NAME_SPAN_ARGS = 1, 2, 6, 7, 8
NAME_COLLECTION, NAME_COMMAND = 128, 129

MODES, ROLES = vocabulary.MODES, vocabulary.ROLES
# By the last part of a framework's dtype name.
DTYPES = {name: vocabulary.DTYPES[word] for name, word in {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "f8_e4m3", "float8_e5m2": "f8_e5m2",
    "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "bool": "bool", "complex64": "c64", "complex128": "c128",
}.items()}
# Flags of a row (docs/wire.md, meta).
FLAG_APPROXIMATE, FLAG_SPARSE, FLAG_UNSCALED, FLAG_PARTIAL = 1 << 16, 1 << 17, 1 << 18, 1 << 19
FLAG_SKIPPED, FLAG_NOT_TRAINABLE, FLAG_EMPTY_HERE = 1 << 20, 1 << 21, 1 << 22

_c_int64_p = ctypes.POINTER(ctypes.c_int64)


def encoded(value: Optional[str]) -> Optional[bytes]:
    return None if value is None else text_of(value).encode("utf-8")


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
        # Takes back what the loop's clock has lent to functions of the library; None: nothing.
        self.lent: Optional[Callable[[], None]] = None
        # Called with a name that is too long, or no text, before the library cuts it; None: nobody is told.
        self.on_cut: Optional[Callable[[Any], None]] = None
        self._quiet = False
        self._lane: _lane.Functions = _lane.functions(self._library, handle.value) if handle.value else {}
        self._bind()
        self._bind_lane()

    @property
    def quiet(self) -> bool:
        """True: nothing is due at the present step, so that nobody needs to ask. step_end() says so; what may change it
        takes it back."""
        if self.lent is not None:
            self.lent()
        return self._quiet

    @quiet.setter
    def quiet(self, quiet: bool) -> None:
        if self.lent is not None:
            self.lent()
        self._quiet = quiet

    def _bind(self) -> None:
        """The calls of every step, bound to the handle once: that is quicker than passing it."""
        fast, slow = self._library.fast, self._library.slow
        bind, handle = functools.partial, self._handle
        self.due_at: Callable[[int, int], int] = bind(fast.tocsin_due_at, handle)
        self.due_of: Callable[..., int] = bind(fast.tocsin_due_of, handle)
        self._tensors: Callable[..., int] = bind(slow.tocsin_tensors, handle)
        self._statistics: Callable[..., int] = bind(fast.tocsin_statistics, handle)
        self.span: Callable[..., int] = bind(fast.tocsin_span, handle)
        self._set_mode: Callable[[int], int] = bind(fast.tocsin_set_mode, handle)
        self.plan_changes: Callable[[], int] = bind(fast.tocsin_plan_changes, handle)

    def _bind_lane(self) -> None:
        """Those of lane.py. ``step_end(flags)`` gives what is then ``quiet``."""
        lane = self._lane
        self.scalar: Callable[[int, float, bool], None] = lane.get("scalar", _nothing)
        self.phase: Callable[[int], Dict[str, Callable[..., None]]] = lane.get("phase", _nothing)
        self.passes: Callable[..., Any] = lane.get("passes", _nothing)  # 0: only in Python
        self.driver: Callable[..., Any] = lane.get("driver", _nothing)  # 0: as above; and of the next
        self.calls: Callable[..., Any] = lane.get("calls", _nothing)
        self.take_steps: Callable[[], Any] = lane.get("take_steps", _nothing)
        self.peek_steps: Callable[[], Any] = lane.get("peek_steps", _nothing)
        self.want_steps: Callable[[int], Any] = lane.get("want_steps", _nothing)
        self.tell_held: Callable[[], None] = lane.get("tell_held", _nothing)
        self.held: Callable[[], Any] = lane.get("held", _nothing)
        self.set_short: Callable[[int], None] = lane.get("set_short", _nothing)
        self.stop_requested: Callable[[int], int] = lane.get("stop_requested", _nothing)
        self.due: Callable[[int], bool] = lane.get("due", _nothing)
        self.step_end: Callable[[int], bool] = lane.get("step_end", _nothing)
        self._tell_values: Callable[[], None] = lane.get("tell_values", _nothing)

    @property
    def open(self) -> bool:
        return self._handle is not None

    def tensors(self, tensors: Any, count: int) -> int:
        self._tell_values()
        return self._tensors(tensors, count)

    def statistics(self, rows: Any, count: int) -> int:
        self._tell_values()
        return self._statistics(rows, count)

    def set_mode(self, mode: int) -> None:
        self.tell_held()
        self.quiet = False
        self._set_mode(mode)

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
        if kind != NAME_SPAN_ARGS and not fits(text) and self.on_cut is not None:
            self.on_cut(text)
        data, out = text.encode("utf-8", "surrogatepass"), ctypes.c_uint64()
        if self._library.fast.tocsin_name(self._handle, kind, data, len(data), ctypes.byref(info),
                                          ctypes.byref(out)) < 0:
            raise RuntimeError(self._library.last_error())
        return out.value

    def wanted(self, text: str, role: int) -> bool:
        """Whether a tensor of this name and role would be captured."""
        data = text.encode("utf-8", "surrogatepass")
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

    def report(self, event: Dict[str, Any]) -> None:
        """lifecycle() from another thread: what the training thread holds back stays where it is."""
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
        self._library.fast.tocsin_after_fork(self._taken())

    def _taken(self) -> Optional[int]:
        taken, self._handle = self._handle, None
        self._lane.get("close", _nothing)()
        self.quiet = False
        self._bind()
        return taken


def _nothing(*_: Any) -> Any:
    return 0


def _json_of(call: Callable[..., int]) -> Any:
    """What a call writes into a buffer of the caller's, or None when it has nothing to say."""
    size = 8192
    while True:
        buffer, length = ctypes.create_string_buffer(size), ctypes.c_size_t()
        result = call(buffer, size, ctypes.byref(length))
        if result != TOO_SMALL:
            # A path need not be UTF-8.
            return json.loads(buffer.value.decode("utf-8", "surrogateescape")) if result == OK else None
        size = length.value + 1
