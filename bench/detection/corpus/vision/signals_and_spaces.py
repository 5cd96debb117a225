"""Pictures, signals and spaces. Kinds that no set before has, chosen from what people train and not from what
rules look at. Whoever looks at what is said of their single runs makes them tuning jobs, and writes others."""
import copy
import math

import numpy
import scipy.optimize
import torch
from torch import nn

from .. import data
from ..recipes.jobs import adam, adamw, between, cosine, job
from ..mixed.modern import fused
from .representations import behind, right
from ..recipes.rounds import Rounds
from ..mixed.new_losses import encoder, noam, source
from ..recipes.epochs import Epochs


def warmed(warm):
    """Up in a straight line, then as it is."""
    return lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min(1.0, (at + 1) / warm))


class Covered(nn.Module):
    """An encoder of the few patches that are seen, a smaller one of all places; behind the picture stands in which order patches are taken."""

    def __init__(self, width, seen):
        super().__init__()
        self.seen, self.enter, self.place = seen, nn.Linear(4, width), nn.Parameter(0.02 * torch.randn(16, width))
        self.encode, self.narrow = encoder(width, 2, 0.0, first=True), nn.Linear(width, 24)
        self.mask, self.there = nn.Parameter(0.02 * torch.randn(24)), nn.Parameter(0.02 * torch.randn(16, 24))
        self.decode, self.leave = encoder(24, 1, 0.0, first=True), nn.Linear(24, 4)

    def forward(self, x):
        patches, order = x[:, :64].reshape(-1, 16, 4), x[:, 64:].argsort(1)
        keep = order[:, :self.seen, None]
        y = (self.enter(patches) + self.place).gather(1, keep.expand(-1, -1, self.place.shape[1]))
        y = self.narrow(self.encode(y))
        y = self.mask.expand(len(x), 16, 24).scatter(1, keep.expand(-1, -1, 24), y)
        hidden = torch.ones(len(x), 16).scatter(1, keep[:, :, 0], 0)
        return torch.cat([self.leave(self.decode(y + self.there)).flatten(1), hidden.repeat_interleave(4, 1)], 1)


@job("regression", "same", "fresh", "attention", "adam", "fourth", "sixth", "seventh", "eighth", tuning=False)
def covered(seed, chance):
    """A masked autoencoder: half of the patches hidden and more, other ones each time; the loss is of what was hidden."""
    split, steps, drawn = data.digits(seed), 220, source(seed)
    order = torch.arange(64).reshape(4, 2, 4, 2).permute(0, 2, 1, 3).flatten()
    split.x, split.held_x = split.x[:, order], split.held_x[:, order]
    split.y, split.held_y = split.x, split.held_x

    def hide(x):
        return torch.cat([x, torch.rand(len(x), 16, generator=drawn)], 1)

    def loss(output, target):
        return ((output[:, :64] - target).square() * output[:, 64:]).sum() / output[:, 64:].sum()
    split.held_x = hide(split.held_x)
    made = Rounds(Covered(chance.choice((32, 48)), chance.choice((6, 8))), split, loss, fused(between(chance, 2e-3, 5e-3), weight_decay=0.05), steps, 48,
                  evaluate_every=20, samples=180, schedule=cosine(steps, 20))
    return behind(made, lambda step, x, y: (hide(x), y))


class Selves(nn.Module):
    """A network and its own slow mean, which says to which of some prototypes a picture belongs."""

    def __init__(self, width, kinds):
        super().__init__()
        self.now = nn.Sequential(nn.Linear(64, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, kinds, bias=False))
        self.slow = copy.deepcopy(self.now).requires_grad_(False)
        self.register_buffer("centre", torch.zeros(kinds))

    def forward(self, x):
        views = x.chunk(2, 1)
        said = torch.cat([self.now(one) for one in views], 1)
        with torch.no_grad():
            if self.training:
                for slow, now in zip(self.slow.parameters(), self.now.parameters()):
                    slow.lerp_(now, 0.03)
            told = [self.slow(one) for one in views]
            sure = [((one - self.centre) / 0.06).softmax(1) for one in told]
            if self.training:
                self.centre.lerp_(torch.cat(told).mean(0), 0.1)
        return torch.cat([said, *sure], 1)


