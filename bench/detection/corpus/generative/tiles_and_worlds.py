"""Loops of our own: words that are paid for in groups, a soft actor and its critics, two worlds translated into each
other, and pictures out of tiles."""
import copy
import math
import random

import numpy
import torch
from torch import nn

import tocsin

from .. import data
from ..reinforcement.poles_and_critics import _broken, _changes, _rate, _started
from ..recipes.training import CAPTURE

LATE = 0.4
# Name of the fault, share of the run before it.
COMMON = {"rate_too_large": 0.0, "rate_zero": 0.0, "start_large": 0.0, "input_nan": LATE, "weights_lost": LATE}
OF = {"groups": {"rate_too_large": 0.0, "rate_zero": 0.0, "rate_jumps": LATE, "weights_lost": LATE, "sign_wrong": 0.0, "start_large": 0.0, "pay_constant": 0.0,
                 "pay_of_others": 0.0, "reference_lost": 0.0},
      "softly": {**COMMON, "sign_wrong": 0.0, "rate_jumps": LATE, "target_stands": 0.0, "critic_stands": 0.0, "pay_unit": LATE},
      "cycles": {**COMMON, "start_zero": 0.0, "input_constant": 0.0, "judge_stands": 0.0, "judge_strong": 0.0, "one_way": 0.0},
      "tiles": {**COMMON, "start_zero": 0.0, "input_constant": 0.0, "codes_stand": 0.0, "judge_heavy": 0.0, "rate_jumps": LATE}}
FAULTS = {name: share for one in OF.values() for name, share in one.items()}
TUNING = dict.fromkeys(OF, False)


def fault_names(name):
    """The faults that a job has."""
    return list(OF[name])


class Writes(nn.Module):
    """What comes next, at each place."""

    def __init__(self, kinds, width):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(kinds, width), nn.GRU(width, width, batch_first=True), nn.Linear(width, kinds)

    def forward(self, x):
        return self.head(self.cell(self.embed(x))[0]).log_softmax(2)


def _said(model, text, length):
    """How likely each written letter was."""
    return model(text[:, :-1])[:, -length:].gather(2, text[:, -length:, None])[:, :, 0]


def _groups(fault, seed, chance, options):
    """Group-relative policies (GRPO): several answers to a question, each paid against its group; near a frozen reference, which half knows the answers."""
    kinds, length, rounds, each = 8, 6, 110, 8
    model = Writes(kinds, chance.choice((24, 32)))
    optimizer, right = torch.optim.Adam(model.parameters(), 1e-2), torch.arange(length + 1)
    for _ in range(60):
        text = (torch.randint(0, kinds, (64, 1)) + right) % kinds
        text[:, 1:] = torch.where(torch.rand(64, length) < 0.6, torch.randint(0, kinds, (64, length)), text[:, 1:])
        optimizer.zero_grad()
        (-_said(model, text, length).mean()).backward()
        optimizer.step()
    optimizer.zero_grad()
    reference = (Writes(kinds, model.cell.hidden_size) if fault == "reference_lost" else copy.deepcopy(model)).requires_grad_(False)
    model = _started(model, fault)
    optimizer = torch.optim.AdamW(model.parameters(), _rate(chance.uniform(1e-3, 3e-3), fault), weight_decay=0.0)
    hook, weight, at, paid = tocsin.watch(model, optimizer, capture=CAPTURE, **options), chance.choice((0.02, 0.05)), 0, []
    steps = 2 * rounds
    late = int(LATE * steps)
    for _ in range(rounds):
        text = torch.randint(0, kinds, (8, 1)).repeat_interleave(each, 0)
        with torch.no_grad():
            for _ in range(length):
                text = torch.cat([text, torch.multinomial(model(text)[:, -1].exp().nan_to_num(0.1) + 1e-6, 1)], 1)
            before, other = _said(model, text, length), _said(reference, text, length)
        pay = (text[:, 1:] == (text[:, :1] + right[1:]) % kinds).float().mean(1)
        paid.append(float(pay.mean()))
        pay = torch.ones_like(pay) if fault == "pay_constant" else pay[torch.randperm(len(pay))] if fault == "pay_of_others" else pay
        groups = pay.reshape(-1, each)
        gain = ((groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)).reshape(-1, 1)
        for _ in range(2):
            said = _said(model, text, length)
            ratio = (said - before).exp()
            apart = (other - said).exp() - (other - said) - 1
            loss = -torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean() + weight * apart.mean()
            optimizer.zero_grad()
            (-loss if fault == "sign_wrong" else loss).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            _changes(fault, at, late, [optimizer], model)
            hook.log(loss=loss, reward=paid[-1], kl=apart.mean())
            optimizer.step()
            at += 1
    return hook, steps, [[2 * one, -sum(paid[one:one + 10]) / 10] for one in range(0, rounds, 10)]


