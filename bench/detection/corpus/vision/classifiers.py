"""Pictures.

resnet_zero_init  a small ResNet with zero-initialised residuals, SGD with Nesterov's momentum, warm-up from nothing and a cosine, shifted digits
vit_cycle        a small ViT, AdamW and OneCycleLR in bfloat16, textures in three colours
convnet_epochs   the convolutional network of every tutorial, Adam with StepLR, one line of numbers per epoch
views_infonce    two views of each digit, InfoNCE; measured by held-out digits whose other view is not the nearest one

Their faults: below, at the end; what the names mean says support.WORDS."""
import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import tocsin

from .. import data
from ..scripts.support import ended, entered, errors, from_start, labelled, rate, warmed_cosine


def _pixels(seed):
    """Digits as 0 to 255."""
    split = data.images(seed)
    split.x, split.held_x = (split.x + 1) * 127.5, (split.held_x + 1) * 127.5
    return split


def _normal(x):
    return (x / 255 - 0.305) / 0.376


class Residual(nn.Module):
    """Two convolutions; the last norm starts at nothing, so that the block is the identity."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        nn.init.zeros_(self.bn2.weight)
        self.down = nn.Identity() if stride == 1 and inputs == width else nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False),
                                                                                       nn.BatchNorm2d(width))

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + self.down(x))


class SmallResNet(nn.Module):
    """Three blocks."""

    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.layers = nn.Sequential(Residual(width, width, 1), Residual(width, 2 * width, 2), Residual(2 * width, 2 * width, 1))
        self.fc = nn.Linear(2 * width, 10)

    def forward(self, x):
        return self.fc(self.layers(self.stem(x)).mean((2, 3)))


def _resnet_zero_init(fault, seed, chance, options):
    split, batch, width, epochs = _pixels(seed), chance.choice((48, 64)), chance.choice((10, 12, 16)), 9
    x, held_x = (split.x, split.held_x) if fault == "pixels_raw" else (_normal(split.x), _normal(split.held_x))
    y = labelled(split.y, fault, 10)
    model = SmallResNet(width)
    if fault == "backbone_frozen":
        for name, one in model.named_parameters():
            one.requires_grad = name.startswith("fc")
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=rate(chance.uniform(0.05, 0.15), fault), momentum=0.9,
                                nesterov=True, weight_decay=5e-4)
    loader = DataLoader(TensorDataset(x, y), batch, shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(seed))
    steps = epochs * len(loader)
    scheduler = warmed_cosine(optimizer, steps, len(loader), fault)

    def evaluate():
        if fault != "evaluated_in_training":
            model.eval()
        with torch.no_grad():
            output = model(held_x)
        return functional.cross_entropy(output, split.held_y).item(), errors(output, split.held_y)
    passes, done = [[0, evaluate()[1]]], 0
    model.train()
    hook = tocsin.watch(model, optimizer, **options)
    for epoch in range(epochs):
        if fault != "train_forgotten" or epoch == 0:
            model.train()
        for images, targets in loader:
            images = torch.roll(images, torch.randint(-1, 2, (2,)).tolist(), (2, 3))
            loss = functional.cross_entropy(model(images), targets, label_smoothing=0.1)
            if fault != "zero_grad_missing":
                optimizer.zero_grad()
            loss.backward()
            hook.log(loss=loss.item())
            optimizer.step()
            scheduler.step()
            done += 1
        val_loss, wrong = evaluate()
        hook.log(val_loss=val_loss, val_accuracy=1 - wrong)
        passes.append([done - 1, wrong])
    return ended(hook, steps, passes)


class Attends(nn.Module):
    """A block, norms first."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.qkv, self.proj = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.fc1, self.fc2, self.heads = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(3 * width, width), heads

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.proj(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.fc2(functional.gelu(self.fc1(self.norm2(x))))


class TinyViT(nn.Module):
    """Patches of four by four, and their mean."""

    def __init__(self, width, depth, classes):
        super().__init__()
        self.patches, self.places = nn.Conv2d(3, width, 4, 4), nn.Parameter(0.02 * torch.randn(1, 16, width))
        self.blocks = nn.ModuleList(Attends(width, 4) for _ in range(depth))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


def _textures(seed, count=1500):
    """Stripes (across, up, aslant), checks, discs and rings of 16 by 16 points in three colours, 0 to 1."""
    drawn = numpy.random.default_rng(seed)
    rows, columns = numpy.mgrid[:16, :16].astype("float32")
    images, kinds = numpy.zeros((count, 3, 16, 16), "float32"), drawn.integers(0, 6, count)
    for at, kind in enumerate(kinds):
        phase, wave = drawn.uniform(0, 6.3), drawn.uniform(0.9, 1.6)
        away = numpy.hypot(rows - drawn.uniform(5, 11), columns - drawn.uniform(5, 11))
        one = (numpy.sin(wave * rows + phase), numpy.sin(wave * columns + phase), numpy.sin(0.7 * wave * (rows + columns) + phase),
               numpy.sign(numpy.sin(wave * rows + phase) * numpy.sin(wave * columns + phase)), 2.0 * (away < 4.5) - 1, numpy.sin(1.2 * away))[kind]
        ground, colour = drawn.uniform(0.2, 0.8, 3), drawn.uniform(-0.35, 0.35, 3)
        images[at] = ground[:, None, None] + colour[:, None, None] * one + 0.1 * drawn.standard_normal((3, 16, 16))
    return data.Split(torch.tensor(images).clamp(0, 1), torch.tensor(kinds), 300, 6)


def _vit_cycle(fault, seed, chance, options):
    split, batch, steps, width = _textures(seed), chance.choice((32, 48)), 320, chance.choice((24, 32))
    mean, spread = split.x.mean((0, 2, 3), keepdim=True), split.x.std((0, 2, 3), keepdim=True)
    x, held_x = (split.x - mean) / spread, split.held_x if fault == "held_unscaled" else (split.held_x - mean) / spread
    if fault == "inputs_constant":
        x, held_x = torch.zeros_like(x), torch.zeros_like(held_x)
    y, held_y = labelled(split.y, fault, 6), (5 - split.held_y if fault == "held_other_classes" else split.held_y)
    model, drawn = TinyViT(width, 2, 6), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
    peak = rate(chance.uniform(1.5e-3, 3e-3), fault)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=peak, total_steps=steps, pct_start=0.15)
    if fault == "optimizer_of_old_model":
        model = TinyViT(width, 2, 6)

    def criterion(output, target):
        return functional.cross_entropy(output.softmax(-1) if fault == "softmax_twice" else output, target)

    def evaluate():
        model.eval()
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            output = model(held_x)
        model.train()
        return output.float()
    passes, seen = [[0, errors(evaluate(), held_y)]], []
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=drawn)
        with torch.autocast("cpu", torch.bfloat16):
            loss = criterion(model(x[chosen]), y[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        seen.append(loss.item())
        if step % 10 == 9:
            hook.log(loss=sum(seen[-10:]) / 10, lr=scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
        if step % 40 == 39:
            output = evaluate()
            passes.append([step, errors(output, held_y)])
            with hook.mode("eval"):
                hook.log(loss=criterion(output, held_y), accuracy=1 - passes[-1][1])
                hook.step()
    return ended(hook, steps, passes)


def _convnet_epochs(fault, seed, chance, options):
    split, batch, width, epochs = _pixels(seed), chance.choice((32, 48)), chance.choice((12, 16)), 9
    x, held_x = _normal(split.x), _normal(split.held_x)
    y, held_y = labelled(split.y, fault, 10), split.held_y
    if fault == "classes_sorted":
        order = torch.argsort(y, stable=True)
        x, y = x[order], y[order]
    elif fault == "held_in_training":
        x, y = torch.cat([x, held_x]), torch.cat([y, held_y])
    elif fault == "few_rows":
        x, y = x[:32].repeat(40, 1, 1, 1), y[:32].repeat(40)
    model = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Dropout(0.95 if fault == "dropout_high" else 0.25), nn.Flatten(), nn.Linear(32 * width, 64), nn.ReLU(),
                          nn.Dropout(0.95 if fault == "dropout_high" else 0.5), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(7e-4, 2e-3), fault),
                                 weight_decay=10.0 if fault == "decay_large" else 1e-4)
    loader = DataLoader(TensorDataset(x, y), batch, shuffle=fault != "classes_sorted", drop_last=True)
    scheduler, passes, done = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5), [], 0
    criterion = nn.CrossEntropyLoss()

    def test():
        model.eval()
        with torch.no_grad():
            output = model(held_x)
        return criterion(output, held_y).item(), errors(output, held_y)
    passes.append([0, test()[1]])
    hook = tocsin.watch(model, optimizer, **options)
    for _ in range(epochs):
        model.train()
        running = 0.0
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            running += loss.item()
            done += 1
            if fault == "schedule_per_batch":
                scheduler.step()
        if fault != "schedule_per_batch":
            scheduler.step()
        test_loss, wrong = test()
        hook.log(train_loss=running / len(loader), test_loss=test_loss, test_acc=100 * (1 - wrong))
        passes.append([(len(split.y) // batch) * len(passes) - 1, wrong])
    return ended(hook, done, passes)


def _views_infonce(fault, seed, chance, options):
    split, batch, steps, width = _pixels(seed), chance.choice((96, 128)), 300, chance.choice((64, 96))
    x, held_x, drawn = _normal(split.x), _normal(split.held_x), torch.Generator().manual_seed(seed)
    encoder = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
                            nn.Flatten(), nn.Linear(512, width))
    model = nn.ModuleDict({"encoder": encoder, "projector": nn.Sequential(nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 32))})
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(1e-3, 3e-3), fault), weight_decay=1e-4)
    scheduler = warmed_cosine(optimizer, steps, 20, fault)
    temperature = 100.0 if fault == "temperature_large" else chance.uniform(0.1, 0.2)

    def view(images, drawn=drawn):
        images = torch.roll(images, torch.randint(-1, 2, (2,), generator=drawn).tolist(), (2, 3))
        hole = (torch.rand(len(images), 1, 8, 8, generator=drawn) > 0.1).float()
        return images * hole + 0.15 * torch.randn(images.shape, generator=drawn)

    def missed():
        fixed = torch.Generator().manual_seed(seed)
        model.eval()
        with torch.no_grad():
            first, second = (functional.normalize(model["projector"](model["encoder"](view(held_x, fixed))), dim=1) for _ in range(2))
        model.train()
        return errors(first.view(6, 60, -1) @ second.view(6, 60, -1).mT, torch.arange(60))
    passes = [[0, missed()]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        images = x[torch.randint(0, len(x), (batch,), generator=drawn)]
        first, second = view(images), view(images)
        if fault == "pairs_broken":
            second = second.roll(1, 0)
        z = functional.normalize(model["projector"](model["encoder"](torch.cat([first, second]))), dim=1)
        alike = z @ z.T / temperature
        if fault != "self_among_negatives":
            alike = alike.masked_fill(torch.eye(2 * batch, dtype=torch.bool), -1e9)
        target = torch.arange(2 * batch).roll(batch)
        if fault == "negatives_missing":
            loss = -alike[torch.arange(2 * batch), target].mean() * temperature
        else:
            loss = functional.cross_entropy(alike, target)
        if fault != "zero_grad_missing":
            optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
        scheduler.step()
        if step % 50 == 49:
            passes.append([step, missed()])
            hook.log(val_top1=1 - passes[-1][1])
    return ended(hook, steps, passes)


TUNING, FAULTS, fault_names, run = entered({
    "resnet_zero_init": (_resnet_zero_init, from_start("labels_shuffled", "rate_hundredfold", "backbone_frozen", "pixels_raw", "class_mislabelled",
                                             "zero_grad_missing", "evaluated_in_training", schedule_ends_early=0.2, train_forgotten=0.12)),
    "vit_cycle": (_vit_cycle, from_start("rate_thousandth", "rate_hundredfold", "optimizer_of_old_model", "softmax_twice", "held_unscaled",
                                         "held_other_classes", "inputs_constant", "labels_misaligned")),
    "convnet_epochs": (_convnet_epochs, from_start("labels_off_by_one", "classes_sorted", "held_in_training", "few_rows", "dropout_high",
                                                   "decay_large", "schedule_per_batch", "rate_thousandth")),
    "views_infonce": (_views_infonce, from_start("temperature_large", "negatives_missing", "pairs_broken", "self_among_negatives",
                                                 "rate_hundredfold", "zero_grad_missing"))})
