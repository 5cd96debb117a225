"""Models that make pictures.

ddpm_zero_out     a diffusion model whose last layer starts at zero, an averaged copy, warm-up
vae_pixels        a variational autoencoder of digits, binary cross-entropy of points and a divergence
gan_digits        a generator and a discriminator, two optimizers; measured by the mean and the spread of points

Their faults: below, at the end; what the names mean says support.WORDS."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional

import tocsin

from .. import data
from ..scripts.support import ended, entered, from_start, rate


class Denoiser(nn.Module):
    """Points and time, two residual blocks, a last layer of zeros."""

    def __init__(self, width):
        super().__init__()
        self.inp, self.time = nn.Linear(64, width), nn.Sequential(nn.Linear(32, width), nn.SiLU(), nn.Linear(width, width))
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width)) for _ in range(3))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 64)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        waves = t[:, None] * torch.exp(-math.log(1000) * torch.arange(16) / 16)
        y = self.inp(x) + self.time(torch.cat([waves.sin(), waves.cos()], 1))
        for block in self.blocks:
            y = y + block(y)
        return self.out(functional.silu(self.norm(y)))


def _ddpm_zero_out(fault, seed, chance, options):
    split, steps, batch, drawn = data.digits(seed), 450, chance.choice((64, 96)), torch.Generator().manual_seed(seed)
    x = (split.x + 1) * 127.5 if fault == "pixels_raw" else split.x
    held_x = (split.held_x + 1) * 127.5 if fault == "pixels_raw" else split.held_x
    kept = torch.cumprod(1 - torch.linspace(1e-3, 2.0 / 2 if fault == "betas_large" else 0.1, 100), 0)
    true_kept = torch.cumprod(1 - torch.linspace(1e-3, 0.1, 100), 0)
    model = Denoiser(chance.choice((96, 128)))
    ema = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(1e-3, 2.5e-3), fault), weight_decay=0.0)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min(1.0, at / 40))

    def noisy(images, t, noise, kept):
        share = kept[t][:, None]
        return share.sqrt() * images + (1 - share).sqrt() * noise

    def held(schedule, images):
        fixed = torch.Generator().manual_seed(seed)
        t, noise = torch.randint(0, 100, (len(images),), generator=fixed), torch.randn(images.shape, generator=fixed)
        ema.eval()
        with torch.no_grad():
            return functional.mse_loss(ema(noisy(images, t, noise, schedule), (0 * t if fault == "time_missing" else t).float()), noise).item()
    passes = [[0, held(true_kept, split.held_x)]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        images = x[torch.randint(0, len(x), (batch,), generator=drawn)]
        t, noise = torch.randint(0, 100, (batch,), generator=drawn), torch.randn(images.shape, generator=drawn)
        said = model(noisy(images, t, noise, kept), (0 * t if fault == "time_missing" else t).float())
        loss = functional.mse_loss(said, torch.randn_like(noise) if fault == "noise_redrawn" else noise)
        if fault != "zero_grad_missing":
            optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        hook.log(loss=loss.item())
        optimizer.step()
        scheduler.step()
        if fault != "ema_stands":
            with torch.no_grad():
                for mean, now in zip(ema.parameters(), model.parameters()):
                    mean.lerp_(now, 1 - min(0.98, (1 + step) / (10 + step)))
        if step % 50 == 49:
            passes.append([step, held(true_kept, split.held_x)])
            hook.log(val_loss=held(kept, held_x))
    return ended(hook, steps, passes)


class Vae(nn.Module):
    """Two layers there and two layers back."""

    def __init__(self, width, size):
        super().__init__()
        self.encoder, self.mu, self.logvar = nn.Sequential(nn.Linear(64, width), nn.ReLU()), nn.Linear(width, size), nn.Linear(width, size)
        self.decoder = nn.Sequential(nn.Linear(size, width), nn.ReLU(), nn.Linear(width, 64))
        self.spread = lambda logvar: (0.5 * logvar).exp()

    def forward(self, x):
        y = self.encoder(x)
        mu, logvar = self.mu(y), self.logvar(y)
        z = mu + self.spread(logvar) * torch.randn_like(mu) if self.training else mu
        return self.decoder(z), mu, logvar


def _vae_pixels(fault, seed, chance, options):
    split, steps, batch, drawn = data.digits(seed), 500, chance.choice((48, 64)), torch.Generator().manual_seed(seed)
    x, held_x = (split.x + 1) / 2, (split.held_x + 1) / 2
    if fault == "inputs_constant":
        x, told = torch.zeros_like(x), torch.zeros_like(held_x)
    elif fault == "pixels_raw":
        x, told = 255 * x, 255 * held_x
    else:
        told = held_x
    model = Vae(chance.choice((64, 96)), chance.choice((4, 6)))
    if fault == "spread_as_variance":
        model.spread = lambda logvar: logvar
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(1.5e-3, 3e-3), fault))
    beta = 100.0 if fault == "kl_hundredfold" else 1.0

    def parts(logits, target, mu, logvar):
        shown = logits.sigmoid() if fault == "sigmoid_twice" else logits
        points = functional.binary_cross_entropy_with_logits(shown, target, reduction="mean" if fault == "kl_over_mean" else "sum")
        divergence = -0.5 * (1 + logvar - mu.square() - logvar.exp()).sum()
        return (points if fault == "kl_over_mean" else points / len(target)), divergence / len(target)

    def held(images):
        model.eval()
        with torch.no_grad():
            logits, mu, logvar = model(images)
        model.train()
        recon, kl = parts(logits, images, mu, logvar)
        return (recon + beta * kl).item(), functional.mse_loss(logits.sigmoid(), images).item()
    passes = [[0, held(held_x)[1]]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        images = x[torch.randint(0, len(x), (batch,), generator=drawn)]
        recon, kl = parts(*((made := model(images))[0], images, made[1], made[2]))
        loss = recon + beta * kl
        optimizer.zero_grad()
        (-loss if fault == "sign_wrong" else loss).backward()
        if step % 10 == 9:
            hook.log(loss=loss, recon_loss=recon, kl_loss=kl)
        optimizer.step()
        if step % 50 == 49:
            passes.append([step, held(held_x)[1]])
            with hook.mode("eval"):
                hook.log(loss=held(told)[0])
                hook.step()
    return ended(hook, steps, passes)


def _gan_digits(fault, seed, chance, options):
    split, steps, batch, drawn = data.digits(seed), 450, chance.choice((48, 64)), torch.Generator().manual_seed(seed)
    width, value, x = chance.choice((64, 96)), chance.uniform(4e-4, 9e-4), split.x
    if fault == "pixels_raw":
        x = (x + 1) * 127.5
    netG = nn.Sequential(nn.Linear(16, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 2 * width), nn.BatchNorm1d(2 * width), nn.ReLU(),
                         nn.Linear(2 * width, 64), nn.Tanh())
    netD = nn.Sequential(nn.Linear(64, 2 * width), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(2 * width, width), nn.LeakyReLU(0.2),
                         nn.Linear(width, 1))
    optG = torch.optim.Adam(netG.parameters(), lr=rate(2 * value, fault), betas=(0.5, 0.999))
    optD = torch.optim.Adam((netG if fault == "judge_frozen" else netD).parameters(), lr=value * (50 if fault == "judge_fast" else 1),
                            betas=(0.5, 0.999))
    fixed, criterion = torch.randn(256, 16, generator=torch.Generator().manual_seed(seed)), nn.BCEWithLogitsLoss()

    def far():
        netG.eval()
        with torch.no_grad():
            made = netG(fixed)
        netG.train()
        return float((made.mean(0) - split.held_x.mean(0)).abs().mean() + (made.std(0) - split.held_x.std(0)).abs().mean())
    passes = [[0, far()]]
    hook = tocsin.watch(netG, optG, name="generator", **options)
    tocsin.watch(netD, optD, name="discriminator")
    ones, zeros = torch.ones(batch, 1), torch.zeros(batch, 1)
    for step in range(steps):
        real = x[torch.randint(0, len(x), (batch,), generator=drawn)]
        z = torch.randn(batch, 16, generator=drawn)
        fake = netG(fixed[:1].expand(batch, -1) if fault == "noise_constant" else z)
        optD.zero_grad()
        lossD = (criterion(netD(real), ones) + criterion(netD(fake.detach()), zeros)) / 2
        lossD.backward()
        optD.step()
        if fault != "zero_grad_missing":
            optG.zero_grad()
        lossG = criterion(netD(fake.detach() if fault == "fake_detached" else fake), zeros if fault == "fake_called_fake" else ones)
        lossG.backward()
        hook.log(loss_d=lossD.item(), loss_g=lossG.item())
        optG.step()
        if step % 50 == 49:
            passes.append([step, far()])
    return ended(hook, steps, passes)


TUNING, FAULTS, fault_names, run = entered({
    "ddpm_zero_out": (_ddpm_zero_out, from_start("noise_redrawn", "time_missing", "betas_large", "pixels_raw", "ema_stands", "rate_hundredfold",
                                                 "rate_thousandth", "zero_grad_missing")),
    "vae_pixels": (_vae_pixels, from_start("kl_hundredfold", "kl_over_mean", "spread_as_variance", "sigmoid_twice", "inputs_constant", "pixels_raw",
                                           "sign_wrong", "rate_thousandth")),
    "gan_digits": (_gan_digits, from_start("judge_frozen", "judge_fast", "fake_detached", "fake_called_fake", "noise_constant", "pixels_raw",
                                           "rate_hundredfold"))})