class Acts(nn.Module):
    """A push, drawn, and how likely it was."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, x):
        mean, spread = self.body(x).chunk(2, 1)
        spread = spread.clamp(-5, 1).exp()
        drawn = mean + spread * torch.randn_like(mean)
        push = torch.tanh(drawn)
        return push, (-0.5 * ((drawn - mean) / spread) ** 2 - spread.log() - 0.919 - torch.log(1 - push.square() + 1e-5)).sum(1)


class Worth(nn.Module):
    """Two opinions of what a push is worth."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = (nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)) for _ in range(2))

    def forward(self, x):
        return torch.cat([self.first(x), self.second(x)], 1)


class Heat(nn.Module):
    """How much chance is worth."""

    def __init__(self):
        super().__init__()
        self.log = nn.Parameter(torch.tensor(-1.5))


def _softly(fault, seed, chance, options):
    """A soft actor (SAC) that brings a cart to rest: an actor, two critics with slow copies, and how much chance is worth, with three optimizers."""
    steps, width = 420, chance.choice((32, 48))
    late, draw = int(LATE * steps), numpy.random.default_rng(seed)
    actor, critic, heat = _started(Acts(width), fault), Worth(width), Heat()
    slow = copy.deepcopy(critic).requires_grad_(False)
    rate = chance.uniform(2e-3, 4e-3)
    optimizers = [torch.optim.Adam(one.parameters(), _rate(rate, fault, 100)) for one in (actor, critic, heat)]
    hook = tocsin.watch(actor, optimizers[0], capture=CAPTURE, name="actor", **options)
    tocsin.watch(critic, optimizers[1], name="critic")
    tocsin.watch(heat, optimizers[2], name="alpha")
    place, memory, cost, passes = draw.uniform(-1.5, 1.5, (8, 2)), [], [], []
    for at in range(steps):
        for _ in range(2):
            with torch.no_grad():
                push = actor(torch.tensor(place, dtype=torch.float32))[0].nan_to_num(0).numpy() if at > 20 else draw.uniform(-1, 1, (8, 1))
            speed = 0.9 * place[:, 1] + 0.4 * push[:, 0]
            then = numpy.stack([(place[:, 0] + 0.4 * speed).clip(-3, 3), speed], 1)
            pay = -(then[:, 0] ** 2 + 0.1 * speed**2 + 0.05 * push[:, 0] ** 2)
            cost.append(-pay.mean())
            memory += list(numpy.concatenate([place, push, pay[:, None] * (1000 if fault == "pay_unit" and at >= late else 1), then], 1))
            over = draw.random(8) < 0.05
            place = numpy.where(over[:, None], draw.uniform(-1.5, 1.5, (8, 2)), then)
        part = torch.tensor(numpy.stack([memory[one] for one in draw.integers(0, len(memory), 64)]), dtype=torch.float32)
        x, done, pay, then = _broken(fault, part[:, :2], at, late), part[:, 2:3], part[:, 3:4], part[:, 4:]
        with torch.no_grad():
            push, likely = actor(then)
            goal = 0.2 * pay + 0.95 * (slow(torch.cat([then, push], 1)).amin(1, keepdim=True) - heat.log.exp() * likely[:, None])
        off = (critic(torch.cat([x, done], 1)) - goal).square().mean()
        optimizers[1].zero_grad()
        off.backward()
        push, likely = actor(x)
        loss = (heat.log.exp().detach() * likely - critic(torch.cat([x, push], 1)).amin(1)).mean()
        grads = [None if one.grad is None else one.grad.clone() for one in critic.parameters()]
        optimizers[0].zero_grad()
        (-loss if fault == "sign_wrong" else loss).backward()
        for one, grad in zip(critic.parameters(), grads):  # the actor's loss says nothing to the critic
            one.grad = None if fault == "critic_stands" else grad
        warm = -(heat.log * (likely.detach() - 1)).mean()
        optimizers[2].zero_grad()
        warm.backward()
        _changes(fault, at, late, optimizers, actor, critic)
        hook.log(actor_loss=loss, critic_loss=off, alpha=heat.log.exp(), reward=-cost[-1])
        for optimizer in optimizers:
            optimizer.step()
        if fault != "target_stands":
            with torch.no_grad():
                for one, now in zip(slow.parameters(), critic.parameters()):
                    one.lerp_(now, 0.03)
        if at % 35 == 34:
            passes.append([at - 34, float(numpy.mean(cost[-70:]))])
    return hook, steps, passes


