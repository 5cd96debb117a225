"""Ways of training (no schedule at all, curvature, compiled, scaled halves, learning to learn), networks that
make networks, and what is left."""
import math

import numpy
import torch
from torch import nn

from .. import data
from ..recipes.jobs import adam, adamw, between, cosine, halving, job, sgd
from .modern import smooth
from ..vision.representations import behind, right
from ..recipes.rounds import Rounds
from .new_losses import encoder, source
from ..recipes.epochs import Epochs


class Free(torch.optim.Optimizer):
    """AdamW without a schedule: where gradients are taken lies between fast weights and their mean, and the mean is what is used."""

    def __init__(self, parameters, lr, betas=(0.9, 0.99), weight_decay=0.0, warm=20):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay, "eps": 1e-8})
        self.warm, self.at, self.total = warm, 0, 0.0

    @torch.no_grad()
    def step(self, closure=None):
        self.at += 1
        for group in self.param_groups:
            (first, second), rate = group["betas"], group["lr"] * min(1.0, self.at / self.warm)
            self.total += rate**2 / len(self.param_groups)
            share = rate**2 / max(self.total, 1e-30)
            for one in group["params"]:
                if one.grad is None:
                    continue
                kept = self.state[one]
                if not kept:
                    kept.update(fast=one.detach().clone(), mean=one.detach().clone(), square=torch.zeros_like(one))
                kept["square"].mul_(second).addcmul_(one.grad, one.grad, value=1 - second)
                root = (kept["square"] / (1 - second**self.at)).sqrt() + group["eps"]
                kept["fast"].sub_(rate * (one.grad / root + group["weight_decay"] * one))
                kept["mean"].lerp_(kept["fast"], share)
                one.copy_(kept["fast"].lerp(kept["mean"], first))


@job("classes", "images", "norm", "averages", "modes", "follows", "names", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def unscheduled(seed, chance):
    """AdamW without a schedule (schedule-free): what is evaluated is a mean that the optimizer keeps, at a constant rate."""
    width, kept = chance.choice((8, 12)), []
    model = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
                          nn.GroupNorm(4, 2 * width),
                          nn.SiLU(), nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.SiLU(), nn.Flatten(),
                          nn.Linear(8 * width, 10))

    def made(parameters):
        kept[:] = [Free(parameters, between(chance, 2e-3, 6e-3), weight_decay=0.01)]
        return kept[0]
    return Rounds(model, data.images(seed), nn.CrossEntropyLoss(), made, 220, 32, evaluate_every=20, samples=180, module=True,
                  average=lambda mean, now, step: kept[0].state[now]["mean"] if kept[0].state.get(now) else now)


class Curved(torch.optim.Optimizer):
    """Gradients of matrices between the roots of what was seen of their rows and columns (Shampoo), with the size of a step of momentum."""

    def __init__(self, parameters, lr, momentum=0.9, weight_decay=0.0, every=10):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.every, self.at = every, 0

    @staticmethod
    def _root(seen, order):
        try:
            values, vectors = torch.linalg.eigh(seen.nan_to_num(0, 0, 0).clamp(-1e12, 1e12) + 1e-6 * torch.eye(len(seen)))
        except RuntimeError:  # numbers that have no roots
            return torch.eye(len(seen))
        return (vectors * values.clamp(min=1e-8) ** (-1 / order)) @ vectors.T

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for one in group["params"]:
                if one.grad is None:
                    continue
                kept, way = self.state[one], one.grad
                if one.dim() == 2:
                    if not kept:
                        kept.update(rows=torch.zeros(len(one), len(one)), columns=torch.zeros(one.shape[1], one.shape[1]))
                    kept["rows"].mul_(0.95).add_(way @ way.T, alpha=0.05)
                    kept["columns"].mul_(0.95).add_(way.T @ way, alpha=0.05)
                    if self.at % self.every == 0:
                        kept.update(left=self._root(kept["rows"], 4), right=self._root(kept["columns"], 4))
                    way = kept["left"] @ way @ kept["right"]
                else:
                    square = kept.setdefault("square", torch.zeros_like(one)).mul_(0.95).addcmul_(way, way, value=0.05)
                    way = way / (square.sqrt() + 1e-8)
                way = way * (math.sqrt(way.numel()) / way.norm().clamp(min=1e-12)).clamp(max=1e6)
                mean = kept.setdefault("momentum", torch.zeros_like(one)).mul_(group["momentum"]).add_(way, alpha=1 - group["momentum"])
                one.mul_(1 - group["lr"] * group["weight_decay"]).sub_(mean, alpha=group["lr"])
        self.at += 1


