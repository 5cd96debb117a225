"""The reference codec against the published vectors, the stored frames and its own promises.

Run: python3 -m pytest tests/python/test_wire.py  (or python3 -m unittest discover -s tests/python)
"""
import importlib.util
import math
import pathlib
import random
import struct
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "wire"


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


sys.path.insert(0, str(ROOT / "python"))
from tocsin import wire  # noqa: E402
R = "4e3046d4-8c1f-5278-82e3-ea3595bc5999"


def stored(name):
    return (DATA / f"{name}.bin").read_bytes()


def resealed(data):
    return data[:20] + struct.pack("<I", wire.crc32c(data[:20] + bytes(4) + data[24:])) + data[24:]


class Hashes(unittest.TestCase):
    def test_xxh64_gives_the_published_values(self):
        for text, expected in [("", "ef46db3751d8e999"), ("abc", "44bc2cf5ad770999"), ("loss", "c1fad9de00d338c8"),
                               ("worker_0", "162a5aad73bbaba7"), ("gradient/conv1.weight", "3c1ad644d40dd75a"),
                               ("conv1.weight", "27b838dfebfa7917"),
                               ("system.cpu.utilization{cpu.logical_number=3,cpu.mode=user}", "b9484f8897e70112")]:
            self.assertEqual(f"{wire.xxh64(text):016x}", expected, text)

    def test_crc32c_gives_the_published_value_and_goes_on(self):
        self.assertEqual(wire.crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(wire.crc32c(b"6789", wire.crc32c(b"12345")), 0xE3069283)

    def test_murmur2_and_partitions_are_kafkas(self):
        self.assertEqual(wire.murmur2("foobar"), 0xD0E47BBE)
        self.assertEqual(wire.murmur2(R), 0x6F8F78DC)
        self.assertEqual([wire.partition_for(R, 6), wire.partition_for(R, 24)], [0, 12])
        self.assertEqual([wire.partition_for(wire.route_key(R, s), 24) for s in (1, 7)], [0, 12])

    def test_run_uids_are_name_based(self):
        self.assertEqual(str(wire.NAMESPACE), "990bb541-e5e4-5832-ae0e-b9043f395a79")
        self.assertEqual(str(wire.run_uid("digits", "exploding")), R)
        self.assertEqual(str(wire.run_uid("any job", R.upper())), R)


class Frames(unittest.TestCase):
    def test_the_published_frames_are_these_bytes(self):
        self.assertEqual(stored("step_end")[20:24].hex(), "12e830bc")
        self.assertEqual(len(stored("step_end")), 160)
        self.assertEqual(wire.decode_frame(stored("summary")).header["crc"], 0x9476A326)
        self.assertEqual(len(stored("summary")), 224)

    def test_the_stored_frames_are_what_this_version_writes(self):
        make = load("make_wire_data", DATA / "make.py")
        for name, data in make.files():
            self.assertEqual(data.hex(), stored(name).hex(), name)

    def test_values_come_back(self):
        rows = wire.decode_frame(stored("scalar")).rows
        self.assertEqual([row["value"] for row in rows], [0.31, math.inf])
        extended = wire.decode_frame(stored("summary_extended"))
        self.assertEqual(list(extended.sparse_columns()), [(1, [], {0: 0.5, 2: -1.5}), (13, [0.25], {1: 7.0})])
        self.assertTrue(math.isnan(extended.rows[1]["min"]))
        self.assertEqual(wire.decode_frame(stored("lifecycle_end")).lifecycle["exit_code"], 77)
        names = [entry["name"] for entry in wire.decode_frame(stored("dictionary")).entries]
        self.assertEqual(names, ["worker_0", "gradient/conv1.weight", "größe"])
        self.assertEqual(wire.decode_frame(stored("tensor_chunk")).chunk["dims"], [2, 3])

    def test_a_reader_with_a_further_column_reads_frames_that_lack_it(self):
        known = wire.COLUMNS[wire.SUMMARY]
        wire.COLUMNS[wire.SUMMARY] = [*known, ("later", "d")]
        try:
            row = wire.decode_frame(stored("summary")).rows[0]
            later = wire.decode_frame(stored("summary_evolved")).rows
        finally:
            wire.COLUMNS[wire.SUMMARY] = known
        self.assertEqual(row["sumsq"], 14)
        self.assertNotIn("later", row)
        self.assertEqual([each["later"] for each in later], [1.5, 2.5])

    def test_a_later_minor_with_more_columns_and_unknown_tags_is_read(self):
        frame = wire.decode_frame(stored("summary_evolved"))
        self.assertEqual([row["count"] for row in frame.rows], [4, 9])
        self.assertEqual(list(frame.sparse_columns()), [(2, [], {1: 42.0})])

    def test_each_fault_has_its_code(self):
        good = stored("step_end")
        faults = {
            "not_a_frame": b"", "unknown_major": good[:4] + b"\2", "truncated": good[:159],
            "bad_length": good + b"\0", "bad_crc": good[:-1] + b"\1",
            "unknown_kind": resealed(good[:6] + b"\x0a" + good[7:]),
            "too_large": resealed(stored("dictionary")[:12] + struct.pack("<I", 65537) + stored("dictionary")[16:]),
        }
        for code, data in faults.items():
            with self.assertRaises(wire.WireError) as caught:
                wire.decode_frame(data)
            self.assertEqual(caught.exception.code, code)

    def test_no_change_of_a_byte_escapes_or_crashes(self):
        good = bytearray(stored("summary_extended"))
        chance = random.Random(7)
        for _ in range(300):
            data = bytearray(good)
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            with self.assertRaises(wire.WireError):
                wire.decode_frame(bytes(data))
            try:  # with a right CRC the lengths alone must hold
                wire.decode_frame(resealed(bytes(data)))
            except wire.WireError:
                pass


class Dependencies(unittest.TestCase):
    def test_the_codec_needs_the_standard_library_only(self):
        use = f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r}); from tocsin import wire; wire.run_uid('job', 'run')"
        subprocess.run([sys.executable, "-I", "-S", "-c", use], check=True)


if __name__ == "__main__":
    unittest.main()
