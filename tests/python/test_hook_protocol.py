"""The order of calls around the first updates (tocsin.adapters.torch.first_updates: order, scaler_order, norms): each fault is told by name."""
import warnings

import pytest
import torch
from torch import nn

from tests.support.first_updates import STEPS, Net, loss_of, told

import tocsin

schedulers = torch.optim.lr_scheduler


def run(out, body, optimizers=lambda net: torch.optim.SGD(net.parameters(), 0.01), steps=STEPS, model=None):
    """``body(net, optimizer)`` is one iteration."""
    torch.manual_seed(0)
    net = model or Net()
    optimizer = optimizers(net)
    hook = tocsin.watch(net, optimizer, out=out, job="protocol")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, of schedules
        for _ in range(steps):
            body(net, optimizer)
    found = told(out, hook)
    assert not any(one._backward_hooks for one in net.parameters())
    return found


# ---- gradients are cleared once per update, and used once


@pytest.mark.parametrize("to_none", [True, False])
def test_gradients_that_are_cleared_before_the_update_are_told(out, capfd, to_none):
    def body(net, optimizer):
        loss_of(net).backward()
        optimizer.zero_grad(set_to_none=to_none)
        optimizer.step()

    assert run(out, body) == {"gradients_cleared": []}
    assert "tocsin: gradients of Net are cleared between backward() and optimizer.step()" in capfd.readouterr().err


def test_two_updates_from_one_backward_pass_are_told(out):
    def body(net, optimizer):
        optimizer.zero_grad()
        loss_of(net).backward()
        optimizer.step()
        optimizer.step()

    assert run(out, body) == {"gradients_reused": []}


@pytest.mark.parametrize("zeros", [False, True])
def test_an_update_without_gradients_is_no_second_use(out, zeros):
    """Every other step has nothing to learn from, as with advantages of zero."""
    turn = iter(range(STEPS))

    def body(net, optimizer):
        optimizer.zero_grad(set_to_none=not zeros)
        (loss_of(net) * (next(turn) % 2)).backward()
        optimizer.step()

    assert run(out, body) == {}


# ---- each parameter in exactly one group


def test_a_parameter_in_two_groups_is_told(out):
    def optimizers(net):
        optimizer = torch.optim.SGD([{"params": list(net.body.parameters())}, {"params": list(net.head.parameters()), "lr": 0.1}], 0.01)
        optimizer.param_groups[1]["params"].append(net.body.weight)  # add_param_group() would refuse it
        return optimizer

    def body(net, optimizer):
        optimizer.zero_grad()
        loss_of(net).backward()
        optimizer.step()

    assert run(out, body, optimizers) == {"parameter_twice": ["body.weight"]}


@pytest.mark.parametrize("passes, expected", [(1, ["body.weight", "body.bias"]), (2, None)])
def test_two_optimizers_that_share_a_part(out, passes, expected):
    """Updated by both from one pass it moves twice. With a pass for each (an encoder of an actor and a critic) it is meant."""
    torch.manual_seed(0)
    net = Net()
    first, second = torch.optim.Adam(net.parameters()), torch.optim.Adam(net.body.parameters())
    hook = tocsin.watch(net, first, out=out, job="protocol")
    assert tocsin.watch(net, second) is hook
    for _ in range(STEPS):
        for optimizer in (first, second):
            if passes == 2 or optimizer is first:
                net.zero_grad()
                loss_of(net).backward()
            optimizer.step()
    assert told(out, hook).get("parameter_twice") == expected


# ---- the schedule: behind the optimizer, once


def scheduled(order, make=lambda optimizer: schedulers.StepLR(optimizer, 10), once=1):
    kept = {}

    def body(net, optimizer):
        schedule = kept.setdefault("schedule", None) or kept.update(schedule=make(optimizer)) or kept["schedule"]
        calls = {"z": optimizer.zero_grad, "b": lambda: loss_of(net).backward(), "o": optimizer.step, "s": schedule.step}
        for one in order:
            calls[one]()

    return body


@pytest.mark.parametrize("order", ["zbso", "szbo"])
@pytest.mark.parametrize("make", [lambda optimizer: schedulers.StepLR(optimizer, 10), lambda optimizer: schedulers.OneCycleLR(optimizer, 0.1, total_steps=40),
                                  lambda optimizer: schedulers.LambdaLR(optimizer, lambda at: 1 / (1 + at))], ids=["StepLR", "OneCycleLR", "LambdaLR"])
def test_a_schedule_before_the_optimizer_is_told(out, order, make):
    name = type(make(torch.optim.SGD([nn.Parameter(torch.ones(1))], 0.1))).__name__
    assert run(out, scheduled(order, make)) == {"schedule_first": [name]}


@pytest.mark.parametrize("order", ["zboss", "szbosz"])
def test_a_schedule_that_steps_twice_per_update_is_told(out, order):
    assert run(out, scheduled(order))["schedule_twice"] == ["StepLR"]


