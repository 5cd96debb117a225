"""Optimizers, networks and tasks that none before has. Written before a look at what the rules say of them, recorded while
conditions were found on the sets before, and judged by the rules of before and of after. Whoever looks at what is said of their single runs makes them
tuning jobs, and writes others."""
import copy

import numpy
import torch
from torch import nn

from .. import data
from .patches_and_towers import Scaled
from ..recipes.jobs import adam, adamw, between, cosine, halving, job, linear
from .modern import fused, one_cycle, smooth
from ..recipes.training import Recipe

IGNORED = -100  # what cross-entropy leaves out


class Lion(torch.optim.Optimizer):
    """Steps of one size, by the sign of the momentum."""

    def __init__(self, parameters, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(parameters, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            first, second = group["betas"]
            for one in group["params"]:
                if one.grad is None:
                    continue
                mean = self.state[one].setdefault("mean", torch.zeros_like(one))
                one.mul_(1 - group["lr"] * group["weight_decay"])
                one.add_((first * mean + (1 - first) * one.grad).sign(), alpha=-group["lr"])
                mean.mul_(second).add_(one.grad, alpha=1 - second)


class Muon(torch.optim.Optimizer):
    """Momentum whose matrices are made orthogonal by five steps of Newton and Schulz."""

    def __init__(self, parameters, lr, momentum=0.95, weight_decay=0.0):
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for one in group["params"]:
                if one.grad is None:
                    continue
                mean = self.state[one].setdefault("mean", torch.zeros_like(one))
                mean.mul_(group["momentum"]).add_(one.grad)
                x = one.grad + group["momentum"] * mean
                x = x / (x.norm() + 1e-7)
                flat = x.T if x.shape[0] > x.shape[1] else x
                for _ in range(5):
                    square = flat @ flat.T
                    flat = 3.4445 * flat + (-4.7750 * square + 2.0315 * square @ square) @ flat
                x = flat.T if x.shape[0] > x.shape[1] else flat
                one.mul_(1 - group["lr"] * group["weight_decay"])
                one.add_(x, alpha=-group["lr"] * max(1.0, one.shape[0] / one.shape[1]) ** 0.5)


class Block(nn.Module):
    """Attention and a network, normalised before."""

    def __init__(self, width, heads=4, dropout=0.0):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True, dropout=dropout)
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout))

    def forward(self, x, mask=None):
        y = self.first(x)
        x = x + self.attention(y, y, y, need_weights=False, attn_mask=mask)[0]
        return x + self.inner(self.second(x))


class Tied(nn.Module):
    """A causal language model that reads and says by one table."""

    def __init__(self, kinds, width, length, layers=2):
        super().__init__()
        self.embed, self.place = nn.Embedding(kinds, width), nn.Embedding(length, width)
        self.blocks, self.norm = nn.ModuleList([Block(width) for _ in range(layers)]), nn.LayerNorm(width)
        self.head = nn.Linear(width, kinds, bias=False)
        nn.init.normal_(self.embed.weight, std=0.02)
        nn.init.normal_(self.place.weight, std=0.02)
        self.head.weight = self.embed.weight

    def forward(self, x):
        length = x.shape[1]
        mask = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        y = self.embed(x) + self.place(torch.arange(length))
        for block in self.blocks:
            y = block(y, mask)
        return self.head(self.norm(y))


def of_places(output, target):
    """Cross-entropy at each place that is not left out."""
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten(), ignore_index=IGNORED)


@job("tokens", "attention", "adam", "fourth", "fifth", tuning=True)
def tied(seed, chance):
    """A language model with tied weights: two batches per update, bfloat16, warm-up, a cosine to zero, clipping."""
    split, steps = data.text(seed, 32), 160
    made = Recipe(Tied(split.classes, chance.choice((32, 48)), 32), split, of_places, fused(between(chance, 2e-3, 6e-3), weight_decay=0.1), steps, 16,
                  schedule=cosine(steps, 16), clip=1.0, autocast=True)
    made.gathers = 2
    return made


