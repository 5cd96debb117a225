"""Columns for other programs by Arrow's C data interface: no library, nothing copied but words and times.

``__arrow_c_stream__`` gives a PyCapsule with one batch; pandas, Polars, PyArrow and DuckDB read it. What they take is kept
alive here until they release it. https://arrow.apache.org/docs/format/CDataInterface.html
"""

import ctypes
from array import array
from typing import Any, Dict, List, Optional

from .columns import INTEGER, REAL, TEXT, TIME, Column, Table, numpy, rows_of

_FORMATS = {INTEGER: b"l", REAL: b"g", TIME: b"tsu:UTC", TEXT: b"u"}
_NULLABLE = 2
_STREAM = b"arrow_array_stream"
_kept: Dict[int, Any] = {}  # by the number in private_data
_next = [1]


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))
_ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))
_ReleaseStream = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))
_GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))
_GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))
_GetError = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))

_Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
                    ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]
_Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                   ("children", ctypes.POINTER(ctypes.POINTER(_Array))), ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p),
                   ("private_data", ctypes.c_void_p)]
_Stream._fields_ = [("get_schema", ctypes.c_void_p), ("get_next", ctypes.c_void_p), ("get_last_error", ctypes.c_void_p),
                    ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


def _keep(what: Any) -> int:
    number = _next[0]
    _next[0] += 1
    _kept[number] = what
    return number


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _release(one: Any, function: Any) -> None:
    """A reader is done with it: its children first, those that nobody has taken out."""
    struct = one.contents
    if not struct.release:
        return
    for place in range(struct.n_children):
        child = struct.children[place]
        if child.contents.release:
            function(child.contents.release)(child)
    number, struct.release, struct.private_data = struct.private_data, None, None
    _kept.pop(number or 0, None)


_release_schema = _ReleaseSchema(lambda one: _release(one, _ReleaseSchema))
_release_array = _ReleaseArray(lambda one: _release(one, _ReleaseArray))


def _fill_schema(out: _Schema, format_: bytes, name: bytes, children: List[_Schema]) -> None:
    pointers = (ctypes.POINTER(_Schema) * max(1, len(children)))(*(ctypes.pointer(child) for child in children))
    out.format, out.name, out.metadata, out.flags = format_, name, None, 0 if children else _NULLABLE
    out.n_children, out.children = len(children), ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(_Schema)))
    out.dictionary, out.release = None, _address(_release_schema)
    out.private_data = _keep((format_, name, children, pointers))


def _fill_array(out: _Array, length: int, nulls: int, buffers: List[Any], children: List[_Array]) -> None:
    """``buffers``: objects with a buffer, or None."""
    held = [_Held(one) for one in buffers]
    addresses = (ctypes.c_void_p * len(held))(*(one.address for one in held))
    pointers = (ctypes.POINTER(_Array) * max(1, len(children)))(*(ctypes.pointer(child) for child in children))
    out.length, out.null_count, out.offset, out.n_buffers, out.n_children = length, nulls, 0, len(held), len(children)
    out.buffers = ctypes.cast(addresses, ctypes.POINTER(ctypes.c_void_p))
    out.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(_Array)))
    out.dictionary, out.release = None, _address(_release_array)
    out.private_data = _keep((held, addresses, children, pointers))


class _Held:
    """Memory that stays where it is."""

    def __init__(self, what: Any) -> None:
        self.what, self.address = what, None
        if what is None:
            return
        if numpy is not None and isinstance(what, numpy.ndarray):
            self.address = what.ctypes.data
        elif isinstance(what, array):
            self.address = what.buffer_info()[0]
        else:  # bytes
            self.address = ctypes.cast(ctypes.c_char_p(what), ctypes.c_void_p).value


