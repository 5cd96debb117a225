"""Pictures. Unlike the sets before, these are the trainings that most people run, by the recipes that most
people use. Whoever looks at what is said of their single runs makes them tuning jobs, and writes others."""
import math

import numpy
import torch
from torch import nn
from torch.nn import functional

from .. import data
from ..recipes.jobs import adam, adamw, between, cosine, job, sgd
from ..mixed.modern import one_cycle
from ..recipes.scripts import Script
from ..mixed.new_losses import source

ALL = ("fourth", "sixth", "seventh", "eighth", "ninth")


def right(output, y):
    """The share of right answers."""
    return {"accuracy": float((output.argmax(1) == (y if y.dim() == 1 else y.argmax(1))).float().mean())}


def ema(decay):
    """As AveragedModel takes it, with a warm-up."""
    return lambda mean, now, step: mean.lerp(now, 1 - min(decay, (1 + int(step)) / (10 + int(step))))


def grouped(rate, decay, **more):
    """AdamW with weight decay for matrices alone."""
    def make(parameters):
        kept = [one for one in parameters if one.requires_grad]
        groups = [{"params": [one for one in kept if one.dim() > 1], "weight_decay": decay},
                  {"params": [one for one in kept if one.dim() < 2], "weight_decay": 0.0}]
        return torch.optim.AdamW([group for group in groups if group["params"]], rate, **more)
    return make


def shifts_and_noise(seed):
    """Augmentation: up to a point up, down, left, right, and a little noise."""
    drawn = source(seed)

    def change(x, y):
        by = torch.randint(-1, 2, (2,), generator=drawn).tolist()
        return torch.roll(x, by, (2, 3)) + 0.1 * torch.randn(x.shape, generator=drawn), y
    return change


class Block(nn.Module):
    """Two convolutions and a way around."""

    def __init__(self, inputs, width, stride=1):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.shortcut = nn.Sequential() if inputs == width and stride == 1 else nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False),
                                                                                              nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + self.shortcut(x))


