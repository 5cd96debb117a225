"""The overhead governor takes from what costs, and says what: labels and predictions keep their grid."""
import time

import pytest
import torch

import tocsin
from tests.support.hook_support import Telemetry, wire

CLASSES = {"statistics": ["classes"]}


@pytest.mark.parametrize("loss", ["module", "function"])
def test_labels_keep_their_grid_while_gradients_are_thinned(out, loss):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    criterion = torch.nn.CrossEntropyLoss()
    hook = tocsin.watch(model, optimizer, out=out, loss=criterion if loss == "module" else None, capture={
        "every": "2 steps", "overhead": "0.01%", "collections": {"gradients": None, "weights": {"statistics": ["delta", "digest"]},
                                                                 "labels": CLASSES, "predictions": CLASSES}})
    x, target = torch.randn(8, 512), torch.arange(8) % 4
    for _ in range(40):
        optimizer.zero_grad()
        value = criterion(model(x), target) if loss == "module" else torch.nn.functional.cross_entropy(model(x), target)
        value.backward()
        hook.log(loss=value)
        optimizer.step()
        time.sleep(0.002)
    governor = hook.stats()["governor"]
    hook.close()
    assert hook.stats()["hook_errors_total"] == {}
    assert governor["small_factor"] == 1 and governor["factor"] > 1
    assert governor["thinned"] == {"gradients": governor["factor"], "weights": governor["factor"]}
    told = Telemetry(out)
    steps = {}
    for frame in told.of_kind(wire.SUMMARY):
        for row in frame.rows:
            steps.setdefault(told.names[row["name"]], []).append(frame.header["step"])
    label = next(name for name in steps if name.lower().endswith("put_1") and "entropy" in name.lower())
    assert steps[label] == list(range(0, 40, 2))
    assert len(steps["gradient/0.weight"]) < 15
    assert {step for _, step, _ in told.scalars("loss")} == set(range(40))
    applied = [one for one in told.lifecycles("applied") if one["version"].startswith("governor/")]
    assert applied[-1]["left_out"] == governor["thinned"]
    assert [one["reason"] for one in told.lifecycles("gap")] == ["overhead"] * len(applied)