class Seen(nn.Module):
    """A vision transformer with a token for the class."""

    def __init__(self, width, layers=2, classes=10):
        super().__init__()
        self.enter = nn.Conv2d(1, width, 2, stride=2)
        self.kind, self.place = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(0.02 * torch.randn(17, width))
        self.blocks = nn.ModuleList([Block(width, dropout=0.1) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.enter(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.kind.expand(len(x), 1, -1), x], 1) + self.place
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


@job("classes", "attention", "modes", "fourth", "fifth", tuning=True)
def seen(seed, chance):
    """A small vision transformer with Lion, smoothed labels, warm-up and a cosine."""
    steps, rate = 220, between(chance, 2e-4, 8e-4)
    return Recipe(Seen(32), data.images(seed), smooth, lambda parameters: Lion(parameters, rate, weight_decay=0.1), steps, chance.choice((32, 64)),
                  schedule=cosine(steps, 20), clip=1.0)


class Averaged(nn.Module):
    """Evaluates with the mean of its past weights."""

    def __init__(self, net):
        super().__init__()
        self.net, self.mean = net, copy.deepcopy(net).requires_grad_(False)

    def forward(self, x):
        return (self.net if self.training else self.mean)(x)

    @torch.no_grad()
    def follow(self, share):
        """Once per update."""
        for one, other in zip(self.mean.parameters(), self.net.parameters()):
            one.lerp_(other, share)


@job("regression", "same", "fresh", "adam", "fourth", "fifth", tuning=True)
def flows(seed, chance):
    """Flow matching: the way from noise to an image, evaluated with averaged weights; the loss is mostly noise."""
    split, steps = data.digits(seed), 260
    random = torch.Generator().manual_seed(seed + 20_000)

    def drawn(x):
        time, noise = torch.rand(len(x), 1, generator=random), torch.randn(x.shape, generator=random)
        return torch.cat([time * x + (1 - time) * noise, time], 1), x - noise
    split.held_x, split.held_y = drawn(split.held_x)
    split.y = split.x
    width = chance.choice((64, 96))
    model = Averaged(nn.Sequential(nn.Linear(65, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 64)))
    return Recipe(model, split, nn.MSELoss(), adamw(between(chance, 1e-3, 4e-3)), steps, chance.choice((32, 64)), schedule=chance.choice((None, cosine(steps, 20))),
                  on_batch=[lambda step, x, y: drawn(x)], before_update=[lambda step, model, optimizer: model.follow(0.05)],
                  parameters=lambda model: model.net.parameters())


class Captions(nn.Module):
    """Images and short texts about them, each through a tower; how sharp the match is, is learned."""

    def __init__(self, width):
        super().__init__()
        self.sees = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 16))
        self.words, self.reads = nn.Embedding(16, width), nn.GRU(width, 16, batch_first=True)
        self.sharpness = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        image = nn.functional.normalize(self.sees(x[:, :64]), dim=1)
        text = nn.functional.normalize(self.reads(self.words(x[:, 64:].nan_to_num(0).long().clamp(0, 15)))[1][0], dim=1)
        return self.sharpness.exp().clamp(max=30) * image @ text.T


@job("regression", "same", "fresh", "adam", "fourth", "fifth", tuning=True)
def captions(seed, chance):
    """Contrastive training of images and texts; one cycle."""
    split, steps, random = data.digits(seed), 240, torch.Generator().manual_seed(seed + 20_000)

    def told(x, y):
        rest = torch.randint(10, 16, (len(x), 3), generator=random).float()
        return torch.cat([x, y[:, None].float(), rest], 1)
    split.x, split.held_x = told(split.x, split.y), told(split.held_x[:128], split.held_y[:128])
    split.y, split.held_y = split.x, split.held_x

    def loss(output, target):
        own = (target[:, 64][:, None] == target[:, 64][None]).float()
        own = own / own.sum(1, keepdim=True)
        return (nn.functional.cross_entropy(output, own) + nn.functional.cross_entropy(output.T, own)) / 2
    return Recipe(Captions(chance.choice((48, 64))), split, loss, adamw(between(chance, 2e-3, 8e-3), weight_decay=0.1), steps, 64, schedule=one_cycle(steps))


class Writes(nn.Module):
    """An encoder and a decoder of GRUs with attention between them; the target is given to it, one place late."""

    def __init__(self, kinds, width):
        super().__init__()
        self.embed, self.encode = nn.Embedding(kinds, width), nn.GRU(width, width, batch_first=True)
        self.decode, self.ask = nn.GRU(width, width, batch_first=True), nn.Linear(width, width)
        self.head = nn.Linear(2 * width, kinds)

    def forward(self, x):
        read, last = self.encode(self.embed(x[:, :10]))
        said, _ = self.decode(self.embed(x[:, 10:]), last)
        weights = torch.softmax(self.ask(said) @ read.transpose(1, 2) / read.shape[2] ** 0.5, 2)
        return self.head(torch.cat([said, weights @ read], 2))


