#!/usr/bin/env python3
"""Writes the frames of this folder with the Python reference codec: python3 tests/data/wire/make.py

They are stored, not made by the tests: every later version must read the bytes that this version wrote.
Never change a file that was published; add new ones.
"""
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[2] / "python"))
from tocsin import wire  # noqa: E402

TIME = 1767323045678000000
NAN, INF = float("nan"), float("inf")
GRADIENT, WEIGHT, LOSS = "gradient/conv1.weight", "conv1.weight", "loss"
ROW = {"name": wire.xxh64(GRADIENT), "count": 4, "sum": 2.0, "sumsq": 14.0, "m2": 13.0, "abs_sum": 6.0, "min": -2.0, "max": 3.0,
       "zero": 1, "negative": 1, "meta": 0x301}


def header(sequence=9001, **more):
    return wire.header(wire.run_uid("digits", "exploding"), world_size=1, step=412, global_step=437, time=TIME,
                       sequence=sequence, incarnation=1767320000000000000, **more)


def broken_row(name):
    return {"name": wire.xxh64(name), "count": 10, "sum": NAN, "sumsq": NAN, "m2": NAN, "abs_sum": NAN, "min": NAN, "max": NAN,
            "nan": 2, "posinf": 1, "neginf": 3, "zero": 1, "negative": 4, "meta": 0x301}


def extended():
    rows = [ROW, broken_row(WEIGHT), dict(ROW, name=wire.xxh64("gradient/fc1.weight"))]
    return wire.encode_frame(header(9002), wire.SUMMARY, rows, [
        (1, wire.sparse_column(1, {0: 0.5, 2: -1.5})),                 # median
        (1, wire.sparse_column(13, {1: 7.0}, params=[0.25])),          # unit_inactive_count(0.25)
        (2, wire.vector_extension(32, 2, [1.0, 2.0, INF])),            # channel_sum
        (3, wire.histogram_extension(0, 0, [1, 0, 2], -8, [5])),
        (77, b"of a later version")])


def vectors():
    """Class and channel statistics of two rows, one of them with a parameter, and one without any value."""
    rows = [dict(ROW, name=wire.xxh64("labels"), meta=0xB0D), dict(ROW, name=wire.xxh64("images"), meta=0x601)]
    return wire.encode_frame(header(9008), wire.SUMMARY, rows, [
        (2, wire.vector_extension(36, 0, [990.0, 10.0])),                        # class_counts
        (2, wire.vector_extension(38, 0, [0.0, 0.0, 990.0, 1.0, 0.0, 10.0])),    # confusion
        (2, wire.vector_extension(35, 0, [3.0, 1.0], params=[0.0, -100.0])),     # value_counts(0, -100)
        (2, wire.vector_extension(34, 1, [])),                                   # channel_count
        (2, wire.vector_extension(32, 1, [NAN, INF, -0.0]))])                    # channel_sum


def evolved():
    """A later minor: longer header, two more columns, an unknown extension, a flag nobody knows yet."""
    rows = [ROW, dict(ROW, name=wire.xxh64(WEIGHT), count=9)]
    columns = wire.COLUMNS[wire.SUMMARY]
    body = b"".join(struct.pack(f"<2{code}", *(row.get(name, 0) for row in rows)) for name, code in columns)
    body += struct.pack("<2d2d", 1.5, 2.5, 3.5, 4.5)
    product = wire.sparse_column(2, {1: 42.0})
    body += struct.pack("<HHI", 99, 0, 5) + b"hello" + bytes(3) + struct.pack("<HHI", 1, 0, len(product)) + product
    fields = dict(header(9003, flags=1 << 9), kind=wire.SUMMARY, row_stride=8 * (len(columns) + 2), row_count=2, minor=7,
                  extra_header=b"8 octets")
    return wire.seal(fields, body)


def files():
    yield "step_end", wire.encode_frame(header(), wire.STEP_END, [
        {"step": 412, "global_step": 437, "start": TIME - 50_000_000, "end": TIME, "micro_steps": 1}])
    yield "summary", wire.encode_frame(header(9000), wire.SUMMARY, [ROW])
    yield "summary_extended", extended()
    yield "summary_vectors", vectors()
    yield "summary_evolved", evolved()
    yield "scalar", wire.encode_frame(header(9004), wire.SCALAR, [
        {"name": wire.xxh64(LOSS), "step": 411, "global_step": 436, "time": TIME - 1, "value": 0.31, "meta": 0x402},
        {"name": wire.xxh64(LOSS), "step": 412, "global_step": 437, "time": TIME, "value": INF, "meta": 0x402}])
    yield "system", wire.encode_frame(header(9005), wire.SYSTEM, [
        {"series": wire.xxh64("system.cpu.utilization{cpu.logical_number=3,cpu.mode=user}"), "time": TIME, "value": 0.25},
        {"series": wire.xxh64("system.network.io{network.io.direction=receive}"), "time": TIME, "value": 12345.0, "meta": 1}])
    yield "span", wire.encode_frame(header(9006), wire.SPAN, [
        {"name": wire.xxh64("all_reduce"), "track": wire.xxh64("communication"), "start": TIME, "duration": 1500, "step": 412,
         "args": 0}, {"name": wire.xxh64("epoch"), "track": wire.xxh64("phase"), "start": TIME, "duration": -1, "step": 412}])
    yield "dictionary", wire.encode_dictionary(header(9007), [
        {"type": 4, "name": "worker_0"},
        {"type": 1, "name": GRADIENT, "dtype": 1, "role": 3, "dims": [32, 3, 3, 3], "attrs": {"collections": ["gradients"]}},
        {"type": 2, "name": "größe", "dtype": 2, "role": 5, "attrs": {"direction": "min", "unit": "m"}}])
    yield "lifecycle_start", wire.encode_lifecycle(header(0), {
        "event": "start", "job": "digits", "labels": {"team": "nlp"}, "framework": "pytorch 2.3", "version": "0.1.0",
        "pid": 4711, "pid_start": 123456, "host": "h1", "node": "n1", "launcher": "torchrun", "worker": "worker_0",
        "platform": {"kind": "local", "ref": {"pid": 4711}}, "continues_from": None, "of_a_later_version": [1, {"a": None}]})
    yield "lifecycle_end", wire.encode_lifecycle(header(9008), {
        "event": "end", "outcome": "stopped_by_rule", "exit_code": 77, "step": 412})
    yield "tensor_reference", wire.encode_tensor_chunk(header(2), WEIGHT, 4, [3], b"", total_bytes=6,
                                                       about=(0x104, WEIGHT, "worker_0"),
                                                       dataref=(160, 248, "s3://bucket/prefix/train-000000412.tcsn"))
    yield "tensor_chunk", wire.encode_tensor_chunk(header(1), WEIGHT, 1, [2, 3], struct.pack("<4f", 1, 2, 3, 4), chunk=0,
                                                   chunks=2, byte_offset=0, total_bytes=24)


if __name__ == "__main__":
    for name, data in files():
        (HERE / f"{name}.bin").write_bytes(data)
        print(name, len(data))
