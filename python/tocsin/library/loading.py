"""libtocsin_client.so.0 (collectors/hook/tocsin_client.h, ABI version 2): its structs, and how it is found and loaded.

Two handles on one library: ``fast`` keeps the interpreter's lock (calls of well under a
microsecond), ``slow`` releases it (reductions, flush, close).
"""

import ctypes
import glob
import os
from typing import Iterator, List, Optional

from .other_copies import load_engine, mode_for

ABI_VERSION = 2
LIBRARY = "libtocsin_client.so.0"
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # the folder of `tocsin`

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
    here = PACKAGE
    yield os.path.join(here, LIBRARY)  # a wheel
    yield os.path.normpath(os.path.join(here, *[".."] * 3, LIBRARY))  # an installation's lib/python3/dist-packages
    root = os.path.dirname(os.path.dirname(here))
    builds = glob.glob(os.path.join(root, "build", "*", "collectors", "hook", LIBRARY))
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
                mode = mode_for(candidate)
                self.slow = ctypes.CDLL(candidate, mode=mode)
                load_engine(candidate, mode)
                path = candidate
                break
            except OSError as error:
                tried.append(f"{candidate} ({error})")
        if path is None:
            raise OSError(f"{LIBRARY} not found; set TOCSIN_LIBRARY. Tried: {', '.join(tried)}")
        self.path = path
        self.fast = ctypes.PyDLL(path)
        self._refuse_another_version(path)
        self._declare()

    def last_error(self) -> str:
        return self.fast.tocsin_last_error().decode("utf-8", "replace")

    def _refuse_another_version(self, path: str) -> None:
        """Before anything else is looked up: another version may lack functions, or take other arguments."""
        version = getattr(self.fast, "tocsin_abi_version", lambda: None)()
        if version != ABI_VERSION:
            has = "no version of the hook's interface" if version is None else f"version {version} of the hook's interface"
            raise OSError(f"{path} has {has}, this package ({PACKAGE}) needs {ABI_VERSION}: "
                          "take library and package from one release")

    def _declare(self) -> None:
        p, i32, u32, u64, i64 = (ctypes.c_void_p, ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint64,
                                 ctypes.c_int64)
        text, size = ctypes.c_char_p, ctypes.c_size_t
        length = ctypes.POINTER(ctypes.c_size_t)
        signatures = {
            "tocsin_open": [ctypes.POINTER(Options), ctypes.POINTER(p)],
            "tocsin_name": [p, i32, text, size, ctypes.POINTER(NameInfo), ctypes.POINTER(u64)],
            "tocsin_wanted": [p, text, size, i32],
            "tocsin_plan_changes": [p],
            "tocsin_set_mode": [p, i32],
            "tocsin_due_at": [p, u64, u32],
            "tocsin_due_of": [p, ctypes.POINTER(u64), size, u32, ctypes.POINTER(ctypes.c_uint8)],
            "tocsin_tensors": [p, p, size],
            "tocsin_statistics": [p, p, size],
            "tocsin_span": [p, u64, u64, i64, i64, u64],
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