class ResNet(nn.Module):
    """A small one."""

    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(1, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.layer1, self.layer2 = Block(width, width), Block(width, 2 * width, 2)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(2 * width, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        return self.fc(self.avgpool(self.layer2(self.layer1(x))).flatten(1))


@job("classes", "norm", "sgd", "images", "modes", "held", "names", "follows", *ALL, tuning=False)
def resnet_onecycle(seed, chance):
    """ResNet, SGD with Nesterov's momentum and decay, one cycle, shifted images; logged each step, val_loss and val_accuracy per epoch."""
    steps, batch = 264, chance.choice((32, 48, 64))
    return Script(ResNet(chance.choice((8, 12))), data.images(seed), nn.CrossEntropyLoss(),
                  sgd(between(chance, 0.03, 0.15), nesterov=True, weight_decay=5e-4),
                  steps, batch, evaluate_every=1437 // batch, schedule=one_cycle(steps), transform=shifts_and_noise(seed), scores=right,
                  says="before",
                  tells=chance.choice(("plain", "mean")))


class ViT(nn.Module):
    """Patches of two by two, a token for the class, places that are learned."""

    def __init__(self, width, depth, dropout):
        super().__init__()
        self.patch_embed = nn.Conv2d(1, width, 2, 2)
        self.cls_token, self.pos_embed = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(0.02 * torch.randn(1, 17, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout, "gelu", batch_first=True, norm_first=True)
        self.blocks, self.norm, self.head = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False), nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


@job("classes", "attention", "adam", "images", "modes", "dropout", "held", "names", "averages", "groups", *ALL, tuning=False)
def vit_smoothed(seed, chance):
    """ViT, AdamW, warm-up and cosine, smoothed labels, clipping; evaluated with averaged weights and plain cross-entropy."""
    steps, batch = 300, chance.choice((48, 64))
    return Script(ViT(chance.choice((32, 48)), 2, 0.1), data.images(seed), nn.CrossEntropyLoss(label_smoothing=0.1),
                  grouped(between(chance, 1e-3, 3e-3), 0.05),
                  steps, batch, evaluate_every=1437 // batch, schedule=cosine(steps, 30), clip=1.0, judged=functional.cross_entropy, scores=right,
                  average=ema(0.97), says=chance.choice(("before", "tenth")), tells="mean")


class Next(nn.Module):
    """A block of ConvNeXt."""

    def __init__(self, width):
        super().__init__()
        self.dwconv, self.norm = nn.Conv2d(width, width, 5, padding=2, groups=width), nn.LayerNorm(width)
        self.pwconv1, self.pwconv2, self.gamma = nn.Linear(width, 3 * width), nn.Linear(3 * width, width), nn.Parameter(0.1 * torch.ones(width))

    def forward(self, x):
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        return x + (self.gamma * self.pwconv2(functional.gelu(self.pwconv1(y)))).permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    """Four blocks, halved once."""

    def __init__(self, width):
        super().__init__()
        self.stem, self.down = nn.Conv2d(1, width, 3, padding=1), nn.Conv2d(width, 2 * width, 2, 2)
        self.stages = nn.ModuleList([nn.Sequential(Next(width), Next(width)), nn.Sequential(Next(2 * width), Next(2 * width))])
        self.norm, self.head = nn.LayerNorm(2 * width), nn.Linear(2 * width, 10)

    def forward(self, x):
        x = self.stages[1](self.down(self.stages[0](self.stem(x))))
        return self.head(self.norm(x.mean((2, 3))))


@job("classes", "adam", "images", "held", "names", "mixes", "scales", "groups", *ALL, tuning=False)
def convnext_mixup(seed, chance):
    """A ConvNeXt with mixup: soft labels in training, hard ones in the evaluation; bfloat16 and, as copied from elsewhere, a scaler of the loss."""
    steps, batch, drawn = 300, chance.choice((32, 48)), numpy.random.default_rng(seed)

    def mixed(x, y):
        share, order = float(drawn.beta(0.2, 0.2)), torch.randperm(len(x))
        hot = functional.one_hot(y, 10).float()
        return share * x + (1 - share) * x[order], share * hot + (1 - share) * hot[order]
    return Script(ConvNext(chance.choice((12, 16))), data.images(seed), nn.CrossEntropyLoss(), grouped(between(chance, 1.5e-3, 4e-3), 0.05), steps,
                  batch,
                  evaluate_every=1437 // batch, schedule=cosine(steps, 25), clip=5.0, transform=mixed, scores=right, half=torch.bfloat16,
                  scaler=lambda: torch.amp.GradScaler("cpu", init_scale=1024.0), says="after", tells=chance.choice(("mean", "batches")))


class UNet(nn.Module):
    """Down once and twice, and up again."""

    def __init__(self, width):
        super().__init__()

        def double(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True),
                                 nn.Conv2d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))
        self.down1, self.down2, self.middle = double(1, width), double(width, 2 * width), double(2 * width, 4 * width)
        self.up2, self.conv2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), double(4 * width, 2 * width)
        self.up1, self.conv1 = nn.ConvTranspose2d(2 * width, width, 2, 2), double(2 * width, width)
        self.out = nn.Conv2d(width, 3, 1)

    def forward(self, x):
        first = self.down1(x)
        second = self.down2(functional.max_pool2d(first, 2))
        x = self.middle(functional.max_pool2d(second, 2))
        x = self.conv2(torch.cat([self.up2(x), second], 1))
        return self.out(self.conv1(torch.cat([self.up1(x), first], 1)))


def _shapes(seed, count=760):
    """Discs and squares on a noisy ground, 16 by 16; of each point what it is of."""
    random = numpy.random.default_rng(seed)
    rows, columns = numpy.mgrid[:16, :16]
    x, y = numpy.zeros((count, 16, 16), "float32"), numpy.zeros((count, 16, 16), "int64")
    for kind in (1, 2):
        at, size = random.uniform(3, 13, (count, 2, 1, 1)), random.uniform(2, 4.5, (count, 1, 1))
        off = numpy.abs(rows - at[:, 0]), numpy.abs(columns - at[:, 1])
        inside = (off[0] ** 2 + off[1] ** 2 < size**2) if kind == 1 else numpy.maximum(*off) < size
        y[inside] = kind
    x = numpy.array([0.0, 1.0, 0.6], "float32")[y] + 0.35 * random.standard_normal(y.shape).astype("float32")
    return data.Split(torch.tensor(x)[:, None], torch.tensor(y), 160, 3)


