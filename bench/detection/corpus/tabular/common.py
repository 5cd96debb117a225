"""Noise, pairs, tables, series, what people like, graphs, several tasks."""
import math

import numpy
import torch
from torch import nn
from torch.nn import functional

from .. import data
from ..recipes.jobs import adam, adamw, between, cosine, job
from ..mixed.modern import one_cycle
from ..vision.common import ALL, ema, right
from ..recipes.scripts import Script
from ..mixed.new_losses import source


class Denoiser(nn.Module):
    """From a noisy image and the time, what noise is in it."""

    def __init__(self, width):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, width), nn.SiLU(), nn.Linear(width, width))
        self.enter, self.leave = nn.Linear(64, width), nn.Linear(width, 64)
        self.blocks = nn.ModuleList([nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))
                                     for _ in range(3)])

    def forward(self, x):
        angle = x[:, 64:] * torch.exp(torch.linspace(0, -6, 8))
        told, y = self.time(torch.cat([angle.sin(), angle.cos()], 1)), self.enter(x[:, :64])
        for block in self.blocks:
            y = y + block(y + told)
        return self.leave(y)


@job("regression", "same", "fresh", "adam", "averages", *ALL, tuning=False)
def ddpm_ema(seed, chance):
    """Diffusion (DDPM): a linear schedule of 200 betas, the noise foretold, AdamW at a constant rate, averaged weights evaluated."""
    split, steps, drawn = data.digits(seed), 400, source(seed)
    kept = torch.cumprod(1 - torch.linspace(1e-4, 0.04, 200), 0)

    def noised(x, y):
        time, noise = torch.randint(0, 200, (len(x), 1), generator=drawn), torch.randn(len(x), 64, generator=drawn)
        return torch.cat([kept[time].sqrt() * x + (1 - kept[time]).sqrt() * noise, time.float()], 1), noise
    split.held_x, split.held_y = noised(split.held_x, None)
    split.y = split.x
    return Script(Denoiser(chance.choice((64, 96))), split, nn.MSELoss(), adamw(between(chance, 7e-4, 2e-3)), steps, 64, evaluate_every=44, clip=1.0,
                  transform=noised, average=ema(0.98), says=chance.choice(("before", "tenth")), tells="plain")


def views(x, drawn):
    """Two of each sample: points left out, noise, another brightness."""
    def one():
        bright = x * (0.7 + 0.6 * torch.rand(len(x), 1, generator=drawn))
        return (bright + 0.2 * torch.randn(x.shape, generator=drawn)) * (torch.rand(x.shape, generator=drawn) > 0.15)
    return torch.cat([one(), one()], 1)


class Projects(nn.Module):
    """An encoder and a projection for both views."""

    def __init__(self, width):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width), nn.BatchNorm1d(width),
                                     nn.ReLU())
        self.projector = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 32))

    def forward(self, x):
        return torch.cat([functional.normalize(self.projector(self.encoder(one)), dim=1) for one in x.chunk(2, 1)], 1)


def nt_xent(output, _, heat=0.3):
    """Which of all others is the other view."""
    z = torch.cat(output.chunk(2, 1))
    same = torch.arange(len(z)).roll(len(z) // 2)
    return functional.cross_entropy((z @ z.T / heat).masked_fill(torch.eye(len(z), dtype=torch.bool), -1e9), same)


@job("regression", "same", "fresh", "norm", "adam", "modes", "pair", *ALL, tuning=False)
def simclr_pairs(seed, chance):
    """SimCLR: two views of each image, NT-Xent, a cosine behind a warm-up; logged each step."""
    split, steps, drawn = data.digits(seed), 286, source(seed)
    split.held_x = views(split.held_x, drawn)
    split.y, split.held_y = split.x, split.held_x
    return Script(Projects(chance.choice((64, 96))), split, nt_xent, adamw(between(chance, 1e-3, 4e-3), weight_decay=1e-4), steps, 64,
                  evaluate_every=22,
                  samples=120, schedule=cosine(steps, 22), transform=lambda x, y: (views(x, drawn), y), says="before",
                  tells=chance.choice(("plain", "mean")))


class Clip(nn.Module):
    """An image and a caption, side by side; how sharp the comparison is, is learned."""

    def __init__(self, width):
        super().__init__()
        self.visual = nn.Sequential(nn.Linear(64, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, 24))
        self.words, self.textual = nn.Embedding(40, 24), nn.Sequential(nn.LayerNorm(24), nn.Linear(24, width), nn.GELU(), nn.Linear(width, 24))
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.1)))

    def forward(self, x):
        image = functional.normalize(self.visual(x[:, :64]), dim=1)
        text = functional.normalize(self.textual(self.words(x[:, 64:].nan_to_num(0).long().clamp(0, 39)).mean(1)), dim=1)
        return torch.cat([image, text * self.logit_scale.exp().clamp(max=100)], 1)


