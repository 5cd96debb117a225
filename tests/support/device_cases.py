"""Tensors on which statistics from a device must be those of the library's kernel, and the comparison."""
import ctypes
import itertools
import math
import struct

import torch

from tocsin.arrays import describe
from tocsin.library import abi
from tocsin.tensors import torch_device
from tocsin.tensors.device_counts import DeviceCounts

EXACT = ("count", "min", "max", "nan", "posinf", "neginf", "zero", "negative")
SUMS = ("sum", "sumsq", "m2", "abs_sum")
NAMES = [name for name, _ in abi.Row._fields_]
APPROXIMATE = 1 << 16


def of_library(tensor):
    """The row of the C++ kernel."""
    described, keep = describe(1, tensor)  # sparse tensors: their values
    out = (ctypes.c_double * 13)()
    assert abi.library().fast.tocsin_reduce(ctypes.byref(described), out, 0) == 0
    del keep
    return dict(zip(NAMES[1:], out))


def of_device(tensors):
    """The rows that the device's path gives of CPU tensors, and its counts."""
    counts = DeviceCounts()
    rows, ready = torch_device.device_rows([(i, tensor, 0) for i, tensor in enumerate(tensors)], None, counts)
    assert ready is None
    return [{name: getattr(row, name) for name in NAMES} for row in rows()], counts


def assert_same(row, want, where):
    for name in EXACT:
        same = row[name] == want[name] or (math.isnan(row[name]) and math.isnan(want[name]))
        if int(want["meta"]) & 0xff in (31, 32) and name in ("min", "max"):  # a modulus is rounded
            same = same or math.isclose(row[name], want[name], rel_tol=1e-14)
        assert same, (where, name, row, want)
    exact = int(want["meta"]) & 0xff in (2, 12, 13, 22, 23)  # accumulated in binary64 throughout
    tolerance = 1e-9 if exact else 1e-5
    for name in SUMS:
        got, expected = row[name], want[name]
        if math.isnan(expected) or math.isinf(expected):
            assert math.isnan(got) if math.isnan(expected) else got == expected, (where, name, row, want)
            continue
        scale = abs(want["abs_sum"]) if name in ("sum", "abs_sum") else abs(expected)
        assert abs(got - expected) <= tolerance * scale, (where, name, row, want)
    flags = (0xff | APPROXIMATE)
    assert int(row["meta"]) & flags == int(want["meta"]) & flags, (where, row, want)


def check(cases):
    """{name: tensor}: all in one batch, each against the library."""
    rows, counts = of_device(list(cases.values()))
    assert counts.skipped == {} and len(rows) == len(cases)
    for (where, tensor), row in zip(cases.items(), rows):
        assert_same(row, of_library(tensor), where)
    return counts


def bits(pattern, values, dtype):
    raw = bytearray(b"".join(struct.pack("<" + pattern, value) for value in values))
    return torch.frombuffer(raw, dtype=torch.uint8).clone().view(dtype)


def sizes():
    torch.manual_seed(1)
    return {f"n={n}": torch.randn(n) for n in (1, 2, 15, 1023, 1024, 1025, 4095, 4096, 4097, 32767, 32768, 32769, 100_003)}


def shapes():
    torch.manual_seed(2)
    base = torch.randn(64, 96)
    image = torch.randn(3, 4, 5, 6)
    half = torch.randn(5000).half()
    return {
        "scalar": torch.tensor(-2.5), "empty": torch.zeros(0), "empty matrix": torch.zeros(0, 5), "one": torch.tensor([0.0]),
        "transposed": base.t(), "channels last": image.to(memory_format=torch.channels_last), "permuted": image.permute(3, 0, 2, 1),
        "columns": base[:, 3:50], "every third": base[::3, ::3], "expanded": base[0].expand(7, 96), "expanded twice": torch.tensor(3.0).expand(9, 8),
        "expanded and permuted": image[:, :1].expand(3, 9, 5, 6).transpose(0, 2), "expanded gaps": base[:, None, ::2].expand(64, 5, 48),
        "off the grid of 16 bytes": base.reshape(-1)[1:5001], "another": base.reshape(-1)[3:4], "half off the grid": half[3:4999], "bytes off": torch.arange(
            9000, dtype=torch.int32).to(torch.uint8)[5:8999],
        "empty column": base[:, 5:5], "sparse": torch.sparse_coo_tensor([[1, 1, 7], [0, 0, 2]], [1.0, 2.0, -3.0], (9, 4)),
    }


