"""Raw tensors read back: from the topic, the directory or the store that holds them (docs/raw-tensors.md).

    from tocsin.raw import RawTensors
    tensors = RawTensors(run="4e3046d4-…", out="kafka://host:9092")
    weight = tensors.value("conv1.weight", step=40)          # a NumPy array

The library of the hook does the reading; it needs no client, and writes nothing. bfloat16 and the types of 8 bits, which
NumPy does not have, come as float32: every value of theirs is one of it.
"""

import ctypes
import json
import threading
from typing import Any, Mapping, Optional, Tuple, Union

from tocsin import wire
from tocsin.library import abi

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

HOW = ("capture its collection with `raw: true`, for instance watch(capture={\"collections\": {\"weights\": {\"raw\": "
       "true}}}), or give save_tensor(raw=True); see docs/raw-tensors.md")

_KINDS = {"f32": "f4", "f64": "f8", "f16": "f2", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2",
          "u32": "u4", "u64": "u8", "bool": "?", "c64": "c8", "c128": "c16"}
_BITS = {"f8_e4m3": (4, 3), "f8_e5m2": (5, 2)}
_WORDS = {code: word for word, code in wire.DTYPES.items()}


class NoRawTensor(LookupError):
    """The elements are not there; the text says why, and how they are switched on."""


class _Query(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint64), ("name", ctypes.c_uint64), ("worker", ctypes.c_uint64),
                ("step", ctypes.c_int64), ("mode", ctypes.c_uint32), ("reserved", ctypes.c_uint32)]


class _Value(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint64), ("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("ndim", ctypes.c_uint32), ("dtype", ctypes.c_int32),
                ("meta", ctypes.c_uint64), ("step", ctypes.c_int64), ("global_step", ctypes.c_int64)]


def _declared() -> Any:
    library = abi.library().slow
    if library.tocsin_raw_open.argtypes is None:
        p, size = ctypes.c_void_p, ctypes.c_size_t
        library.tocsin_raw_open.argtypes = [ctypes.c_char_p, size, ctypes.POINTER(p)]
        library.tocsin_raw_read.argtypes = [p, ctypes.POINTER(_Query), ctypes.c_uint32, ctypes.POINTER(_Value)]
        library.tocsin_raw_counters.argtypes = [p]
        library.tocsin_raw_counters.restype = ctypes.c_char_p
        library.tocsin_raw_close.argtypes = [p]
    return library


class RawTensors:
    """The raw tensors of one run. May be used by several threads; they wait for each other."""

    def __init__(self, run: str, out: Optional[str] = None, config: Optional[str] = None,
                 capture: Union[Mapping[str, Any], str, None] = None) -> None:
        """``run``: its uid. ``out``, ``config``, ``capture`` as of :func:`tocsin.watch`: where the run writes to; of
        ``capture`` the section ``raw`` says how a store is reached. Nothing is opened yet."""
        self._options = {"run": str(run), "out": out or "", "config": config or "",
                         "capture": capture if isinstance(capture, str) else json.dumps(capture or {})}
        self._lock = threading.Lock()
        self._handle: Optional[int] = None

    def value(self, name: str, step: int, mode: str = "train", worker: Optional[str] = None,
              wait: float = 0.0) -> Any:
        """The newest elements of a tensor at a step of a mode, as an array. ``worker`` (``worker_0``): None: the first
        that sent any. Waits at most ``wait`` seconds for what is still on its way. Raises :class:`NoRawTensor`."""
        if numpy is None:
            raise NoRawTensor(f"elements of {name} are arrays: NumPy is not installed")
        query = _Query(ctypes.sizeof(_Query), wire.xxh64(name), 0 if worker is None else wire.xxh64(worker), int(step),
                       abi.MODES[mode], 0)
        found = _Value()
        found.size = ctypes.sizeof(found)
        with self._lock:
            library = self._opened()
            result = library.tocsin_raw_read(self._handle, ctypes.byref(query), int(wait * 1000), ctypes.byref(found))
            if result != abi.OK:
                raise NoRawTensor(f"no elements of {name} at step {step} of {mode}: {abi.library().last_error()}; "
                                  + HOW)
            return _array(found)

    def counters(self) -> Any:
        """What was read: records, tensors, duplicates, and what could not be read, by reason."""
        with self._lock:
            return json.loads(self._opened().tocsin_raw_counters(self._handle))

    def close(self) -> None:
        with self._lock:
            if self._handle is not None:
                _declared().tocsin_raw_close(self._handle)
                self._handle = None

    def __enter__(self) -> "RawTensors":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:  # noqa: BLE001 - the interpreter may be going
            pass

    def _opened(self) -> Any:
        library = _declared()
        if self._handle is None:
            options = json.dumps(self._options).encode("utf-8")
            handle = ctypes.c_void_p()
            if library.tocsin_raw_open(options, len(options), ctypes.byref(handle)) != abi.OK:
                raise NoRawTensor(f"there are no raw tensors of run {self._options['run']}: "
                                  + abi.library().last_error())
            self._handle = handle.value
        return library


def _array(found: _Value) -> Any:
    return array_of(found.dtype, tuple(found.dims[axis] for axis in range(found.ndim)), ctypes.string_at(found.data, found.bytes) if found.bytes else b"")


def array_of(dtype: int, shape: Tuple[int, ...], data: bytes) -> Any:
    """Elements as an array. ``dtype``: its number on the wire."""
    if numpy is None:
        raise NoRawTensor("elements are arrays: NumPy is not installed")
    word = _WORDS.get(dtype, "unknown")
    if word in _KINDS:
        return numpy.frombuffer(data, dtype="<" + _KINDS[word] if word != "bool" else "?").reshape(shape).copy()
    if word == "bf16":
        return (numpy.frombuffer(data, dtype="<u2").astype("<u4") << 16).view("<f4").reshape(shape)
    if word in _BITS:
        return _table(*_BITS[word])[numpy.frombuffer(data, dtype="u1")].reshape(shape)
    raise NoRawTensor(f"elements of type {word} have no array")


def _table(exponent: int, mantissa: int) -> Any:
    """The 256 values of a type of 8 bits. With 4 bits of exponent it has no infinities (e4m3fn)."""
    bias, top = (1 << exponent - 1) - 1, (1 << exponent) - 1
    out = numpy.empty(256, dtype="<f4")
    for bits in range(256):
        power, part = bits >> mantissa & top, bits & (1 << mantissa) - 1
        if power == top and exponent == 5:
            value = float("nan") if part else float("inf")
        elif power == top and part == (1 << mantissa) - 1:
            value = float("nan")
        elif power == 0:
            value = part * 2.0 ** (1 - bias - mantissa)
        else:
            value = (1 + part / (1 << mantissa)) * 2.0 ** (power - bias)
        out[bits] = -value if bits & 0x80 else value
    return out
