"""Two networks against each other, with an optimizer each: a loop of its own."""
import random

import torch
from torch import nn

import tocsin

from .. import data
from ..recipes.training import CAPTURE

TUNING = {"gan": True, "gan_hinge": True, "gan_squares": True, "gan_penalty": True, "gan_relative": True, "gan_images": True}
# Name of the fault, share of the run before it.
FAULTS = {"judge_too_strong": 0.0, "generator_rate_zero": 0.0, "generator_rate_too_large": 0.0, "input_nan": 0.4,
          "weights_lost": 0.4, "generator_start_zero": 0.0}


def _networks(job, chance):
    width = chance.choice((48, 64))
    if job == "gan_images":
        generator = nn.Sequential(nn.Linear(16, 8 * width, bias=False), nn.BatchNorm1d(8 * width), nn.ReLU(), nn.Unflatten(1, (2 * width, 2, 2)),
                                  nn.ConvTranspose2d(2 * width, width, 2, stride=2, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.ConvTranspose2d(width, 1, 2, stride=2), nn.Tanh(), nn.Flatten())
        judge = nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, width, 3, stride=2, padding=1), nn.LeakyReLU(0.2),
                              nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(8 * width, 1))
        return generator, judge
    act = nn.ReLU if job == "gan" else nn.SiLU if job == "gan_hinge" else nn.GELU
    generator = nn.Sequential(nn.Linear(16, width), act(), nn.Linear(width, width), act(), nn.Linear(width, 64), nn.Tanh())
    judge = nn.Sequential(nn.Linear(64, width), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(width, 1))
    if job == "gan_hinge":
        for layer in (judge[0], judge[-1]):
            nn.utils.parametrizations.spectral_norm(layer)
    return generator, judge


def _losses(job):
    """(of the judge, for the generator), from what was said of true and of made images."""
    say = nn.BCEWithLogitsLoss()
    if job in ("gan", "gan_images"):
        return (lambda real, made: say(real, torch.ones_like(real)) + say(made, torch.zeros_like(made)),
                lambda made: say(made, torch.ones_like(made)))
    if job == "gan_squares":
        square = nn.MSELoss()
        return (lambda real, made: square(real, torch.ones_like(real)) + square(made, torch.zeros_like(made)),
                lambda made: square(made, torch.ones_like(made)))
    if job == "gan_relative":
        return (lambda real, made: say(real - made, torch.ones_like(real)), lambda made: say(made, torch.ones_like(made)))
    if job == "gan_penalty":
        return (lambda real, made: made.mean() - real.mean(), lambda made: -made.mean())
    return (lambda real, made: (1 - real).relu().mean() + (1 + made).relu().mean(), lambda made: -made.mean())


def _penalty(judge, real, made, source):
    """How far the judge's slope between true and made images is from one."""
    share = torch.rand(len(real), 1, generator=source)
    between = (share * real + (1 - share) * made.detach()).requires_grad_()
    slope, = torch.autograd.grad(judge(between).sum(), between, create_graph=True)
    return 10 * ((slope.norm(dim=1) - 1) ** 2).mean()


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, steps, 0): nothing here is slow."""
    torch.manual_seed(seed)
    chance = random.Random(f"{job}/{seed}")
    generator, judge = _networks(job, chance)
    steps, batch = 300, 64
    rates = {"generator": chance.uniform(5e-4, 2e-3), "judge": chance.uniform(2e-4, 6e-4)}
    if fault == "judge_too_strong":
        rates["judge"] *= 60
        rates["generator"] /= 60
    elif fault == "generator_rate_zero":
        rates["generator"] = 0.0
    elif fault == "generator_rate_too_large":
        rates["generator"] *= 500
    elif fault == "generator_start_zero":
        for one in generator.parameters():
            nn.init.zeros_(one)
    x = data.digits(seed).x
    first = torch.optim.Adam(judge.parameters(), rates["judge"], betas=(0.5, 0.999))
    second = torch.optim.Adam(generator.parameters(), rates["generator"], betas=(0.5, 0.999))
    hook = tocsin.watch(judge, first, out=out, run=name, job=job, capture=CAPTURE, name="judge")
    tocsin.watch(generator, second, name="generator")
    of_judge, of_generator = _losses(job)
    late = int(FAULTS.get(fault, 0) * steps)
    source = torch.Generator().manual_seed(seed)
    for step in range(steps):
        real = x[torch.randint(0, len(x), (batch,), generator=source)]
        if fault == "input_nan" and step == late:
            real = real.clone()
            real[0, 0] = float("nan")
        if fault == "weights_lost" and step == late:
            for layer in [*generator, *judge]:
                if hasattr(layer, "reset_parameters"):
                    layer.reset_parameters()
        made = generator(torch.randn(batch, 16, generator=source))
        first.zero_grad()
        judged = of_judge(judge(real), judge(made.detach()))
        if job == "gan_penalty":
            judged = judged + _penalty(judge, real, made, source)
        judged.backward()
        second.zero_grad()
        first.step()
        fooled = of_generator(judge(made))
        fooled.backward()
        hook.log(judge_loss=judged / 2, generator_loss=fooled)
        second.step()
    uid = hook.run
    hook.close(timeout=20)
    return uid, steps, 0
