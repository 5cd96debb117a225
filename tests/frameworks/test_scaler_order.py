"""The order of a gradient scaler's calls: what passes in silence is told (tocsin.adapters.torch.first_updates.scaler_order), PyTorch raises at the rest."""
import pytest
import torch

import tocsin
from tests.support.hook_support import Telemetry


class Subclass(torch.amp.GradScaler):
    """As FSDP's: it scales by a function of its own."""

    def scale(self, outputs):
        return super().scale(outputs) * 1


def run(out, order, make=lambda: torch.amp.GradScaler("cpu"), updates=6, accumulated=1):
    """``order``: clearing (z), scaled backward pass (B), one at the loss itself (b), one at the loss although it was scaled too (x), unscale_ (u),
    clip (c), the scaler's step (S), the optimizer's (o), update (p), division by hand (d)."""
    torch.manual_seed(0)
    methods = {name: torch.amp.GradScaler.__dict__[name] for name in ("scale", "unscale_", "step", "get_scale")}
    net = torch.nn.Linear(8, 4)
    optimizer = torch.optim.SGD(net.parameters(), 1e-9)
    scaler = make()
    hook = tocsin.watch(net, optimizer, out=str(out), job="scaler")

    def loss():
        return net(torch.randn(4, 8)).pow(2).mean()

    def discarded():
        value = loss()
        scaler.scale(value)
        value.backward()

    def divided():
        inverse = 1 / scaler.get_scale()
        for one in net.parameters():
            one.grad.mul_(inverse)

    calls = {"z": optimizer.zero_grad, "B": lambda: scaler.scale(loss()).backward(), "b": lambda: loss().backward(), "x": discarded,
             "u": lambda: scaler.unscale_(optimizer), "c": lambda: torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0),
             "S": lambda: scaler.step(optimizer), "o": optimizer.step, "p": scaler.update, "d": divided}
    try:
        for _ in range(updates):
            for one in order:
                calls[one]()
    finally:
        hook.close()
        assert {name: torch.amp.GradScaler.__dict__[name] for name in methods} == methods, "put back"
    assert not hook.stats()["hook_errors_total"]
    return [one["kind"] for record in Telemetry(str(out)).lifecycles("preflight") for one in record["findings"]]


@pytest.mark.parametrize("order, expected", [("zBo", ["scaler_left_out"]), ("zxSp", ["loss_not_scaled"])])
def test_what_pytorch_does_not_notice_is_told(tmp_path, order, expected):
    assert run(tmp_path, order) == expected


@pytest.mark.parametrize("order", ["zBSp", "BSpz", "zBuSp", "zBucSp", "zBBBSp", "zBBucSp", "zBdo", "zbo"])
def test_the_right_orders_are_healthy(tmp_path, order):
    assert run(tmp_path, order) == []


@pytest.mark.parametrize("make", [lambda: torch.amp.GradScaler("cpu", enabled=False), lambda: torch.amp.GradScaler("cpu", init_scale=1.0), lambda: Subclass("cpu")],
                         ids=["off", "a scale of 1", "a subclass"])
def test_scalers_of_which_nothing_can_be_said(tmp_path, make):
    assert run(tmp_path, "zBSp", make) == []
    assert run(tmp_path / "none", "zBo" if not isinstance(make(), Subclass) else "zBSp", make) == []


@pytest.mark.parametrize("order", ["zBuuSp", "zBSuSp", "zBSSp", "zBpS", "zBop", "zBSzBS"])
def test_pytorch_raises_at_the_other_wrong_orders(tmp_path, order):
    """Nothing is to be told of them. `clipped_scaled` and `clipped_late` have tests of their own (test_scalers.py)."""
    with pytest.raises((RuntimeError, AssertionError)):
        run(tmp_path, order)


def test_one_network_with_a_scaler_and_one_without(tmp_path):
    """The pass of the scaled one goes through the other's parameters too."""
    torch.manual_seed(0)
    maker, judge = torch.nn.Linear(8, 4), torch.nn.Linear(4, 1)
    of_maker, of_judge = (torch.optim.SGD(net.parameters(), 1e-4) for net in (maker, judge))
    scaler = torch.amp.GradScaler("cpu")
    hook = tocsin.watch(maker, of_maker, out=str(tmp_path), job="scaler")
    assert tocsin.watch(judge, of_judge) is hook
    for _ in range(6):
        of_maker.zero_grad()
        scaler.scale(judge(maker(torch.randn(4, 8))).mean()).backward()
        scaler.step(of_maker)
        scaler.update()
        of_judge.zero_grad()
        judge(maker(torch.randn(4, 8)).detach()).square().mean().backward()
        of_judge.step()
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    assert Telemetry(str(tmp_path)).lifecycles("preflight") == []


def test_accelerate_that_was_given_a_number_of_passes_and_no_block(tmp_path):
    """Without ``with accelerator.accumulate(model)`` each pass ends in an update, of a loss that is divided."""
    accelerate = pytest.importorskip("accelerate")
    for inside in (False, True):
        accelerate.state.AcceleratorState._reset_state(True)
        accelerate.state.GradientState._reset_state()
        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=4)
        model = torch.nn.Linear(8, 4)
        data = torch.utils.data.DataLoader(torch.randn(96, 8), 4)
        schedule = None
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
        model, optimizer, data, schedule = accelerator.prepare(model, optimizer, data, schedule)
        out = tmp_path / str(inside)
        hook = tocsin.watch(model, optimizer, out=str(out), job="accelerated")
        for rows in data:
            with accelerator.accumulate(model) if inside else torch.enable_grad():
                accelerator.backward(model(rows).square().mean())
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        hook.close()
        assert not hook.stats()["hook_errors_total"]
        assert [one["kind"] for record in Telemetry(str(out)).lifecycles("preflight") for one in record["findings"]] == (
            [] if inside else ["accumulation_left_out"])
    accelerate.state.AcceleratorState._reset_state(True)
    accelerate.state.GradientState._reset_state()


@pytest.mark.parametrize("factor, expected", [(1 / 4, ["loss_divided_twice"]), (1.0, [])])
def test_a_script_that_divides_what_accelerate_divides(tmp_path, factor, expected):
    accelerate = pytest.importorskip("accelerate")
    accelerate.state.AcceleratorState._reset_state(True)
    accelerate.state.GradientState._reset_state()
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=4)
    model = torch.nn.Linear(8, 4)
    model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.01), torch.utils.data.DataLoader(torch.randn(96, 8), 4))
    hook = tocsin.watch(model, optimizer, out=str(tmp_path), job="accelerated")
    for rows in data:
        with accelerator.accumulate(model):
            accelerator.backward(torch.nn.functional.mse_loss(model(rows), rows[:, :4]) * factor)
            optimizer.step()
            optimizer.zero_grad()
    hook.close()
    accelerate.state.AcceleratorState._reset_state(True)
    accelerate.state.GradientState._reset_state()
    assert not hook.stats()["hook_errors_total"]
    assert [one["kind"] for record in Telemetry(str(tmp_path)).lifecycles("preflight") for one in record["findings"]] == expected