@job("regression", "same", "linear", "fourth", "sixth", "seventh", "eighth", tuning=False)
def curvature(seed, chance):
    """A deep autoencoder by curvature (Shampoo), as it was always shown with: steps of one size at a rate that halves; noise on what goes in."""
    split, drawn, width = data.digits(seed), source(seed), chance.choice((32, 48))
    split.y, split.held_y = split.x, split.held_x
    model = nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 24), nn.Tanh(), nn.Linear(24, 10), nn.Linear(10, 24), nn.Tanh(),
                          nn.Linear(24, width), nn.Tanh(), nn.Linear(width, 64))
    made = Rounds(model, split, nn.MSELoss(), lambda parameters: Curved(parameters, between(chance, 2e-3, 6e-3)), 240, 64, evaluate_every=20, samples=180,
                  schedule=halving(80))
    return behind(made, lambda step, x, y: (x + 0.2 * torch.randn(x.shape, generator=drawn), y))


class Squeezed(nn.Module):
    """Two residual layers over an embedding of an image, each squeezed by what all channels say."""

    def __init__(self, width):
        super().__init__()
        self.enter, self.leave = nn.Conv2d(1, width, 3, stride=2, padding=1), nn.Linear(width, 10)
        self.bodies = nn.ModuleList([nn.Sequential(nn.Conv2d(width, 2 * width, 1), nn.GELU(), nn.Conv2d(2 * width, width, 1)) for _ in range(2)])
        self.mixes = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1, groups=width) for _ in range(2)])
        self.squeeze, self.drop = nn.ModuleList([nn.Linear(width, width) for _ in range(2)]), nn.Dropout(0.1)

    def forward(self, x):
        x = self.enter(x)
        for mix, body, squeeze in zip(self.mixes, self.bodies, self.squeeze):
            y = body(mix(x))
            x = x + y * squeeze(y.mean((2, 3))).sigmoid()[:, :, None, None]
        return self.leave(self.drop(x.amax((2, 3))))


@job("classes", "adam", "modes", "names", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def compiled(seed, chance):
    """A compiled network (torch.compile) with fused AdamW, smoothed labels and an exponential fall of the rate behind a warm-up."""
    model, rate = Squeezed(chance.choice((16, 24))), between(chance, 3e-3, 8e-3)
    if torch.__version__ >= "2":
        torch._dynamo.reset()
        model = torch.compile(model, backend="aot_eager")

    def made(parameters):
        return torch.optim.AdamW(parameters, rate, weight_decay=0.02, **({"fused": True} if torch.__version__ >= "2" else {}))
    return Rounds(model, data.images(seed), smooth, made, 240, 32, evaluate_every=20, samples=180, values=right,
                  schedule=lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min((at + 1) / 15, 0.99 ** (at - 15))))


@job("classes", "attention", "adam", "scales", "modes", "names", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def halved(seed, chance):
    """Half precision with a scaler whose scale keeps growing, and an optimizer that divides and skips by itself (fused); a transformer over rows of images."""
    steps, width = 180, chance.choice((16, 24))
    model = nn.Sequential(nn.Linear(8, width), nn.LayerNorm(width), encoder(width, 1, 0.1), nn.Flatten(), nn.Linear(8 * width, 10))
    new = torch.__version__ >= "2.4"  # before, processors have no scaler, or no fused optimizer that takes one

    def made(parameters):
        return torch.optim.AdamW(parameters, between(chance, 1e-3, 4e-3), weight_decay=0.01, **({"fused": True} if new else {}))
    return Rounds(model, data.rows(seed), nn.CrossEntropyLoss(), made, steps, 32, evaluate_every=18, samples=180, half=torch.float16 if new else None,
                  divides=False,
                  scaler=(lambda: torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=25)) if new else None, schedule=cosine(steps, 10))


class Weaves(nn.Module):
    """A network that makes the weights of another one, from what is known of a task."""

    def __init__(self, width, inner=12):
        super().__init__()
        self.inner, self.body = inner, nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3 * inner + 1))
        with torch.no_grad():
            self.body[-1].weight.mul_(0.3)
            self.body[-1].bias[:inner] = torch.randn(inner)

    def forward(self, x):
        made = self.body(x[:, :3])[:, None]
        inside, shift, outside = made[..., :-1].split(self.inner, 2)
        return (torch.tanh(x[:, 3:, None] * inside + shift) * outside).sum(2) + made[..., -1]


