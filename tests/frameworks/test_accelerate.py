"""Accelerate: the optimizer that prepare() gives only passes step() on."""
import accelerate
import pytest
import torch

from tests.support.hook_support import Telemetry, wire

import tocsin


def sampled(telemetry, name):
    """Steps at which a tensor was captured."""
    return [frame.header["step"] for frame in telemetry.of_kind(wire.SUMMARY) for row in frame.rows
            if telemetry.names[row["name"]] == name]


@pytest.fixture
def accelerator():
    yield accelerate.Accelerator(cpu=True)
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)


def test_an_accelerated_optimizer_is_watched_inside(out, accelerator):
    torch.manual_seed(0)
    model = torch.nn.Linear(6, 2)
    plain = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, plain)
    hook = tocsin.watch(model, optimizer, out=out, capture={"overhead": "100%", "every": "2 steps"})
    assert tocsin.watch(model, plain) is hook, "the same one"
    for _ in range(5):
        loss = model(torch.randn(4, 6)).square().mean()
        accelerator.backward(loss)
        hook.log(loss=loss)
        optimizer.step()
        optimizer.zero_grad()
    hook.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == list(range(5))
    assert sampled(telemetry, "gradient/weight") == [0, 2, 4]


def test_micro_batches_of_accelerate_are_no_steps(out):
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    try:
        model = torch.nn.Linear(6, 2)
        model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
        hook = tocsin.watch(model, optimizer, out=out)
        for _ in range(6):
            with accelerator.accumulate(model):
                loss = model(torch.randn(4, 6)).square().mean()
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
        hook.close()
        assert Telemetry(out).steps() == [0, 1, 2]
    finally:
        accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