def _bits(valid: Any) -> bytes:
    """One bit for each row, the lowest first."""
    if numpy is not None:
        return bytes(numpy.packbits(numpy.asarray(valid, bool), bitorder="little").tobytes())
    out = bytearray((len(valid) + 7) // 8)
    for row, one in enumerate(valid):
        out[row >> 3] |= bool(one) << (row & 7)
    return bytes(out)


def _text(column: Column) -> List[Any]:
    """(where each text begins, all of them)."""
    words = [word.encode("utf-8") for word in column.words or ()]
    if numpy is None:
        texts = [b"" if column.absent(row) else words[code] for row, code in enumerate(column.data)]
        begins = array("i", [0])
        for one in texts:
            begins.append(begins[-1] + len(one))
        return [begins, b"".join(texts)]
    codes = numpy.asarray(column.data)
    lengths = numpy.array([len(word) for word in words] or [0], "i8")[codes] if len(codes) else numpy.empty(0, "i8")
    begins = numpy.zeros(len(codes) + 1, "i4")
    numpy.cumsum(lengths, out=begins[1:])
    return [begins, b"".join([words[code] for code in codes.tolist()])]


def _fill_column(out: _Array, column: Column) -> None:
    nulls = 0 if column.valid is None else sum(1 for one in column.valid if not one)
    validity = _bits(column.valid) if nulls else None
    if column.kind == TEXT:
        buffers = _text(column)
    elif numpy is not None:
        buffers = [numpy.ascontiguousarray(column.data, dtype="f8" if column.kind == REAL else "i8")]
    else:
        buffers = [column.data]
    _fill_array(out, len(column), nulls, [validity, *buffers], [])


def _schema_of(out: _Schema, table: Table) -> None:
    children = [_Schema() for _ in table]
    for child, (name, column) in zip(children, table.items()):
        _fill_schema(child, _FORMATS[column.kind], name.encode("utf-8"), [])
    _fill_schema(out, b"+s", b"", children)


def _batch_of(out: _Array, table: Table) -> None:
    children = [_Array() for _ in table]
    for child, column in zip(children, table.values()):
        _fill_column(child, column)
    _fill_array(out, rows_of(table), 0, [None], children)


class _Given:
    """What a stream has to give."""

    def __init__(self, table: Table) -> None:
        self.table: Optional[Table] = table
        self.schema = table


def _give_schema(stream: Any, out: Any) -> int:
    _schema_of(out.contents, _kept[stream.contents.private_data].schema)
    return 0


def _give_next(stream: Any, out: Any) -> int:
    given = _kept[stream.contents.private_data]
    if given.table is None:
        ctypes.memset(out, 0, ctypes.sizeof(_Array))  # its end
    else:
        _batch_of(out.contents, given.table)
        given.table = None
    return 0


def _release_given(stream: Any) -> None:
    number, stream.contents.release, stream.contents.private_data = stream.contents.private_data, None, None
    _kept.pop(number or 0, None)


_get_schema, _get_next, _get_error = _GetSchema(_give_schema), _GetNext(_give_next), _GetError(lambda _: None)
_release_stream = _ReleaseStream(_release_given)
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_streams: Dict[int, _Stream] = {}  # by address: the structs that capsules point to


def _forget(capsule: int) -> None:
    """A capsule goes; a reader that took its stream has said so by clearing ``release``."""
    address = _pointer(capsule, _STREAM)
    stream = _streams.pop(address, None)
    if stream is not None and stream.release:
        _ReleaseStream(stream.release)(ctypes.pointer(stream))


_forget_capsule = _Destructor(_forget)


def stream_of(table: Table) -> Any:
    """A PyCapsule named ``arrow_array_stream``."""
    stream = _Stream(_address(_get_schema), _address(_get_next), _address(_get_error), _address(_release_stream), _keep(_Given(table)))
    address = ctypes.addressof(stream)
    _streams[address] = stream
    return _new(address, _STREAM, _address(_forget_capsule))


def kept() -> int:
    """How many pieces readers have not released."""
    return len(_kept) + len(_streams)


for _thunk in (_release_schema, _release_array, _get_schema, _get_next, _get_error, _release_stream, _forget_capsule):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_thunk))  # a reader may release when this module is gone