@job("regression", "several", "relu", "adam", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def weaves(seed, chance):
    """A hypernetwork: from three numbers that describe a curve to the weights of a network that is that curve."""
    random = numpy.random.default_rng(seed)
    task, place = random.uniform(-1, 1, (2000, 3)), random.uniform(-2, 2, (2000, 8))
    y = (1 + task[:, :1]) * numpy.sin((1.5 + task[:, 1:2]) * place + 2 * task[:, 2:])
    x, y = (torch.tensor(one, dtype=torch.float32) for one in (numpy.concatenate([task, place], 1), y))
    return Epochs(Weaves(chance.choice((48, 64))), data.Split(x, y, 400), nn.MSELoss(), adamw(between(chance, 2e-3, 6e-3), weight_decay=0.001), 280, 64,
                  evaluate_every=25, samples=200, clip=1.0, schedule=chance.choice((None, cosine(280))))


class Adapts(nn.Module):
    """Takes some steps of its own on what it is shown of a task, then says the rest."""

    def __init__(self, width, rate, steps, second):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.rate, self.steps, self.second = rate, steps, second

    def forward(self, x):
        x, y = x[..., :1], x[..., 1:]
        with torch.enable_grad():
            own = [one.expand(len(x), *one.shape) for one in self.body.parameters()]
            for _ in range(self.steps):
                off = (self.said(own, x[:, :10]) - y[:, :10]).square().mean((1, 2)).sum()
                slopes = torch.autograd.grad(off, own, create_graph=self.second and self.training)
                own = [one - self.rate * slope for one, slope in zip(own, slopes)]
            return self.said(own, x[:, 10:])[..., 0]

    @staticmethod
    def said(own, x):
        """Each task through weights of its own."""
        for at in range(0, len(own), 2):
            x = x @ own[at].transpose(1, 2) + own[at + 1][:, None]
            x = torch.tanh(x) if at < len(own) - 2 else x
        return x


@job("regression", "several", "adam", "fourth", "sixth", "seventh", "eighth", tuning=False)
def adapts(seed, chance):
    """Learning to learn (MAML): waves of unlike height and phase, ten points shown, the loss is after two steps of adaptation; of second order, or not."""
    random = numpy.random.default_rng(seed)
    place, height, phase = random.uniform(-3, 3, (1400, 20, 1)), random.uniform(0.5, 2.0, (1400, 1, 1)), random.uniform(0, 3, (1400, 1, 1))
    x = torch.tensor(numpy.concatenate([place, height * numpy.sin(place + phase)], 2), dtype=torch.float32)
    model = Adapts(chance.choice((24, 32)), 0.02, 2, chance.random() < 0.5)
    return Rounds(model, data.Split(x, x[:, 10:, 1], 200), nn.MSELoss(), adam(between(chance, 1e-3, 3e-3)), 300, 16, evaluate_every=25, samples=100, clip=1.0,
                  schedule=cosine(300))


class Horizons(nn.Module):
    """Series in patches, each series by itself: what it is at the end is taken away first and given back last."""

    def __init__(self, width, length, patch, ahead):
        super().__init__()
        self.patch, self.enter, self.place = patch, nn.Linear(patch, width), nn.Parameter(0.02 * torch.randn(length // patch, width))
        self.gain, self.shift = nn.Parameter(torch.ones(3)), nn.Parameter(torch.zeros(3))
        self.body, self.drop, self.head = encoder(width, 1, 0.1), nn.Dropout(0.1), nn.Linear(width * (length // patch), ahead)

    def forward(self, x):
        mean, spread = x.mean(1, keepdim=True), x.std(1, keepdim=True) + 1e-5
        y = ((x - mean) / spread * self.gain + self.shift).transpose(1, 2)
        y = self.body((self.enter(y.unfold(2, self.patch, self.patch)) + self.place).flatten(0, 1))
        y = self.head(self.drop(y.flatten(1))).reshape(len(x), 3, -1).transpose(1, 2)
        return (y - self.shift) / (self.gain + 1e-8) * spread + mean


@job("regression", "several", "attention", "adam", "modes", "fourth", "sixth", "seventh", "eighth", tuning=False)
def horizons(seed, chance):
    """A forecast by patches (PatchTST) of three series that drift; each is normalised by its own past; the rate halves at each epoch from the third."""
    random, length, ahead, size = numpy.random.default_rng(seed), 24, 12, 1500
    time = numpy.arange(size + length + ahead)
    season = [numpy.sin(2 * math.pi * time / 12 + random.uniform(0, 6)), numpy.sin(2 * math.pi * time / 36 + random.uniform(0, 6)),
              numpy.cos(2 * math.pi * time / 7)]
    wave = numpy.stack(season, 1) @ random.normal(0, 1, (3, 3)) + 0.03 * numpy.cumsum(random.standard_normal((len(time), 3)), 0)
    wave = wave + 0.15 * random.standard_normal((len(time), 3))
    wave = torch.tensor((wave - wave.mean(0)) / wave.std(0), dtype=torch.float32)
    parts = wave.unfold(0, length + ahead, 1).transpose(1, 2)[torch.tensor(random.permutation(size))]
    split, epoch = data.Split(parts[:, :length], parts[:, length:], 300), 37

    def falls(optimizer):
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: 0.5 ** max(0, at // epoch - 2))
    return Rounds(Horizons(chance.choice((16, 24)), length, 6, ahead), split, nn.MSELoss(), adam(between(chance, 1e-3, 4e-3)), 6 * epoch, 32,
                  evaluate_every=epoch // 2, samples=150, schedule=falls, module=True)


class Pairs(nn.Module):
    """Upper and lower halves of images through a tower each, and a yes or no for each pair; how sharp and how far from even that is, is learned."""

    def __init__(self, width):
        super().__init__()
        self.upper, self.lower = (nn.Sequential(nn.Linear(32, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 16)) for _ in range(2))
        self.sharp, self.even = nn.Parameter(torch.tensor(math.log(10.0))), nn.Parameter(torch.tensor(-5.0))

    def forward(self, x):
        a, b = (nn.functional.normalize(tower(half), dim=1) for tower, half in zip((self.upper, self.lower), x.chunk(2, 1)))
        return self.sharp.exp().clamp(max=100) * a @ b.T + self.even


@job("regression", "same", "fresh", "adam", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def pairs(seed, chance):
    """Which halves belong together, as a yes or no for each pair of the batch (SigLIP): few of them are yes, and the logits start far below zero."""
    split, steps = data.digits(seed), 260
    split.y, split.held_y = split.x, split.held_x

    def loss(output, target):
        return -nn.functional.logsigmoid(output * (2 * torch.eye(len(output)) - 1)).sum(1).mean()
    return Rounds(Pairs(chance.choice((48, 64))), split, loss, adamw(between(chance, 1e-3, 4e-3), betas=(0.9, 0.95), weight_decay=0.01), steps, 64,
                  evaluate_every=22, samples=90, schedule=cosine(steps, 15))


@job("regression", "same", "relu", "adam", "held", "fourth", "sixth", "seventh", "eighth", tuning=False)
def sparse(seed, chance):
    """A sparse autoencoder over what a network says inside: more features than there are numbers, few of them at once, directions of length one."""
    random, inner, kept = numpy.random.default_rng(seed), 40, chance.choice((64, 96))
    ways = random.standard_normal((kept // 2, inner))
    many = random.exponential(1, (2400, kept // 2)) * (random.random((2400, kept // 2)) < 0.08)
    x = torch.tensor(many @ (ways / numpy.linalg.norm(ways, axis=1, keepdims=True)) + 0.02 * random.standard_normal((2400, inner)), dtype=torch.float32)

    class Kept(nn.Sequential):
        """Gives what it found beside what it makes of it."""

        def forward(self, x):
            found = self[1](self[0](x))
            return torch.cat([self[2](found), found], 1)
    model = Kept(nn.Linear(inner, kept), nn.ReLU(), nn.Linear(kept, inner))
    nn.init.zeros_(model[0].bias)
    with torch.no_grad():
        model[2].weight.div_(model[2].weight.norm(dim=0))
        model[0].weight.copy_(model[2].weight.T)
    penalty = chance.choice((0.03, 0.06))

    def loss(output, target):
        return (output[:, :inner] - target).square().sum(1).mean() + penalty * output[:, inner:].abs().sum(1).mean()

    def values(output, y):
        return {"l0": float((output[:, inner:] > 0).float().sum(1).mean()), "mse": float((output[:, :inner] - y).square().mean())}

    @torch.no_grad()
    def unit(step, model):
        model[2].weight.div_(model[2].weight.norm(dim=0).clamp(min=1e-8))
    return Rounds(model, data.Split(x, x.clone(), 400), loss, adam(between(chance, 1e-3, 4e-3), betas=(0.0, 0.999)), 300, 64, evaluate_every=25, samples=200,
                  values=values,
                  after_update=[unit], schedule=lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min(1.0, 5 * (1 - at / 300))))


@job("classes", "relu", "sgd", "norm", "modes", "follows", "names", "fourth", "sixth", "seventh", "eighth", tuning=False)
def lopsided(seed, chance):
    """Of some classes thirty times as much as of others (balanced softmax): logits are shifted in training by how common each is, and evaluated as they are."""
    split, width = data.digits(seed), chance.choice((48, 64))
    rank = torch.randperm(10, generator=source(seed))
    keep = torch.rand(len(split.y), generator=source(seed + 1)) < 30 ** (-rank[split.y] / 9)
    split.x, split.y = split.x[keep], split.y[keep]
    common = torch.bincount(split.y, minlength=10).float().clamp(min=1).log()
    model = nn.Sequential(nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(),
                          nn.Linear(width, 10))

    def loss(output, target):
        return nn.functional.cross_entropy(output + common if model.training else output, target)
    return Rounds(model, split, loss, sgd(between(chance, 0.01, 0.04), nesterov=True, weight_decay=2e-3), 180, 32, evaluate_every=15, samples=180,
                  schedule=cosine(180))