@job("adam", "norm", "several", "modes", "held", "follows", *ALL, tuning=False)
def unet_dice(seed, chance):
    """UNet, cross-entropy and Dice's loss added up, AdamW, a polynomial fall; mean IoU per epoch."""
    steps, batch = 220, chance.choice((8, 16))

    def loss(output, y):
        likely, hot = output.softmax(1), functional.one_hot(y, 3).permute(0, 3, 1, 2)
        dice = 1 - (2 * (likely * hot).sum((0, 2, 3)) + 1) / ((likely + hot).sum((0, 2, 3)) + 1)
        return functional.cross_entropy(output, y) + dice.mean()

    def iou(output, y):
        said = output.argmax(1)
        return {"iou": float(numpy.mean([float(((said == one) & (y == one)).sum() / ((said == one) | (y == one)).sum().clamp(min=1))
                                         for one in range(3)]))}
    return Script(UNet(chance.choice((6, 8))), _shapes(seed), loss, adamw(between(chance, 1e-3, 4e-3), weight_decay=1e-2), steps, batch,
                  evaluate_every=25,
                  schedule=lambda optimizer: torch.optim.lr_scheduler.PolynomialLR(optimizer, steps, 0.9), scores=iou,
                  says=chance.choice(("before", "epochs")),
                  tells="plain")


class Detects(nn.Module):
    """Of each of 4 × 4 cells and two anchors: whether something is there, where, how large, and of which kind."""

    def __init__(self, width):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.SiLU(),
                                      nn.Conv2d(width, 2 * width, 3, 2, 1, bias=False), nn.BatchNorm2d(2 * width), nn.SiLU(),
                                      nn.Conv2d(2 * width, 4 * width, 3, 2, 1, bias=False), nn.BatchNorm2d(4 * width), nn.SiLU())
        self.head = nn.Conv2d(4 * width, 2 * 7, 1)
        nn.init.constant_(self.head.bias, 0.0)
        self.head.bias.data[[0, 7]] = -3.0  # little is there

    def forward(self, x):
        return self.head(self.backbone(x)).reshape(len(x), 2, 7, 4, 4)


