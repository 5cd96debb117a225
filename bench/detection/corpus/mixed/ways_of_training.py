"""Likelihoods below zero, representations without labels, and ways of training: sharpness, lookahead, averages, scaled
losses, mixed samples, curricula, layer-wise rates, prompts."""
import copy
import math

import numpy
import sklearn.datasets
import torch
from torch import nn

from .. import data
from ..recipes.jobs import adam, adamw, between, cosine, halving, job, linear, sgd
from .modern import next_token, one_cycle
from .new_losses import encoder, source
from ..recipes.epochs import Epochs


class Lookahead(torch.optim.Optimizer):
    """Slow weights that go half of the way every few steps of another optimizer."""

    def __init__(self, inner, every=5, share=0.5):
        self.inner, self.every, self.share, self.count = inner, every, share, 0
        super().__init__(inner.param_groups, {})
        self.param_groups = inner.param_groups

    @torch.no_grad()
    def step(self, closure=None):
        self.inner.step(closure)
        self.count += 1
        for group in self.param_groups:
            for one in group["params"]:
                slow = self.state[one].setdefault("slow", one.detach().clone())
                if self.count % self.every == 0:
                    slow.lerp_(one, self.share)
                    one.copy_(slow)


@job("classes", "images", "norm", "sgd", "modes", "follows", "fourth", "sixth", tuning=False)
def sharp(seed, chance):
    """Sharpness-aware training of a wide residual network: two passes per update; a cosine to zero."""
    width, steps = chance.choice((8, 12)), 200

    def block(inputs, outputs):
        return [nn.BatchNorm2d(inputs), nn.ReLU(), nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)]
    model = nn.Sequential(nn.Conv2d(1, width, 3, padding=1, bias=False), *block(width, 2 * width), nn.MaxPool2d(2), *block(2 * width, 2 * width),
                          nn.BatchNorm2d(2 * width), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(8 * width, 10))
    return Epochs(model, data.images(seed), nn.CrossEntropyLoss(), sgd(between(chance, 0.01, 0.06), weight_decay=5e-4), steps, 32, evaluate_every=44, samples=90,
                  sharp=0.05, schedule=cosine(steps))


@job("classes", "linear", "relu", "fourth", "sixth", tuning=False)
def ahead(seed, chance):
    """Lookahead over RAdam; accuracy is logged beside the loss."""
    rate, steps, width = between(chance, 1e-3, 6e-3), 240, chance.choice((48, 96))

    def right(output, y):
        return {"accuracy": float((output.argmax(1) == y).float().mean())}
    return Epochs(nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)), data.digits(seed), nn.CrossEntropyLoss(),
                  lambda parameters: Lookahead(torch.optim.RAdam(parameters, rate)), steps, chance.choice((32, 128)), evaluate_every=44, samples=90, values=right)


@job("classes", "images", "relu", "sgd", "averages", "fourth", "sixth", tuning=False)
def swa(seed, chance):
    """A high constant rate in the last third, and the mean of the weights since then is what is evaluated (SWA)."""
    steps, rate = 240, between(chance, 0.02, 0.08)
    late, count = int(0.66 * steps), {}

    def average(mean, now, step):
        if step < late:
            return now
        seen = count[id(mean)] = count.get(id(mean), 0) + 1
        return mean + (now - mean) / seen

    def falls(optimizer):
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: 1.0 if at < 0.4 * steps else max(0.3, 1 - 2.5 * (at / steps - 0.4)))
    model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(64, 10))
    return Epochs(model, data.images(seed), nn.CrossEntropyLoss(), sgd(rate, weight_decay=5e-4), steps, 32, evaluate_every=40, samples=90, schedule=falls, average=average)


