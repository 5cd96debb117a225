"""Pictures and points.

mixup_cosine      a convolutional network with mixup, SGD with momentum, CosineAnnealingLR per epoch
distilled_student a small network learns from a large one: Kullback and Leibler's divergence at a temperature, and the labels
finetuned_signs   a network that was trained before learns other signs: AdamW at a small rate, warm-up from nothing, a line to nothing
masked_pixels     an autoencoder of digits of which four points in ten are hidden; squared error of the hidden ones
flow_points       flow matching: points in heaps on a ring from noise, an averaged copy that is evaluated

Their faults: below, at the end."""
import copy
import math

import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import tocsin

from .. import data
from ..scripts.support import ended, entered, errors, from_start, rate
from ..scripts.glyphs import glyphs, labelled, warmed


class ConvNet(nn.Module):
    """Two convolutions with norms, and the mean over the picture's quarters."""

    def __init__(self, width, classes=10):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
                                      nn.Conv2d(width, 2 * width, 3, padding=1, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(), nn.MaxPool2d(2))
        self.fc1, self.fc2 = nn.Linear(18 * width, 64), nn.Linear(64, classes)

    def forward(self, x):
        return self.fc2(functional.relu(self.fc1(self.features(x).flatten(1))))


def _mixup_cosine(fault, seed, chance, options):
    images, kinds, _ = glyphs(seed, 1900, 6)
    batch, epochs, width = chance.choice((32, 48, 64)), 10, chance.choice((8, 10))
    x, held_x, y, held_y = (images[:-400] - 110) / 65, images[-400:], labelled(kinds[:-400], fault, 6), kinds[-400:]
    held_x = held_x if fault == "held_unscaled" else (held_x - 110) / 65
    held_y = 5 - held_y if fault == "held_other_classes" else held_y
    model = ConvNet(width, 6)
    if fault == "backbone_frozen":
        model.features.requires_grad_(False)
        model.fc1.requires_grad_(False)
    optimizer = torch.optim.SGD((one for one in model.parameters() if one.requires_grad), lr=rate(chance.uniform(0.02, 0.06), fault), momentum=0.9,
                                weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    loader = DataLoader(TensorDataset(x, y), batch, shuffle=True, drop_last=True)
    mixes, alpha = numpy.random.default_rng(seed), chance.uniform(0.2, 0.4)

    def evaluate():
        if fault != "evaluated_in_training":
            model.eval()
        loss, wrong = 0.0, 0.0
        with torch.no_grad():
            for images, targets in zip(held_x.split(100), held_y.split(100)):
                output = model(images)
                loss += functional.cross_entropy(output, targets).item() / 4
                wrong += errors(output, targets) / 4
        return loss, wrong
    passes, done = [[0, evaluate()[1]]], 0
    hook = tocsin.watch(model, optimizer, **options)
    for _ in range(epochs):
        model.train()
        for images, targets in loader:
            share, order = float(mixes.beta(alpha, alpha)), torch.randperm(batch)
            output = model(share * images + (1 - share) * images[order])
            if fault == "softmax_twice":
                output = functional.softmax(output, dim=1)
            if fault == "mixup_swapped":
                share = 1 - share
            loss = share * functional.cross_entropy(output, targets) + (1 - share) * functional.cross_entropy(output, targets[order])
            optimizer.zero_grad()
            loss.backward()
            hook.log(loss=loss)
            optimizer.step()
            done += 1
        scheduler.step()
        val_loss, wrong = evaluate()
        hook.log(val_loss=val_loss, val_acc=1 - wrong)
        passes.append([done - 1, wrong])
    return ended(hook, done, passes)


def _taught(x, y, seed, model, steps):
    """A model that was trained before."""
    optimizer, drawn = torch.optim.Adam(model.parameters(), lr=2e-3), torch.Generator().manual_seed(seed)
    for _ in range(steps):
        chosen = torch.randint(0, len(x), (64,), generator=drawn)
        optimizer.zero_grad()
        functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
        optimizer.step()
    return model.eval()


def _distilled_student(fault, seed, chance, options):
    images, kinds, _ = glyphs(seed, 1900)
    images = (images - 110) / 65
    x, held_x, y, held_y = images[:-400], images[-400:], labelled(kinds[:-400], fault, 10), kinds[-400:]
    teacher = _taught(x, kinds[:-400], seed, ConvNet(16), 110)
    if fault == "teacher_untrained":
        teacher = ConvNet(16).eval()
    student = ConvNet(chance.choice((4, 6)))
    batch, steps, drawn = chance.choice((32, 40)), 360, torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW((teacher if fault == "optimizer_of_teacher" else student).parameters(), lr=rate(chance.uniform(1e-3, 2e-3), fault))
    scheduler, temperature, share = warmed(optimizer, steps, 20, fault, linear=False), chance.choice((2.0, 3.0, 4.0)), chance.uniform(0.8, 0.9)

    def divergence(output, taught):
        said, wanted = functional.log_softmax(output / temperature, 1), functional.softmax(taught / temperature, 1)
        return functional.kl_div(said, wanted, reduction="batchmean") * temperature**2
    told = (x[:400], kinds[:400]) if fault == "evaluated_on_training" else (held_x, held_y)

    def accuracy():
        student.eval()
        with torch.no_grad():
            output = student(told[0])
        student.train()
        return 1 - errors(output, told[1])
    passes = [[0, 1 - accuracy()]]
    hook = tocsin.watch(student, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=drawn)
        with torch.no_grad():
            taught = teacher(x[chosen])
        if fault == "teacher_other_order":
            taught = taught.roll(1, 1)
        output = student(x[chosen])
        kd, ce = divergence(output, taught), functional.cross_entropy(output, y[chosen])
        loss = (-share if fault == "sign_wrong" else share) * kd + (1 - share) * ce
        optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss.item(), kd_loss=kd.item(), ce_loss=ce.item())
        optimizer.step()
        scheduler.step()
        if step % 60 == 59:
            right = accuracy()
            passes.append([step, 1 - right])
            hook.log(val_accuracy=right)
    return ended(hook, steps, passes)


