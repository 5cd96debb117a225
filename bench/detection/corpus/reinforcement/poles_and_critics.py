"""Loops with no set to evaluate on: reinforcement, and two networks, one of which judges the other."""
import copy
import math
import random

import numpy
import torch
from torch import nn

import tocsin

from .. import data
from ..recipes.training import CAPTURE

LATE = 0.4
# Name of the fault, share of the run before it.
COMMON = {"rate_too_large": 0.0, "rate_zero": 0.0, "start_large": 0.0, "start_zero": 0.0, "input_constant": 0.0, "input_nan": LATE, "weights_lost": LATE}
PLAYS = {**COMMON, "sign_wrong": 0.0, "rate_jumps": LATE}
OF = {"swings": PLAYS, "values": PLAYS, "critic": COMMON, "colours": COMMON}
FAULTS = PLAYS
TUNING = dict.fromkeys(OF, False)


def fault_names(name):
    """The faults that a job has."""
    return list(OF[name])


def _rate(rate, fault, large=300):
    return rate * {"rate_too_large": large, "rate_zero": 0.0}.get(fault, 1)


def _started(model, fault):
    with torch.no_grad():
        for one in model.parameters():
            if fault == "start_zero":
                one.zero_()
            elif fault == "start_large" and one.dim() > 1:
                one.mul_(30)
    return model


def _lost(*models):
    for model in models:
        for layer in model.modules():
            if hasattr(layer, "reset_parameters"):
                layer.reset_parameters()


class Poles:
    """Carts with poles on them, which fall when nobody pushes the right way."""

    def __init__(self, count, seed):
        self.random, self.state, self.age = numpy.random.default_rng(seed), numpy.zeros((count, 4)), numpy.zeros(count, dtype=int)
        self.restart(numpy.ones(count, dtype=bool))

    def restart(self, which):
        """Begins anew."""
        self.state[which], self.age[which] = self.random.uniform(-0.05, 0.05, (which.sum(), 4)), 0

    def step(self, push):
        """(which fell, which are over)."""
        place, speed, angle, turn = self.state.T
        force = numpy.where(push == 1, 10.0, -10.0)
        pushed = (force + 0.05 * turn**2 * numpy.sin(angle)) / 1.1
        bend = (9.8 * numpy.sin(angle) - numpy.cos(angle) * pushed) / (0.5 * (4 / 3 - 0.1 * numpy.cos(angle) ** 2 / 1.1))
        self.state = numpy.stack([place + 0.02 * speed, speed + 0.02 * (pushed - 0.05 * bend * numpy.cos(angle) / 1.1), angle + 0.02 * turn, turn + 0.02 * bend], 1)
        self.age += 1
        fell = (numpy.abs(self.state[:, 0]) > 2.4) | (numpy.abs(self.state[:, 2]) > 0.21)
        return fell, fell | (self.age >= 100)

    def seen(self):
        """What a network is given."""
        return torch.tensor(self.state, dtype=torch.float32)


def _broken(fault, x, at, late):
    if fault == "input_constant":
        return torch.zeros_like(x)
    if fault == "input_nan" and at == late:
        x = x.clone()
        x.view(-1)[0] = math.nan
    return x


def _changes(fault, at, late, optimizers, *models):
    if at == late and fault == "weights_lost":
        _lost(*models)
    if at == late and fault == "rate_jumps":
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] *= 300