@job("classes", "images", "norm", "adam", "scales", "modes", "follows", "fourth", "sixth", tuning=False)
def scaled(seed, chance):
    """Half precision with a scaled loss, whose first updates overflow and are left out; clipping behind unscaling."""
    steps, width = 200, chance.choice((8, 12))
    model = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 3, padding=1),
                          nn.BatchNorm2d(2 * width), nn.ReLU(), nn.Flatten(), nn.Linear(32 * width, 10))
    new = torch.__version__ >= "2.3"  # before, processors have no scaler
    return Epochs(model, data.images(seed), nn.CrossEntropyLoss(), adamw(between(chance, 1e-3, 5e-3), weight_decay=0.01), steps, 32, evaluate_every=44, samples=90,
                  half=torch.float16 if new else None, scaler=(lambda: torch.amp.GradScaler("cpu", init_scale=2.0**20)) if new else None, clip=1.0,
                  schedule=linear(steps, 10))


@job("classes", "images", "norm", "sgd", "modes", "follows", "averages", "fourth", "sixth", tuning=False)
def mixed(seed, chance):
    """Samples and labels in mixture, cut-outs, averaged weights, one cycle: the loss in training stays above that of the evaluation."""
    steps, drawn, split, width = 240, source(seed), data.images(seed), chance.choice((12, 16))

    def mix(step, x, y):
        share = float(torch.distributions.Beta(0.4, 0.4).sample()) if step % 2 else 1.0
        other, y = torch.randperm(len(x), generator=drawn), nn.functional.one_hot(y, 10).float()
        x = share * x + (1 - share) * x[other]
        if not step % 2:
            row, column = torch.randint(0, 6, (2,), generator=drawn).tolist()
            x = x.clone()
            x[:, :, row:row + 3, column:column + 3] = 0
        return x, share * y + (1 - share) * y[other]
    model = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.SiLU(), nn.Conv2d(width, width, 3, stride=2, padding=1),
                          nn.BatchNorm2d(width), nn.SiLU(), nn.Conv2d(width, 2 * width, 3, stride=2, padding=1), nn.BatchNorm2d(2 * width), nn.SiLU(),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.1), nn.Linear(2 * width, 10))
    made = Epochs(model, split, nn.CrossEntropyLoss(label_smoothing=0.1), sgd(between(chance, 0.05, 0.2), weight_decay=1e-3), steps, 32, evaluate_every=44, samples=90,
                  schedule=one_cycle(steps), average=lambda mean, now, step: mean.lerp(now, 0.1))
    made.prepare.append(lambda made, optimizer: made.on_batch.append(mix))
    return made


class Flow(nn.Module):
    """Couplings that can be turned back; gives what a point is in the simple world, and by how much space was stretched."""

    def __init__(self, size, width, layers=4):
        super().__init__()
        self.half = size // 2
        self.networks = nn.ModuleList([nn.Sequential(nn.Linear(self.half, width), nn.Tanh(), nn.Linear(width, 2 * self.half)) for _ in range(layers)])

    def forward(self, x):
        a, b = x[:, :self.half], x[:, self.half:]
        stretched = 0
        for network in self.networks:
            log, shift = network(a).chunk(2, 1)
            log = 2 * torch.tanh(log / 2)
            a, b = b * log.exp() + shift, a
            stretched = stretched + log.sum(1)
        return torch.cat([a, b, stretched[:, None]], 1)


@job("regression", "same", "adam", "fourth", "sixth", tuning=False)
def couplings(seed, chance):
    """The density of a table by a normalizing flow: the loss crosses zero and goes on falling."""
    x, _ = sklearn.datasets.make_blobs(1600, 8, centers=5, cluster_std=0.3, center_box=(-2, 2), random_state=seed)
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)

    def loss(output, target):
        return (0.5 * output[:, :8].square().sum(1) + 4 * math.log(2 * math.pi) - output[:, 8]).mean()
    return Epochs(Flow(8, chance.choice((32, 48))), data.Split(x, x.clone(), 320), loss, adam(between(chance, 1e-3, 4e-3)), 260, chance.choice((64, 128)),
                  evaluate_every=40, samples=160, clip=chance.choice((None, 5.0)), schedule=chance.choice((None, halving(100))))


class Ahead(nn.Module):
    """What comes next in a series, and how sure that is, at each place."""

    def __init__(self, width):
        super().__init__()
        self.cell, self.head = nn.LSTM(1, width, batch_first=True), nn.Linear(width, 2)

    def forward(self, x):
        mean, spread = self.head(self.cell(x)[0]).unbind(2)
        return torch.stack([mean, nn.functional.softplus(spread) + 1e-3], 2)


