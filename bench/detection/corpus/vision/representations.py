"""Pictures and representations. Kinds that no set before has, chosen from what people train and not from what rules look at.
Whoever looks at what is said of their single runs makes them tuning jobs, and writes others."""
import copy

import numpy
import torch
from torch import nn

from .. import data
from ..recipes.jobs import adam, adamw, between, cosine, job, linear, sgd
from ..recipes.rounds import Rounds
from ..mixed.new_losses import source


def behind(made, change):
    """Changes batches behind what a fault does to them."""
    made.prepare.append(lambda made, optimizer: made.on_batch.append(change))
    return made


def right(output, y):
    """What is logged beside the loss."""
    return {"accuracy": float((output.argmax(1) == y).float().mean())}


class Queue(nn.Module):
    """One network follows the other slowly; what it said of earlier batches is kept, for the other to tell apart from now."""

    def __init__(self, width, kept):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 16))
        self.key = copy.deepcopy(self.query).requires_grad_(False)
        self.register_buffer("queue", nn.functional.normalize(torch.randn(kept, 16)))
        self.at = 0

    def forward(self, x):
        first, second = x.chunk(2, 1)
        query = nn.functional.normalize(self.query(first))
        with torch.no_grad():
            if self.training:
                for slow, now in zip(self.key.parameters(), self.query.parameters()):
                    slow.lerp_(now, 0.05)
            key = nn.functional.normalize(self.key(second))
        said = torch.cat([(query * key).sum(1, keepdim=True), query @ self.queue.clone().T], 1) / 0.2
        if self.training:
            self.queue[self.at:self.at + len(key)] = key
            self.at = (self.at + len(key)) % len(self.queue)
        return said


@job("regression", "same", "fresh", "relu", "sgd", "pair", "fourth", "sixth", "seventh", tuning=False)
def queue(seed, chance):
    """Two views of an image, one of which is to be told apart from those of hundreds of earlier ones (MoCo); the right answer is always the first."""
    split, steps, drawn = data.digits(seed), 260, source(seed)

    def views(x):
        return torch.cat([(x + 0.3 * torch.randn(x.shape, generator=drawn)) * (torch.rand(x.shape, generator=drawn) > 0.15) for _ in range(2)], 1)
    split.held_x = views(split.held_x)
    split.y, split.held_y = split.x, split.held_x
    kept = chance.choice((256, 512))
    model = Queue(chance.choice((64, 96)), kept)
    with torch.no_grad():
        model.queue.copy_(nn.functional.normalize(model.key(views(split.x[:kept])[:, :64])))
    made = Rounds(model, split, lambda output, target: nn.functional.cross_entropy(output, torch.zeros(len(output), dtype=torch.long)),
                  sgd(between(chance, 0.04, 0.12), weight_decay=1e-4), steps, 64, evaluate_every=22, samples=180, schedule=cosine(steps),
                  parameters=lambda model: model.query.parameters())
    return behind(made, lambda step, x, y: (views(x), y))


