"""Reference codec of Tocsin's telemetry wire format, frame v1, in plain Python.

It is written to be read and to be ported: standard library only, one function per thing that the page
docs/wire.md describes, no cleverness. tests/python/test_wire.py checks it against the published vectors
and against the C++ codec. It is slow (a frame of 100 rows takes about a millisecond); programs that must be
fast use the hook.

    frame = encode_frame(header, SUMMARY, [row, ...])     # -> bytes, one Kafka record
    frame = decode_frame(data)                            # -> Frame, or raises WireError

Units: times are UTC nanoseconds as int; every integer on the wire is little-endian.
"""
import json
import struct
import uuid
from dataclasses import dataclass, field

from tocsin import hashes

# For users of this module too.
crc32c, murmur2, partition_for = hashes.crc32c, hashes.murmur2, hashes.partition_for
name_hash = xxh64 = hashes.xxh64

MAGIC = b"TCSN"
HEADER_BYTES = 112
MAX_FRAME_BYTES = 1 << 20   # a reader refuses more
MAX_RECORD_BYTES = 900 * 1024  # a writer makes no more
MAX_ROWS = 65536

SUMMARY, SCALAR, STEP_END, LIFECYCLE, SYSTEM, SPAN, DICTIONARY, TENSOR_CHUNK, SNAPSHOT = range(1, 10)
GLOBAL, TRAIN, EVAL, PREDICT = range(4)

DTYPES = {"unknown": 0, "f32": 1, "f64": 2, "f16": 3, "bf16": 4, "f8_e4m3": 5, "f8_e5m2": 6, "i8": 10, "i16": 11,
          "i32": 12, "i64": 13, "u8": 20, "u16": 21, "u32": 22, "u64": 23, "bool": 30, "c64": 31, "c128": 32, "text": 40}
ROLES = {name: code for code, name in enumerate(
    ["other", "weight", "bias", "gradient", "loss", "metric", "input", "output", "activation_in", "activation_out",
     "optimizer", "label", "prediction", "importance", "shap", "tree", "hyperparameter", "ledger"])}

# Columns of each kind: (name, struct code); Q = u64, q = i64, d = f64. All are 8 bytes wide.
COLUMNS = {
    SUMMARY: [("name", "Q"), ("count", "Q"), ("sum", "d"), ("sumsq", "d"), ("m2", "d"), ("abs_sum", "d"), ("min", "d"),
              ("max", "d"), ("nan", "Q"), ("posinf", "Q"), ("neginf", "Q"), ("zero", "Q"), ("negative", "Q"), ("meta", "Q")],
    SCALAR: [("name", "Q"), ("step", "q"), ("global_step", "q"), ("time", "q"), ("value", "d"), ("meta", "Q")],
    STEP_END: [("step", "q"), ("global_step", "q"), ("start", "q"), ("end", "q"), ("micro_steps", "Q"), ("meta", "Q")],
    SYSTEM: [("series", "Q"), ("time", "q"), ("value", "d"), ("meta", "Q")],
    SPAN: [("name", "Q"), ("track", "Q"), ("start", "q"), ("duration", "q"), ("step", "q"), ("args", "Q"), ("meta", "Q")],
}

# What a frame has at least: the columns of version 1.0. A later one adds to the end of COLUMNS, and leaves this alone.
LEAST_COLUMNS = {SUMMARY: 14, SCALAR: 6, STEP_END: 6, SYSTEM: 4, SPAN: 7}

HEADER = struct.Struct("<4sBBBBHHIII16sIIIHHqqqQQQII")
HEADER_FIELDS = ("magic", "major", "minor", "kind", "mode", "header_length", "row_stride", "row_count", "body_length", "crc",
                 "run", "attempt", "rank", "world_size", "shard", "shard_count", "step", "global_step", "time", "sequence",
                 "incarnation", "worker", "pass_", "flags")
assert HEADER.size == HEADER_BYTES


class WireError(ValueError):
    """A record that is no frame. `code` is what stands in the dead-letter header error-code."""

    def __init__(self, code, detail):
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


# ---- identities --------------------------------------------------------------------------------

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "tocsin.dev")


def run_uid(job, run):
    """UUID of a run: the text itself when it is one, else UUIDv5 of `run:<job>/<run>`."""
    try:
        if len(run) == 36:
            return uuid.UUID(run)
    except ValueError:
        pass
    return uuid.uuid5(NAMESPACE, f"run:{job}/{run}")


