"""The hashes of Tocsin's wire, in plain Python: XXH64 of names, CRC32C of frames, Kafka's murmur2 of keys.

Written to be read and to be ported, as ``tocsin.wire`` is. docs/wire.md says where each of them stands.
"""
import struct

_M64 = (1 << 64) - 1
_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5


def _rotl(x, r):
    return ((x << r) | (x >> (64 - r))) & _M64


def _round(acc, lane):
    return _rotl((acc + lane * _P2) & _M64, 31) * _P1 & _M64


def xxh64(data, seed=0):
    """XXH64 of bytes (or of a str's UTF-8): what names are on the wire."""
    if isinstance(data, str):
        data = data.encode()
    at, n = 0, len(data)
    if n >= 32:
        acc = [(seed + _P1 + _P2) & _M64, (seed + _P2) & _M64, seed, (seed - _P1) & _M64]
        while n - at >= 32:
            for i, lane in enumerate(struct.unpack_from("<4Q", data, at)):
                acc[i] = _round(acc[i], lane)
            at += 32
        h = sum(_rotl(a, r) for a, r in zip(acc, (1, 7, 12, 18))) & _M64
        for a in acc:
            h = ((h ^ _round(0, a)) * _P1 + _P4) & _M64
    else:
        h = (seed + _P5) & _M64
    h = (h + n) & _M64
    while n - at >= 8:
        h = (_rotl(h ^ _round(0, struct.unpack_from("<Q", data, at)[0]), 27) * _P1 + _P4) & _M64
        at += 8
    if n - at >= 4:
        h = (_rotl(h ^ struct.unpack_from("<I", data, at)[0] * _P1 & _M64, 23) * _P2 + _P3) & _M64
        at += 4
    for byte in data[at:]:
        h = _rotl(h ^ byte * _P5 & _M64, 11) * _P1 & _M64
    h = (h ^ h >> 33) * _P2 & _M64
    h = (h ^ h >> 29) * _P3 & _M64
    return h ^ h >> 32


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_CRC = _crc_table()


def crc32c(data, previous=0):
    """CRC32C (Castagnoli); crc32c(b, crc32c(a)) == crc32c(a + b)."""
    crc = previous ^ 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def murmur2(key):
    """Kafka's murmur2, as an unsigned number."""
    if isinstance(key, str):
        key = key.encode()
    m, mask, n = 0x5BD1E995, 0xFFFFFFFF, len(key)
    h = 0x9747B28C ^ n
    for at in range(0, n - n % 4, 4):
        k = struct.unpack_from("<I", key, at)[0] * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m ^ k) & mask
    tail = key[n - n % 4:]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def partition_for(key, partitions):
    """What Java's default partitioner chooses, and librdkafka's murmur2_random for a key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
