"""Mixed precision on torch 2: who has divided by the loss scale, and which updates were left out."""
import math

import pytest
import torch

from tests.support.hook_support import Telemetry, wire

import tocsin

SCALED, SKIPPED = 1 << 18, 1 << 20  # row flags: divided by the loss scale, left out by the optimizer


def make(**options):
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 2)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01, **options)


def train(model, optimizer, scaler, hook, steps, overflow_at=(), unscale=False):
    """Updates through the scaler; the gradients that a plain backward gives at each step."""
    plain = []
    for step in range(steps):
        x = torch.randn(4, 6)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        plain.append(model.weight.grad.clone())
        optimizer.zero_grad()
        loss = model(x).square().mean()
        scaler.scale(loss).backward()
        if step in overflow_at:
            model.weight.grad[0, 0] = math.inf
        if unscale:
            scaler.unscale_(optimizer)
        hook.log(loss=loss)
        scaler.step(optimizer)
        scaler.update()
    return plain


def gradients(out):
    """step -> row of the weight's gradient."""
    telemetry = Telemetry(out)
    return {frame.header["step"]: row for frame in telemetry.of_kind(wire.SUMMARY) for row in frame.rows
            if telemetry.names[row["name"]] == "gradient/weight"}


def skipped_steps(out):
    return [row["step"] for frame in Telemetry(out).of_kind(wire.STEP_END) for row in frame.rows if row["meta"] & SKIPPED]


@pytest.mark.parametrize("unscale", [False, True])
def test_a_fused_optimizer_divides_in_its_kernel_and_the_gradients_read_are_divided_too(out, unscale):
    model, optimizer = make(fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "every": "1 step"})
    plain = train(model, optimizer, scaler, hook, 3, unscale=unscale)
    hook.close()
    rows = gradients(out)
    for step, gradient in enumerate(plain):
        assert rows[step]["sumsq"] == pytest.approx(float(gradient.double().square().sum()), rel=1e-4)
        assert rows[step]["max"] == pytest.approx(float(gradient.max()), rel=1e-5)
        assert rows[step]["meta"] & SCALED
    assert hook.stats()["hook_errors_total"] == {}


def test_an_overflow_that_a_fused_optimizer_leaves_out_is_a_skipped_step(out):
    model, optimizer = make(fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=1000)
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "every": "1 step"})
    train(model, optimizer, scaler, hook, 4, overflow_at=(1,))
    hook.close()
    assert skipped_steps(out) == [1]
    rows = gradients(out)
    assert [step for step, row in rows.items() if row["meta"] & SKIPPED] == [1]
    assert rows[1]["posinf"] == 1 and rows[2]["posinf"] == 0
    assert [(step, value) for _, step, value in Telemetry(out).scalars("loss_scale")] == [(0, 1024.0), (2, 512.0)]


@pytest.mark.parametrize("scaling", ["scaler", "plain", "none"])
def test_gradients_read_before_an_update_are_never_divided_again(out, scaling):
    """Whoever scales divides before the update; what the script logs as loss_scale changes nothing."""
    model, optimizer = make()
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "every": "1 step"})
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=scaling == "scaler")
    loss = model(torch.randn(4, 6)).square().mean()
    if scaling == "plain":
        (loss * 1024).backward()
        for parameter in model.parameters():
            parameter.grad /= 1024
        hook.log(loss_scale=1024.0)
    else:
        scaler.scale(loss).backward()
        hook.log(loss_scale=scaler.get_scale())
    scaler.step(optimizer)
    hook.close()
    row = gradients(out)[0]
    assert row["meta"] & SCALED
    assert row["max"] == pytest.approx(float(model.weight.grad.max()), rel=1e-5)


def test_overflows_of_scaled_gradients_are_everyday_life(out, judged):
    fired = judged("[exploding_tensor, vanishing_gradient]")
    model, optimizer = make(fused=True)
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "every": "1 step"})
    train(model, optimizer, torch.amp.GradScaler("cpu", init_scale=2.0**60), hook, 60, overflow_at=(0, 7, 20))
    hook.close()
    assert fired() == []


def test_the_same_value_in_gradients_that_are_used_is_found(out, judged):
    fired = judged("[exploding_tensor]")
    model, optimizer = make(fused=True)
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "every": "1 step"})
    train(model, optimizer, torch.amp.GradScaler("cpu", enabled=False), hook, 12, overflow_at=(7,))
    hook.close()
    assert "exploding_tensor" in fired()


@pytest.mark.parametrize("late", [0, 40])
def test_a_scaler_that_leaves_out_every_update_is_told(out, capfd, late):
    """A root at 0: its gradient is NaN whatever the scale, and the loss stays finite."""
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 14)
    hook = tocsin.watch(model, optimizer, out=out)
    for step in range(100):
        optimizer.zero_grad()
        z = model(torch.randn(16, 6))
        loss = (((z[:, None] - z[None]) ** 2).sum(-1) + (0.0 if step >= late else 1e-6)).sqrt().mean()
        scaler.scale(loss).backward()
        hook.log(loss=loss)
        scaler.step(optimizer)
        scaler.update()
    hook.close()
    [finding] = [one for record in Telemetry(out).lifecycles("preflight") for one in record["findings"]]
    assert finding["kind"] == "updates_left_out" and finding["names"] == ["weight", "bias"] and math.isfinite(float(loss))
    assert "has made no update while" in capfd.readouterr().err


@pytest.mark.parametrize("logs", [True, False])
def test_a_scaler_that_asks_in_vain_is_told_of_gradients_that_are_cleared_at_once(out, logs):
    """Each loss has a gradient that is no number; nothing is left of it when anybody looks."""
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    hook = tocsin.watch(net, optimizer, out=out, job="in-vain")
    scaler = torch.amp.GradScaler("cpu")
    for _ in range(40):
        output = net(torch.randn(8, 4))
        loss = output.pow(2).mean() + 0.0 * (output - output.detach()).square().sum().sqrt()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        if logs:
            hook.log(loss=loss)
    net.eval()
    hook.log(val_loss=1.0)
    hook.close()
    findings = [one for record in Telemetry(out).lifecycles("preflight") for one in record["findings"]]
    assert [one["kind"] for one in findings if one["kind"] == "updates_left_out"] == ["updates_left_out"]


def test_a_scaler_that_finds_its_scale_asks_in_vain_for_a_while_only(out):
    torch.manual_seed(0)
    net = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    hook = tocsin.watch(net, optimizer, out=out, job="finds")
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 120)
    for _ in range(60):
        loss = (1e8 * net(torch.randn(8, 4))).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update(scaler.get_scale() / 2.0 ** 16 if scaler.get_scale() > 1e20 else None)
        optimizer.zero_grad()
        hook.log(loss=loss)
    hook.close()
    assert hook.stats()["step"] > 40
    assert not [one for record in Telemetry(out).lifecycles("preflight") for one in record["findings"] if one["kind"] == "updates_left_out"]
