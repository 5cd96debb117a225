"""Loops in the manner of PyTorch's own examples: the preflight tells nothing of the order of their calls."""
import copy
import warnings

import pytest
import torch
from torch import nn

from tests.support.first_updates import STEPS, Net, loss_of, told
from tests.support.hook_support import Telemetry

import tocsin

schedulers = torch.optim.lr_scheduler


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