def halves():
    every = range(1 << 16)
    out = {"every f16": bits("H", every, torch.float16), "every bf16": bits("H", every, torch.bfloat16),
           "finite f16": bits("H", [v for v in every if v & 0x7c00 != 0x7c00], torch.float16),
           "finite bf16": bits("H", [v for v in every if v & 0x7f80 != 0x7f80], torch.bfloat16),
           "denormal f16": bits("H", range(1, 1 << 10), torch.float16), "denormal bf16": bits("H", range(1, 1 << 7), torch.bfloat16),
           "random f16": torch.randn(70_000).half(), "random bf16": torch.randn(70_000).bfloat16()}
    for name in ("float8_e4m3fn", "float8_e5m2"):
        dtype = getattr(torch, name, None)
        if dtype is not None:
            out["every " + name] = bits("B", range(256), dtype)
            finite = torch.isfinite(bits("B", range(256), dtype).float())
            out["finite " + name] = bits("B", [v for v in range(256) if finite[v]] * 20, dtype)
    return out


def not_finite():
    inf, nan = math.inf, math.nan
    out = {}
    for n, place in itertools.product((5, 5000, 40_000), ("first", "last")):
        for word, values in {"nan": [nan], "+inf": [inf], "-inf": [-inf], "both": [inf, -inf], "all": [nan, inf, -inf]}.items():
            tensor = torch.linspace(-3, 4, n)
            at = 0 if place == "first" else n - len(values)
            tensor[at:at + len(values)] = torch.tensor(values)
            out[f"{word} {place} of {n}"] = tensor
    out["nan patterns"] = bits("I", [0x7f800001, 0xffc00001, 0x7fffffff, 0xff800001, 0x7f800000, 0xff800000, 0, 0x80000000, 1, 0x80000001], torch.float32)
    out["only nan"] = torch.full((2000,), nan)
    out["only +inf"] = torch.full((2000,), inf)
    out["f64 nan"] = torch.tensor([1.0, nan, -0.0], dtype=torch.float64)
    out["f64 inf"] = torch.tensor([1.0, inf, -0.0], dtype=torch.float64)
    return out


def numbers():
    torch.manual_seed(3)
    outlier = torch.randn(40_000)
    outlier[0] = 1e30
    steps = torch.randn(40_000)
    steps[:1024] += 1e4
    return {
        "far from zero": 1e6 + torch.randn(40_000), "constant": torch.full((1000,), 0.1), "constant, many": torch.full((50_000,), -7.3),
        "zeros": torch.zeros(5000), "negative zeros": -torch.zeros(5000), "tiny": 1e-20 * torch.randn(5000), "denormal": torch.full((5000,), 1e-42),
        "huge": 1e30 * torch.randn(5000), "largest": torch.tensor([3.4e38, -3.4e38] * 600), "outlier": outlier, "first block apart": steps,
        "small beside": torch.cat([torch.full((1100,), 1e-12), torch.ones(1)]), "f64": torch.randn(40_000, dtype=torch.float64),
        "f64 far": 1e9 + torch.randn(40_000, dtype=torch.float64), "f64 large": torch.tensor([1e200, -1e200, 3.0], dtype=torch.float64),
        "f64 denormal": torch.tensor([5e-324, 0.0, -5e-324], dtype=torch.float64),
    }


def whole():
    torch.manual_seed(4)
    out = {"bool": torch.randint(0, 2, (9000,)).bool(), "long": torch.tensor([2 ** 62, -2 ** 63, 5, 0]), "long, small": torch.randint(-9, 9, (9000,)),
           "limit": torch.tensor([2 ** 53 - 1, 0])}
    for word, low, high in (("int8", -128, 128), ("uint8", 0, 256), ("int16", -32768, 32768), ("int32", -2 ** 31, 2 ** 31)):
        out[word] = torch.randint(low, high, (40_000,)).to(getattr(torch, word))
    for word, high in (("uint16", 2 ** 16), ("uint32", 2 ** 32)):
        if hasattr(torch, word):
            out[word] = torch.randint(0, high, (9000,)).to(getattr(torch, word))
    if hasattr(torch, "uint64"):
        out["uint64"] = torch.tensor([2 ** 62, 7, 0]).to(torch.uint64)
    return out


def complexes():
    inf, nan = math.inf, math.nan
    odd = [complex(a, b) for a, b in itertools.product((0.0, -0.0, 1.0, -2.0, inf, -inf, nan), repeat=2)]
    return {"c64": torch.randn(9000, dtype=torch.complex64), "c128": torch.randn(9000, dtype=torch.complex128),
            "c64 odd": torch.tensor(odd, dtype=torch.complex64), "c128 odd": torch.tensor(odd, dtype=torch.complex128),
            "c64 inf": torch.tensor([complex(inf, 1), complex(3, 4)], dtype=torch.complex64),
            "c64 large": torch.tensor([complex(3e38, 3e38)], dtype=torch.complex64), "c128 large": torch.tensor([complex(1e300, 1e300)], dtype=torch.complex128),
            "conjugate": torch.randn(50, dtype=torch.complex64).conj(), "negated part": torch.randn(50, dtype=torch.complex64).conj().imag}


ALL = {"sizes": sizes, "shapes": shapes, "halves": halves, "not finite": not_finite, "numbers": numbers, "whole": whole, "complex": complexes}