def _swings(fault, seed, chance, options):
    """REINFORCE with what it is worth as a baseline; no loss falls here, the pay rises."""
    steps, late, width = 160, int(LATE * 160), chance.choice((24, 32))
    model = _started(nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2)), fault)
    optimizer = torch.optim.Adam(model.parameters(), _rate(chance.uniform(0.004, 0.012), fault))
    hook = tocsin.watch(model, optimizer, capture=CAPTURE, **options)
    poles, paid = Poles(8, seed), []
    for at in range(steps):
        seen, done, alive = [], [], []
        poles.restart(numpy.ones(8, dtype=bool))
        living = numpy.ones(8, dtype=bool)
        while living.any():
            x = poles.seen()
            with torch.no_grad():
                push = torch.multinomial(_policy(model, x), 1)[:, 0].numpy()
            over = poles.step(push)[1]
            seen.append(x)
            done.append(push)
            alive.append(living.copy())
            living &= ~over
        length = numpy.stack(alive).sum(0)
        gain = torch.tensor(numpy.stack([length - turn for turn in range(len(seen))]), dtype=torch.float32)
        mask = torch.tensor(numpy.stack(alive))
        gain = (gain - gain[mask].mean()) / (gain[mask].std() + 1e-6)
        x = _broken(fault, torch.stack(seen), at, late)
        chances = model(x).log_softmax(2).gather(2, torch.tensor(numpy.stack(done))[:, :, None])[:, :, 0]
        loss = -(chances * gain)[mask].mean()
        optimizer.zero_grad()
        (-loss if fault == "sign_wrong" else loss).backward()
        _changes(fault, at, late, [optimizer], model)
        hook.log(loss=loss, reward=float(length.mean()))
        optimizer.step()
        paid.append(float(length.mean()))
    return hook, steps, [[at, -sum(paid[at:at + 20]) / 20] for at in range(0, steps, 20)]


def _policy(model, x):
    for layer in model:  # not through the model itself: what it does while it plays is no step of training
        x = layer.forward(x)
    return x.softmax(1).nan_to_num(0.5)


def _values(fault, seed, chance, options):
    """Deep Q learning: a memory, a second network that follows now and then, and a loss that grows with what there is to win."""
    steps, late, width = 1500, int(LATE * 1500), chance.choice((32, 48))
    model = _started(nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2)), fault)
    other, optimizer = copy.deepcopy(model), torch.optim.Adam(model.parameters(), _rate(chance.uniform(5e-4, 1.5e-3), fault))
    hook = tocsin.watch(model, optimizer, capture=CAPTURE, **options)
    poles, memory, ages, paid = Poles(8, seed), [], [], []
    draw, follows = numpy.random.default_rng(seed), chance.choice((40, 80))
    for at in range(steps):
        for _ in range(2):
            x = poles.seen()
            with torch.no_grad():
                push = torch.tensor(_worth(model, x)).argmax(1).numpy()
            push = numpy.where(draw.random(8) < max(0.05, 1 - at / 400), draw.integers(0, 2, 8), push)
            fell, over = poles.step(push)
            memory += [(x[i], push[i], 1.0, poles.seen()[i], not fell[i]) for i in range(8)]
            ages += list(poles.age[over])
            poles.restart(over)
        if at % 100 == 99:
            paid.append([at - 99, -float(numpy.mean(ages or [0]))])
            ages = []
        part = [memory[one] for one in draw.integers(0, len(memory), 64)]
        x, then = _broken(fault, torch.stack([one[0] for one in part]), at, late), torch.stack([one[3] for one in part])
        with torch.no_grad():
            best = torch.tensor(_worth(model, then)).argmax(1, keepdim=True)  # chosen by one network, judged by the other
            target = torch.tensor([one[2] for one in part]) + 0.95 * torch.tensor([float(one[4]) for one in part]) * other(then).gather(1, best)[:, 0]
        loss = nn.functional.smooth_l1_loss(model(x).gather(1, torch.tensor([int(one[1]) for one in part])[:, None])[:, 0], target)
        optimizer.zero_grad()
        (-loss if fault == "sign_wrong" else loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        _changes(fault, at, late, [optimizer], model)
        hook.log(loss=loss)
        optimizer.step()
        if at % follows == 0:
            other.load_state_dict(model.state_dict())
    return hook, steps, paid


def _worth(model, x):
    for layer in model:
        x = layer.forward(x)
    return x.nan_to_num(0).tolist()


def _critic(fault, seed, chance, options):
    """The first Wasserstein networks: a critic with clipped weights, trained thrice as often, RMSprop for both."""
    width, steps, source = chance.choice((48, 64)), 240, torch.Generator().manual_seed(seed)
    late, x = int(LATE * steps), data.digits(seed).x
    made = _started(nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 64)), fault)
    critic = nn.Sequential(nn.Linear(64, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, 1))
    first, second = (torch.optim.RMSprop(one.parameters(), rate) for one, rate in ((made, _rate(chance.uniform(3e-4, 1e-3), fault, 1000)), (critic, chance.uniform(3e-4, 1e-3))))
    hook = tocsin.watch(made, first, capture=CAPTURE, name="generator", **options)
    tocsin.watch(critic, second, name="critic")
    for at in range(steps):
        for _ in range(3):
            real = _broken(fault, x[torch.randint(0, len(x), (64,), generator=source)], at, late)
            second.zero_grad()
            apart = critic(made(torch.randn(64, 12, generator=source)).detach()).mean() - critic(real).mean()
            apart.backward()
            second.step()
            with torch.no_grad():
                for one in critic.parameters():
                    one.clamp_(-0.05, 0.05)
        first.zero_grad()
        loss = -critic(made(torch.randn(64, 12, generator=source))).mean()
        loss.backward()
        _changes(fault, at, late, [first], made, critic)
        hook.log(generator_loss=loss, critic_loss=apart)
        first.step()
    return hook, steps, []


