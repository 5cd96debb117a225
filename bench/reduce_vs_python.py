#!/usr/bin/env python3
"""The statistics kernel beside NumPy and PyTorch that compute the same columns with one call each.

usage: reduce_vs_python.py PATH/TO/libtocsin_client.so.0 [MiB ...]

One line per figure: name value unit ratio baseline target pass|miss. All run on one thread and take
turns; the best of each counts. Targets (ratio of times): NumPy 20, PyTorch 10, for 16 MiB and more.
"""
import ctypes
import sys
import time

import numpy as np

try:
    import torch

    torch.set_num_threads(1)
except ImportError:  # measured where it is installed
    torch = None

DTYPES = {"float32": 1, "float64": 2, "float16": 3, "int32": 12}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_uint64), ("id", ctypes.c_uint64), ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_uint32), ("dtype", ctypes.c_int32), ("flags", ctypes.c_uint64),
    ]


def ours(library, array):
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    tensor = Tensor(ctypes.sizeof(Tensor), 0, array.ctypes.data, shape, None, array.ndim,
                    DTYPES[str(array.dtype)], 0)
    out = (ctypes.c_double * 13)()
    code = library.tocsin_reduce(ctypes.byref(tensor), out, 0)
    if code != 0:
        raise SystemExit(f"tocsin_reduce: {code}")
    return list(out)


def with_numpy(x):
    return [x.size, x.sum(dtype=np.float64), np.square(x, dtype=np.float64).sum(),
            x.var(dtype=np.float64) * x.size, np.abs(x).sum(dtype=np.float64), x.min(), x.max(),
            np.isnan(x).sum(), np.isposinf(x).sum(), np.isneginf(x).sum(), (x == 0).sum(),
            (x < 0).sum()]


def with_numpy_native(x):
    """The same without asking for binary64 sums: faster, and less exact than ours."""
    return [x.size, x.sum(), np.square(x).sum(), x.var() * x.size, np.abs(x).sum(), x.min(), x.max(),
            np.isnan(x).sum(), np.isposinf(x).sum(), np.isneginf(x).sum(), (x == 0).sum(),
            (x < 0).sum()]


def with_torch(x):
    return [x.numel(), x.sum().item(), x.square().sum().item(), x.var(unbiased=False).item(),
            x.abs().sum().item(), x.min().item(), x.max().item(), x.isnan().sum().item(),
            x.isposinf().sum().item(), x.isneginf().sum().item(), (x == 0).sum().item(),
            (x < 0).sum().item()]


def best(functions, rounds):
    """Least processor time of each function, taking turns."""
    least = [float("inf")] * len(functions)
    for _ in range(rounds):
        for i, function in enumerate(functions):
            start = time.thread_time_ns()
            function()
            least[i] = min(least[i], time.thread_time_ns() - start)
    return [max(t, 1) * 1e-9 for t in least]


def check(got, want):
    """The kernel must have computed what it is compared with."""
    if not np.allclose(got[:12], [float(v) for v in want], rtol=1e-4, atol=1e-3, equal_nan=True):
        raise SystemExit(f"different results:\n{got}\n{want}")


def report(name, gbs, ratio, baseline, target):
    judged = f"target >={target} {'pass' if ratio >= target else 'miss'}" if target else "target - -"
    print(f"{name:<34} {gbs:8.2f} GB/s ratio {ratio:6.1f} baseline {baseline:7.2f} {judged}", flush=True)


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    library = ctypes.CDLL(sys.argv[1])
    library.tocsin_reduce.argtypes = [ctypes.POINTER(Tensor), ctypes.POINTER(ctypes.c_double), ctypes.c_int32]
    for mib in [int(a) for a in sys.argv[2:]] or [1, 16, 256]:
        x = np.random.default_rng(1).normal(0, 0.02, mib << 18).astype(np.float32)
        check(ours(library, x), with_numpy(x))
        functions = [lambda: ours(library, x), lambda: with_numpy_native(x), lambda: with_numpy(x)]
        if torch is not None:
            t = torch.from_numpy(x)
            functions.append(lambda: with_torch(t))
        times = best(functions, 3 if mib >= 64 else 15)
        gigabytes = x.nbytes / 1e9
        judged = mib >= 16
        names = ["numpy", "numpy_f64_sums", "torch"]
        targets = [20, 0, 10]
        for name, seconds, target in zip(names, times[1:], targets):
            report(f"reduce_f32_{mib}MiB_over_{name}", gigabytes / times[0], seconds / times[0],
                   gigabytes / seconds, target if judged else 0)


if __name__ == "__main__":
    main()