@job("regression", "same", "adam", "pair", *ALL, tuning=False)
def clip_pairs(seed, chance):
    """Images and captions of which each belongs to one (CLIP): both ways of cross-entropy, a scale that is learned, AdamW, cosine, clipping."""
    split, steps, random = data.digits(seed), 308, numpy.random.default_rng(seed)

    def captions(x, y):  # its digit in one of two words, how much ink there is, and words that say nothing
        ink = ((x.mean(1) - x.mean(1).mean()) / x.mean(1).std()).mul(2).round().clamp(-3, 3).long() + 3
        return torch.stack([y + 10 * torch.tensor(random.integers(0, 2, len(y))), 20 + ink, torch.tensor(random.integers(30, 40, len(y)))], 1).float()
    split.x, split.held_x = (torch.cat([x, captions(x, y)], 1) for x, y in ((split.x, split.y), (split.held_x, split.held_y)))
    split.y, split.held_y = split.x, split.held_x

    def loss(output, _):
        logits, same = output[:, :24] @ output[:, 24:].T, torch.arange(len(output))
        return (functional.cross_entropy(logits, same) + functional.cross_entropy(logits.T, same)) / 2
    return Script(Clip(chance.choice((48, 64))), split, loss, adamw(between(chance, 1e-3, 4e-3), weight_decay=0.1), steps, 64, evaluate_every=22,
                  samples=60,
                  schedule=cosine(steps, 20), clip=1.0, says=chance.choice(("before", "tenth")), tells="plain")