def route_key(uid, shard=0):
    """Key of a telemetry record."""
    return str(uid) if shard == 0 else f"{uid}/{shard}"


def shard_of(tensor_name, shard_count):
    """Shard of a tensor's rows; everything else goes to shard 0."""
    return xxh64(tensor_name) % shard_count


# ---- frames ------------------------------------------------------------------------------------

@dataclass
class Frame:
    header: dict
    rows: list = field(default_factory=list)        # of dicts, for kinds made of columns
    extensions: list = field(default_factory=list)  # of (tag, payload bytes)
    entries: list = field(default_factory=list)     # of dicts, for dictionaries
    lifecycle: dict = None
    chunk: dict = None
    body: bytes = b""

    @property
    def kind(self):
        return self.header["kind"]

    def sparse_columns(self):
        """Tag 1 extensions as (stat, params, {row: value})."""
        for tag, payload in self.extensions:
            if tag == 1:
                yield decode_sparse_column(payload)


def header(run, *, worker="worker_0", mode=TRAIN, attempt=1, rank=0, world_size=0, shard=0, shard_count=1, step=0,
           global_step=0, time=0, sequence=0, incarnation=0, pass_=0, flags=0):
    """The fields that a producer chooses; encode_frame() adds the rest."""
    return {"run": run, "worker": xxh64(worker) if isinstance(worker, str) else worker, "mode": mode, "attempt": attempt,
            "rank": rank, "world_size": world_size, "shard": shard, "shard_count": shard_count, "step": step,
            "global_step": global_step, "time": time, "sequence": sequence, "incarnation": incarnation, "pass_": pass_,
            "flags": flags}


def _pad(data):
    return data + bytes(-len(data) % 8)


def seal(fields, body):
    """Header and body as one record, lengths and CRC filled in."""
    full = dict(fields, magic=MAGIC, major=fields.get("major", 1), minor=fields.get("minor", 0),
                header_length=HEADER_BYTES + len(fields.get("extra_header", b"")), body_length=len(body), crc=0)
    full["run"] = uuid.UUID(str(full["run"])).bytes
    extra = fields.get("extra_header", b"")
    data = HEADER.pack(*(full[name] for name in HEADER_FIELDS)) + extra + body
    if len(data) > MAX_RECORD_BYTES:
        raise WireError("too_large", f"{len(data)} bytes; split the rows")
    return data[:20] + struct.pack("<I", crc32c(data)) + data[24:]


def encode_frame(fields, kind, rows, extensions=()):
    """A frame of kind SUMMARY, SCALAR, STEP_END, SYSTEM or SPAN. Rows are dicts; absent columns are 0."""
    if len(rows) > MAX_ROWS:
        raise WireError("too_large", f"{len(rows)} rows")
    columns = COLUMNS[kind]
    body = b"".join(struct.pack(f"<{len(rows)}{code}", *(row.get(name, 0) for row in rows)) for name, code in columns)
    for tag, payload in extensions:
        body += _extension(tag, payload)
    return seal(dict(fields, kind=kind, row_stride=8 * len(columns), row_count=len(rows)), body)


def _extension(tag, payload):
    return struct.pack("<HHI", tag, 0, len(payload)) + _pad(payload)


def sparse_column(stat, values, params=()):
    """Payload of a tag 1 extension; values: {row: number}."""
    rows = sorted(values)
    return (struct.pack("<HHI", stat, len(params), len(rows)) + struct.pack(f"<{len(params)}d", *params)
            + _pad(struct.pack(f"<{len(rows)}I", *rows)) + struct.pack(f"<{len(rows)}d", *(values[row] for row in rows)))


def decode_sparse_column(payload):
    stat, p, m = struct.unpack_from("<HHI", payload)
    rows_at = 8 + 8 * p
    values_at = rows_at + (4 * m + 7 & ~7)
    rows = struct.unpack_from(f"<{m}I", payload, rows_at)
    return stat, list(struct.unpack_from(f"<{p}d", payload, 8)), dict(
        zip(rows, struct.unpack_from(f"<{m}d", payload, values_at)))


def vector_extension(stat, row, values, params=()):
    """Payload of a tag 2 extension."""
    return (struct.pack("<HHIII", stat, len(params), row, len(values), 0) + struct.pack(f"<{len(params)}d", *params)
            + struct.pack(f"<{len(values)}d", *values))


