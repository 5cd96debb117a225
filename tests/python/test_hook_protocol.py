"""The order of calls around the first updates (tocsin.adapters.torch.first_updates.order, torch_scaler_order, torch_norms): each fault is told by name, and
loops in the manner of PyTorch's own examples are left alone."""
import copy
import warnings

import pytest
import torch
from torch import nn

from tests.support.hook_support import Telemetry

import tocsin

STEPS = 6
schedulers = torch.optim.lr_scheduler


class Net(nn.Module):
    def __init__(self, norm=None):
        super().__init__()
        self.body, self.norm, self.head = nn.Linear(6, 4), norm or nn.Identity(), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.norm(self.body(x)).relu())


def loss_of(net):
    return net(torch.randn(8, 6)).sub(1).square().mean()


def told(out, hook):
    """{kind: names}; no error of the hook, and nothing is left on the parameters."""
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    return {one["kind"]: one["names"] for record in Telemetry(out).lifecycles("preflight") for one in record["findings"]}


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


# ---- loops in the manner of PyTorch's own examples


def image_epochs(out):
    """A classifier with a schedule per epoch, evaluated in between."""
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.25), nn.Linear(4 * 36, 5))
    optimizer = torch.optim.Adadelta(net.parameters(), 1.0)
    hook = tocsin.watch(net, optimizer, out=out, job="protocol")
    schedule = schedulers.StepLR(optimizer, step_size=1, gamma=0.7)
    for _ in range(3):
        net.train()
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(torch.randn(4, 1, 8, 8)), torch.randint(5, (4,))).backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            net(torch.randn(4, 1, 8, 8))
        schedule.step()
    return hook


def adversaries(out):
    """Real and made samples are two passes of one update, and the maker's pass leaves gradients in the judge."""
    maker = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 6))
    judge = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    of_judge, of_maker = (torch.optim.Adam(net.parameters(), 2e-4, betas=(0.5, 0.999)) for net in (judge, maker))
    hook = tocsin.watch(judge, of_judge, out=out, job="protocol")
    assert tocsin.watch(maker, of_maker) is hook
    ends = [schedulers.ExponentialLR(one, 0.99) for one in (of_judge, of_maker)]
    criterion = nn.BCEWithLogitsLoss()
    for _ in range(STEPS):
        judge.zero_grad()
        criterion(judge(torch.randn(8, 6)), torch.ones(8, 1)).backward()
        made = maker(torch.randn(8, 4))
        criterion(judge(made.detach()), torch.zeros(8, 1)).backward()
        of_judge.step()
        maker.zero_grad()
        criterion(judge(made), torch.ones(8, 1)).backward()
        of_maker.step()
        for one in ends:
            one.step()
    return hook


def words(out):
    """A recurrent model whose state is carried on, gradients are clipped, the rate is lowered by hand."""
    table, layer, head = nn.Embedding(20, 8), nn.LSTM(8, 8), nn.Linear(8, 20)
    head.weight = nn.Parameter(table.weight.detach().clone())
    net = nn.ModuleDict({"table": table, "layer": layer, "head": head})
    optimizer = torch.optim.SGD(net.parameters(), 1.0)
    hook = tocsin.watch(net, optimizer, out=out, job="protocol")
    state = None
    for number in range(STEPS):
        net.zero_grad()
        hidden, state = layer(table(torch.randint(20, (5, 3))), None if state is None else tuple(one.detach() for one in state))
        nn.functional.cross_entropy(head(hidden).flatten(0, 1), torch.randint(20, (15,))).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.25)
        optimizer.step()
        optimizer.param_groups[0]["lr"] /= 4 if number == 3 else 1
    return hook


def policy(out):
    """One update per episode, of the sum of the losses of its steps."""
    net = nn.ModuleDict({"body": nn.Linear(4, 8), "actor": nn.Linear(8, 2), "critic": nn.Linear(8, 1)})
    optimizer = torch.optim.Adam(net.parameters(), 3e-2)
    hook = tocsin.watch(net, optimizer, out=out, job="protocol")
    for _ in range(STEPS):
        losses = []
        for _ in range(5):
            hidden = net["body"](torch.randn(4)).relu()
            chosen = torch.distributions.Categorical(logits=net["actor"](hidden))
            value, action = net["critic"](hidden), chosen.sample()
            losses.append(-chosen.log_prob(action) * (1.0 - value.item()) + nn.functional.smooth_l1_loss(value, torch.tensor([1.0])))
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        optimizer.step()
    return hook