@job("regression", "same", "fresh", "adam", "pair", "fourth", "sixth", "seventh", "eighth", tuning=False)
def selves(seed, chance):
    """Self-distillation (DINO): a network foretells what its own slow mean says of another view, centred and sharpened."""
    split, steps, drawn, kinds = data.digits(seed), 260, source(seed), 32

    def views(x):
        return torch.cat([(x + 0.3 * torch.randn(x.shape, generator=drawn)) * (torch.rand(x.shape, generator=drawn) > 0.1) for _ in range(2)], 1)

    def loss(output, target):
        p, q, a, b = output.chunk(4, 1)
        return -((b * (p / 0.1).log_softmax(1)).sum(1) + (a * (q / 0.1).log_softmax(1)).sum(1)).mean() / 2
    split.held_x = views(split.held_x)
    split.y, split.held_y = split.x, split.held_x
    made = Rounds(Selves(chance.choice((64, 96)), kinds), split, loss, adamw(between(chance, 5e-4, 2e-3), weight_decay=0.04), steps, 64, evaluate_every=26,
                  samples=180, schedule=cosine(steps, 25), clip=3.0, parameters=lambda model: model.now.parameters())
    return behind(made, lambda step, x, y: (views(x), y))


class Sharpens(nn.Module):
    """Residual layers at the small size, then points out of channels, on top of what plain enlargement gives."""

    def __init__(self, width):
        super().__init__()
        self.enter, self.leave, self.shuffle = nn.Conv2d(1, width, 3, padding=1), nn.Conv2d(width, 4, 3, padding=1), nn.PixelShuffle(2)
        self.bodies = nn.ModuleList([nn.Sequential(nn.Conv2d(width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1)) for _ in range(2)])

    def forward(self, x):
        y = self.enter(x)
        for body in self.bodies:
            y = y + body(y)
        return self.shuffle(self.leave(y)) + nn.functional.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


@job("regression", "several", "relu", "adam", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def sharpens(seed, chance):
    """Super-resolution (EDSR): twice the size, Charbonnier's loss, the rate falls twice; how many decibels it is good for is logged."""
    split, steps = data.images(seed), 240
    split.y, split.held_y = split.x, split.held_x
    split.x, split.held_x = (nn.functional.avg_pool2d(one, 2) for one in (split.x, split.held_x))

    def decibels(output, y):
        return {"psnr": float(10 * torch.log10(4 / (output - y).square().mean()))}
    return Rounds(Sharpens(chance.choice((12, 16))), split, lambda output, target: ((output - target).square() + 1e-6).sqrt().mean(),
                  adam(between(chance, 5e-4, 2e-3), betas=(0.9, 0.99)), steps, 16, evaluate_every=24, samples=120, values=decibels,
                  schedule=lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, [130, 190], 0.5))


class Velocity(nn.Module):
    """From a noisy picture, the time and perhaps what it is of, to where it moves."""

    def __init__(self, width):
        super().__init__()
        self.enter, self.leave = nn.Linear(64, width), nn.Linear(width, 64)
        self.told = nn.Sequential(nn.Linear(18, width), nn.SiLU(), nn.Linear(width, 4 * width))
        self.norms = nn.ModuleList([nn.LayerNorm(width, elementwise_affine=False) for _ in range(2)])
        self.bodies = nn.ModuleList([nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(2)])
        nn.init.zeros_(self.leave.weight)

    def forward(self, x):
        angle = x[:, 64:65] * torch.exp(torch.linspace(0, 4, 4))
        told = self.told(torch.cat([angle.sin(), angle.cos(), x[:, 65:]], 1)).chunk(4, 1)
        y = self.enter(x[:, :64])
        for at, (norm, body) in enumerate(zip(self.norms, self.bodies)):
            y = y + body(norm(y) * (1 + told[2 * at]) + told[2 * at + 1])
        return self.leave(y)


