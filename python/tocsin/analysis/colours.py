"""Numbers as colours, and a PNG of them. Two scales that grow evenly darker or brighter, also for who sees no red or green."""

import base64
import struct
import zlib
from typing import Any

from .columns import numpy

# From least to greatest; colours between them are mixed.
VALUES = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))        # viridis
HEAT = ((0, 0, 4), (87, 16, 110), (188, 55, 84), (237, 105, 37), (251, 180, 26))            # inferno without its palest part
NOT_FINITE = (214, 39, 40)


def colours(shares: Any, scale: Any = VALUES) -> Any:
    """Shares of 0 to 1, of any shape → the same shape × 3, as bytes. NaN: ``NOT_FINITE``."""
    shares = numpy.asarray(shares, float)
    finite = numpy.isfinite(shares)
    at = numpy.where(finite, shares, 0.0).clip(0.0, 1.0) * (len(scale) - 1)
    stops = numpy.arange(len(scale))
    mixed = numpy.stack([numpy.interp(at, stops, [colour[part] for colour in scale]) for part in range(3)], axis=-1)
    return numpy.where(finite[..., None], mixed.round(), NOT_FINITE).astype("u1")


def data_uri(pixels: Any) -> str:
    """Rows × columns × 3 bytes as a PNG in a ``data:`` URI, which an ``<image>`` of an SVG shows without a script or a file."""
    pixels = numpy.ascontiguousarray(pixels, dtype="u1")
    rows, columns, _ = pixels.shape
    lines = numpy.zeros((rows, 1 + 3 * columns), "u1")  # each line begins with its filter: 0, none
    lines[:, 1:] = pixels.reshape(rows, 3 * columns)
    parts = (_chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)), _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9)),
             _chunk(b"IEND", b""))
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(parts)).decode("ascii")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