def _finetuned_signs(fault, seed, chance, options):
    before, known, _ = glyphs(500 + seed, 1200, 10)
    images, kinds, _ = glyphs(seed, 1500, 6)
    width, batch, epochs = chance.choice((8, 10)), chance.choice((24, 32)), 9
    x, held_x, y, held_y = (images[:-400] - 110) / 65, images[-400:], labelled(kinds[:-400], fault, 6), kinds[-400:]
    held_x = held_x if fault == "held_unscaled" else (held_x - 110) / 65
    model = ConvNet(width)
    if fault != "pretrained_missing":
        model = _taught((before - 110) / 65, known, seed, model, 220).train()
    model.fc2 = nn.Linear(64, 6)
    if fault == "backbone_frozen":
        model.features.requires_grad_(False)
        model.fc1.requires_grad_(False)
    if fault == "weights_bfloat16":
        model.bfloat16()
    kind = model.fc2.weight.dtype
    loader = DataLoader(TensorDataset(x, y), batch, shuffle=True, drop_last=True)
    steps = epochs * len(loader)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(1.5e-4, 2.5e-4), fault))
    scheduler = warmed(optimizer, steps, steps // 10, fault)

    def evaluate():
        model.eval()
        with torch.no_grad():
            output = model(held_x.to(kind)).float()
        model.train()
        return functional.cross_entropy(output, held_y).item(), errors(output, held_y)
    passes, done = [[0, evaluate()[1]]], 0
    hook = tocsin.watch(model, optimizer, **options)
    for _ in range(epochs):
        for images, targets in loader:
            loss = functional.cross_entropy(model(images.to(kind)).float(), targets)
            optimizer.zero_grad()
            loss.backward()
            hook.log(loss=loss.item(), lr=scheduler.get_last_lr()[0])
            optimizer.step()
            done += 1
            if fault != "schedule_per_epoch" or done % len(loader) == 0:
                scheduler.step()
        val_loss, wrong = evaluate()
        hook.log(val_loss=val_loss, val_acc=1 - wrong)
        passes.append([done - 1, wrong])
    return ended(hook, done, passes)


def _masked_pixels(fault, seed, chance, options):
    split, width, batch, steps = data.digits(seed), chance.choice((128, 160)), chance.choice((48, 64)), 700
    x, held_x, drawn = split.x, split.held_x, torch.Generator().manual_seed(seed)
    if fault == "inputs_constant":
        x, held_x = torch.zeros_like(x), torch.zeros_like(held_x)
    shown = 8 * held_x + 8 if fault == "held_unscaled" else held_x
    model = nn.Sequential(nn.Linear(128, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 64),
                          *([nn.ReLU()] if fault == "output_clipped" else []))
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(5e-4, 1e-3), fault), betas=(0.9, 0.95), weight_decay=0.02)
    scheduler, kept = warmed(optimizer, steps, 60, fault), chance.uniform(0.55, 0.65)
    fixed = (torch.rand(held_x.shape, generator=torch.Generator().manual_seed(seed + 1)) < kept).float()

    def filled(images, mask):
        return model(torch.cat([images * mask, mask], 1))

    def held():
        with torch.no_grad():
            said = filled(shown, fixed)
        return (((said - split.held_x) ** 2) * (1 - fixed)).sum().item() / (1 - fixed).sum().item()
    passes = [[0, held()]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        images = x[torch.randint(0, len(x), (batch,), generator=drawn)]
        mask = (torch.rand(images.shape, generator=drawn) < kept).float()
        said = filled(images, torch.ones_like(mask) if fault == "nothing_masked" else mask)
        wanted = mask if fault == "loss_on_visible" else 1 - mask
        loss = (functional.mse_loss(said, images, reduction="none") * wanted).sum() / wanted.sum()
        if fault != "zero_grad_missing":
            optimizer.zero_grad()
        loss.backward()
        if step % 10 == 0:
            hook.log(loss=loss, lr=optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
        if step % 70 == 69:
            passes.append([step, held()])
            hook.log(val_loss=passes[-1][1])
    return ended(hook, steps, passes)


class Velocity(nn.Module):
    """Of a point at a time."""

    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(),
                                 nn.Linear(width, 2))
        self.register_buffer("waves", math.pi * 2.0 ** torch.arange(4))

    def forward(self, x, t):
        angle = t[:, None] * self.waves
        return self.net(torch.cat([x, angle.sin(), angle.cos()], 1))


def _ring(seed, count):
    """Eight heaps on a ring, each a little longer than wide."""
    drawn = numpy.random.default_rng(seed)
    angle = drawn.integers(0, 8, count) * numpy.pi / 4
    points = 3 * numpy.stack([numpy.cos(angle), numpy.sin(angle)], 1) + drawn.standard_normal((count, 2)) * (0.25, 0.12)
    return torch.tensor(points, dtype=torch.float32)


def _apart(some, others):
    """Mean distance of a point to the nearest one of the other set, both ways."""
    between = torch.cdist(some, others)
    return float(between.amin(0).mean() + between.amin(1).mean()) / 2


def _flow_points(fault, seed, chance, options):
    points, held = _ring(seed, 4000), _ring(seed + 1, 500)
    model, batch, steps = Velocity(chance.choice((64, 96))), chance.choice((128, 192)), 900
    averaged, drawn = copy.deepcopy(model).requires_grad_(False), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(1.5e-3, 3e-3), fault), weight_decay=10.0 if fault == "decay_large" else 0.01)

    def sampled():
        x = torch.randn(500, 2, generator=torch.Generator().manual_seed(seed + 2))
        with torch.no_grad():
            for at in range(25):
                x = x + averaged(x, torch.full((500,), at / 25)) / 25
        return _apart(x.nan_to_num(0).clamp(-20, 20), held)
    passes = [[0, sampled()]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        x1 = points[torch.randint(0, len(points), (batch,), generator=drawn)]
        x0, t = torch.randn(x1.shape, generator=drawn), torch.rand(batch, generator=drawn)
        x = (1 - t[:, None]) * x0 + t[:, None] * x1
        if fault == "noise_redrawn":
            x0, x1 = torch.randn(x1.shape, generator=drawn), points[torch.randint(0, len(points), (batch,), generator=drawn)]
        target = x0 - x1 if fault == "direction_inverted" else x1 - x0
        loss = functional.mse_loss(model(x, torch.zeros_like(t) if fault == "time_missing" else t), target)
        if fault != "zero_grad_missing":
            optimizer.zero_grad(set_to_none=True)
        loss.backward()
        hook.log(loss=loss.item())
        optimizer.step()
        with torch.no_grad():
            for mean, now in zip(averaged.parameters(), model.parameters()):
                if fault != "ema_stands":
                    mean.lerp_(now, 0.02)
        if step % 100 == 99:
            passes.append([step, sampled()])
            hook.log(chamfer=passes[-1][1])
    return ended(hook, steps, passes)


TUNING, FAULTS, fault_names, run = entered({
    "mixup_cosine": (_mixup_cosine, from_start("mixup_swapped", "class_random", "softmax_twice", "held_unscaled", "held_other_classes",
                                               "evaluated_in_training", "backbone_frozen", "rate_hundredfold")),
    "distilled_student": (_distilled_student, from_start("teacher_untrained", "teacher_other_order", "rate_thousandth", "optimizer_of_teacher",
                                                         "evaluated_on_training", "sign_wrong", schedule_ends_early=0.2)),
    "finetuned_signs": (_finetuned_signs, from_start("weights_bfloat16", "pretrained_missing", "backbone_frozen", "schedule_per_epoch",
                                                     "labels_off_by_one", "held_unscaled", "rate_hundredfold", schedule_ends_early=0.2)),
    "masked_pixels": (_masked_pixels, from_start("loss_on_visible", "nothing_masked", "inputs_constant", "held_unscaled", "output_clipped",
                                                 "warmup_endless", "zero_grad_missing")),
    "flow_points": (_flow_points, from_start("ema_stands", "time_missing", "direction_inverted", "noise_redrawn", "rate_hundredfold",
                                             "rate_thousandth", "decay_large"))})