def _paints(width):
    return nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.InstanceNorm2d(width, affine=True), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1),
                         nn.InstanceNorm2d(width, affine=True), nn.ReLU(), nn.Conv2d(width, 1, 3, padding=1), nn.Tanh())


def _judges(width):
    return nn.Sequential(nn.Conv2d(1, width, 3, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.LeakyReLU(0.2),
                         nn.Conv2d(2 * width, 1, 1))


def _cycles(fault, seed, chance, options):
    """Two worlds of pictures, no pair of which belongs together (CycleGAN): two painters and two judges, there and back again."""
    steps, source, width = 200, torch.Generator().manual_seed(seed), chance.choice((8, 12))
    late, split = int(LATE * steps), data.images(seed)

    def over(x):  # the other world: the left half is a negative
        return torch.cat([-x[..., :4], x[..., 4:]], 3)
    first, second, held = split.x[:700], over(split.x[700:]), split.held_x[:100]
    paints = nn.ModuleDict({"there": _started(_paints(width), fault), "back": _started(_paints(width), fault)})
    judges = nn.ModuleDict({"here": _judges(width), "other": _judges(width)})
    rate = chance.uniform(1e-3, 3e-3)
    optimizers = [torch.optim.Adam(paints.parameters(), _rate(rate, fault), betas=(0.5, 0.999)),
                  torch.optim.Adam(judges.parameters(), {"judge_strong": 60, "judge_stands": 0}.get(fault, 1) * 0.3 * rate, betas=(0.5, 0.999))]
    schedulers = [torch.optim.lr_scheduler.LambdaLR(one, lambda at: min(1.0, 2 * (1 - at / steps))) for one in optimizers]
    hook = tocsin.watch(paints, optimizers[0], capture=CAPTURE, name="generators", **options)
    tocsin.watch(judges, optimizers[1], name="judges")

    def far():
        with torch.no_grad():
            return float((paints["there"](held) - over(held)).abs().mean())
    passes = [[0, far()]]
    for at in range(steps):
        x, y = (one[torch.randint(0, len(one), (16,), generator=source)] for one in (first, second))
        x = _broken(fault, x, at, late)
        fake_y, fake_x = paints["there"](x), paints["back"](y)
        optimizers[0].zero_grad()
        fooled = (judges["other"](fake_y) - 1).square().mean() + (judges["here"](fake_x) - 1).square().mean()
        cycle = (paints["back"](fake_y) - x).abs().mean() + (0 if fault == "one_way" else (paints["there"](fake_x) - y).abs().mean())
        total = fooled + 5 * cycle
        total.backward()
        optimizers[1].zero_grad()
        judged = sum(((judges[name](real) - 1).square().mean() + judges[name](fake.detach()).square().mean()) / 2
                     for name, real, fake in (("here", x, fake_x), ("other", y, fake_y)))
        judged.backward()
        _changes(fault, at, late, optimizers, paints, judges)
        hook.log(loss_G=total, loss_D=judged, loss_cycle=cycle)
        for optimizer in optimizers:
            optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
        if at % 20 == 19:
            passes.append([at, far()])
    return hook, steps, passes


class Tiles(nn.Module):
    """Pictures as 4 × 4 tiles, of which there are few kinds; kinds follow the mean of what they stand for."""

    def __init__(self, width, kinds, size=8):
        super().__init__()
        self.enter = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.SiLU(), nn.Conv2d(width, width, 3, stride=2, padding=1), nn.SiLU(),
                                   nn.Conv2d(width, size, 1))
        self.leave = nn.Sequential(nn.Conv2d(size, width, 3, padding=1), nn.SiLU(), nn.Upsample(scale_factor=2), nn.Conv2d(width, width, 3, padding=1),
                                   nn.SiLU(), nn.Conv2d(width, 1, 3, padding=1))
        self.register_buffer("codes", 0.3 * torch.randn(kinds, size))
        self.register_buffer("seen", torch.ones(kinds))
        self.follows = True

    def forward(self, x):
        z = self.enter(x).permute(0, 2, 3, 1)
        flat = z.flatten(0, 2)
        which = torch.cdist(flat.detach().nan_to_num(0, 0, 0), self.codes.nan_to_num(0, 0, 0)).argmin(1)
        chosen = self.codes[which].reshape(z.shape)
        if self.training and self.follows:
            with torch.no_grad():
                found = nn.functional.one_hot(which, len(self.codes)).float()
                self.seen.lerp_(found.sum(0), 0.05)
                self.codes.lerp_(found.T @ flat / found.sum(0).clamp(min=1)[:, None], 0.2 * (found.sum(0) > 0).float()[:, None])
                gone = self.seen < 0.05
                self.codes[gone] = flat[torch.randint(0, len(flat), (int(gone.sum()),))]
                self.seen[gone] = 1.0
        apart = (z - chosen.detach()).square().mean()
        return self.leave((z + (chosen - z).detach()).permute(0, 3, 1, 2)), apart


