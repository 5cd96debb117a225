"""Statistics on request on torch 2: against NumPy, with mixed precision, and of the shards of two ranks."""
import json
import os
import struct
import subprocess
import sys

import numpy
import pytest
import torch

import tocsin
from tests.support.hook_support import ROOT, Telemetry, wire

EMPTY_HERE = 1 << 22
MEDIAN, P05, P25, P75, P95, AT_LEAST = 1, 3, 4, 5, 6, 15
STATISTICS = ["at_least(0.05)", "quantiles", "median", "histogram"]
CAPTURE = {"every": "1 step", "overhead": "100%", "collections": {
    "gradients": {"statistics": STATISTICS}, "weights": {"statistics": STATISTICS}}}


def summaries(telemetry, step, rank=None):
    """name -> row with `extra` and `histogram`: {(sign, bucket): count}."""
    out = {}
    for frame in telemetry.of_kind(wire.SUMMARY):
        if frame.header["step"] != step or (rank is not None and frame.header["rank"] != rank):
            continue
        sparse = [(stat, values) for stat, _, values in frame.sparse_columns()]
        for number, row in enumerate(frame.rows):
            out[telemetry.names[row["name"]]] = dict(row, histogram={}, extra={stat: values[number] for stat, values in sparse if number in values})
        for tag, payload in frame.extensions:
            if tag != 3:
                continue
            number, positive, many, negative, others, _ = struct.unpack_from("<IiIiII", payload)
            counts = struct.unpack_from(f"<{many + others}Q", payload, 24)
            buckets = {(1, positive + i): count for i, count in enumerate(counts[:many]) if count}
            buckets.update({(-1, negative + i): count for i, count in enumerate(counts[many:]) if count})
            out[telemetry.names[frame.rows[number]["name"]]]["histogram"] = buckets
    return out


def check(row, values, extra=True):
    """All of a row against the elements, in double precision; ``extra``: what is there on request, too."""
    values = numpy.asarray(values, "float64").reshape(-1)
    assert row["count"] == values.size
    assert row["sum"] == pytest.approx(values.sum(), rel=1e-5, abs=1e-7)
    assert row["sumsq"] == pytest.approx((values ** 2).sum(), rel=1e-5)
    if not extra:
        return
    extra = row["extra"]
    assert extra[AT_LEAST] == (abs(values) >= 0.05).sum()
    assert extra[MEDIAN] == pytest.approx(numpy.median(values), rel=1e-5, abs=1e-9)
    for stat, share in ((P05, 0.05), (P25, 0.25), (P75, 0.75), (P95, 0.95)):
        assert extra[stat] == pytest.approx(numpy.quantile(values, share), rel=1e-5, abs=1e-9)
    assert sum(row["histogram"].values()) == (values != 0).sum()
    for (sign, bucket), count in row["histogram"].items():
        low, high = 2 ** (bucket / 8) * (1 - 1e-9), 2 ** ((bucket + 1) / 8) * (1 + 1e-9)
        assert ((values * sign > low) & (values * sign <= high)).sum() >= count


def test_of_gradients_and_weights(out):
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    hook = tocsin.watch(model, optimizer, out=out, capture=CAPTURE)
    seen = {}
    for step in range(2):
        optimizer.zero_grad()
        model(torch.randn(4, 6)).square().mean().backward()
        seen[step] = {"weight": model.weight.detach().clone(), "gradient/weight": model.weight.grad.clone()}
        optimizer.step()
    hook.close()
    telemetry = Telemetry(out)
    for step, tensors in seen.items():
        rows = summaries(telemetry, step)
        for name, tensor in tensors.items():
            check(rows[name], tensor.numpy())


@pytest.mark.parametrize("fused", [False, True])
def test_of_scaled_gradients_they_are_those_of_the_divided_ones(out, fused):
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
    hook = tocsin.watch(model, optimizer, out=out, capture=CAPTURE)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(4, 6)).square().mean()
    scaler.scale(loss).backward()
    expected = model.weight.grad.double() / 4096.0
    scaler.step(optimizer)
    hook.close()
    check(summaries(Telemetry(out), 0)["gradient/weight"], expected.numpy())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_of_half_types(out, dtype):
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 5).to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    hook = tocsin.watch(model, optimizer, out=out, capture=CAPTURE)
    model(torch.randn(4, 6, dtype=dtype)).float().square().mean().backward()
    weight, gradient = model.weight.detach().double().numpy().copy(), model.weight.grad.double().numpy().copy()
    optimizer.step()
    hook.close()
    rows = summaries(Telemetry(out), 0)
    check(rows["weight"], weight)
    check(rows["gradient/weight"], gradient)


@pytest.mark.parametrize("path", ["host", "device"])
@pytest.mark.parametrize("kind", ["fsdp2", "fsdp1"])
def test_of_the_shards_of_two_ranks(tmp_path, kind, path):
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                           str(ROOT / "tests/frameworks/sharded.py"), str(tmp_path), kind, path], text=True, capture_output=True, check=False,
                          timeout=300, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stderr
    telemetry = Telemetry(tmp_path / "data")
    names = {"0.weight", "0.bias", "2.weight", "2.bias"}
    total = {}
    for rank in range(2):
        rows = summaries(telemetry, 2, rank)
        with open(tmp_path / f"rank{rank}.json", encoding="utf-8") as file:
            kept = {name: values for name, values in json.load(file).items() if values}
        assert {name for name, row in rows.items() if row["count"]} == set(kept), done.stderr
        assert set(rows) == names | {"gradient/" + name for name in names}, "also those of which this rank has nothing"
        assert {bool(row["meta"] & EMPTY_HERE) == (row["count"] == 0) for row in rows.values()} == {True}
        for name, values in kept.items():
            check(rows[name], values, extra=path == "host")
            total[name] = total.get(name, 0) + rows[name]["count"]
    assert total["0.weight"] == total["gradient/0.weight"] == 48 and total["2.bias"] == 3, "the shards make the whole"
    assert {name.removeprefix("gradient/") for name in total} == names