@job("regression", "same", "fresh", "adam", "averages", "fourth", "sixth", "seventh", "eighth", tuning=False)
def velocity(seed, chance):
    """Diffusion that foretells velocities, told of the class nine times in ten; evaluated with averaged weights, which start far behind."""
    split, steps, drawn = data.digits(seed), 300, source(seed)
    split.x, split.held_x = (torch.cat([x, nn.functional.one_hot(y, 10).float()], 1) for x, y in ((split.x, split.y), (split.held_x, split.held_y)))

    def noised(x):
        time, noise = torch.rand(len(x), 1, generator=drawn), torch.randn(len(x), 64, generator=drawn)
        a, s = (time * math.pi / 2).cos(), (time * math.pi / 2).sin()
        named = x[:, 64:] * (torch.rand(len(x), 1, generator=drawn) > 0.1)
        weight = (5 / (a / s.clamp(min=1e-3)).square().clamp(min=1e-6)).clamp(max=1)
        return torch.cat([a * x[:, :64] + s * noise, time, named], 1), torch.cat([a * noise - s * x[:, :64], weight], 1)
    split.held_x, split.held_y = noised(split.held_x)
    split.y = split.x
    made = Rounds(Velocity(chance.choice((48, 64))), split, lambda output, target: ((output - target[:, :64]).square() * target[:, 64:]).mean(),
                  adamw(between(chance, 1e-3, 3e-3), weight_decay=0.0), steps, 64, evaluate_every=25, samples=180, schedule=warmed(20), clip=1.0,
                  average=lambda mean, now, step: mean.lerp(now, 1 - min(0.98, (1 + step) / (10 + step))))
    return behind(made, lambda step, x, y: noised(x))


@job("regression", "several", "linear", "adam", "fourth", "sixth", "seventh", "eighth", tuning=False)
def slopes(seed, chance):
    """Score matching: which way a density rises, learned from points with noise of many sizes; most of the loss is chance."""
    random, drawn, width = numpy.random.default_rng(seed), source(seed), chance.choice((48, 64))
    angle = random.uniform(0, 2 * math.pi, 2400)
    x = numpy.stack([numpy.cos(angle), numpy.sin(angle)], 1) * random.choice((0.7, 1.6), (2400, 1)) + 0.05 * random.standard_normal((2400, 2))

    def noised(x):
        size, noise = torch.exp(torch.rand(len(x), 1, generator=drawn) * math.log(20)) * 0.1, torch.randn(len(x), 2, generator=drawn)
        return torch.cat([x + size * noise, size.log()], 1), noise
    x = torch.tensor(x, dtype=torch.float32)
    split = data.Split(x, x, 800)
    split.held_x, split.held_y = noised(split.held_x)
    model = nn.Sequential(nn.Linear(3, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))
    made = Rounds(model, split, lambda output, target: (output + target).square().sum(1).mean(), adam(between(chance, 2e-3, 6e-3)), 300, 128, evaluate_every=25,
                  samples=400, schedule=chance.choice((None, cosine(300))))
    return behind(made, lambda step, x, y: noised(x))


class Renders(nn.Module):
    """Colours and densities at places, from waves of their coordinates; along a ray they add up to what is seen."""

    def __init__(self, width, samples=20):
        super().__init__()
        self.register_buffer("far", torch.linspace(0, 2.8, samples))
        self.body = nn.Sequential(nn.Linear(18, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, x):
        place = x[:, None, :2] + self.far[:, None] * x[:, None, 2:]
        waves = (place[..., None] * 2.0 ** torch.arange(4)).flatten(2)
        return self.seen(self.body(torch.cat([place, waves.sin(), waves.cos()], 2)))

    def seen(self, said):
        """What a ray meets."""
        clear = (-nn.functional.softplus(said[..., 3] - 1) * (self.far[1] - self.far[0])).exp()
        left = torch.cat([torch.ones_like(clear[:, :1]), clear[:, :-1]], 1).cumprod(1)
        return ((1 - clear) * left)[..., None].mul(said[..., :3].sigmoid()).sum(1)


@job("regression", "several", "relu", "adam", "fourth", "sixth", "seventh", "eighth", tuning=False)
def renders(seed, chance):
    """A radiance field (NeRF) of a flat world: discs of colours, seen along rays from around it; a rate that falls as a power of the step."""
    random, model = numpy.random.default_rng(seed), Renders(chance.choice((32, 48)))
    turn, aim = random.uniform(0, 2 * math.pi, 2400), random.uniform(-0.5, 0.5, 2400)
    eye = 1.4 * numpy.stack([numpy.cos(turn), numpy.sin(turn)], 1)
    x = torch.tensor(numpy.concatenate([eye, -numpy.stack([numpy.cos(turn + aim), numpy.sin(turn + aim)], 1)], 1), dtype=torch.float32)
    middle = torch.tensor(random.uniform(-0.6, 0.6, (5, 2)), dtype=torch.float32)
    radius, colour = torch.tensor(random.uniform(0.15, 0.35, 5), dtype=torch.float32), torch.tensor(random.uniform(-3, 3, (5, 3)), dtype=torch.float32)
    place = x[:, None, :2] + model.far[:, None] * x[:, None, 2:]
    inside = torch.sigmoid((radius - (place[:, :, None] - middle).norm(dim=3)) * 20)
    y = model.seen(torch.cat([(inside[..., None] * colour).sum(2), 12 * inside.amax(2, keepdim=True) - 6], 2))
    return Rounds(model, data.Split(x, y, 400), nn.MSELoss(), adam(between(chance, 2e-3, 8e-3)), 240, 128, evaluate_every=20, samples=200,
                  module=chance.random() < 0.5, schedule=lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99))


