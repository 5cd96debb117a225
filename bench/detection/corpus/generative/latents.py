"""Models that make something.

vae_warm          a variational autoencoder of digits whose divergence is warmed up, Adamax; measured by the whole bound
latent_diffusion  diffusion in the latents of an autoencoder that was trained before, an averaged copy that makes the pictures
light_gan         a LightningModule with two optimizers, manual optimization: points on a ring

Their faults: below, at the end."""
import copy
import functools
import importlib.util
import logging
import math

import torch
from torch import nn
from torch.nn import functional

import tocsin

from .. import data
from ..scripts.shapes import ended, energy_distance, entered, from_start, rate, warmed


class Vae(nn.Module):
    """Two layers each way."""

    def __init__(self, width, latent):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.ELU(), nn.Linear(width, width), nn.ELU(), nn.Linear(width, 2 * latent))
        self.decoder = nn.Sequential(nn.Linear(latent, width), nn.ELU(), nn.Linear(width, width), nn.ELU(), nn.Linear(width, 64))

    def forward(self, x):
        mean, spread = self.encoder(x).chunk(2, -1)
        return mean, spread.clamp(-10, 10)


def _vae_warm(fault, seed, chance, options):
    split, latent = data.digits(seed), chance.choice((6, 8))
    x, held_x = split.x, split.held_x
    if fault == "inputs_constant":
        x = x[:1].expand_as(x)
    elif fault == "held_unscaled":
        held_x = 8 * held_x + 8
    model, batch, steps, drawn = Vae(chance.choice((64, 96)), latent), chance.choice((48, 64)), 700, torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adamax(model.parameters(), lr=rate(chance.uniform(3e-3, 5e-3), fault))

    def terms(x, fault):
        mean, spread = model(x)
        noise = torch.randn(mean.shape, generator=drawn)
        z = mean + (spread if fault == "spread_as_variance" else torch.exp(0.5 * spread)) * noise
        said = model.decoder(z)
        reconstruction = 0.5 * ((said - x) ** 2 / 0.1)
        reconstruction = reconstruction.mean() if fault == "kl_over_mean" else reconstruction.sum(1).mean()
        return reconstruction, -0.5 * (1 + spread - mean**2 - spread.exp()).sum(1).mean()

    def bound():
        model.eval()
        with torch.no_grad():
            total = sum(terms(held_x, None)).item()
        model.train()
        return min(total, 2000.0)
    passes = [[0, bound()]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        beta = min(1.0, step / 200)
        if fault == "kl_never":
            beta = step / len(x) / 200
        beta *= {"kl_hundredfold": 100.0, "kl_sign_wrong": -1.0}.get(fault, 1.0)
        reconstruction, divergence = terms(x[torch.randint(0, len(x), (batch,), generator=drawn)], fault)
        loss = reconstruction + beta * divergence
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 50.0)
        hook.log(loss=loss, reconstruction=reconstruction, kl=divergence, beta=beta)
        optimizer.step()
        if step % 70 == 69:
            passes.append([step, bound()])
            with hook.mode("eval"):
                hook.log(elbo=-passes[-1][1])
                hook.step()
    return ended(hook, steps, passes)