def histogram_extension(row, positive_offset, positive, negative_offset, negative):
    """Payload of a tag 3 extension: bucket i holds 2^(i/8) < |x| <= 2^((i+1)/8)."""
    counts = [*positive, *negative]
    return (struct.pack("<IiIiII", row, positive_offset, len(positive), negative_offset, len(negative), 0)
            + struct.pack(f"<{len(counts)}Q", *counts))


def encode_dictionary(fields, entries):
    """entries: dicts with type, name, and optionally dtype, role, dims, attrs (a dict)."""
    body = b""
    for entry in entries:
        name = entry["name"].encode()
        attrs = json.dumps(entry["attrs"], separators=(",", ":"), ensure_ascii=False).encode() if entry.get("attrs") else b""
        dims = entry.get("dims", ())
        body += _pad(struct.pack("<QBBBBIII", entry.get("hash", xxh64(name)), entry["type"], entry.get("dtype", 0),
                                 entry.get("role", 0), len(dims), len(name), len(attrs), 0)
                     + struct.pack(f"<{len(dims)}q", *dims) + name + attrs)
    return seal(dict(fields, kind=DICTIONARY, row_stride=0, row_count=len(entries)), body)


def encode_lifecycle(fields, event):
    """event: a dict with `event` and its fields."""
    body = json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode()
    return seal(dict(fields, kind=LIFECYCLE, row_stride=0, row_count=1), body)


def encode_tensor_chunk(fields, name, dtype, dims, data, *, chunk=0, chunks=1, byte_offset=0, total_bytes=None,
                        about=None, dataref=None):
    """about: (meta, name, worker); dataref: (offset, bytes, URI) of a tensor whose frames lie elsewhere."""
    body = struct.pack("<QBBHIIIQQ", xxh64(name), dtype, len(dims), 0, chunk, chunks, len(data), byte_offset,
                       len(data) if total_bytes is None else total_bytes) + struct.pack(f"<{len(dims)}q", *dims) + data
    if about:
        texts = [text.encode() for text in about[1:]]
        body = _pad(body) + _extension(16, struct.pack("<QII", about[0], *map(len, texts)) + b"".join(texts))
    if dataref:
        body = _pad(body) + _extension(17, struct.pack("<QQ", *dataref[:2]) + dataref[2].encode())
    return seal(dict(fields, kind=TENSOR_CHUNK, row_stride=0, row_count=1), body)


def decode_frame(data):
    """One frame. Raises WireError with the first check that fails; the order is that of docs/wire.md."""
    if data[:4] != MAGIC:
        raise WireError("not_a_frame", "the record does not begin with TCSN")
    if len(data) > 4 and data[4] != 1:
        raise WireError("unknown_major", "this reader knows major version 1")
    if len(data) < HEADER_BYTES:
        raise WireError("truncated", "shorter than the header")
    h = dict(zip(HEADER_FIELDS, HEADER.unpack_from(data)))
    length, stride, n = h["header_length"], h["row_stride"], h["row_count"]
    if length < HEADER_BYTES or length % 8:
        raise WireError("bad_length", "header length")
    if length + h["body_length"] != len(data):
        raise WireError("truncated" if length + h["body_length"] > len(data) else "bad_length", "body length")
    if stride % 8 or stride * n > h["body_length"]:
        raise WireError("bad_length", "row stride times rows")
    if n > MAX_ROWS:
        raise WireError("too_large", "rows")
    if len(data) > MAX_FRAME_BYTES:
        raise WireError("too_large", "bytes")
    if crc32c(data[:20] + bytes(4) + data[24:]) != h["crc"]:
        raise WireError("bad_crc", "the CRC32C does not match")
    if not SUMMARY <= h["kind"] <= SNAPSHOT:
        raise WireError("unknown_kind", f"kind {h['kind']}")
    if h["mode"] > PREDICT:
        raise WireError("unknown_kind", f"mode {h['mode']}")
    h["run"] = uuid.UUID(bytes=h["run"])
    frame = Frame(header=h, body=data[length:])
    _decode_body(frame)
    return frame