class Waves(nn.Module):
    """Layers of sines; also by how much the value rises and in which direction."""

    def __init__(self, width):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 1)])
        for at, layer in enumerate(self.layers):
            nn.init.uniform_(layer.weight, *((-0.5, 0.5) if not at else (-math.sqrt(6 / width) / 6, math.sqrt(6 / width) / 6)))

    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = x
            for layer in self.layers[:-1]:
                y = torch.sin(6 * layer(y))
            far = self.layers[-1](y)
            slope, = torch.autograd.grad(far.sum(), x, create_graph=True)
        return torch.cat([far, slope], 1)


@job("regression", "several", "adam", "pair", "fourth", "sixth", "seventh", "eighth", tuning=False)
def surfaces(seed, chance):
    """A surface as where a function is zero (SIREN): values and normals on it, slopes of one elsewhere; evaluated by the true distance."""
    random, size = numpy.random.default_rng(seed), 2400
    turn, radius = random.uniform(0, 2 * math.pi, size), chance.uniform(0.45, 0.65)
    way = numpy.stack([numpy.cos(turn), numpy.sin(turn)], 1)
    on = numpy.arange(size + 400) % 2 == 0
    x = numpy.concatenate([numpy.where(on[:size, None], radius * way, random.uniform(-1, 1, (size, 2))), random.uniform(-1, 1, (400, 2))])
    far = numpy.linalg.norm(x, axis=1) - radius
    y = torch.tensor(numpy.concatenate([on[:, None], far[:, None], x / numpy.linalg.norm(x, axis=1, keepdims=True)], 1), dtype=torch.float32)
    model = Waves(chance.choice((32, 48)))

    def parts(output, target):
        here, slope = target[:, 0], output[:, 1:]
        lost = 1 - nn.functional.cosine_similarity(slope, target[:, 2:], dim=1)
        return {"value_loss": (here * output[:, 0].abs()).mean(), "normal_loss": (here * lost).mean(), "slope_loss": (slope.norm(dim=1) - 1).square().mean()}

    def loss(output, target):
        if not model.training:
            return (output[:, 0] - target[:, 1]).abs().mean()
        each = parts(output, target)
        return 3 * each["value_loss"] + each["normal_loss"] + 0.5 * each["slope_loss"]
    return Rounds(model, data.Split(torch.tensor(x, dtype=torch.float32), y, 400), loss, adam(between(chance, 5e-4, 2e-3)), 240, 128, evaluate_every=20,
                  samples=200, values=lambda output, y: {name: float(one) for name, one in parts(output, y).items()}, schedule=cosine(240))