@job("tokens", "recurrent", "adam", "fourth", "fifth", tuning=True)
def writes(seed, chance):
    """Sequence to sequence: digits in reverse order, padded; what is padding is left out of the loss."""
    random, steps, size = numpy.random.default_rng(seed), 240, 2400
    x, y = numpy.full((size, 20), 1), numpy.full((size, 10), IGNORED)  # 1: padding, 0: begin, 2 … 11: digits
    for at in range(size):
        length = random.integers(3, 9)
        said = random.integers(2, 12, length)
        x[at, :length], x[at, 10], x[at, 11:11 + length - 1], y[at, :length] = said, 0, said[::-1][:-1], said[::-1]
    split = data.Split(torch.tensor(x), torch.tensor(y), 300, 12)
    return Recipe(Writes(12, chance.choice((32, 48))), split, of_places, adam(between(chance, 2e-3, 8e-3)), steps, 32, schedule=chance.choice((None, halving(100))),
                  clip=chance.choice((1.0, 5.0)))


class Graphs(nn.Module):
    """Three rounds of messages along the edges, then the mean over the nodes."""

    def __init__(self, width, nodes=12, classes=4):
        super().__init__()
        self.nodes = nodes
        self.layers = nn.ModuleList([nn.Linear(one, width) for one in (4, width, width)])
        self.norms, self.head = nn.ModuleList([nn.LayerNorm(width) for _ in range(3)]), nn.Linear(width, classes)

    def forward(self, x):
        edges, x = x[..., :self.nodes], x[..., self.nodes:]
        for layer, norm in zip(self.layers, self.norms):
            x = torch.relu(norm(layer(x + edges @ x)))
        return self.head(x.mean(1))


@job("classes", "relu", "fourth", "fifth", tuning=True)
def graphs(seed, chance):
    """What kind of graph it is, from noisy edges: rings, stars, groups, chance; NAdam."""
    random, steps, size, nodes = numpy.random.default_rng(seed), 220, 1200, 12
    y = random.integers(0, 4, size)
    ring = numpy.roll(numpy.eye(nodes), 1, 1)
    star = numpy.zeros((nodes, nodes))
    star[0, 1:] = 1
    group = numpy.kron(numpy.eye(3), numpy.ones((4, 4)))
    kinds = numpy.stack([ring, star, group, numpy.zeros((nodes, nodes))])
    edges = (random.random((size, nodes, nodes)) < 0.06 + 0.8 * kinds[y] + 0.1 * (y == 3)[:, None, None]).astype(float)
    order = numpy.argsort(random.random((size, nodes)), 1)
    edges = numpy.maximum(edges, edges.transpose(0, 2, 1))
    edges = numpy.take_along_axis(numpy.take_along_axis(edges, order[:, :, None], 1), order[:, None, :], 2)
    x = numpy.concatenate([edges, random.standard_normal((size, nodes, 4)) * 0.5 + 0.5], 2)
    rate = between(chance, 4e-3, 1.5e-2)
    return Recipe(Graphs(chance.choice((24, 32))), data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), 240, 4), nn.CrossEntropyLoss(),
                  lambda parameters: torch.optim.NAdam(parameters, rate), steps, chance.choice((16, 32)), schedule=chance.choice((None, linear(steps))))


@job("classes", "linear", "fourth", "fifth", tuning=True)
def arms(seed, chance):
    """A policy that is paid for what it does, with noise on the pay: its gradient is an estimate, its loss no error."""
    split, steps, width = data.digits(seed), 300, chance.choice((48, 64))
    drawn, mean = torch.Generator().manual_seed(seed + 20_000), {"paid": 0.1}

    def loss(output, target):
        chances = output.log_softmax(1)
        done = torch.multinomial(chances.exp().detach().nan_to_num(0.1, 0.1, 0.1) + 1e-6, 1, generator=drawn)[:, 0]
        paid = (done == target).float() + 0.3 * torch.randn(len(done), generator=drawn)
        gain = paid - mean["paid"]
        mean["paid"] = 0.95 * mean["paid"] + 0.05 * float(paid.mean())
        return -(gain * chances.gather(1, done[:, None])[:, 0]).mean() + 0.01 * (chances.exp() * chances).sum(1).mean()
    model = nn.Sequential(nn.Linear(64, width), nn.Tanh(), nn.Linear(width, 10))
    return Recipe(model, split, loss, adam(between(chance, 3e-3, 1e-2)), steps, 64, clip=1.0, schedule=chance.choice((None, cosine(steps))))


class Adapter(nn.Module):
    """A narrow way beside a layer that stays; it begins closed."""

    def __init__(self, layer, width, middle=4):
        super().__init__()
        self.layer, self.down, self.up = layer, nn.Linear(width, middle), nn.Linear(middle, width)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x):
        y = self.layer(x)
        return y + self.up(torch.nn.functional.gelu(self.down(y)))