def second_order(out):
    """A solver that calls a closure many times per step."""
    net = Net()
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.8)
    rows = torch.randn(16, 6)
    hook = tocsin.watch(net, optimizer, out=out, job="protocol")

    def closure():
        optimizer.zero_grad()
        loss = net(rows).sub(1).square().mean()
        loss.backward()
        return loss

    for _ in range(STEPS):
        optimizer.step(closure)
    return hook


def averaged(out):
    """Stochastic weight averaging with its own schedule, and a moving average of the weights."""
    net = Net(nn.BatchNorm1d(4))
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    hook = tocsin.watch(net, optimizer, out=out, job="protocol")
    mean, moving = torch.optim.swa_utils.AveragedModel(net), copy.deepcopy(net).requires_grad_(False)
    usual, late = schedulers.CosineAnnealingLR(optimizer, T_max=3), torch.optim.swa_utils.SWALR(optimizer, swa_lr=0.05)
    for number in range(STEPS):
        optimizer.zero_grad()
        loss_of(net).backward()
        optimizer.step()
        for slow, fast in zip(moving.parameters(), net.parameters()):
            slow.mul_(0.9).add_(fast.detach(), alpha=0.1)
        if number > 2:
            mean.update_parameters(net)
            late.step()
        else:
            usual.step()
    torch.optim.swa_utils.update_bn([torch.randn(8, 6)] * 3, mean)
    return hook


def micro_batches(out):
    """Four of them per update, each loss a quarter."""
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters())
    hook = tocsin.watch(net, optimizer, out=out, job="protocol")
    schedule = schedulers.OneCycleLR(optimizer, 0.01, total_steps=40)
    for number in range(4 * STEPS):
        (loss_of(net) / 4).backward()
        if (number + 1) % 4 == 0:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    return hook


def sequences(out):
    """An encoder and a decoder with an optimizer each, updated from one pass."""
    encoder, decoder = nn.GRU(6, 8), nn.Linear(8, 6)
    first, second = (torch.optim.Adam(net.parameters(), 1e-3) for net in (encoder, decoder))
    hook = tocsin.watch(encoder, first, out=out, job="protocol")
    assert tocsin.watch(decoder, second) is hook
    for _ in range(STEPS):
        first.zero_grad()
        second.zero_grad()
        rows = torch.randn(5, 3, 6)
        nn.functional.mse_loss(decoder(encoder(rows)[0]), rows).backward()
        first.step()
        second.step()
    return hook


def meta(out):
    """Gradients that are computed and set by hand: surgery between tasks, evolution strategies."""
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    hook = tocsin.watch(net, optimizer, out=out, job="protocol")
    for _ in range(STEPS):
        several = [torch.autograd.grad(loss_of(net), list(net.parameters())) for _ in range(2)]
        for one, *gradients in zip(net.parameters(), *several):
            one.grad = torch.stack(gradients).mean(0)
        optimizer.step()
    return hook


def replicated(out):
    """DistributedDataParallel, two micro-batches per update of which the first is not averaged."""
    import torch.distributed as distributed
    distributed.init_process_group("gloo", init_method=f"file://{out}-ranks", rank=0, world_size=1)
    try:
        net = nn.parallel.DistributedDataParallel(Net(nn.BatchNorm1d(4)))
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        hook = tocsin.watch(net, optimizer, out=out, job="protocol")
        schedule = schedulers.CosineAnnealingLR(optimizer, T_max=STEPS)
        for _ in range(STEPS):
            optimizer.zero_grad()
            with net.no_sync():
                (loss_of(net) / 2).backward()
            (loss_of(net) / 2).backward()
            optimizer.step()
            schedule.step()
    finally:
        distributed.destroy_process_group()
    return hook


EXAMPLES = [replicated, image_epochs, adversaries, words, policy, second_order, averaged, micro_batches, sequences, meta]


@pytest.mark.parametrize("example", EXAMPLES, ids=[one.__name__ for one in EXAMPLES])
def test_loops_in_the_manner_of_pytorch_s_examples_are_healthy(out, example):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # a warning of ours is an error of the hook
        hook = example(out)
    assert told(out, hook) == {}
    assert sum(one["count"] for record in Telemetry(out).protocol_kept() for one in record) > 0 or example is second_order


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