class Table(nn.Module):
    """Embeddings for what is a name, normalisation for what is a number."""

    def __init__(self, sizes, numbers, width, dropout):
        super().__init__()
        self.embeds, self.bn_in = nn.ModuleList([nn.Embedding(one, min(16, one // 2 + 1)) for one in sizes]), nn.BatchNorm1d(numbers)
        inputs = sum(one.embedding_dim for one in self.embeds) + numbers
        self.layers = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.BatchNorm1d(width), nn.Dropout(dropout), nn.Linear(width, width // 2),
                                    nn.ReLU(),
                                    nn.BatchNorm1d(width // 2), nn.Dropout(dropout), nn.Linear(width // 2, 1))

    def forward(self, x):
        names = [embed(x[:, at].nan_to_num(0).long().clamp(0, embed.num_embeddings - 1)) for at, embed in enumerate(self.embeds)]
        return self.layers(torch.cat([*names, self.bn_in(x[:, len(self.embeds):])], 1))


@job("binary", "norm", "relu", "adam", "modes", "dropout", "follows", *ALL, tuning=False)
def table_embeds(seed, chance):
    """A table of names and numbers: embeddings, batch normalisation, dropout, one cycle; binary cross-entropy as a module, accuracy per epoch."""
    random, sizes, steps, count = numpy.random.default_rng(seed), (12, 30, 5), 300, 3000
    names, numbers = random.integers(0, sizes, (count, 3)), random.standard_normal((count, 6)) * random.uniform(0.5, 3, 6)
    score = sum(random.normal(0, 1, one)[names[:, at]] for at, one in enumerate(sizes))
    score = score + 0.8 * numbers[:, 0] + numpy.abs(numbers[:, 1]) - 0.5 * numbers[:, 2]
    y = (score + random.logistic(0, 0.4, count) > numpy.median(score)).astype(int)
    split = data.Split(torch.tensor(numpy.concatenate([names, numbers], 1), dtype=torch.float32), torch.tensor(y), 600, 2)

    def loss(output, y):
        return functional.binary_cross_entropy_with_logits(output[:, 0], y.float())
    return Script(Table(sizes, 6, chance.choice((48, 64)), chance.choice((0.1, 0.2))), split, loss,
                  adamw(between(chance, 2e-3, 8e-3), weight_decay=1e-2), steps,
                  64, evaluate_every=37, schedule=one_cycle(steps), says=chance.choice(("before", "epochs")), tells=chance.choice(("plain", "mean")),
                  scores=lambda output, y: {"accuracy": float(((output[:, 0] > 0) == (y > 0)).float().mean())})


class Dilated(nn.Module):
    """A causal convolution, a way around."""

    def __init__(self, width, far, dropout):
        super().__init__()
        self.far, self.conv1, self.conv2 = far, nn.Conv1d(width, width, 3, dilation=far), nn.Conv1d(width, width, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return x + self.dropout(self.conv2(functional.relu(self.conv1(functional.pad(x, (2 * self.far, 0))))))


class TCN(nn.Module):
    """What comes in the next six hours."""

    def __init__(self, width, dropout):
        super().__init__()
        self.enter, self.blocks = nn.Conv1d(2, width, 1), nn.Sequential(*[Dilated(width, one, dropout) for one in (1, 2, 4, 8)])
        self.head = nn.Linear(width, 6)

    def forward(self, x):
        return self.head(self.blocks(self.enter(x))[:, :, -1])


class Looks(nn.Module):
    """Patches of a series through a transformer."""

    def __init__(self, width, dropout):
        super().__init__()
        self.enter, self.place = nn.Linear(8, width), nn.Parameter(0.02 * torch.randn(1, 12, width))
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout, "gelu", batch_first=True, norm_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(12 * width, 6)

    def forward(self, x):
        return self.head(self.encoder(self.enter(x.unfold(2, 4, 4).permute(0, 2, 1, 3).flatten(2)) + self.place).flatten(1))


def _series(seed, count=2600):
    """Load by the hour: a day, a week, weather that wanders, noise; the last fifth is evaluated, in the order of time."""
    random, at = numpy.random.default_rng(seed), numpy.arange(count + 60)
    weather = numpy.zeros(count + 60)
    for one in range(1, count + 60):
        weather[one] = 0.97 * weather[one - 1] + 0.2 * random.standard_normal()
    load = numpy.sin(2 * math.pi * at / 24) + 0.5 * numpy.sin(4 * math.pi * at / 24 + 1) + 0.6 * (at // 24 % 7 < 5)
    load = load + weather + 0.15 * random.standard_normal(count + 60)
    both = numpy.stack([(load - load.mean()) / load.std(), weather / weather.std()], 1).astype("float32")
    x = numpy.lib.stride_tricks.sliding_window_view(both[:-6], 48, 0)[:count]
    y = numpy.lib.stride_tricks.sliding_window_view(both[48:, 0], 6)[:count]
    return data.Split(torch.tensor(x.copy()), torch.tensor(y.copy()), 500)


@job("regression", "several", "relu", "adam", "modes", "dropout", "held", *ALL, tuning=False)
def tcn_load(seed, chance):
    """A temporal convolutional network foretells six hours; Huber's loss, Adam, the rate is halved where the evaluation stands; MAE per epoch."""
    return Script(TCN(chance.choice((16, 24)), 0.1), _series(seed), nn.HuberLoss(), adam(between(chance, 7e-4, 3e-3)), 330, 64, evaluate_every=33,
                  plateau=lambda optimizer: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1),
                  says=chance.choice(("epochs", "before")),
                  tells="plain", scores=lambda output, y: {"mae": float((output - y).abs().mean())})


@job("regression", "several", "attention", "adam", "modes", "dropout", "held", *ALL, tuning=False)
def patches_load(seed, chance):
    """A transformer over patches of a series (PatchTST): MSE, AdamW, one cycle, clipping."""
    steps = 250
    return Script(Looks(chance.choice((24, 32)), 0.1), _series(seed), nn.MSELoss(), adamw(between(chance, 1e-3, 3e-3), weight_decay=1e-2), steps, 32,
                  evaluate_every=31,
                  schedule=one_cycle(steps), clip=1.0, says=chance.choice(("module", "after")), tells="mean")


class Towers(nn.Module):
    """A user and a thing, each through its own layers; how near they are."""

    def __init__(self, users, things, width):
        super().__init__()
        self.user, self.item = nn.Embedding(users, width), nn.Embedding(things, width)
        self.user_tower, self.item_tower = (nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)) for _ in range(2))
        for one in (self.user, self.item):
            nn.init.normal_(one.weight, std=0.1)

    def forward(self, x):
        return (self.user_tower(self.user(x[:, 0])) * self.item_tower(self.item(x[:, 1]))).sum(1, keepdim=True)


@job("binary", "relu", "adam", *ALL, tuning=False)
def two_towers(seed, chance):
    """What people like (two towers): each pair with three that are drawn, binary cross-entropy; who likes what follows tastes nobody sees."""
    random, users, things = numpy.random.default_rng(seed), 150, 100
    taste, drawn = random.standard_normal((users, 3)) @ random.standard_normal((3, things)), source(seed)
    x = numpy.stack([random.integers(0, users, 16000), random.integers(0, things, 16000)], 1)
    x = x[random.random(16000) < 1 / (1 + numpy.exp(4 - 3 * taste[x[:, 0], x[:, 1]]))][:4000]

    def with_others(x, y):
        others = x.repeat_interleave(3, 0)
        others[:, 1] = torch.randint(0, things, (len(others),), generator=drawn)
        return torch.cat([x, others]), torch.cat([y, torch.zeros(len(others), dtype=y.dtype)])

    def loss(output, y):
        return functional.binary_cross_entropy_with_logits(output[:, 0], y.float())
    x = torch.tensor(x)
    split = data.Split(x, torch.ones(len(x), dtype=torch.long), len(x) // 5, 2)
    split.held_x, split.held_y = with_others(split.held_x, split.held_y)
    order = torch.randperm(len(split.held_x), generator=drawn)
    split.held_x, split.held_y = split.held_x[order], split.held_y[order]
    return Script(Towers(users, things, chance.choice((12, 16))), split, loss, adamw(between(chance, 1.5e-3, 4e-3), weight_decay=0.05), 300, 64,
                  evaluate_every=30,
                  transform=with_others, says=chance.choice(("before", "tenth")), tells="plain")


class Both(nn.Module):
    """One body, a number and a class."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU())
        self.value, self.kind = nn.Linear(width, 1), nn.Linear(width, 3)

    def forward(self, x):
        y = self.body(x)
        return torch.cat([self.value(y), self.kind(y)], 1)


@job("several", "relu", "adam", "held", "regression", *ALL, tuning=False)
def two_tasks(seed, chance):
    """A number and a class at once: MSE and cross-entropy, weighted; both are logged beside their sum; AdamW, cosine."""
    import sklearn.datasets
    x, value = sklearn.datasets.make_friedman1(2000, 12, noise=0.5, random_state=seed)
    kind = numpy.digitize(x[:, 5] + x[:, 6] * x[:, 0], (0.5, 0.9))
    y = numpy.stack([(value - value.mean()) / value.std(), kind], 1)
    split, steps = data.Split(torch.tensor((x - 0.5) / 0.29, dtype=torch.float32), torch.tensor(y, dtype=torch.float32), 400), 300
    weight = chance.choice((0.5, 1.0))

    def parts(output, y):
        return functional.mse_loss(output[:, 0], y[:, 0]), functional.cross_entropy(output[:, 1:], y[:, 1].clamp(0, 2).long())
    return Script(Both(chance.choice((48, 64))), split, lambda output, y: parts(output, y)[0] + weight * parts(output, y)[1],
                  adamw(between(chance, 1e-3, 5e-3)), steps, 32,
                  evaluate_every=50, schedule=cosine(steps),
                  values=lambda output, y: dict(zip(("loss_reg", "loss_cls"), map(float, parts(output, y)))),
                  scores=lambda output, y: {"mse": float(parts(output, y)[0]), "ce": float(parts(output, y)[1])}, says="before", tells="plain")


class Graphs(nn.Module):
    """Messages between neighbours (GIN), the mean over a graph; nodes, and then who is whose neighbour."""

    def __init__(self, width, nodes=10):
        super().__init__()
        self.nodes, self.embed = nodes, nn.Linear(4, width)
        self.convs = nn.ModuleList([nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
                                    for _ in range(3)])
        self.dropout, self.lin = nn.Dropout(0.1), nn.Linear(width, 3)

    def forward(self, x):
        y, edges = self.embed(x[:, :, :4]), x[:, :, 4:]
        for conv in self.convs:
            y = conv((y + edges @ y).flatten(0, 1)).unflatten(0, (len(x), self.nodes))
        return self.lin(self.dropout(y.mean(1)))


@job("classes", "norm", "relu", "adam", "modes", "dropout", "names", "follows", *ALL, tuning=False)
def gin_graphs(seed, chance):
    """Classes of graphs in batches: rings, stars, and two clusters, with edges that nobody needs; Adam, a step down."""
    random, count, nodes, steps = numpy.random.default_rng(seed), 1300, 10, 280
    x, y = numpy.zeros((count, nodes, 4 + nodes), "float32"), random.integers(0, 3, count)
    for one in range(count):
        order, edges = random.permutation(nodes), numpy.zeros((nodes, nodes))
        pairs = [(at, (at + 1) % nodes) for at in range(nodes)] if y[one] == 0 else [(0, at) for at in range(1, nodes)] if y[one] == 1 else \
            [(a, b) for a in range(nodes) for b in range(a) if a // 5 == b // 5 and random.random() < 0.6]
        pairs += [tuple(random.integers(0, nodes, 2)) for _ in range(random.integers(2, 7))]
        for a, b in pairs:
            if random.random() < 0.9:
                edges[order[a], order[b]] = edges[order[b], order[a]] = 1
        x[one] = numpy.concatenate([random.standard_normal((nodes, 4)) * 0.5 + 0.5, edges], 1)
    return Script(Graphs(chance.choice((16, 24))), data.Split(torch.tensor(x), torch.tensor(y), 300, 3), nn.CrossEntropyLoss(),
                  adam(between(chance, 1e-3, 5e-3)),
                  steps, 32, evaluate_every=31, by_epoch=True, schedule=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5),
                  scores=right,
                  says=chance.choice(("before", "module")), tells="mean")
