"""A gradient scaler that leaves out many updates, as the hook counts them (tocsin.adapters.torch.optimizers.scalers) and the rule `precision` judges."""
import pytest
import torch

import tocsin
from tests.support.hook_support import Telemetry


def train(out, bad, updates=400, fused=False, scaler=True):
    torch.manual_seed(0)
    net = torch.nn.Linear(8, 4)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3, fused=fused)
    scale = torch.amp.GradScaler("cpu", enabled=scaler)
    hook = tocsin.watch(net, optimizer, out=str(out), job="scaled", rules=["precision"])
    for number in range(updates):
        optimizer.zero_grad()
        scale.scale(net(torch.randn(4, 8)).pow(2).mean()).backward()
        if bad(number):
            net.weight.grad[0, 0] = float("inf")
        scale.step(optimizer)
        scale.update()
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    return {issue["kind"] for issue in hook.issues()}


def told(out, field):
    return sum(value for _, _, value in Telemetry(str(out)).scalars("ledger/precision/" + field))


@pytest.mark.parametrize("fused", [False, True])
def test_a_third_of_the_updates_is_left_out(tmp_path, fused):
    inner = torch.amp.GradScaler.__dict__["step"]
    assert train(tmp_path, lambda number: number % 3 == 1, fused=fused) == {"skipped"}
    assert 350 <= told(tmp_path, "scaled") <= 400
    assert fused or told(tmp_path, "left_out") == 133
    assert torch.amp.GradScaler.__dict__["step"] is inner, "put back"


@pytest.mark.parametrize("fused", [False, True])
def test_a_scaler_that_finds_its_scale_is_healthy(tmp_path, fused):
    assert train(tmp_path, lambda number: number < 16 or number % 100 == 99, fused=fused) == set()


def test_a_scaler_that_is_off_is_none(tmp_path):
    assert train(tmp_path, lambda number: False, scaler=False) == set()
    assert not [name for name in Telemetry(str(tmp_path)).names.values() if name.startswith("ledger/precision/")]


@pytest.mark.parametrize("unscales, limit, expected", [(False, 1.0, ["clipped_scaled"]), (True, 1.0, []), (False, 65536.0, [])])
def test_clipping_before_the_gradients_are_unscaled_is_told(tmp_path, unscales, limit, expected):
    net = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(net.parameters(), 1e-3)
    scaler = torch.amp.GradScaler("cpu")
    hook = tocsin.watch(net, optimizer, out=str(tmp_path), job="scaled")
    for _ in range(5):
        optimizer.zero_grad()
        scaler.scale(net(torch.randn(4, 8)).pow(2).mean()).backward()
        if unscales:
            scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), limit)
        scaler.step(optimizer)
        scaler.update()
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    assert [one["kind"] for record in Telemetry(str(tmp_path)).lifecycles("preflight") for one in record["findings"]] == expected
