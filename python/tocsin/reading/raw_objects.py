"""Raw tensors in objects, as the hook writes them: frames of kind 8, one after the other (docs/raw-tensors.md)."""

import struct
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from tocsin import wire

_WINDOW = 64 * 1024  # bytes; of a tensor that is larger only the beginning is read
Read = Callable[[int, int], bytes]  # from, count


class Damaged(ValueError):
    """An object is not what the hook writes."""


class Placed(NamedTuple):
    """A tensor in an object."""

    name: str
    worker: str
    meta: int
    dtype: int
    shape: Tuple[int, ...]
    bytes: int
    global_step: int
    time: int  # UTC ns
    offset: int  # of its frames in the object
    length: int


def tensors_of(read: Read, size: int) -> Iterator[Placed]:
    """What is in an object of so many bytes. Raises Damaged."""
    at, begin, window = 0, 0, b""

    def beside(count: int) -> bytes:
        """What stands at `at`, at least so many bytes where there are so many."""
        nonlocal begin, window
        if at - begin + min(count, size - at) > len(window):
            begin, window = at, read(at, min(max(count, _WINDOW), size - at))
        return window[at - begin:]

    while at < size:
        head = _head(beside(_frame_bytes(beside(wire.HEADER_BYTES))))
        if head is None:
            raise Damaged(f"at byte {at} no tensor begins")
        if at + head.length > size:
            raise Damaged(f"it ends within {head.name}")
        yield head._replace(offset=at)
        at += head.length


def _frame_bytes(data: bytes) -> int:
    """How long the frame is that begins here; 0: it is none."""
    if data[:4] != wire.MAGIC or len(data) < wire.HEADER_BYTES:
        return 0
    header = dict(zip(wire.HEADER_FIELDS, wire.HEADER.unpack_from(data)))
    whole = int(header["header_length"] + header["body_length"])
    return whole if whole <= wire.MAX_FRAME_BYTES else 0


def _head(data: bytes) -> Optional[Placed]:
    """Of a first chunk: the tensor. None: it is none."""
    whole = _frame_bytes(data)
    if not whole or len(data) < whole:
        return None
    header = dict(zip(wire.HEADER_FIELDS, wire.HEADER.unpack_from(data)))
    if header["kind"] != wire.TENSOR_CHUNK or header["body_length"] < 40:
        return None
    body = data[header["header_length"]:]
    _, dtype, ndim, _, chunk, chunks, bytes_, _, total = struct.unpack_from("<QBBHIIIQQ", body)
    about = (40 + 8 * ndim + bytes_ + 7 & ~7) + 8  # behind the head of the extension
    if chunk != 0 or len(body) < about + 16:
        return None
    meta, names, workers = struct.unpack_from("<QII", body, about)
    text = body[about + 16:about + 16 + names + workers]
    # All chunks but the last have as much data as the first, and none but the first has an extension.
    plain = header["header_length"] + 40 + 8 * ndim
    rest = (chunks - 1) * plain + total - bytes_
    return Placed(text[:names].decode("utf-8", "replace"), text[names:].decode("utf-8", "replace"), meta, dtype,
                  struct.unpack_from(f"<{ndim}q", body, 40), total, header["global_step"], header["time"], 0, whole + rest)


def elements_of(data: bytes) -> bytes:
    """Out of the frames of one tensor, each of which is checked. Raises Damaged."""
    parts: Dict[int, bytes] = {}
    total, at = 0, 0
    while at < len(data):
        try:
            lengths = wire.HEADER.unpack_from(data, at)
            whole = lengths[5] + lengths[8]
            frame = wire.decode_frame(data[at:at + whole])
        except (wire.WireError, struct.error) as error:
            raise Damaged(f"a chunk is damaged: {error}") from None
        if frame.chunk is None:
            raise Damaged("a frame of it is no chunk")
        total = frame.chunk["total_bytes"]
        parts.setdefault(frame.chunk["byte_offset"], frame.chunk["data"])
        at += whole
    out: List[bytes] = [part for _, part in sorted(parts.items())]
    if sum(map(len, out)) != total:
        raise Damaged(f"it has {sum(map(len, out))} of {total} bytes")
    return b"".join(out)