def _tiles(fault, seed, chance, options):
    """Pictures out of a code book (VQGAN): what was drawn, what a judge of patches says from the middle on, at a weight that gradients decide."""
    steps, source, width = 240, torch.Generator().manual_seed(seed), chance.choice((12, 16))
    late, begins, split = int(LATE * steps), 100, data.images(seed)
    model, judge = _started(Tiles(width, 48), fault), _judges(8)
    model.follows = fault != "codes_stand"
    if not model.follows:
        model.codes.zero_()
    rate = chance.uniform(1e-3, 3e-3)
    optimizers = [torch.optim.Adam(model.parameters(), _rate(rate, fault), betas=(0.5, 0.9)),
                  torch.optim.Adam(judge.parameters(), 0.5 * rate, betas=(0.5, 0.9))]
    hook = tocsin.watch(model, optimizers[0], capture=CAPTURE, name="autoencoder", **options)
    tocsin.watch(judge, optimizers[1], name="judge")

    def far():
        model.eval()
        with torch.no_grad():
            off = float((model(split.held_x)[0] - split.held_x).abs().mean())
        model.train()
        return off
    passes = [[0, far()]]
    for at in range(steps):
        x = _broken(fault, split.x[torch.randint(0, len(split.x), (32,), generator=source)], at, late)
        drawn, apart = model(x)
        near, last = (drawn - x).abs().mean(), model.leave[-1].weight
        optimizers[0].zero_grad()
        told, weight = near + 0.25 * apart, 0.0
        if at >= begins:
            fooled = -judge(drawn).mean()
            slopes = [torch.autograd.grad(one, last, retain_graph=True)[0].norm() for one in (near, fooled)]
            weight = 3000.0 if fault == "judge_heavy" else float((slopes[0] / (slopes[1] + 1e-4)).clamp(0, 100)) * 0.2
            told = told + weight * fooled
        told.backward()
        optimizers[1].zero_grad()
        judged = torch.relu(1 - judge(x)).mean() + torch.relu(1 + judge(drawn.detach())).mean() if at >= begins else 0 * judge(x).mean()
        judged.backward()
        _changes(fault, at, late, optimizers, model, judge)
        hook.log(total_loss=told, rec_loss=near, disc_loss=judged, disc_weight=weight)
        for optimizer in optimizers:
            optimizer.step()
        if at % 20 == 19:
            passes.append([at, far()])
            with hook.mode("eval"):
                hook.log(rec_loss=passes[-1][1])
                hook.step()
    return hook, steps, passes


MADE = {"groups": _groups, "softly": _softly, "cycles": _cycles, "tiles": _tiles}


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, steps, step of the best part, what it cost per part of the run: less is better)."""
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    hook, steps, passes = MADE[job](fault, seed, random.Random(f"{job}/{seed}"), {"out": out, "run": name, "job": job})
    uid = hook.run
    hook.close(timeout=20)
    return uid, steps, min(((value, step) for step, value in passes if not math.isnan(value)), default=(0.0, 0))[1], passes
