"""Words, what follows them, and what people chose."""
import numpy
import sklearn.datasets
import torch
from torch import nn

from .. import data
from ..recipes.jobs import adam, adamw, between, job, linear, sgd
from ..mixed.modern import next_token, one_cycle
from ..vision.representations import right
from ..recipes.rounds import Rounds
from ..mixed.new_losses import IGNORED, noam, source
from ..mixed.ways_of_training import Says, _learned


class Tags(nn.Module):
    """What each word is, as scores of the word, and of what follows what."""

    def __init__(self, words, kinds, width):
        super().__init__()
        self.embed, self.cell = nn.Embedding(words, width), nn.LSTM(width, width, bidirectional=True, batch_first=True)
        self.drop, self.head = nn.Dropout(0.1), nn.Linear(2 * width, kinds)
        self.follows = nn.Parameter(torch.zeros(kinds, kinds))

    def forward(self, x):
        said = self.head(self.drop(self.cell(self.embed(x))[0]))
        return torch.cat([said, self.follows.expand(len(x), -1, -1)], 1)


@job("tokens", "recurrent", "adam", "modes", "fourth", "sixth", "seventh", tuning=False)
def tags(seed, chance):
    """Names in sentences: a conditional random field over an LSTM; the loss is summed over each sentence."""
    random, kinds, words, size, length = numpy.random.default_rng(seed), 5, 40, 1200, 12
    moves, says = random.dirichlet(numpy.full(kinds, 0.4), kinds), random.dirichlet(numpy.full(words, 0.08), kinds)
    y = numpy.zeros((size, length), dtype=int)
    y[:, 0] = random.integers(0, kinds, size)
    for at in range(1, length):
        y[:, at] = [random.choice(kinds, p=moves[one]) for one in y[:, at - 1]]
    x = numpy.array([[random.choice(words, p=says[one]) for one in row] for row in y])

    def loss(output, target):
        said, follows = output[:, :length], output[0, length:]
        path = said.gather(2, target[:, :, None])[:, :, 0].sum(1) + follows[target[:, :-1], target[:, 1:]].sum(1)
        every = said[:, 0]
        for at in range(1, length):
            every = torch.logsumexp(every[:, :, None] + follows, 1) + said[:, at]
        return (torch.logsumexp(every, 1) - path).mean()
    return Rounds(Tags(words, kinds, chance.choice((12, 16))), data.Split(torch.tensor(x), torch.tensor(y), 240), loss, adam(between(chance, 3e-3, 1e-2)), 200, 16,
                  evaluate_every=30, samples=120, clip=5.0, schedule=chance.choice((None, linear(200))))


class Sentences(nn.Module):
    """Words through windows of some widths, and the largest of each."""

    def __init__(self, kinds, width, classes):
        super().__init__()
        self.embed = nn.Embedding(kinds, 16)
        self.parts = nn.ModuleList([nn.Conv1d(16, width, size) for size in (3, 4, 5)])
        self.drop, self.head = nn.Dropout(0.3), nn.Linear(3 * width, classes)

    def forward(self, x):
        x = self.embed(x).transpose(1, 2)
        return self.head(self.drop(torch.cat([torch.relu(one(x)).amax(2) for one in self.parts], 1)))


