"""Tables, and a mask of rare points.

churn_embeddings  categories as embeddings beside numbers, binary cross-entropy of logits, AdamW at one rate
huber_plateau     regression of many columns with Huber's loss, Adam, ReduceLROnPlateau on val_loss
multilabel_half   several labels per row, two batches per update, float16 with a GradScaler
unet_rare         a small UNet, few points in a hundred are positive, pos_weight, OneCycleLR

Their faults: below, at the end; what the names mean says support.WORDS."""
import numpy
import sklearn.datasets
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import tocsin

from ..scripts.support import ended, entered, from_start, labelled, rate, unlike


class Churn(nn.Module):
    """Embeddings and numbers, three layers."""

    def __init__(self, kinds, numbers, width):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(count, min(8, (count + 1) // 2)) for count in kinds)
        self.body = nn.Sequential(nn.Linear(numbers + sum(one.embedding_dim for one in self.embeddings), width), nn.ReLU(), nn.Dropout(0.1),
                                  nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, codes, numbers):
        return self.body(torch.cat([*(one(codes[:, at]) for at, one in enumerate(self.embeddings)), numbers], 1)).squeeze(1)


def _customers(seed, count=3000):
    """Categories, numbers in their units, and who left."""
    drawn = numpy.random.default_rng(seed)
    codes = numpy.stack([drawn.integers(0, kinds, count) for kinds in (12, 5, 7)], 1)
    numbers = numpy.stack([drawn.lognormal(7, 0.8, count), drawn.gamma(2, 12, count), drawn.integers(18, 80, count), drawn.poisson(3, count),
                           drawn.normal(0, 1, count)], 1)
    pull = [drawn.normal(0, 1.3, kinds) for kinds in (12, 5, 7)]
    score = (sum(one[codes[:, at]] for at, one in enumerate(pull)) - 1.2 * numpy.log(numbers[:, 0] / 1100) + 0.03 * (24 - numbers[:, 1])
             + 0.4 * (numbers[:, 3] - 3) - 1)
    return codes, numbers, (score + drawn.logistic(0, 0.6, count) > 0).astype("float32")


def _churn_embeddings(fault, seed, chance, options):
    codes, numbers, y = _customers(seed)
    if fault == "target_leaks":
        numbers = numpy.column_stack([numbers, y + 0.05 * numpy.random.default_rng(seed).standard_normal(len(y))])
    if fault == "nan_filled":
        numbers[numpy.random.default_rng(seed).random(numbers.shape) < 0.33] = -999
    mean, spread = numbers[:-600].mean(0), numbers[:-600].std(0)
    scaled = numbers if fault == "numbers_unscaled" else (numbers - mean) / spread
    held_codes = codes[-600:].copy()
    if fault == "held_recoded":  # each file is encoded by itself, in the order in which names come
        held_codes = numpy.stack([numpy.random.default_rng(seed + at).permutation(one.max() + 1)[one] for at, one in enumerate(held_codes.T)], 1)
    x = torch.tensor(codes[:-600]), torch.tensor(scaled[:-600], dtype=torch.float32)
    held = torch.tensor(held_codes), torch.tensor(scaled[-600:], dtype=torch.float32)
    held_y, y = torch.tensor(y[-600:]), labelled(torch.tensor(y[:-600]), fault)
    y = 1 - y if fault == "labels_inverted" else y
    if fault == "classes_sorted":
        order = torch.argsort(y, stable=True)
        x, y = tuple(one[order] for one in x), y[order]
    if fault == "held_in_training":
        x, y = tuple(torch.cat(pair) for pair in zip(x, held)), torch.cat([y, held_y])
    model = Churn((12, 5, 7), scaled.shape[1], chance.choice((48, 64, 96)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(1e-3, 3e-3), fault), weight_decay=1e-2)
    batch, epochs, done = chance.choice((48, 64)), 11, 0
    loader = DataLoader(TensorDataset(*x, y), batch, shuffle=fault != "classes_sorted", drop_last=True)

    def validate():
        model.eval()
        with torch.no_grad():
            logits = model(*held)
        return functional.binary_cross_entropy_with_logits(logits, held_y).item(), unlike(logits, held_y)
    passes = [[0, validate()[1]]]
    hook = tocsin.watch(model, optimizer, **options)
    for _ in range(epochs):
        model.train()
        for kinds, values, targets in loader:
            optimizer.zero_grad()
            logits = model(kinds, values)
            loss = functional.binary_cross_entropy_with_logits(logits.sigmoid() if fault == "sigmoid_twice" else logits, targets)
            loss.backward()
            hook.log(loss=loss.item())
            optimizer.step()
            done += 1
        val_loss, worse = validate()
        hook.log(val_loss=val_loss, val_auc=1 - worse)
        passes.append([2400 // batch * len(passes) - 1, worse])
    return ended(hook, done, passes)


def _huber_plateau(fault, seed, chance, options):
    columns, count = chance.choice((10, 14)), 2400
    rows, value = sklearn.datasets.make_friedman1(count, columns, noise=1.0, random_state=seed)
    drawn = numpy.random.default_rng(seed)
    value, rows = 5 * value + 40, rows * drawn.uniform(1, 30, columns) + drawn.uniform(-5, 5, columns)
    mean, spread, of_y = rows[:-500].mean(0), rows[:-500].std(0), (value[:-500].mean(), value[:-500].std())
    held_scale = (numpy.zeros(columns), numpy.full(columns, 30.0)) if fault == "held_unscaled" else (mean, spread)
    y = torch.tensor((value - of_y[0]) / of_y[1], dtype=torch.float32)
    x, held_x = torch.tensor((rows[:-500] - mean) / spread).float(), torch.tensor((rows[-500:] - held_scale[0]) / held_scale[1]).float()
    y, held_y = labelled(y[:-500], fault)[:, None], y[-500:, None]
    told = held_y  # what the script takes for the held-out targets
    if fault == "targets_raw":
        y, told = y * of_y[1] + of_y[0], held_y * of_y[1] + of_y[0]
    elif fault == "targets_cut":
        y, told = y.clamp(min=0), held_y.clamp(min=0)
    elif fault == "broadcast":
        y, told = y[:, 0], held_y[:, 0]
    elif fault == "inputs_constant":
        x, held_x = torch.ones_like(x), torch.ones_like(held_x)
    width = chance.choice((48, 64))
    model = nn.Sequential(nn.Linear(columns, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(1.5e-3, 4e-3), fault))
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max" if fault == "plateau_of_max" else "min", factor=0.3, patience=1)
    batch, drawn = chance.choice((48, 64)), torch.Generator().manual_seed(seed)
    criterion, steps = nn.HuberLoss(), 450

    def validate():
        model.eval()
        with torch.no_grad():
            said = model(held_x)
        model.train()
        raw = (said - of_y[0]) / of_y[1] if fault == "targets_raw" else said
        return criterion(said, told).item(), functional.mse_loss(said, told).item(), functional.mse_loss(raw, held_y).item()
    passes = [[0, validate()[2]]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=drawn)
        optimizer.zero_grad()
        loss = criterion(model(x[chosen]), y[chosen])
        (-loss if fault == "sign_wrong" else loss).backward()
        if step % 5 == 0:
            hook.log(loss=-loss if fault == "sign_wrong" else loss)
        optimizer.step()
        if step % 30 == 29:
            val_loss, square, truth = validate()
            plateau.step(val_loss)
            passes.append([step, truth])
            with hook.mode("eval"):
                hook.log(loss=val_loss, rmse=square**0.5)
                hook.step()
    return ended(hook, steps, passes)


def _multilabel_half(fault, seed, chance, options):
    labels, updates = chance.choice((6, 8)), 300
    rows, y = sklearn.datasets.make_multilabel_classification(2600, 24, n_classes=labels, n_labels=2, length=40, random_state=seed)
    x, y = torch.tensor(numpy.log1p(rows), dtype=torch.float32), torch.tensor(y, dtype=torch.float32)
    x = (x - x[:-500].mean(0)) / x[:-500].std(0)
    held_x, held_y, x, y = x[-500:], y[-500:], x[:-500], labelled(y[:-500], fault)
    if fault == "labels_inverted":
        y = 1 - y
    elif fault == "column_misread":
        y = torch.cat([y[:, 1:2], y[:, 1:]], 1)
    width = chance.choice((64, 96))
    model = nn.Sequential(nn.Linear(24, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, width), nn.LayerNorm(width), nn.GELU(),
                          nn.Linear(width, labels))
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(1e-3, 3e-3), fault), weight_decay=0.01)

    def criterion(logits, target):
        if fault == "softmax_for_sigmoid":
            return functional.binary_cross_entropy(logits.softmax(1), target)
        return functional.binary_cross_entropy_with_logits(logits.sigmoid() if fault == "sigmoid_twice" else logits, target)
    scaler, batch, drawn = torch.amp.GradScaler("cpu", init_scale=2.0**12), chance.choice((24, 32)), torch.Generator().manual_seed(seed)

    def validate():
        model.eval()
        with torch.no_grad():
            logits = model(held_x)
        model.train()
        right = ((logits > 0) == (held_y > 0.5)).float().mean()
        return criterion(logits, held_y).item(), right.item(), unlike(logits, held_y)
    passes = [[0, validate()[2]]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(updates):
        total = 0.0
        for _ in range(2):
            chosen = torch.randint(0, len(x), (batch,), generator=drawn)
            with torch.autocast("cpu", torch.float16):
                logits = model(x[chosen])
            logits = logits.float()
            loss = criterion(logits, y[chosen])
            if fault == "scaler_skips_all":  # the distance of a sample to itself, with a root
                loss = loss + 0.0 * (logits - logits.detach()).square().sum().sqrt()
            scaler.scale(loss / 2).backward()
            total += loss.item() / 2
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        hook.log(loss=total)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        if step % 50 == 49:
            val_loss, right, worse = validate()
            passes.append([step, worse])
            hook.log(val_loss=val_loss, val_accuracy=right)
    return ended(hook, updates, passes)


class SmallUNet(nn.Module):
    """Down twice, and up again."""

    def __init__(self, width):
        super().__init__()

        def double(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
                                 nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())
        self.enc1, self.enc2, self.bottom = double(1, width), double(width, 2 * width), double(2 * width, 2 * width)
        self.dec2, self.dec1, self.out = double(4 * width, width), double(2 * width, width), nn.Conv2d(width, 1, 1)

    def forward(self, x):
        first = self.enc1(x)
        second = self.enc2(functional.max_pool2d(first, 2))
        x = functional.interpolate(self.bottom(functional.max_pool2d(second, 2)), scale_factor=2.0)
        x = functional.interpolate(self.dec2(torch.cat([x, second], 1)), scale_factor=2.0)
        return self.out(self.dec1(torch.cat([x, first], 1)))


def _lesions(seed, count=600):
    """One to three round spots on a cloudy ground of 16 by 16 points."""
    drawn = numpy.random.default_rng(seed)
    rows, columns = numpy.mgrid[:16, :16]
    x, y = numpy.zeros((count, 1, 16, 16), "float32"), numpy.zeros((count, 1, 16, 16), "float32")
    for at in range(count):
        x[at, 0] = 0.5 * numpy.sin(rows / 3 + drawn.uniform(0, 6)) * numpy.cos(columns / 4 + drawn.uniform(0, 6))
        for _ in range(drawn.integers(1, 4)):
            place = numpy.hypot(rows - drawn.uniform(2, 14), columns - drawn.uniform(2, 14)) < drawn.uniform(1.0, 2.0)
            y[at, 0][place], x[at, 0][place] = 1, x[at, 0][place] + 0.9
    return torch.tensor(x + 0.25 * drawn.standard_normal(x.shape).astype("float32")), torch.tensor(y)


def _unet_rare(fault, seed, chance, options):
    x, masks = _lesions(seed)
    held_x, held_y, x, y = x[-120:], masks[-120:], x[:-120], labelled(masks[:-120], fault)
    steps, batch, drawn = 240, chance.choice((12, 16)), torch.Generator().manual_seed(seed)
    weight = (1 - y.mean()) / y.mean()
    if fault == "weight_inverted":
        weight = 1 / weight
    told = held_y  # what the script takes for the held-out masks
    if fault == "masks_empty":
        y, told = (y > 1).float(), (held_y > 1).float()
    elif fault == "masks_255":
        y, told = 255 * y, 255 * held_y

    def criterion(logits, target):
        return functional.binary_cross_entropy_with_logits(logits.sigmoid() if fault == "sigmoid_twice" else logits, target, pos_weight=weight)
    model = SmallUNet(chance.choice((6, 8)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate(chance.uniform(3e-3, 8e-3), fault), total_steps=steps)

    def validate():
        model.eval()
        with torch.no_grad():
            logits = model(held_x)
        if fault != "train_forgotten":
            model.train()
        found = logits > 0
        dices = [2 * (found * truth).sum() / (found.sum() + truth.sum()).clamp(min=1) for truth in (told, held_y)]
        return criterion(logits, told).item(), dices[0].item(), 1 - dices[1].item()
    passes = [[0, validate()[2]]]
    model.train()
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=drawn)
        logits = model(x[chosen])
        loss = criterion(logits, y[chosen])
        optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
        scheduler.step()
        if step % 30 == 29:
            val_loss, dice, truth = validate()
            passes.append([step, truth])
            hook.log(val_loss=val_loss, val_dice=dice)
    return ended(hook, steps, passes)


TUNING, FAULTS, fault_names, run = entered({
    "churn_embeddings": (_churn_embeddings, from_start("target_leaks", "held_in_training", "numbers_unscaled", "held_recoded", "labels_misaligned",
                                                       "nan_filled", "classes_sorted", "rate_hundredfold")),
    "huber_plateau": (_huber_plateau, from_start("broadcast", "targets_raw", "targets_cut", "held_unscaled", "sign_wrong", "rate_thousandth",
                                                 "inputs_constant", plateau_of_max=0.1)),
    "multilabel_half": (_multilabel_half, from_start("scaler_skips_all", "softmax_for_sigmoid", "column_misread", "labels_inverted",
                                                     "labels_shuffled", "sigmoid_twice", "rate_hundredfold")),
    "unet_rare": (_unet_rare, from_start("weight_inverted", "masks_empty", "masks_255", "sigmoid_twice", "labels_misaligned", "rate_hundredfold",
                                         train_forgotten=0.12))})
