"""Pictures.

vit_layerwise     a vision transformer that was trained before learns other shapes: AdamW with rates by layer, label smoothing, warm-up and a cosine
nuclei_dice       a U-Net marks shapes: binary cross-entropy and Dice in a sum, bfloat16, one line of numbers per epoch

Their faults: below, at the end."""
import copy
import functools

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import tocsin

from ..scripts.shapes import ended, entered, errors, from_start, labelled, rate, shapes, warmed


def _scaled(images):
    return (images - 95) / 50


class Vision(nn.Module):
    """Sixteen patches, a place for the class, two layers."""

    def __init__(self, width, classes):
        super().__init__()
        self.patches, self.token = nn.Conv2d(1, width, 4, 4), nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(17, width))
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.05, activation="gelu", batch_first=True, norm_first=True)
                                    for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


@functools.lru_cache(maxsize=4)
def _seen_before(seed, width):
    """Weights of a network that knows six shapes."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        images, kinds, _, _ = shapes(900 + seed, 3000)
        model = Vision(width, 6)
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
        for _ in range(300):
            chosen = torch.randint(0, 3000, (32,))
            optimizer.zero_grad()
            functional.cross_entropy(model(_scaled(images[chosen])), kinds[chosen]).backward()
            optimizer.step()
        return {name: value for name, value in model.state_dict().items() if not name.startswith("head")}


def _by_layer(model, value, decay):
    """Parameter groups: the head has the whole rate, each block below it less."""
    parts = [[*model.patches.parameters(), model.token, model.places], *(list(one.parameters()) for one in model.blocks),
             [*model.norm.parameters(), *model.head.parameters()]]
    return [{"params": part, "lr": value * decay ** (len(parts) - 1 - at)} for at, part in enumerate(parts)]


def _vit_layerwise(fault, seed, chance, options):
    images, kinds, _, _ = shapes(seed, 2000, range(6, 10))
    x, held_x, y, held_y = _scaled(images[:-400]), _scaled(images[-400:]), labelled(kinds[:-400] - 6, fault, 4), kinds[-400:] - 6
    if fault == "held_unscaled":
        held_x = images[-400:] / 255
    elif fault == "held_other_classes":
        held_y = (held_y + 1) % 4
    elif fault == "evaluated_on_training":
        held_x, held_y = x[:400], y[:400]
    width, batch, epochs = chance.choice((24, 32)), chance.choice((32, 40)), 7
    model = Vision(width, 4)
    if fault != "pretrained_missing":
        model.load_state_dict(_seen_before(seed, width), strict=False)
    of_epoch = len(x) // batch
    tuned = copy.deepcopy(model) if fault == "optimizer_of_old_model" else model
    optimizer = torch.optim.AdamW(_by_layer(tuned, rate(chance.uniform(8e-4, 1.2e-3), fault), chance.choice((0.6, 0.7))), weight_decay=0.05)
    scheduler = warmed(optimizer, epochs * of_epoch, 25, fault, linear=False)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    loader = DataLoader(TensorDataset(x, y), batch, shuffle=True, drop_last=True)

    def validate():
        model.eval()
        with torch.no_grad():
            output = model(held_x)
            loss = criterion(output, held_y).item()
        model.train()
        return loss, errors(output, held_y)
    passes, done = [[0, validate()[1]]], 0
    hook = tocsin.watch(model, optimizer, loss=criterion, **options)
    for _ in range(epochs):
        for inputs, targets in loader:
            loss = criterion(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            done += 1
        _, wrong = validate()
        passes.append([done - 1, wrong])
        hook.log(val_acc=1 - wrong)
    return ended(hook, done, passes)


class SmallUNet(nn.Module):
    """Two levels down, two up."""

    def __init__(self, width):
        super().__init__()

        def twice(inside, outside):
            return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.ReLU(),
                                 nn.Conv2d(outside, outside, 3, padding=1), nn.GroupNorm(4, outside), nn.ReLU())
        self.down1, self.down2, self.middle = twice(1, width), twice(width, 2 * width), twice(2 * width, 2 * width)
        self.up2, self.up1, self.out = twice(4 * width, width), twice(2 * width, width), nn.Conv2d(width, 1, 1)

    def forward(self, x):
        one = self.down1(x)
        two = self.down2(functional.max_pool2d(one, 2))
        x = self.middle(functional.max_pool2d(two, 2))
        x = self.up2(torch.cat([functional.interpolate(x, scale_factor=2), two], 1))
        return self.out(self.up1(torch.cat([functional.interpolate(x, scale_factor=2), one], 1)))


def _nuclei_dice(fault, seed, chance, options):
    images, _, masks, _ = shapes(seed, 680, (0, 2, 5), most=3)
    x, held_x, y, held_y = _scaled(images[:-160]), _scaled(images[-160:]), masks[:-160], masks[-160:]
    if fault == "masks_moved":
        y = y.roll(1, 0)
    elif fault == "masks_255":
        y = y * 255
    elif fault == "masks_empty":
        y = (y == 255).float()
    elif fault == "held_unscaled":
        held_x = images[-160:]
    model, batch, epochs = SmallUNet(8), chance.choice((8, 10)), 6
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(1e-3, 2e-3), fault))
    loader = DataLoader(TensorDataset(x, y), batch, shuffle=True, drop_last=True)

    def dice(logits, target):
        said = logits.sigmoid().flatten(1)
        target = target.flatten(1)
        overlap = (2 * (said * target).sum(1) + 1) / (said.sum(1) + target.sum(1) + 1)
        return overlap.mean() if fault == "dice_inverted" else 1 - overlap.mean()

    def both(images, target):
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(images)
        logits = logits.float()
        given = logits.sigmoid() if fault == "sigmoid_twice" else logits
        return functional.binary_cross_entropy_with_logits(given, target), dice(given, target)

    def validate():
        """(loss, 1 − intersection over union)"""
        model.eval()
        with torch.no_grad():
            loss = sum(both(held_x, held_y)).item()
            said = model(held_x) > 0
        model.train()
        return loss, 1 - float((said & (held_y > 0)).sum() / (said | (held_y > 0)).sum())
    passes, done = [[0, validate()[1]]], 0
    hook = tocsin.watch(model, optimizer, **options)
    for _ in range(epochs):
        total = 0.0
        for inputs, target in loader:
            if chance.random() < 0.5:
                inputs = inputs.flip(-1)
                target = target if fault == "flipped_apart" else target.flip(-1)
            bce, overlap = both(inputs, target)
            loss = bce + (3.0 if fault == "dice_inverted" else 1.0) * overlap
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            done += 1
        val_loss, wrong = validate()
        hook.log(train_loss=total / len(loader), val_loss=val_loss, iou=1 - wrong)
        passes.append([done - 1, wrong])
    return ended(hook, done, passes)


TUNING, FAULTS, fault_names, run = entered({
    "vit_layerwise": (_vit_layerwise, from_start("labels_misaligned", "held_unscaled", "pretrained_missing", "rate_hundredfold", "optimizer_of_old_model",
                                                 "warmup_endless", "class_random", "evaluated_on_training")),
    "nuclei_dice": (_nuclei_dice, from_start("masks_moved", "masks_255", "masks_empty", "sigmoid_twice", "dice_inverted", "flipped_apart", "held_unscaled",
                                             "rate_hundredfold"))})