@job("classes", "attention", "adam", "tuned", "head", "modes", "fourth", "fifth", tuning=True)
def adapters(seed, chance):
    """A trained vision transformer with narrow adapters and a new head on images that are transposed; all else is frozen. One cycle."""
    steps, split = 220, data.images(seed)
    model = Seen(32)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    for at in range(100):
        part = torch.arange(at * 64, at * 64 + 64) % len(split.x)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(split.x[part]), split.y[part]).backward()
        optimizer.step()
    optimizer.zero_grad()
    model.requires_grad_(False)
    for block in model.blocks:
        block.inner = Adapter(block.inner, 32)
    model.head = nn.Linear(32, 10)
    split.x, split.held_x = split.x.transpose(2, 3).contiguous(), split.held_x.transpose(2, 3).contiguous()
    return Recipe(model, split, nn.CrossEntropyLoss(), adamw(between(chance, 1e-3, 5e-3)), steps, chance.choice((16, 32)), schedule=one_cycle(steps),
                  parameters=lambda model: [one for one in model.parameters() if one.requires_grad])


@job("classes", "pair", "relu", "images", "fourth", "fifth", tuning=True)
def orthogonal(seed, chance):
    """A residual network of squares of ReLUs: Muon for the matrices, AdamW for the rest; constant, then a straight line to zero."""
    steps, width, norm = 220, chance.choice((48, 64)), getattr(nn, "RMSNorm", Scaled)  # PyTorch 1 has none
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, width), norm(width), nn.ReLU(), nn.Linear(width, width, bias=False), norm(width), nn.ReLU(),
                          nn.Linear(width, 10))
    first, second = between(chance, 0.01, 0.04), between(chance, 1e-3, 4e-3)
    made = Recipe(model, data.images(seed), nn.CrossEntropyLoss(), None, steps, chance.choice((32, 64)))
    made.optimizer = lambda parameters: [Muon([model[1].weight, model[4].weight], first),
                                         torch.optim.AdamW([one for at, one in model.named_parameters() if at not in ("1.weight", "4.weight")], second)]
    made.schedule = lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min(1.0, max(0.0, (steps - at) / (0.4 * steps))))
    return made


class Waves(nn.Module):
    """Convolutions in time with gaps between what they see, a class at each place: (N, C, T)."""

    def __init__(self, width, classes=3):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(one, width, 3, padding=gap, dilation=gap) for one, gap in ((1, 1), (width, 2), (width, 4))])
        self.norms, self.head = nn.ModuleList([nn.GroupNorm(4, width) for _ in range(3)]), nn.Conv1d(width, classes, 1)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = nn.functional.leaky_relu(norm(layer(x)), 0.1)
        return self.head(x)


@job("classes", "adam", "same", "fourth", "fifth", tuning=True)
def states(seed, chance):
    """Which of three states a noisy signal is in, at each time; smoothed labels, a rate that falls in a straight line."""
    random, steps, size, length = numpy.random.default_rng(seed), 220, 900, 24
    y = numpy.zeros((size, length), dtype=int)
    for at in range(size):
        cuts = numpy.sort(random.choice(numpy.arange(4, length - 4), 2, replace=False))
        kinds = random.permutation(3)
        y[at] = kinds[numpy.searchsorted(cuts, numpy.arange(length), side="right")]
    time = numpy.arange(length)
    shapes = numpy.stack([numpy.sin(time * 2.4), numpy.sin(time * 1.2), 0.4 * numpy.sin(time * 0.4) + 0.5])
    x = shapes[y, time[None]] + 0.3 * random.standard_normal((size, length))
    split = data.Split(torch.tensor(x[:, None], dtype=torch.float32), torch.tensor(y), 180, 3)
    return Recipe(Waves(chance.choice((16, 24))), split, nn.CrossEntropyLoss(label_smoothing=0.05), adamw(between(chance, 2e-3, 8e-3), betas=(0.9, 0.95)), steps, 16,
                  schedule=linear(steps, 10))


@job("regression", "sgd", "several", "fourth", "fifth", tuning=True)
def fields(seed, chance):
    """A field over a plane from waves of its coordinates, with Nesterov's momentum and restarts of the rate."""
    random, steps = torch.Generator().manual_seed(seed + 20_000), 240
    x = torch.rand(1600, 2, generator=random) * 2 - 1
    waves = torch.randn(2, 12, generator=random) * 2
    y = torch.stack([torch.sin(3 * x[:, 0]) * torch.cos(2 * x[:, 1]), torch.exp(-2 * x.square().sum(1))], 1) + 0.05 * torch.randn(1600, 2, generator=random)
    features, width, rate = torch.cat([torch.sin(x @ waves), torch.cos(x @ waves)], 1), chance.choice((32, 48)), between(chance, 0.02, 0.08)
    model = nn.Sequential(nn.Linear(24, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 2))
    return Recipe(model, data.Split(features, y, 320), nn.SmoothL1Loss(), lambda parameters: torch.optim.SGD(parameters, rate, momentum=0.9, nesterov=True),
                  steps, chance.choice((16, 32)), schedule=lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 80))