@job("regression", "several", "norm", "adam", "modes", "held", "follows", *ALL, tuning=False)
def anchors(seed, chance):
    """A detector with anchors on a grid: focal loss for what is there, smooth L1 for boxes, cross-entropy for kinds; SGD's warm-up with Adam."""
    random, count, steps = numpy.random.default_rng(seed), 1000, 260
    x, y = 0.3 * random.standard_normal((count, 16, 16)), numpy.zeros((count, 2, 6, 4, 4))
    rows, columns = numpy.mgrid[:16, :16] + 0.5
    for one in range(count):
        for _ in range(random.integers(1, 4)):
            middle, size, kind = random.uniform(3, 13, 2), random.uniform(3, 7), random.integers(2)
            off = numpy.abs(rows - middle[0]), numpy.abs(columns - middle[1])
            inside = numpy.maximum(*off) < size / 2 if kind else off[0] + off[1] < size / 1.6
            x[one][inside] = 1.5 - random.uniform(0, 0.4)
            cell, anchor = (middle // 4).astype(int), int(size > 5)
            y[one, anchor, :, cell[0], cell[1]] = [1, *(middle / 4 - cell - 0.5), math.log(size / (4, 6)[anchor]), kind, 1]

    def loss(output, target):
        there = target[:, :, 0]
        plain = functional.binary_cross_entropy_with_logits(output[:, :, 0], there, reduction="none")
        focal = ((1 - (-plain).exp()) ** 2 * plain * (0.25 + 0.5 * there)).sum() / there.sum().clamp(min=1)
        boxes = (functional.smooth_l1_loss(output[:, :, 1:4], target[:, :, 1:4], reduction="none").sum(2) * there).sum() / there.sum().clamp(min=1)
        kinds = functional.cross_entropy(output[:, :, 5:7].permute(0, 1, 3, 4, 2).reshape(-1, 2), target[:, :, 4].long().flatten(), reduction="none")
        return 4 * focal + 2 * boxes + (kinds * there.flatten()).sum() / there.sum().clamp(min=1)

    def found(output, target):
        there = target[:, :, 0] > 0.5
        return {"recall": float((output[:, :, 0][there] > 0).float().mean())}
    split = data.Split(torch.tensor(x, dtype=torch.float32)[:, None], torch.tensor(y, dtype=torch.float32), 200)
    return Script(Detects(chance.choice((8, 12))), split, loss, adamw(between(chance, 1.5e-3, 4e-3), weight_decay=5e-4), steps, 16, evaluate_every=26,
                  schedule=cosine(steps, 20), clip=10.0, norms=True, scores=found, says="before", tells="plain")


class Draws(nn.Module):
    """A variational autoencoder of images; the last numbers of what it gives are means and spreads."""

    def __init__(self, width, size):
        super().__init__()
        self.size = size
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.mu, self.logvar = nn.Linear(width, size), nn.Linear(width, size)
        self.decoder = nn.Sequential(nn.Linear(size, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 64))

    def forward(self, x):
        y = self.encoder(x)
        mean, spread = self.mu(y), self.logvar(y)
        z = mean + torch.randn_like(mean) * (0.5 * spread).exp() if self.training else mean
        return torch.cat([self.decoder(z), mean, spread], 1)


@job("regression", "same", "adam", "modes", "held", *ALL, tuning=False)
def vae_annealed(seed, chance):
    """A VAE whose divergence comes in over the first half; the loss may rise with it. Evaluated with its full weight."""
    split, steps, size = data.digits(seed), 320, chance.choice((6, 8))
    split.x, split.held_x = (split.x + 1) / 2, (split.held_x + 1) / 2
    split.y, split.held_y = split.x, split.held_x
    model, at = Draws(chance.choice((64, 96)), size), [0]

    def parts(output, y):
        mean, spread = output[:, 64:64 + size], output[:, 64 + size:]
        return (functional.binary_cross_entropy_with_logits(output[:, :64], y, reduction="none").sum(1).mean(),
                -0.5 * (1 + spread - mean.square() - spread.exp()).sum(1).mean())

    def loss(output, y):
        at[0] += 1
        drawn, apart = parts(output, y)
        return drawn + min(1.0, at[0] / (0.5 * steps)) * apart
    return Script(model, split, loss, adam(between(chance, 7e-4, 3e-3)), steps, 64, evaluate_every=22, judged=lambda output, y: sum(parts(output, y)),
                  values=lambda output, y: dict(zip(("recon", "kl"), map(float, parts(output, y)))), says="before",
                  tells=chance.choice(("mean", "plain")))


@job("regression", "same", "relu", "adam", "held", *ALL, tuning=False)
def conv_autoencoder(seed, chance):
    """A convolutional autoencoder that takes noise away; MSE as a module that the hook is given, a rate that falls by epochs."""
    split, width, drawn = data.images(seed), chance.choice((8, 12)), source(seed)
    split.y, split.held_y = split.x, split.held_x
    model = nn.Sequential(nn.Conv2d(1, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1), nn.ReLU(),
                          nn.ConvTranspose2d(2 * width, width, 2, 2), nn.ReLU(), nn.ConvTranspose2d(width, 1, 2, 2), nn.Tanh())
    return Script(model, split, nn.MSELoss(), adam(between(chance, 2e-3, 6e-3)), 308, 64, evaluate_every=22, by_epoch=True,
                  schedule=lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95),
                  transform=lambda x, y: (x + 0.3 * torch.randn(x.shape, generator=drawn), y), says="module", tells="batches")