@functools.lru_cache(maxsize=4)
def _autoencoder(seed):
    """(encoder, decoder) of digits, eight numbers between."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        x = data.digits(seed).x
        encoder, decoder = (nn.Sequential(nn.Linear(inside, 96), nn.ReLU(), nn.Linear(96, outside)) for inside, outside in ((64, 8), (8, 64)))
        optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=3e-3)
        for _ in range(600):
            part = x[torch.randint(0, len(x), (64,))]
            latent = encoder(part)
            loss = functional.mse_loss(decoder(latent), part) + 1e-4 * (latent**2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return encoder.requires_grad_(False), decoder.requires_grad_(False)


class Denoiser(nn.Module):
    """What noise is in the latent, at this time, of this digit."""

    def __init__(self, width):
        super().__init__()
        self.time, self.digit, self.enter = nn.Linear(16, width), nn.Embedding(10, width), nn.Linear(8, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(3))
        self.leave = nn.Linear(width, 8)

    def forward(self, x, time, digit):
        angle = time[:, None] * torch.exp(torch.arange(8) * -0.6)
        x = self.enter(x) + self.time(torch.cat([angle.sin(), angle.cos()], 1)) + self.digit(digit)
        for block in self.blocks:
            x = x + block(x)
        return self.leave(x)


def _latent_diffusion(fault, seed, chance, options):
    split, steps, batch = data.digits(seed), 900, chance.choice((64, 96))
    encoder, decoder = _autoencoder(seed)
    used = encoder
    if fault == "pretrained_missing":
        used = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 8)).requires_grad_(False)
    latents = used(split.x)
    centre, unit = latents.mean(0), 0.1 * latents.std() if fault == "latents_unscaled" else latents.std()
    latents, digits = (latents - centre) / unit, split.y
    if fault == "labels_shuffled":
        digits = digits[torch.randperm(len(digits))]
    model, drawn = Denoiser(chance.choice((48, 64))), torch.Generator().manual_seed(seed)
    mean = copy.deepcopy(model).requires_grad_(False).eval()
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(2e-3, 4e-3), fault), weight_decay=1e-3)
    scheduler = warmed(optimizer, steps, 40, fault)
    kept = torch.cumprod(1 - torch.linspace(1e-3, 0.2 * (5 if fault == "betas_large" else 1), 50).clamp(max=0.999), 0)

    def sampled():
        """How unlike pictures of each digit are to the held-out ones."""
        noise = torch.Generator().manual_seed(7)
        digit = split.held_y
        x = torch.randn((len(digit), 8), generator=noise)
        with torch.no_grad():
            for at in reversed(range(50)):
                eps = mean(x, torch.full((len(digit),), float(at)), digit)
                clean = (x - (1 - kept[at]).sqrt() * eps) / kept[at].sqrt()
                before = kept[at - 1] if at else torch.tensor(1.0)
                x = before.sqrt() * clean.clamp(-40, 40) + (1 - before).sqrt() * eps
            pictures = decoder(x * unit + centre).nan_to_num(99.0).clamp(-5, 5)
        return sum(energy_distance(pictures[digit == kind], split.held_x[split.held_y == kind]) for kind in range(10)) / 10
    passes = [[0, sampled()]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(latents), (batch,), generator=drawn)
        time, noise = torch.randint(0, 50, (batch,), generator=drawn), torch.randn((batch, 8), generator=drawn)
        share = kept[time][:, None]
        noisy = share.sqrt() * latents[chosen] + (1 - share).sqrt() * noise
        goal = torch.randn((batch, 8), generator=drawn) if fault == "noise_redrawn" else noise
        said = model(noisy, torch.zeros(batch) if fault == "time_missing" else time.float(), digits[chosen])
        loss = functional.mse_loss(said, goal)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if step % 10 == 9:
            hook.log(loss=loss.item(), lr=scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
        if fault != "ema_stands":
            with torch.no_grad():
                for slow, fast in zip(mean.parameters(), model.parameters()):
                    slow.lerp_(fast, min(0.02, 1.0) if step > 20 else 1.0)
        if step % 90 == 89:
            passes.append([step, sampled()])
    return ended(hook, steps, passes)


def _ring(count, drawn):
    """Points in eight heaps on a ring."""
    angle = torch.randint(0, 8, (count,), generator=drawn) * (math.pi / 4)
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.08 * torch.randn((count, 2), generator=drawn)


def _light_gan(fault, seed, chance, options):
    import lightning

    from tocsin.lightning import TocsinCallback
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    drawn, width, batch, steps = torch.Generator().manual_seed(seed), chance.choice((48, 64)), chance.choice((96, 128)), 500
    points, held, value = _ring(batch * 50, drawn), _ring(500, drawn), rate(chance.uniform(1.5e-3, 2e-3), fault)
    if fault == "inputs_constant":
        points = points[:1].expand_as(points)
    seen, passes = [], []
    lightning.seed_everything(seed, verbose=False)

    def layers(inside, outside):
        return nn.Sequential(nn.Linear(inside, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, outside))

    class Gan(lightning.LightningModule):
        """As Lightning's page on manual optimization has it."""

        def __init__(self):
            super().__init__()
            self.automatic_optimization = False
            self.generator, self.discriminator = layers(4, 2), layers(2, 1)

        def noise(self, count):
            """What the generator is given."""
            return torch.zeros(count, 4) if fault == "noise_constant" else torch.randn(count, 4)

        def training_step(self, batch, at):
            seen[:] = seen or [tocsin.get_hook().run]
            real, (of_generator, of_judge) = batch[0], self.optimizers()
            fake = self.generator(self.noise(len(real)))
            true, false = self.discriminator(real), self.discriminator(fake.detach())
            judge_loss = (functional.binary_cross_entropy_with_logits(true, torch.full_like(true, 0.9))
                          + functional.binary_cross_entropy_with_logits(false, torch.zeros_like(false)))
            of_judge.zero_grad()
            self.manual_backward(judge_loss)
            of_judge.step()
            said = self.discriminator(fake.detach() if fault == "fake_detached" else fake)
            goal = torch.zeros_like(said) if fault == "fake_called_fake" else torch.ones_like(said)
            loss = functional.binary_cross_entropy_with_logits(said, goal)
            of_generator.zero_grad()
            self.manual_backward(loss)
            of_generator.step()
            self.log_dict({"g_loss": loss, "d_loss": judge_loss})
            if self.done % 50 == 49:
                self.measure()
            self.done += 1

        done = 0

        def measure(self):
            """Notes how unlike the points are."""
            with torch.no_grad():
                passes.append([max(self.done, 0), energy_distance(self.generator(torch.randn(500, 4)).clamp(-9, 9), held)])

        def configure_optimizers(self):
            tuned = self.generator if fault == "judge_frozen" else self.discriminator
            return (torch.optim.Adam(self.generator.parameters(), lr=value, betas=(0.5, 0.99)),
                    torch.optim.Adam(tuned.parameters(), lr=value * (50 if fault == "judge_fast" else 1), betas=(0.5, 0.99)))
    module = Gan()
    module.measure()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(points), batch, shuffle=True)
    trainer = lightning.Trainer(max_epochs=steps // 50, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                enable_model_summary=False, log_every_n_steps=5, callbacks=[TocsinCallback(**options)])
    trainer.fit(module, loader)
    return seen[0], steps, passes


_JOBS = {
    "vae_warm": (_vae_warm, from_start("kl_never", "kl_hundredfold", "kl_sign_wrong", "spread_as_variance", "held_unscaled", "kl_over_mean",
                                       "rate_thousandth", "inputs_constant")),
    "latent_diffusion": (_latent_diffusion, from_start("noise_redrawn", "time_missing", "ema_stands", "latents_unscaled", "betas_large",
                                                       "pretrained_missing", "rate_hundredfold", "labels_shuffled")),
    "light_gan": (_light_gan, from_start("judge_frozen", "fake_detached", "fake_called_fake", "noise_constant", "judge_fast", "rate_thousandth",
                                         "inputs_constant", "rate_hundredfold"))}
TUNING, FAULTS, fault_names, run = entered({name: made for name, made in _JOBS.items()
                                            if importlib.util.find_spec("lightning" if name == "light_gan" else "torch")})
