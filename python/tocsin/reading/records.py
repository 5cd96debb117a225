"""Records of a recording, oldest first."""

from typing import Iterator, Optional, Tuple

from . import tensors

PART = 1000  # records that one query reads


def since(path: str, first: int) -> Iterator[Tuple[int, Optional[bytes]]]:
    """(number, value) of telemetry from this number on. The file is not held between two parts, so that its writer never waits.
    Raises sqlite3.DatabaseError."""
    while True:
        with tensors._reading:
            part = tensors._connection(path).execute("SELECT id, value FROM telemetry WHERE id >= ? ORDER BY id LIMIT ?",
                                                     (first, PART)).fetchall()
        yield from part
        if len(part) < PART:
            return
        first = part[-1][0] + 1