class Both(nn.Module):
    """Two views through one network and a wide head."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 32))
        self.head = nn.Sequential(nn.Linear(32, 48, bias=False), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 48, bias=False))

    def forward(self, x):
        return torch.cat([self.head(self.body(half)) for half in x.chunk(2, 1)], 1)


@job("regression", "same", "fresh", "norm", "adam", "modes", "follows", "fourth", "sixth", "seventh", tuning=False)
def redundant(seed, chance):
    """Two views whose features shall agree, each saying something else (Barlow Twins): a sum over a matrix, tens at first."""
    split, steps, drawn = data.digits(seed), 240, source(seed)

    def views(x):
        return torch.cat([(x + 0.4 * torch.randn(x.shape, generator=drawn)) * (torch.rand(x.shape, generator=drawn) > 0.1) for _ in range(2)], 1)

    def loss(output, target):
        first, second = ((half - half.mean(0)) / (half.std(0) + 1e-5) for half in output.chunk(2, 1))
        matrix = first.T @ second / len(output)
        apart = (1 - torch.diagonal(matrix)).square().sum()
        return apart + 0.02 * (matrix.square().sum() - torch.diagonal(matrix).square().sum())
    split.held_x = views(split.held_x)
    split.y, split.held_y = split.x, split.held_x
    made = Rounds(Both(chance.choice((64, 96))), split, loss, adamw(between(chance, 5e-4, 3e-3), weight_decay=1e-5), steps, 128, evaluate_every=22, samples=180,
                  schedule=cosine(steps, 20))
    return behind(made, lambda step, x, y: (views(x), y))


@job("classes", "images", "relu", "sgd", "fourth", "sixth", "seventh", tuning=False)
def robust(seed, chance):
    """Adversarial training: each batch is moved to where the network errs most (projected gradients, two steps); evaluated on plain images."""
    width, radius, steps = chance.choice((8, 12)), chance.choice((0.1, 0.15)), 260
    model = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.Flatten(),
                          nn.Linear(32 * width, 10))
    made = Rounds(model, data.images(seed), nn.CrossEntropyLoss(), sgd(between(chance, 0.03, 0.08), weight_decay=5e-4), steps, 32, evaluate_every=22, samples=180,
                  schedule=chance.choice((None, cosine(steps))), values=right)
    drawn = source(seed)

    def attack(step, x, y):
        moved = x + radius * (2 * torch.rand(x.shape, generator=drawn) - 1)
        for _ in range(2):
            moved.requires_grad_()
            slope, = torch.autograd.grad(nn.functional.cross_entropy(made.model(moved), y), moved)
            moved = (x + (moved.detach() + 0.7 * radius * slope.sign() - x).clamp(-radius, radius)).detach()
        return moved, y
    return behind(made, attack)


@job("classes", "images", "norm", "sgd", "modes", "follows", "fourth", "sixth", "seventh", tuning=False)
def pseudo(seed, chance):
    """Two hundred labels and a thousand images without (FixMatch): what the network is sure of becomes a label for a distorted copy, at a weight that rises."""
    split, steps, drawn, at = data.images(seed), 260, source(seed), [0]
    free, split.x, split.y = split.x[200:], split.x[:200], split.y[:200]
    width, sure, most = chance.choice((8, 12)), chance.choice((0.9, 0.95)), chance.choice((0.5, 1.0))

    def more(step, x, y):
        at[0] = step
        some = free[torch.randint(0, len(free), (64,), generator=drawn)]
        hard = (some + 0.4 * torch.randn(some.shape, generator=drawn)) * (torch.rand(some.shape, generator=drawn) > 0.1)
        return torch.cat([x, some, hard]), y

    def loss(output, target):
        told = nn.functional.cross_entropy(output[:len(target)], target)
        if len(output) == len(target):
            return told
        weak, strong = output[len(target):].chunk(2)
        best, guess = weak.detach().softmax(1).max(1)
        own = (nn.functional.cross_entropy(strong, guess, reduction="none") * (best > sure)).mean()
        return told + most * min(1.0, at[0] / 120) * own
    model = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.LeakyReLU(0.1), nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 3, padding=1),
                          nn.BatchNorm2d(2 * width), nn.LeakyReLU(0.1), nn.Flatten(), nn.Linear(32 * width, 10))
    return behind(Rounds(model, split, loss, sgd(between(chance, 0.01, 0.04), nesterov=True, weight_decay=5e-4), steps, 16, evaluate_every=24, samples=180,
                         schedule=cosine(steps)), more)


class Rounded(nn.Module):
    """A layer as it will be when it is stored in few bits: weights and outputs are rounded, gradients go straight through."""

    def __init__(self, layer, bits=4):
        super().__init__()
        self.layer, self.most = layer, 2 ** (bits - 1) - 1
        self.register_buffer("seen", torch.tensor(1.0))

    def _near(self, x, scale, most):
        return torch.fake_quantize_per_tensor_affine(x, float(scale.clamp(min=1e-8)), 0, -most - 1, most)

    def forward(self, x):
        weight = self._near(self.layer.weight, self.layer.weight.detach().abs().max() / self.most, self.most)
        out = self.layer._conv_forward(x, weight, self.layer.bias) if isinstance(self.layer, nn.Conv2d) else nn.functional.linear(x, weight, self.layer.bias)
        if self.training:
            with torch.no_grad():
                self.seen.lerp_(out.abs().max(), 0.1)
        return self._near(out, self.seen / 31, 31)


@job("classes", "images", "relu", "adam", "tuned", "modes", "fourth", "sixth", "seventh", tuning=False)
def quantised(seed, chance):
    """Quantisation-aware training: a network that has learned for a while goes on with weights of four bits, at a small rate."""
    split, width = data.images(seed), chance.choice((8, 12))
    body = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.Flatten(),
                         nn.Linear(32 * width, 10))
    optimizer, drawn = torch.optim.Adam(body.parameters(), 3e-3), source(seed)
    for _ in range(60):
        part = torch.randint(0, 600, (32,), generator=drawn)
        optimizer.zero_grad()
        nn.functional.cross_entropy(body(split.x[part]), split.y[part]).backward()
        optimizer.step()
    optimizer.zero_grad()
    model = nn.Sequential(*[Rounded(one) if isinstance(one, (nn.Linear, nn.Conv2d)) else one for one in body])
    steps = 220
    return Rounds(model, split, nn.CrossEntropyLoss(), adam(between(chance, 3e-4, 1.5e-3)), steps, 32, evaluate_every=22, samples=180,
                  schedule=chance.choice((None, linear(steps))), module=True)


def _squash(x):
    size = x.square().sum(-1, keepdim=True)
    return size / (1 + size) * x / (size + 1e-8).sqrt()


class Capsules(nn.Module):
    """Vectors that agree on who belongs to whom; how long one is says how sure."""

    def __init__(self, width, inner=4, outer=6):
        super().__init__()
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.first = nn.Conv2d(width, 4 * inner, 3, stride=2, padding=1)
        self.ways, self.inner = nn.Parameter(0.1 * torch.randn(64, 10, outer, inner)), inner

    def forward(self, x):
        x = _squash(self.first(torch.relu(self.enter(x))).reshape(len(x), -1, self.inner))
        votes = torch.einsum("nkoi,bni->bnko", self.ways, x)
        agree = torch.zeros(votes.shape[:3])
        for at in range(3):
            out = _squash((agree.softmax(2)[..., None] * votes).sum(1))
            if at < 2:
                agree = agree + (votes.detach() * out.detach()[:, None]).sum(3)
        return out.square().sum(2).add(1e-8).sqrt()


@job("classes", "images", "adam", "fourth", "sixth", "seventh", tuning=False)
def capsules(seed, chance):
    """Capsules with three rounds of routing and a margin for the length of each."""
    def loss(output, target):
        is_it = nn.functional.one_hot(target, 10).float()
        return (is_it * (0.9 - output).relu() ** 2 + 0.5 * (1 - is_it) * (output - 0.1).relu() ** 2).sum(1).mean()
    return Rounds(Capsules(chance.choice((8, 12))), data.images(seed), loss, adam(between(chance, 2e-3, 6e-3)), 220, 32, evaluate_every=22, samples=180,
                  schedule=lambda optimizer: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.995), values=right)


class Back(torch.autograd.Function):
    """Lets numbers through, and turns gradients round."""

    @staticmethod
    def forward(context, x, share):
        context.share = share
        return x.view_as(x)

    @staticmethod
    def backward(context, grad):
        return -context.share * grad, None


class Domains(nn.Module):
    """What it is, and from which world; the body shall not know the second."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 32), nn.ReLU())
        self.world = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2))
        self.head = nn.Linear(32, 10)
        self.share = 0.0

    def forward(self, x):
        x = self.body(x)
        return torch.cat([self.head(x), self.world(Back.apply(x, self.share))], 1)


