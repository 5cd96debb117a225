"""The records of a case as the bytes that a hook or an agent would send: for tests that feed the whole program."""
import functools
import json
import math
import struct

from tests.reference import columns
from tests.support.program import run_cli
from tocsin import wire
from tocsin.library import vocabulary

_TYPES = {"tensor": 1, "scalar": 2, "series": 3, "worker": 4, "node": 5, "span_name": 6, "track": 7, "span_args": 8}
_KINDS = {"summary": wire.SUMMARY, "scalars": wire.SCALAR, "step_end": wire.STEP_END, "system": wire.SYSTEM, "span": wire.SPAN}


@functools.cache
def _statistics():
    """{(form, name): id}, from the program itself."""
    code, out, err = run_cli("schema", "vocabulary")
    assert code == 0, err
    return {(one["form"], one["name"]): one["id"] for one in json.loads(out)["statistics"]}


def _bits(value):
    """The number whose eight bytes are these: how a digest travels in a column of numbers."""
    return struct.unpack("<d", struct.pack("<Q", value))[0]


def _meta(dtype, role, flags=0):
    return vocabulary.DTYPES[dtype] | vocabulary.ROLES[role] << 8 | flags


def _rows(record):
    kind = record["kind"]
    for row in record["rows"]:
        if kind == "summary":
            name, dtype, role, flags, *numbers = row
            yield {"name": wire.xxh64(name), "meta": _meta(dtype, role, flags), **dict(zip(columns.NAMES, numbers))}
        elif kind == "scalars":
            name, role, step, global_step, value = row
            yield {"name": wire.xxh64(name), "step": step, "global_step": global_step, "time": record["time"],
                   "value": math.nan if value is None else value, "meta": _meta("f64", role)}
        elif kind == "step_end":
            yield {**dict(zip(("step", "global_step", "start", "end"), row)), "micro_steps": 1}
        elif kind == "system":
            yield {"series": wire.xxh64(row[0]), "time": row[1], "value": row[2]}
        else:
            name, track, start, duration, step = row
            yield {"name": wire.xxh64(name), "track": wire.xxh64(track), "start": start, "duration": duration, "step": step}


def _extensions(record):
    for name, parameters, rows, values in record.get("sparse", ()):
        numbers = [_bits(one) for one in values] if name == "digest" else values
        yield 1, wire.sparse_column(_statistics()["sparse", name], dict(zip(rows, numbers)), parameters)
    for name, row, parameters, values in record.get("vectors", ()):
        yield 2, wire.vector_extension(_statistics()["vector", name], row, values, parameters)


def encode(record, run):
    """One record of tests.reference.story as a frame of the run with this uid."""
    if "run" in record:
        run = str(wire.run_uid("reference", record["run"]))
    header = wire.header(run, worker=record.get("worker") or f"worker_{record['rank']}", mode=vocabulary.MODES[record["mode"]],
                         rank=record["rank"], world_size=record["world"], shard=record.get("shard", 0),
                         shard_count=record.get("shards", 1), step=record["step"], global_step=record["global"],
                         time=record["time"], sequence=record["seq"], incarnation=1, pass_=record["pass"])
    kind = record["kind"]
    if kind == "lifecycle":
        return wire.encode_lifecycle(header, record["body"])
    if kind == "dictionary":
        return wire.encode_dictionary(header, [
            {"type": _TYPES[one["type"]], "name": one["name"], "role": vocabulary.ROLES[one.get("role", "other")],
             "dtype": vocabulary.DTYPES[one.get("dtype", "unknown")], "dims": one.get("shape", ()), "attrs": one.get("attrs")}
            for one in record["names"]])
    return wire.encode_frame(header, _KINDS[kind], list(_rows(record)), list(_extensions(record)))