def _decode_body(frame):
    kind, n, stride, body = frame.kind, frame.header["row_count"], frame.header["row_stride"], frame.body
    if kind in COLUMNS:
        if n and stride < 8 * LEAST_COLUMNS[kind]:
            raise WireError("bad_length", "too few columns")
        columns = COLUMNS[kind][:stride // 8]  # what the writer did not know is not in the rows
        values = [struct.unpack_from(f"<{n}{code}", body, 8 * k * n) for k, (_, code) in enumerate(columns)] if n else []
        frame.rows = [dict(zip((name for name, _ in columns), row)) for row in zip(*values)]
        frame.extensions = list(_extensions(body[stride * n:], n))
        return
    if stride:
        raise WireError("bad_length", "a kind without columns has a row stride")
    if kind == DICTIONARY:
        frame.entries = list(_entries(body, n))
    elif kind == LIFECYCLE:
        if n != 1:
            raise WireError("bad_length", "a lifecycle frame has one row")
        try:
            frame.lifecycle = json.loads(body)
        except ValueError as error:
            raise WireError("bad_lifecycle", str(error)) from error
    elif kind == TENSOR_CHUNK:
        frame.chunk = _chunk(body, n)


def _extensions(area, rows):
    at = 0
    while at < len(area):
        if len(area) - at < 8:
            raise WireError("bad_length", "extension head")
        tag, _, length = struct.unpack_from("<HHI", area, at)
        if (length + 7 & ~7) > len(area) - at - 8:
            raise WireError("bad_length", "extension length")
        payload = area[at + 8:at + 8 + length]
        try:
            if tag == 1:
                numbers = list(decode_sparse_column(payload)[2])
                p, m = struct.unpack_from("<HI", payload, 2)
                fits = (struct.unpack_from(f"<{m}I", payload, 8 + 8 * p) == tuple(sorted(numbers)) and len(numbers) == m
                        and all(row < rows for row in numbers))
            elif tag == 2:
                _, p, row, m = struct.unpack_from("<HHII", payload)
                fits = row < rows and 16 + 8 * (p + m) <= length
            elif tag == 3:
                row, _, m, _, k, _ = struct.unpack_from("<IiIiII", payload)
                fits = row < rows and 24 + 8 * (m + k) <= length
            else:
                fits = True
        except struct.error:
            fits = False
        if not fits:
            raise WireError("bad_length", f"extension of tag {tag}")
        yield tag, payload
        at += 8 + (length + 7 & ~7)


def _entries(body, count):
    at = 0
    for _ in range(count):
        if len(body) - at < 24:
            raise WireError("bad_length", "dictionary entry")
        hash_, type_, dtype, role, ndim, names, attrs, _ = struct.unpack_from("<QBBBBIII", body, at)
        length = 24 + 8 * ndim + names + attrs
        if at + length > len(body):
            raise WireError("bad_length", "dictionary entry")
        text_at = at + 24 + 8 * ndim
        yield {"hash": hash_, "type": type_, "dtype": dtype, "role": role,
               "dims": list(struct.unpack_from(f"<{ndim}q", body, at + 24)),
               "name": body[text_at:text_at + names].decode("utf-8", "replace"),
               "attrs": body[text_at + names:text_at + names + attrs].decode("utf-8", "replace")}
        at = min(at + (length + 7 & ~7), len(body))


def _chunk(body, count):
    if count != 1 or len(body) < 40:
        raise WireError("bad_length", "tensor chunk")
    name, dtype, ndim, _, chunk, chunks, length, offset, total = struct.unpack_from("<QBBHIIIQQ", body)
    if 40 + 8 * ndim + length > len(body) or chunk >= chunks or offset + length > total:
        raise WireError("bad_length", "tensor chunk")
    at = 40 + 8 * ndim
    out = {"name": name, "dtype": dtype, "dims": list(struct.unpack_from(f"<{ndim}q", body, 40)), "chunk": chunk,
           "chunks": chunks, "byte_offset": offset, "total_bytes": total, "data": body[at:at + length]}
    for tag, payload in _extensions(body[at + length + 7 & ~7:], 0):
        if len(payload) < {16: 16, 17: 17}.get(tag, 0):
            raise WireError("bad_length", f"extension of tag {tag}")
        if tag == 16:
            meta, names, workers = struct.unpack_from("<QII", payload)
            if 16 + names + workers > len(payload):
                raise WireError("bad_length", "extension of tag 16")
            out["about"] = (meta, payload[16:16 + names].decode("utf-8", "replace"),
                            payload[16 + names:16 + names + workers].decode("utf-8", "replace"))
        elif tag == 17:
            out["dataref"] = (*struct.unpack_from("<QQ", payload), payload[16:].decode("utf-8", "replace"))
    return out