@job("classes", "norm", "adam", "modes", "follows", "names", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def speaks(seed, chance):
    """Words that are spoken, as it were: depthwise convolutions over a spectrum's time, which loses bands and moments at random (SpecAugment)."""
    random, size, drawn, classes = numpy.random.default_rng(seed), 1500, source(seed), 8
    time, bands, y = numpy.arange(24), numpy.arange(16)[None, :, None], random.integers(0, classes, size)
    tones = numpy.random.default_rng(7).uniform(2, 13, (classes, 4))
    move = numpy.clip(time[None] + random.integers(-3, 4, (size, 1)), 0, 23) / 23
    tone = sum(numpy.stack([one * move[at] + two * (1 - move[at]) for at, (one, two) in enumerate(tones[y][:, part])]) for part in (slice(0, 2),))
    over = sum(numpy.stack([one * move[at] + two * (1 - move[at]) for at, (one, two) in enumerate(tones[y][:, part])]) for part in (slice(2, 4),))
    x = sum(numpy.exp(-0.5 * (bands - one[:, None] + random.normal(0, 0.7,
                                                                   (size, 1, 1))) ** 2) for one in (tone, over)) + 0.3 * random.standard_normal((size, 16, 24))
    width = chance.choice((16, 24))

    def loses(step, x, y):
        band, moment = torch.randint(0, 14, (len(x), 1, 1), generator=drawn), torch.randint(0, 20, (len(x), 1, 1), generator=drawn)
        gone = ((torch.arange(16)[None, :, None] - band) // 3 == 0) | ((torch.arange(24) - moment) // 4 == 0)
        return x * ~gone, y

    def block(inputs, outputs):
        return [nn.Conv1d(inputs, inputs, 5, padding=2, groups=inputs, bias=False), nn.Conv1d(inputs, outputs, 1, bias=False), nn.BatchNorm1d(outputs),
                nn.ReLU()]
    model = nn.Sequential(*block(16, width), *block(width, width), nn.AvgPool1d(2), *block(width, 2 * width), nn.AdaptiveAvgPool1d(3), nn.Flatten(),
                          nn.Dropout(0.1), nn.Linear(6 * width, classes))
    made = Epochs(model, data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), 300, classes), nn.CrossEntropyLoss(),
                  adamw(between(chance, 2e-3, 6e-3)), 240, 32, evaluate_every=37, samples=100, schedule=noam(40), values=right)
    return behind(made, loses)


class Queries(nn.Module):
    """Some questions to a picture, each answered by a box and whether there is one."""

    def __init__(self, width, count):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, width, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, padding=1), nn.ReLU())
        self.place, self.ask = nn.Parameter(0.1 * torch.randn(36, width)), nn.Parameter(torch.randn(count, width))
        self.read = nn.TransformerDecoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.again = nn.TransformerDecoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)
        self.leave = nn.Linear(width, 4)

    def forward(self, x):
        seen = self.body(x).flatten(2).transpose(1, 2) + self.place
        out = self.leave(self.again(self.read(self.ask.expand(len(x), -1, -1), seen), seen))
        return torch.cat([out[..., :1], out[..., 1:].sigmoid()], 2)


@job("regression", "several", "attention", "adam", "pair", "fourth", "sixth", "seventh", "eighth", tuning=False)
def matched(seed, chance):
    """Objects as a set (DETR): answers are matched with what is there (the Hungarian method) before they are compared; a smaller rate for the body."""
    random, size, steps = numpy.random.default_rng(seed), 1600, 240
    x, y = 0.1 * random.standard_normal((size, 1, 12, 12)), numpy.zeros((size, 3, 4))
    for at in range(size):
        for one in range(random.integers(1, 4)):
            edge, (row, column) = random.integers(2, 5), random.integers(0, 8, 2)
            x[at, 0, row:row + edge, column:column + edge] += 1
            y[at, one] = 1, (row + edge / 2) / 12, (column + edge / 2) / 12, edge / 12

    def loss(output, target):
        there = target[..., 0] > 0
        far = (output[:, :, None, 1:] - target[:, None, :, 1:]).abs().sum(3)
        cost = (5 * far - output[..., :1].sigmoid()).detach().nan_to_num(0, 0, 0).numpy()
        asked, boxes = torch.zeros_like(output[..., 0]), output.new_zeros(())
        for at in range(len(output)):
            found = torch.nonzero(there[at]).flatten()
            rows, columns = scipy.optimize.linear_sum_assignment(cost[at][:, found.numpy()])
            asked[at, rows] = 1
            boxes = boxes + far[at, rows, found[columns]].sum()
        said = nn.functional.binary_cross_entropy_with_logits(output[..., 0], asked)
        return said + 5 * boxes / there.sum().clamp(min=1)
    model, rate = Queries(chance.choice((24, 32)), 5), between(chance, 2e-3, 4e-3)
    made = Rounds(model, data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32), 300), loss, None, steps, 16, evaluate_every=24,
                  samples=150, schedule=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 190, 0.1), clip=chance.choice((0.5, 1.0)))
    rest = [one for name, one in model.named_parameters() if not name.startswith("body")]
    made.optimizer = lambda parameters: torch.optim.AdamW([{"params": rest, "lr": rate}, {"params": model.body.parameters(), "lr": 0.3 * rate}],
                                                          weight_decay=1e-4)
    return made