@job("classes", "adam", "modes", "fourth", "sixth", "seventh", tuning=False)
def sentences(seed, chance):
    """Which text a piece is of: convolutions over letters, weights for classes of unlike size, a rate that goes up and down in cycles."""
    texts = [getattr(sklearn.datasets, f"load_{name}")().DESCR for name in ("digits", "breast_cancer", "wine", "diabetes", "iris", "linnerud")]
    letters, random = sorted(set("".join(texts))), numpy.random.default_rng(seed)
    x, y = [], []
    for kind, text in enumerate(texts):
        for start in range(0, len(text) - 40, 12):
            x.append([letters.index(one) for one in text[start:start + 40]])
            y.append(kind)
    order = random.permutation(len(x))
    x, y = torch.tensor(x)[order], torch.tensor(y)[order]
    weight = len(y) / (6 * torch.bincount(y, minlength=6).float())
    rate = between(chance, 1e-3, 3e-3)

    def cycles(optimizer):
        return torch.optim.lr_scheduler.CyclicLR(optimizer, rate, 5 * rate, step_size_up=chance.choice((20, 30)), mode="triangular2", cycle_momentum=False)
    return Rounds(Sentences(len(letters), chance.choice((16, 24)), 6), data.Split(x, y, len(x) // 5, 6), nn.CrossEntropyLoss(weight=weight), adamw(rate, weight_decay=0.01),
                  360, 32, evaluate_every=30, samples=60, schedule=cycles, values=right, module=True)


class Comments(nn.Module):
    """The mean of its words, then what is wrong with it."""

    def __init__(self, words, width, kinds):
        super().__init__()
        self.embed, self.head = nn.EmbeddingBag(words, width), nn.Linear(width, kinds)

    def forward(self, x):
        return self.head(self.embed(x))


@job("embeddings", "several", "adam", "fourth", "sixth", "seventh", tuning=False)
def comments(seed, chance):
    """Six labels at once of which each is rare (insult, threat, ...), by bags of words; one cycle."""
    random, words, steps = numpy.random.default_rng(seed), 300, 260
    weight, x = random.standard_normal((words, 6)) * (random.random((words, 6)) < 0.15) * 4, random.integers(0, words, (3000, 15))
    score = weight[x].sum(1)
    y = (score + random.logistic(size=score.shape) * 0.3 > numpy.quantile(score, [0.92, 0.9, 0.95, 0.85, 0.93, 0.9], axis=0).diagonal()).astype(float)
    return Rounds(Comments(words, chance.choice((16, 24)), 6), data.Split(torch.tensor(x), torch.tensor(y, dtype=torch.float32), 600), nn.BCEWithLogitsLoss(),
                  adam(between(chance, 5e-3, 2e-2)), steps, 64, evaluate_every=37, samples=200, schedule=one_cycle(steps), module=True)


class Neighbours(nn.Module):
    """A word as itself, and as somebody's neighbour."""

    def __init__(self, words, width):
        super().__init__()
        self.own, self.other = nn.Embedding(words, width), nn.Embedding(words, width)
        nn.init.uniform_(self.own.weight, -0.5 / width, 0.5 / width)
        nn.init.zeros_(self.other.weight)

    def forward(self, x):
        return (self.own(x[:, :1]) * self.other(x[:, 1:])).sum(2)


@job("embeddings", "sgd", "same", "fourth", "sixth", "seventh", tuning=False)
def neighbours(seed, chance):
    """Word vectors from true and drawn neighbours (word2vec), as it was made: one half starts at zero, plain gradient descent at a large rate that falls to nothing."""
    random, words, steps = numpy.random.default_rng(seed), 120, 300
    topic, size = random.integers(0, 8, words), 16000
    own = random.integers(0, words, size)
    true = numpy.array([random.choice(numpy.flatnonzero(topic == topic[one])) if random.random() < 0.85 else random.integers(0, words) for one in own])
    x = torch.tensor(numpy.concatenate([own[:, None], true[:, None], random.integers(0, words, (size, 5))], 1))

    def loss(output, target):
        return -(nn.functional.logsigmoid(output[:, 0]) + nn.functional.logsigmoid(-output[:, 1:]).sum(1)).mean()
    return Rounds(Neighbours(words, chance.choice((12, 16))), data.Split(x, x[:, 0], 2000), loss, sgd(between(chance, 8.0, 16.0), 0), steps, 256, evaluate_every=50,
                  samples=1000, schedule=linear(steps))


class Prefers(nn.Module):
    """How likely each of two texts is."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        said = self.model(x[:, :, :-1].flatten(0, 1)).log_softmax(2)
        return said.gather(2, x[:, :, 1:].flatten(0, 1)[:, :, None])[:, 8:, 0].sum(1).reshape(-1, 2)


@job("embeddings", "attention", "adam", "tuned", "fourth", "sixth", "seventh", tuning=False)
def prefers(seed, chance):
    """Preferences (DPO): a language model that knows its texts comes to say rather what people chose, and stays near what it was; begins at log 2."""
    split, steps, random, beta = data.text(seed, 20), 180, source(seed), chance.choice((0.1, 0.3))
    model = Says(split.classes, 32, 19)
    _learned(model, split.x[:600, :19], split.y[:600, :19], next_token, 150)
    first = split.x[600:2200]
    order = torch.rand(len(first), 11, generator=random).argsort(1)
    other = torch.cat([first[:, :9], first[:, 9:].gather(1, order)], 1)  # the same beginning, and an end in disorder
    turned = (torch.rand(len(first), 1, generator=random) < 0.1)
    x = torch.stack([torch.where(turned, other, first), torch.where(turned, first, other)], 1)
    made = Prefers(model)
    with torch.no_grad():
        y = torch.cat([made(part) for part in x.split(200)])

    def loss(output, target):
        won = beta * ((output - target)[:, 0] - (output - target)[:, 1])
        return -nn.functional.logsigmoid(won).mean()

    def values(output, y):
        won = (output - y)[:, 0] - (output - y)[:, 1]
        return {"rewards_margins": float(beta * won.mean()), "rewards_accuracies": float((won > 0).float().mean())}
    return Rounds(made, data.Split(x, y, 240), loss, adamw(between(chance, 2e-4, 8e-4)), steps, 16, evaluate_every=30, samples=120, schedule=linear(steps, 18), clip=1.0,
                  values=values)


class Translates(nn.Module):
    """PyTorch's own transformer, with both of its halves."""

    def __init__(self, kinds, width, length):
        super().__init__()
        self.read, self.write = nn.Embedding(kinds, width, padding_idx=0), nn.Embedding(kinds, width, padding_idx=0)
        self.place, self.length = nn.Parameter(0.1 * torch.randn(length, width)), length
        self.body = nn.Transformer(width, 4, 1, 1, 2 * width, dropout=0.05, batch_first=True)
        self.head = nn.Linear(width, kinds)

    def forward(self, x):
        there, here = x[:, :self.length], x[:, self.length:]
        mask = torch.triu(torch.ones(self.length, self.length, dtype=torch.bool), 1)
        return self.head(self.body(self.read(there) + self.place, self.write(here) + self.place, tgt_mask=mask, src_key_padding_mask=there == 0,
                                   memory_key_padding_mask=there == 0))


@job("tokens", "attention", "modes", "fourth", "sixth", "seventh", tuning=False)
def translates(seed, chance):
    """Translation, word for word into another alphabet: encoder and decoder, padding, smoothed labels, Adafactor with warm-up."""
    random, size, length, kinds = numpy.random.default_rng(seed), 2000, 8, 14
    words, count = random.integers(1, kinds - 1, (size, length)), random.integers(4, length + 1, size)
    turned = 1 + random.permutation(kinds - 2)
    inside = numpy.arange(length)[None] < count[:, None]
    there, answer = numpy.where(inside, words, 0), turned[words - 1]
    here = numpy.concatenate([numpy.full((size, 1), kinds - 1), answer[:, :-1]], 1)
    x = torch.tensor(numpy.concatenate([there, numpy.where(inside, here, 0)], 1))
    y = torch.tensor(numpy.where(inside, answer, IGNORED))
    rate, steps = between(chance, 0.02, 0.06), 300

    def loss(output, target):
        return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten(), ignore_index=IGNORED, label_smoothing=0.1)

    def made(parameters):
        new = getattr(torch.optim, "Adafactor", None)  # before 2.5 there was none
        return new(parameters, rate) if new else torch.optim.Adam(parameters, 0.1 * rate)
    return Rounds(Translates(kinds, 32, length), data.Split(x, y, 300), loss, made, steps, 32, evaluate_every=50, samples=150, schedule=noam(40))