@pytest.mark.parametrize("order", ["zbos", "bosz", "zbo" * 4 + "s", "zbbbos", "zbsbsbos", "bos" + "z"])
def test_a_schedule_behind_the_optimizer_is_healthy(out, order):
    """Per batch, per epoch of four batches, per update of three micro-batches, per micro-batch (of that tells `budget`)."""
    assert run(out, scheduled(order)) == {}


@pytest.mark.parametrize("epochs", [0, 3])
def test_a_restored_training_has_stepped_before(out, epochs):
    """By its state, or step by step."""
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    schedule = schedulers.StepLR(optimizer, 10)
    hook = tocsin.watch(net, optimizer, out=out, job="protocol")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(epochs):
            schedule.step()
    schedule.load_state_dict(schedule.state_dict())
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(net).backward()
        optimizer.step()
        schedule.step()
    assert told(out, hook) == {}


def test_a_hook_that_comes_between_the_update_and_the_schedule_is_no_reason(out):
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    schedule = schedulers.StepLR(optimizer, 10)
    hook = None
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_of(net).backward()
        optimizer.step()
        hook = hook or tocsin.watch(net, optimizer, out=out, job="protocol")
        schedule.step()
    assert told(out, hook) == {}


def test_schedules_that_are_chained_or_follow_a_metric_are_healthy(out):
    kept = []

    def body(net, optimizer):
        if not kept:
            kept.extend([schedulers.ExponentialLR(optimizer, 0.9), schedulers.MultiStepLR(optimizer, [30, 80]), schedulers.ReduceLROnPlateau(optimizer)])
        optimizer.zero_grad()
        loss = loss_of(net)
        loss.backward()
        optimizer.step()
        kept[0].step()
        kept[1].step()
        kept[2].step(float(loss.detach()))

    assert run(out, body) == {}


# ---- running statistics


@pytest.mark.parametrize("momentum, expected", [(0.0, {"buffers_kept": ["norm"]}), (0.1, {}), (None, {}), (1.0, {})])
def test_running_statistics_that_never_change_are_told(out, momentum, expected):
    def body(net, optimizer):
        optimizer.zero_grad()
        loss_of(net).backward()
        optimizer.step()

    assert run(out, body, model=Net(nn.BatchNorm1d(4, momentum=momentum))) == expected


def test_norms_that_are_kept_on_purpose_are_healthy(out):
    """In their eval state, as in detection with small batches; without statistics; switched off for the second pass of a
    sharpness-aware step."""
    net = Net(nn.BatchNorm1d(4))
    net.norm.eval()

    def body(net, optimizer):
        optimizer.zero_grad()
        loss_of(net).backward()
        optimizer.step()

    assert run(out + "eval", body, model=net) == {}
    assert run(out + "none", body, model=Net(nn.BatchNorm1d(4, track_running_stats=False))) == {}

    def sharp(net, optimizer):
        optimizer.zero_grad()
        loss_of(net).backward()
        kept, net.norm.momentum = net.norm.momentum, 0.0
        loss_of(net).backward()
        optimizer.step()
        net.norm.momentum = kept

    assert run(out + "sharp", sharp, model=Net(nn.BatchNorm1d(4))) == {}


# ---- micro-batches


@pytest.mark.parametrize("passes, planned, expected", [(1, 4, {"accumulation_left_out": []}), (4, 4, {}), (1, 1, {}), (1, None, {}), (3, 4, {})])
def test_an_update_after_each_pass_although_more_are_planned_is_told(out, passes, planned, expected):
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    hook = tocsin.watch(net, optimizer, out=out, job="protocol")
    if planned:
        hook.plan(accumulation=planned)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(passes):
            (loss_of(net) / (planned or 1)).backward()
        optimizer.step()
    assert told(out, hook) == expected


# ---- the loss is divided once


def squared(outputs, targets):
    return nn.functional.mse_loss(outputs, targets)


def accumulated(out, planned, factor, loss=squared, terms=1):
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    hook = tocsin.watch(net, optimizer, out=out, job="protocol")
    hook.plan(accumulation=planned)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for _ in range(planned):
            (sum(loss(net(torch.randn(8, 6)), torch.ones(8, 2)) for _ in range(terms)) * factor).backward()
        optimizer.step()
    return told(out, hook)


@pytest.mark.parametrize("planned, factor, expected", [(4, 1 / 16, ["loss_divided_twice"]), (3, 1 / 9, ["loss_divided_twice"]),
                                                       (4, 1 / 4, []), (4, 1.0, []), (4, 0.1, []), (2, 1 / 4, []), (1, 1.0, [])])
def test_a_loss_that_is_divided_by_the_number_of_passes_twice_is_told(out, planned, factor, expected):
    """With two passes a quarter may be half of half a squared error."""
    assert list(accumulated(out, planned, factor)) == expected


def summed(outputs, targets):
    """By a trainer that counts all tokens of an update: 16 of them are four times four."""
    return nn.functional.mse_loss(outputs, targets, reduction="sum")


@pytest.mark.parametrize("loss, terms", [(summed, 1), (squared, 2)], ids=["a sum", "two terms"])
def test_a_weight_of_another_meaning_is_healthy(out, loss, terms):
    assert accumulated(out, 4, 1 / 16, loss, terms) == {}
