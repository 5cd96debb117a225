"""Letters in the ways of today's language models, and what is made of a model that knows them."""
import math

import torch
from torch import nn

from .. import data
from ..mixed.patches_and_towers import Scaled
from ..recipes.jobs import adamw, between, job
from ..mixed.modern import fused, next_token, one_cycle
from ..vision.representations import right
from ..recipes.rounds import Rounds
from ..mixed.new_losses import noam, source
from ..mixed.ways_of_training import Says, _learned
from ..recipes.epochs import Epochs


def turned(x):
    """Pairs of channels turned by an angle that grows with the place."""
    count, size = x.shape[-2], x.shape[-1] // 2
    angle = torch.arange(count)[:, None] * 100.0 ** (-torch.arange(size) / size)
    a, b = x.chunk(2, -1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1)


class Turns(nn.Module):
    """Attention that sees places as angles, fewer keys than questions, normalised both; gated layers."""

    def __init__(self, width, heads=4, shared=2):
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.first, self.second, self.of_query, self.of_key = Scaled(width), Scaled(width), Scaled(self.size), Scaled(self.size)
        self.query, self.key, self.value, self.out = (nn.Linear(width, outputs, bias=False) for outputs in (
            width, shared * self.size, shared * self.size, width))
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x):
        y, shape = self.first(x), (*x.shape[:2], -1, self.size)
        query, key, value = (layer(y).reshape(shape).transpose(1, 2) for layer in (self.query, self.key, self.value))
        query, key = turned(self.of_query(query)), turned(self.of_key(key))
        key, value = (one.repeat_interleave(self.heads // self.shared, 1) for one in (key, value))
        mask = torch.full((x.shape[1], x.shape[1]), -math.inf).triu(1)
        seen = (query @ key.transpose(2, 3) / math.sqrt(self.size) + mask).softmax(-1) @ value
        x = x + self.out(seen.transpose(1, 2).flatten(2).to(x.dtype))
        y = self.second(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


def stable(steps, warm, last):
    """Up, as it is, and in a straight line to zero in the last part (WSD)."""
    return lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda at: min((at + 1) / warm, 1.0, max(0.0, (steps - at) / (last * steps))))


@job("tokens", "attention", "adam", "shifts", "fourth", "sixth", "seventh", "eighth", tuning=False)
def rotates(seed, chance):
    """A decoder of today (rotary places, shared keys, gated layers, a penalty for large logits) in bfloat16; two batches per update, WSD."""
    split, steps, width = data.text(seed, 16), 160, chance.choice((32, 48))
    model = nn.Sequential(nn.Embedding(split.classes, width), Turns(width), Turns(width), Scaled(width), nn.Linear(width, split.classes, bias=False))
    nn.init.normal_(model[0].weight, std=0.1)

    def loss(output, target):
        output = output.float()
        return next_token(output, target) + 1e-3 * output.logsumexp(-1).square().mean()
    made = Rounds(model, split, loss, fused(between(chance, 2e-3, 6e-3), weight_decay=0.1), steps, 16, evaluate_every=16, samples=150, gathers=2, clip=1.0,
                  schedule=stable(steps, 15, 0.3), half=torch.bfloat16 if torch.__version__ >= "2" else None)
    return made


class Recurs(nn.Module):
    """Memories that decay each at a speed of their own, opened and closed by what comes in; computed for all times at once."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.enter, self.leave = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(2 * width, width)
        self.speed = nn.Parameter(torch.linspace(-3, 3, 2 * width))

    def forward(self, x):
        drive, gate = self.enter(self.norm(x)).chunk(2, -1)
        forget = -nn.functional.softplus(self.speed)
        gone = (torch.arange(x.shape[1])[:, None] - torch.arange(x.shape[1])).clamp(min=0)
        kernel = (forget * gone[..., None]).exp() * (torch.ones(x.shape[1], x.shape[1]).tril())[..., None]
        kept = torch.einsum("tsc,bsc->btc", kernel * (1 - forget.exp()), drive)
        return x + self.leave(kept * nn.functional.silu(gate))


@job("tokens", "recurrent", "adam", "pair", "shifts", "fourth", "sixth", "seventh", "eighth", tuning=False)
def recurs(seed, chance):
    """A language model of linear recurrences (state spaces): a smaller rate and no decay for how fast memories fade; the rate falls as one over a root."""
    split, width, rate = data.text(seed, 20), chance.choice((24, 32)), between(chance, 3e-3, 1e-2)
    model = nn.Sequential(nn.Embedding(split.classes, width), Recurs(width), Recurs(width), nn.LayerNorm(width), nn.Linear(width, split.classes))
    made = Epochs(model, split, next_token, None, 200, 32, evaluate_every=25, samples=100, clip=1.0, schedule=noam(20))
    speeds = [one for name, one in model.named_parameters() if name.endswith("speed")]
    rest = [one for name, one in model.named_parameters() if not name.endswith("speed")]
    made.optimizer = lambda parameters: torch.optim.AdamW([{"params": rest, "lr": rate, "weight_decay": 0.05},
                                                           {"params": speeds, "lr": 0.2 * rate, "weight_decay": 0.0}])
    return made


class Thaws(nn.Module):
    """Reads letters by two LSTMs; what it makes of them is the last, the largest and the mean of what they say."""

    def __init__(self, kinds, width, classes):
        super().__init__()
        self.embed, self.low, self.high = nn.Embedding(kinds, width), nn.LSTM(width, width, batch_first=True), nn.LSTM(width, width, batch_first=True)
        self.drop, self.head, self.guess = nn.Dropout(0.1), nn.Linear(3 * width, classes), nn.Linear(width, kinds)
        self.reads = True

    def forward(self, x):
        y = self.high(self.low(self.embed(x))[0])[0]
        return self.guess(y) if self.reads else self.head(self.drop(torch.cat([y[:, -1], y.amax(1), y.mean(1)], 1)))


@job("classes", "recurrent", "adam", "tuned", "pair", "head", "modes", "names", "fourth", "sixth", "seventh", "eighth", tuning=False)
def thaws(seed, chance):
    """A language model becomes a classifier (ULMFiT): its layers are thawed one after the other, each at a rate of its own, in one cycle."""
    split, steps, width = data.text(seed, 16), 240, 32
    model = Thaws(split.classes, width, 3)
    _learned(model, split.x[:1200], split.y[:1200], next_token, 200)
    model.reads = False
    kinds = torch.bincount(split.x.flatten(), minlength=split.classes)
    digits, common = [torch.isin(split.x, torch.tensor(chosen)) for chosen in ([int(one) for one in kinds.argsort(descending=True)[12:24]],
                                                                              [int(kinds.argmax())])]
    held = [torch.isin(split.held_x, torch.tensor(chosen)) for chosen in ([int(one) for one in kinds.argsort(descending=True)[12:24]], [int(kinds.argmax())])]

    def kind(rare, gap):
        score = rare.sum(1) - gap.sum(1)
        return (score > 0).long() + (score > 2).long()
    split.y, split.held_y, split.classes = kind(digits, common), kind(*held), 3
    parts = [model.head, model.high, model.low, model.embed]
    rate = between(chance, 2e-3, 6e-3)
    for one in model.parameters():
        one.requires_grad_(False)
    model.head.requires_grad_(True)
    count = chance.choice((40, 50))

    def thaw(step, x, y):
        if step % count == 0 and step // count < len(parts):
            parts[step // count].requires_grad_(True)
        return x, y
    made = Rounds(model, split, nn.CrossEntropyLoss(), None, steps, 32, evaluate_every=20, samples=150, schedule=one_cycle(steps), values=right,
                  on_batch=[thaw])
    made.optimizer = lambda parameters: torch.optim.AdamW([{"params": list(one.parameters()), "lr": rate * 0.4**at} for at, one in enumerate(parts)],
                                                          weight_decay=0.01)
    return made


class Rates(nn.Module):
    """How good each of two texts is, from what a model makes of its end."""

    def __init__(self, model, width):
        super().__init__()
        self.model, self.worth = model, nn.Linear(width, 1)
        model.head = nn.Identity()
        nn.init.normal_(self.worth.weight, std=0.02)

    def forward(self, x):
        return self.worth(self.model(x.flatten(0, 1))[:, 8:].mean(1)).reshape(-1, 2)


@job("embeddings", "attention", "adam", "tuned", "fourth", "sixth", "seventh", "eighth", tuning=False)
def rates(seed, chance):
    """A reward model: which of two texts people like better, by the body of a language model and a new head; begins at log 2."""
    split, steps, random = data.text(seed, 16), 200, source(seed)
    model = Says(split.classes, 32, 16)
    _learned(model, split.x[:800], split.y[:800], next_token, 120)
    x = torch.cat([split.x, split.held_x])[800:2600]
    drawn = x.flatten()[torch.randint(0, x.numel(), (len(x), 10), generator=random)]
    worse = torch.cat([x[:, :6], drawn], 1)  # the same beginning, and letters that nobody wrote
    turn = torch.rand(len(x), 1, generator=random) < 1 / 12
    pairs = torch.stack([torch.where(turn, worse, x), torch.where(turn, x, worse)], 1)

    def loss(output, target):
        return -nn.functional.logsigmoid(output[:, 0] - output[:, 1]).mean() + 0.005 * output.square().mean()

    def values(output, y):
        return {"accuracy": float((output[:, 0] > output[:, 1]).float().mean()), "margin": float((output[:, 0] - output[:, 1]).mean())}
    return Rounds(Rates(model, 32), data.Split(pairs, pairs[:, 0], 300), loss, adamw(between(chance, 7e-4, 2e-3), weight_decay=0.05), steps, 16,
                  evaluate_every=20, samples=150, schedule=stable(steps, 15, 1.0), clip=1.0, values=values)


class Thin(nn.Module):
    """A frozen layer, its weights kept in four bits per block, and two thin matrices beside it."""

    def __init__(self, layer, rank):
        super().__init__()
        weight = layer.weight.detach().reshape(-1, 16)
        scale = weight.abs().amax(1, keepdim=True).clamp(min=1e-8) / 7
        self.register_buffer("weight", ((weight / scale).round() * scale).reshape(layer.weight.shape))
        self.register_buffer("bias", layer.bias.detach().clone())
        self.down, self.up, self.drop = nn.Linear(layer.in_features, rank, bias=False), nn.Linear(rank, layer.out_features, bias=False), nn.Dropout(0.05)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return nn.functional.linear(x, self.weight, self.bias) + 2 * self.up(self.down(self.drop(x)))


@job("tokens", "attention", "adam", "tuned", "head", "modes", "pair", "shifts", "fourth", "sixth", "seventh", "eighth", tuning=False)
def lowbits(seed, chance):
    """A language model whose weights are frozen in four bits learns another kind of text by thin matrices (QLoRA): a constant rate, two batches per update."""
    split, steps, rank = data.text(seed, 20), 160, chance.choice((4, 8))
    model = Says(split.classes, 32, 20)
    _learned(model, split.x[:1000], split.y[:1000], next_token, 200)
    shift = torch.randperm(split.classes, generator=source(seed))
    for name in ("x", "y", "held_x", "held_y"):  # the other text: some letters have changed places
        one = getattr(split, name)
        setattr(split, name, torch.where(one % 3 == 0, shift[one], one))
    model.requires_grad_(False)
    for layer in model.body.layers:
        layer.linear1, layer.linear2 = Thin(layer.linear1, rank), Thin(layer.linear2, rank)
    model.head = Thin(model.head, rank)
    return Rounds(model, split, next_token, adamw(between(chance, 2e-3, 6e-3), weight_decay=0.0), steps, 8, evaluate_every=16, samples=150, gathers=2, clip=0.3,
                  parameters=lambda model: [one for one in model.parameters() if one.requires_grad])
