"""Event files of TensorBoard, written without TensorBoard: records of TFRecord with messages of protocol buffers.

https://github.com/tensorflow/tensorboard/blob/master/tensorboard/compat/proto/event.proto"""

import os
import struct
from typing import Any, BinaryIO, Dict, List, Tuple

from tocsin.wire import crc32c

_STATISTICS = ("mean", "std", "l2", "abs_max", "min", "max", "nan")
_MASK = 0xA282EAD8


def write(trial: Any, path: str, tensors: bool) -> List[str]:
    """A folder for each mode, below it one for each rank but 0. Tags: names of scalars, ``name/statistic`` of tensors, ``step/seconds``. Steps
    are those of the mode. What is not finite stays. Returns the names of the files."""
    rows = [(row, [(row["name"], row["value"])]) for row in trial.series('metric(".*")')]
    rows += [(row, [("step/seconds", row["seconds"])]) for row in trial.series("step()")]
    if tensors:
        rows += [(row, [(f"{row['name']}/{name}", row[name]) for name in _STATISTICS if row[name] is not None and (name != "nan" or row[name])])
                 for row in trial.series('tensor(".*")', stat=_STATISTICS)]
    by_folder: Dict[str, List[Tuple[Any, ...]]] = {}
    for row, values in rows:
        folder = os.path.join(path, str(row["mode"]), *([f"rank_{row['rank']}"] if row["rank"] else []))
        by_folder.setdefault(folder, []).append((row["time"].timestamp(), row["step"], values))
    out = []
    for folder, events in sorted(by_folder.items()):
        os.makedirs(folder, exist_ok=True)
        events.sort(key=lambda one: (one[0], one[1]))
        name = os.path.join(folder, f"events.out.tfevents.{int(events[0][0])}.tocsin")
        with open(name + ".part", "wb") as file:
            _record(file, _double(1, events[0][0]) + _bytes(3, b"brain.Event:2"))
            for time, step, values in events:
                summary = b"".join(_bytes(1, _bytes(1, tag.encode("utf-8")) + _float(2, value)) for tag, value in values)
                _record(file, _double(1, time) + _whole(2, step) + _bytes(5, summary))
        os.replace(name + ".part", name)  # TensorBoard never sees half of one
        out.append(name)
    return out


def _record(file: BinaryIO, data: bytes) -> None:
    length = struct.pack("<Q", len(data))
    file.write(length + struct.pack("<I", _masked(length)) + data + struct.pack("<I", _masked(data)))


def _masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _whole(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _float(field: int, value: float) -> bytes:
    try:
        return _varint(field << 3 | 5) + struct.pack("<f", value)
    except OverflowError:  # a number of 64 bits that 32 do not hold
        return _varint(field << 3 | 5) + struct.pack("<f", float("inf") if value > 0 else float("-inf"))
