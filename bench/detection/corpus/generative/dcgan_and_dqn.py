"""Loops of our own: DCGAN with two optimizers, and a DQN that keeps a pole up."""
import copy
import random

import numpy
import torch
from torch import nn
from torch.nn import functional

import tocsin

from .. import data
from ..reinforcement.poles_and_critics import Poles, _broken, _changes, _rate, _started
from ..recipes.training import CAPTURE

LATE = 0.4
# Name of the fault, share of the run before it.
OF = {"dcgan": {"rate_too_large": 0.0, "rate_zero": 0.0, "start_large": 0.0, "start_zero": 0.0, "input_nan": LATE, "weights_lost": LATE,
                "judge_stands": 0.0,
                "judge_strong": 0.0, "fake_attached": 0.0},
      "dqn_pole": {"rate_too_large": 0.0, "rate_zero": 0.0, "sign_wrong": 0.0, "rate_jumps": LATE, "input_nan": LATE, "weights_lost": LATE,
                   "ends_ignored": 0.0,
                   "target_stands": 0.0, "pay_unit": LATE}}
FAULTS = {name: share for one in OF.values() for name, share in one.items()}
TUNING = dict.fromkeys(OF, False)


def fault_names(name):
    """The faults that a job has."""
    return list(OF[name])


def _dcgan(fault, seed, chance, options):
    """DCGAN on digits: transposed convolutions, batch normalisation, Adam with betas of 0.5; measured by the digits' mean and spread."""
    steps, width, split = 300, chance.choice((12, 16)), data.images(seed)
    late, source, size = int(LATE * steps), torch.Generator().manual_seed(seed), 16
    generator = _started(nn.Sequential(nn.ConvTranspose2d(size, 2 * width, 2, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(),
                                       nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                       nn.ConvTranspose2d(width, 1, 4, 2, 1), nn.Tanh()), fault)
    discriminator = nn.Sequential(nn.Conv2d(1, width, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(width, 2 * width, 4, 2, 1, bias=False),
                                  nn.BatchNorm2d(2 * width),
                                  nn.LeakyReLU(0.2), nn.Flatten(), nn.Dropout(0.3), nn.Linear(8 * width, 1))
    rate, criterion = chance.uniform(1e-3, 2e-3), nn.BCEWithLogitsLoss()
    optimizers = [torch.optim.Adam(generator.parameters(), _rate(rate, fault), betas=(0.5, 0.999)),
                  torch.optim.Adam(discriminator.parameters(), {"judge_strong": 60.0, "judge_stands": 0.0}.get(fault, 0.5) * rate,
                                   betas=(0.5, 0.999))]
    hook = tocsin.watch(generator, optimizers[0], capture=CAPTURE, name="generator", **options)
    tocsin.watch(discriminator, optimizers[1], name="discriminator")
    fixed = torch.randn(256, size, 1, 1, generator=source)

    def far():
        generator.eval()
        with torch.no_grad():
            made = generator(fixed)
        generator.train()
        return float((made.mean(0) - split.held_x.mean(0)).abs().mean() + (made.std(0) - split.held_x.std(0)).abs().mean())
    passes = [[0, far()]]
    for at in range(steps):
        real = _broken(fault, split.x[torch.randint(0, len(split.x), (64,), generator=source)], at, late)
        ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
        optimizers[1].zero_grad()
        fake = generator(torch.randn(64, size, 1, 1, generator=source))
        loss_real = criterion(discriminator(real), 0.9 * ones)
        loss_fake = criterion(discriminator(fake if fault == "fake_attached" else fake.detach()), zeros)
        if fault != "fake_attached":
            optimizers[0].zero_grad()
        (loss_real + loss_fake).backward(retain_graph=fault == "fake_attached")
        optimizers[1].step()
        loss_g = criterion(discriminator(fake), ones)
        loss_g.backward()
        _changes(fault, at, late, optimizers, generator, discriminator)
        hook.log(loss_d=(loss_real + loss_fake).item(), loss_g=loss_g.item())
        optimizers[0].step()
        if at % 30 == 29:
            passes.append([at, far()])
    return hook, steps, passes


def _dqn_pole(fault, seed, chance, options):
    """DQN: a memory, a target network that follows slowly, less and less chance, smooth L1; how long poles stand is logged as reward."""
    steps, width = 600, chance.choice((48, 64))
    late, draw, poles = int(LATE * steps), numpy.random.default_rng(seed), Poles(8, seed)
    model = _started(nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2)), fault)
    target = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.Adam(model.parameters(), _rate(chance.uniform(1e-3, 2e-3), fault))
    hook, memory, lengths, passes = tocsin.watch(model, optimizer, capture=CAPTURE, **options), [], [10.0], []
    scale = numpy.array((1, 1, 5, 2))
    for at in range(steps):
        for _ in range(3):
            before, chosen = poles.state.copy(), draw.integers(0, 2, 8)
            with torch.no_grad():
                best = model(torch.tensor(before * scale, dtype=torch.float32)).argmax(1).numpy()
            chosen = numpy.where(draw.random(8) < max(0.05, 1 - at / 250), chosen, best)
            fell, over = poles.step(chosen)
            pay = 1000.0 if fault == "pay_unit" and at >= late else 1.0
            memory += [(before[one] * scale, chosen[one], pay, poles.state[one] * scale, fell[one]) for one in range(8)]
            lengths += poles.age[over].tolist()
            poles.restart(over)
        x, done, pay, then, over = (torch.tensor(numpy.array(one), dtype=torch.float32)
                                    for one in zip(*(memory[one] for one in draw.integers(0, len(memory), 128))))
        x = _broken(fault, x, at, late)
        over = torch.zeros_like(over) if fault == "ends_ignored" else over
        goal = pay + 0.95 * (1 - over) * target(then).amax(1)
        said = model(x).gather(1, done.long()[:, None])[:, 0]
        loss = functional.smooth_l1_loss(said, goal)
        optimizer.zero_grad()
        (-loss if fault == "sign_wrong" else loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        _changes(fault, at, late, [optimizer], model)
        optimizer.step()
        hook.log(loss=loss.item(), reward=float(numpy.mean(lengths[-20:])), epsilon=max(0.05, 1 - at / 250))
        if fault != "target_stands":
            with torch.no_grad():
                for one, now in zip(target.parameters(), model.parameters()):
                    one.lerp_(now, 0.02)
        if at % 50 == 49:
            passes.append([at, -float(numpy.mean([*lengths[-20:], *poles.age]))])
    return hook, steps, passes


MADE = {"dcgan": _dcgan, "dqn_pole": _dqn_pole}


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, steps, step of the best evaluation, the evaluations: less is better)."""
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    hook, steps, passes = MADE[job](fault, seed, random.Random(f"{job}/{seed}"), {"out": out, "run": name, "job": job})
    uid = hook.run
    hook.close(timeout=20)
    return uid, steps, min(((value, step) for step, value in passes if value == value), default=(0.0, 0))[1], passes