@job("classes", "relu", "sgd", "pair", "head", "fourth", "sixth", "seventh", tuning=False)
def domains(seed, chance):
    """Labels in one world only, and a gradient that is turned round for what tells the worlds apart (DANN); evaluated in the other world."""
    split, steps, drawn, most = data.digits(seed), 400, source(seed), chance.choice((0.15, 0.3))
    shift = 0.7 * torch.randn(64, generator=drawn)

    def other(x):
        return 0.8 * x + shift + 0.2 * torch.randn(x.shape, generator=drawn)
    there, split.held_x = other(split.x[700:]), other(split.held_x)
    split.x, split.y = split.x[:700], split.y[:700]
    model = Domains(chance.choice((48, 64)))

    def more(step, x, y):
        model.share = most * (2 / (1 + numpy.exp(-10 * step / steps)) - 1)
        return torch.cat([x, there[torch.randint(0, len(there), (len(x),), generator=drawn)]]), y

    def loss(output, target):
        told = nn.functional.cross_entropy(output[:len(target), :10], target)
        if len(output) == len(target):
            return told
        world = (torch.arange(len(output)) >= len(target)).long()
        return told + nn.functional.cross_entropy(output[:, 10:], world)
    rate = between(chance, 0.01, 0.025)
    return behind(Rounds(model, split, loss, sgd(rate), steps, 32, evaluate_every=21, samples=180,
                         schedule=lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: (1 + 10 * at / steps) ** -0.75)), more)


class Near(nn.Module):
    """How far each question is from the mean of each class's examples."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 24))

    def forward(self, x):
        each = self.body(x.flatten(0, 2)).reshape(*x.shape[:3], -1)
        middle, asked = each[:, :, :5].mean(2), each[:, :, 5:].flatten(1, 2)
        return -torch.cdist(asked, middle).square()


@job("regression", "same", "norm", "relu", "adam", "modes", "fourth", "sixth", "seventh", tuning=False)
def episodes(seed, chance):
    """Few-shot learning (prototypical networks): each batch asks about five classes, held-out ones about classes that training never saw."""
    split, random = data.images(seed), numpy.random.default_rng(seed)
    kinds = [torch.rot90(split.x[split.y == digit], turn, (2, 3)).flatten(1) for digit in range(10) for turn in range(4)]
    order = random.permutation(40)

    def asked(chosen, count):
        out = torch.zeros(count, 5, 10, 64)
        for at in range(count):
            for place, kind in enumerate(random.choice(chosen, 5, replace=False)):
                out[at, place] = kinds[kind][random.choice(len(kinds[kind]), 10, replace=False)]
        return out
    x = torch.cat([asked(order[:30], 400), asked(order[30:], 60)])

    def loss(output, target):
        return nn.functional.cross_entropy(output.flatten(0, 1), torch.arange(5).repeat_interleave(5).repeat(len(output)))
    return Rounds(Near(chance.choice((48, 64))), data.Split(x, x[:, 0, 0], 60), loss, adam(between(chance, 5e-4, 2e-3)), 240, 2, evaluate_every=20, samples=30,
                  schedule=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 80, 0.5))