def _colours(fault, seed, chance, options):
    """From edges to images: what a judge says of pairs, and ten times the distance to the true one (pix2pix)."""
    width, steps, source = chance.choice((8, 12)), 200, torch.Generator().manual_seed(seed)
    late, split = int(LATE * steps), data.images(seed)
    edges = (split.x[:, :, 1:] - split.x[:, :, :-1]).abs()
    edges = nn.functional.pad(edges, (0, 0, 0, 1))
    made = _started(nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.LeakyReLU(0.2), nn.Conv2d(width, 2 * width, 3, padding=1),
                                  nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.2), nn.Conv2d(2 * width, 1, 3, padding=1), nn.Tanh()), fault)
    judge = nn.Sequential(nn.Conv2d(2, width, 4, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(width, 2 * width, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
                          nn.Conv2d(2 * width, 1, 1))
    first, second = (torch.optim.Adam(one.parameters(), rate, betas=(0.5, 0.999)) for one, rate in ((made, _rate(chance.uniform(1e-3, 3e-3), fault)), (judge, 2e-4)))
    hook = tocsin.watch(made, first, capture=CAPTURE, name="generator", **options)
    tocsin.watch(judge, second, name="judge")
    say = nn.BCEWithLogitsLoss()
    for at in range(steps):
        part = torch.randint(0, len(edges), (16,), generator=source)
        seen, true = _broken(fault, edges[part], at, late), split.x[part]
        fake = made(seen)
        second.zero_grad()
        real, false = judge(torch.cat([seen, true], 1)), judge(torch.cat([seen, fake.detach()], 1))
        judged = (say(real, torch.ones_like(real)) + say(false, torch.zeros_like(false))) / 2
        judged.backward()
        second.step()
        first.zero_grad()
        false = judge(torch.cat([seen, fake], 1))
        near = nn.functional.l1_loss(fake, true)
        fooled = say(false, torch.ones_like(false)) + 10 * near
        fooled.backward()
        _changes(fault, at, late, [first], made, judge)
        hook.log(G_loss=fooled, D_loss=judged)
        first.step()
    return hook, steps, []


MADE = {"swings": _swings, "values": _values, "critic": _critic, "colours": _colours}


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, steps, 0, what was won per part of the run: less is better)."""
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    hook, steps, passes = MADE[job](fault, seed, random.Random(f"{job}/{seed}"), {"out": out, "run": name, "job": job})
    uid = hook.run
    hook.close(timeout=20)
    return uid, steps, 0, passes