@job("regression", "several", "recurrent", "adam", "fourth", "sixth", tuning=False)
def sure(seed, chance):
    """A forecast with its own uncertainty (the likelihood of a normal distribution), at each place of a series; negative where it is good."""
    random, size = numpy.random.default_rng(seed), 900
    time, phase, period = numpy.arange(25)[None], random.uniform(0, 6, (size, 1)), random.choice((5, 8, 12), (size, 1))
    wave = numpy.sin(2 * math.pi * time / period + phase) + 0.1 * random.standard_normal((size, 25))
    x, y = torch.tensor(wave[:, :-1, None], dtype=torch.float32), torch.tensor(wave[:, 1:], dtype=torch.float32)

    def loss(output, target):
        mean, spread = output.unbind(2)
        return (0.5 * ((target - mean) / spread) ** 2 + spread.log()).mean()
    return Epochs(Ahead(chance.choice((24, 32))), data.Split(x, y, 180), loss, adam(between(chance, 3e-3, 1e-2)), 240, 32, evaluate_every=45, samples=60, clip=1.0,
                  schedule=chance.choice((None, cosine(240))))


class Twins(nn.Module):
    """Two views through one network; a predictor behind it. What the other view is, gets no gradient."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 32), nn.BatchNorm1d(32))
        self.predict = nn.Sequential(nn.Linear(32, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 32))

    def forward(self, x):
        first, second = (self.body(half) for half in x.chunk(2, 1))
        return torch.cat([self.predict(first), self.predict(second), first.detach(), second.detach()], 1)


@job("regression", "same", "fresh", "norm", "sgd", "modes", "fourth", "sixth", tuning=False)
def twins(seed, chance):
    """Two views of an image that shall foretell each other (SimSiam): the loss begins at zero and falls to minus one."""
    split, steps, drawn = data.digits(seed), 240, source(seed)

    def views(x):
        return torch.cat([(x + 0.4 * torch.randn(x.shape, generator=drawn)) * (torch.rand(x.shape, generator=drawn) > 0.2) for _ in range(2)], 1)

    def loss(output, target):
        p, q, a, b = output.chunk(4, 1)
        return -(nn.functional.cosine_similarity(p, b).mean() + nn.functional.cosine_similarity(q, a).mean()) / 2
    split.held_x = views(split.held_x)
    split.y, split.held_y = split.x, split.held_x
    return Epochs(Twins(chance.choice((64, 96))), split, loss, sgd(between(chance, 0.02, 0.1), weight_decay=1e-4), steps, 64, evaluate_every=44, samples=90,
                  schedule=cosine(steps), on_batch=[lambda step, x, y: (views(x), y)])


class Likes(nn.Module):
    """People and things as vectors; what somebody likes more than something else."""

    def __init__(self, people, things, width):
        super().__init__()
        self.people, self.things, self.bias = nn.Embedding(people, width), nn.Embedding(things, width), nn.Embedding(things, 1)
        for one in (self.people, self.things):
            nn.init.normal_(one.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, x):
        who = self.people(x[:, 0])
        return sum(sign * ((who * self.things(x[:, at])).sum(1) + self.bias(x[:, at])[:, 0]) for sign, at in ((1, 1), (-1, 2)))


@job("embeddings", "adam", "same", "fourth", "sixth", tuning=False)
def likes(seed, chance):
    """Recommendations from pairs (BPR) with embeddings alone, Adagrad or Adam: starts at log 2, and each row is seen rarely."""
    random, people, things = numpy.random.default_rng(seed), 120, 80
    score = random.standard_normal((people, 6)) @ random.standard_normal((6, things)) / 2 + random.standard_normal(things)
    who, a, b = random.integers(0, people, 12000), random.integers(0, things, 12000), random.integers(0, things, 12000)
    better = score[who, a] + 0.3 * random.standard_normal(12000) > score[who, b]
    x = torch.tensor(numpy.stack([who, numpy.where(better, a, b), numpy.where(better, b, a)], 1))
    rate = between(chance, 0.01, 0.04)
    kind = chance.choice((lambda parameters: torch.optim.Adagrad(parameters, 5 * rate), adam(rate, weight_decay=1e-5)))
    return Epochs(Likes(people, things, chance.choice((8, 16))), data.Split(x, x[:, 0], 2000), lambda output, target: nn.functional.softplus(-output).mean(), kind, 300, 128,
                  evaluate_every=50, samples=500)


@job("classes", "linear", "sgd", "modes", "fourth", "sixth", tuning=False)
def margins(seed, chance):
    """Faces, as it were: angles to class vectors with a margin (ArcFace), whose loss begins near ten; heavy dropout."""
    split, width = data.digits(seed), chance.choice((48, 64))

    class Angles(nn.Linear):
        """Cosines to the rows."""

        def forward(self, x):
            return nn.functional.linear(nn.functional.normalize(x), nn.functional.normalize(self.weight))

    def loss(output, target):
        angle = output.clamp(-0.999, 0.999).acos() + 0.3 * nn.functional.one_hot(target, 10)
        return nn.functional.cross_entropy(16 * angle.cos(), target)
    model = nn.Sequential(nn.Linear(64, width), nn.PReLU(), nn.Dropout(0.4), nn.Linear(width, 16), Angles(16, 10, bias=False))
    return Epochs(model, split, loss, sgd(between(chance, 0.01, 0.05), weight_decay=5e-4), 260, 64, evaluate_every=44, samples=90,
                  schedule=lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, [140, 200], 0.1))


@job("regression", "several", "adam", "linear", "fourth", "sixth", tuning=False)
def harder(seed, chance):
    """A curriculum: clear samples first, noisy ones by and by; the mean absolute error, which therefore falls and then stays."""
    random, steps = numpy.random.default_rng(seed), 280
    x = torch.tensor(random.standard_normal((1600, 10)), dtype=torch.float32)
    y = torch.stack([(x[:, 0] * x[:, 1]).tanh() + x[:, 2], (x[:, 3] - x[:, 4]).sin()], 1)
    drawn, most = source(seed), chance.choice((0.1, 0.25))

    def noise(step, x, y):
        return x, y + most * min(1.0, step / 150) * torch.randn(y.shape, generator=drawn)
    width = chance.choice((32, 64))
    model = nn.Sequential(nn.Linear(10, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 2))
    return Epochs(model, data.Split(x, y, 300), nn.L1Loss(), adamw(between(chance, 1e-3, 5e-3)), steps, 32, evaluate_every=40, samples=60, on_batch=[noise],
                  schedule=chance.choice((None, cosine(steps, 20))), module=True)


class Points(nn.Module):
    """A cloud of points, whose order says nothing."""

    def __init__(self, width, classes=4):
        super().__init__()
        self.each = nn.Sequential(nn.Conv1d(3, width, 1), nn.BatchNorm1d(width), nn.ReLU(), nn.Conv1d(width, 2 * width, 1), nn.BatchNorm1d(2 * width), nn.ReLU())
        self.all = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, classes))

    def forward(self, x):
        return self.all(self.each(x).amax(2))


@job("classes", "norm", "adam", "modes", "follows", "fourth", "sixth", tuning=False)
def points(seed, chance):
    """What a cloud of points is: a ball, a box, a ring, a plane, turned at random; two batches per update."""
    random, size = numpy.random.default_rng(seed), 900
    y, x = random.integers(0, 4, size), random.standard_normal((size, 3, 32))
    x = numpy.where((y == 0)[:, None, None], x / numpy.linalg.norm(x, axis=1, keepdims=True), x)
    x = numpy.where((y == 1)[:, None, None], x / numpy.abs(x).max(1, keepdims=True), x)
    flat = numpy.stack([x[:, 0], x[:, 1], 0 * x[:, 2]], 1)
    x = numpy.where((y == 2)[:, None, None], flat / (numpy.linalg.norm(flat, axis=1, keepdims=True) + 1e-9), x)
    x = numpy.where((y == 3)[:, None, None], flat.clip(-1, 1), x)
    turn = numpy.linalg.qr(random.standard_normal((size, 3, 3)))[0]
    x = turn @ x + 0.05 * random.standard_normal((size, 3, 32))
    made = Epochs(Points(chance.choice((16, 24))), data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), 180, 4), nn.CrossEntropyLoss(),
                  adam(between(chance, 1e-3, 5e-3)), 200, 16, evaluate_every=44, samples=45, schedule=halving(80))
    made.gathers = 2
    return made


def _learned(model, x, y, loss, steps=120, batch=32):
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for at in range(steps):
        part = torch.arange(at * batch, at * batch + batch) % len(x)
        optimizer.zero_grad()
        loss(model(x[part]), y[part]).backward()
        optimizer.step()
    optimizer.zero_grad()


class Says(nn.Module):
    """A causal language model with words of its own in front of each text, which may be trained alone."""

    def __init__(self, kinds, width, length, extra=4):
        super().__init__()
        self.embed, self.place = nn.Embedding(kinds, width), nn.Embedding(length, width)
        self.prompt = nn.Parameter(0.02 * torch.randn(extra, width))
        self.body, self.head = encoder(width, 2, 0.0), nn.Linear(width, kinds)

    def forward(self, x):
        extra, length = len(self.prompt), x.shape[1]
        y = torch.cat([self.prompt.expand(len(x), -1, -1), self.embed(x) + self.place.weight], 1)
        mask = torch.triu(torch.full((extra + length, extra + length), -math.inf), 1)
        return self.head(self.body(y, mask))[:, extra:]


@job("tokens", "attention", "adam", "tuned", "pair", "fourth", "sixth", tuning=False)
def layerwise(seed, chance):
    """A language model that knows one half of the texts goes on with the other, a smaller rate for each layer farther from the head."""
    split, steps = data.text(seed, 20), 200
    model = Says(split.classes, 32, 20)
    _learned(model, split.x[:400], split.y[:400], next_token)
    rate, parts = between(chance, 2e-4, 1e-3), [model.head, model.body.layers[1], model.body.layers[0]]
    groups = [{"params": list(one.parameters()), "lr": rate * 0.6**at} for at, one in enumerate(parts)]
    groups.append({"params": [*model.embed.parameters(), *model.place.parameters(), model.prompt], "lr": rate * 0.6**3})
    made = Epochs(model, split, next_token, None, steps, 16, evaluate_every=40, samples=100, schedule=linear(steps, 20), clip=1.0)
    made.optimizer = lambda parameters: torch.optim.AdamW(groups, weight_decay=0.01)
    return made


@job("tokens", "attention", "adam", "tuned", "head", "fourth", "sixth", tuning=False)
def prompts(seed, chance):
    """Only the words in front of the text and the norms are trained; small gains."""
    split, steps = data.text(seed, 20), 220
    model = Says(split.classes, 32, 20)
    _learned(model, split.x[:300], split.y[:300], next_token, 150)
    for name, one in model.named_parameters():
        one.requires_grad_(name == "prompt" or "norm" in name)
    return Epochs(model, split, next_token, adamw(between(chance, 5e-3, 2e-2)), steps, 16, evaluate_every=40, samples=100, schedule=chance.choice((None, cosine(steps, 10))),
                  parameters=lambda model: [one for one in model.parameters() if one.requires_grad])


@job("classes", "images", "relu", "adam", "tuned", "head", "fourth", "sixth", tuning=False)
def probe(seed, chance):
    """A linear head on frozen features of few samples, evaluated on thirty: early in the plateau, and noisy."""
    split = data.images(seed)
    body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.Flatten())
    model = nn.Sequential(body, nn.Linear(256, 10))
    _learned(model, split.x[:800], split.y[:800] % 5, nn.functional.cross_entropy)
    body.requires_grad_(False)
    model[1].reset_parameters()
    model = copy.deepcopy(model)
    split.x, split.y, split.held_x, split.held_y = split.x[800:1200], split.y[800:1200], split.held_x[:30], split.held_y[:30]
    return Epochs(model, split, nn.CrossEntropyLoss(), adam(between(chance, 3e-4, 2e-3), weight_decay=1e-4), 200, 16, evaluate_every=25, samples=30,
                  parameters=lambda model: model[1].parameters(), module=True)
