"""Words and sound. A small GPT, pages read in order, an encoder that is tuned, thin matrices,
keywords, letters heard."""
import math

import numpy
import torch
from torch import nn
from torch.nn import functional

from .. import data
from ..recipes.jobs import adam, adamw, between, cosine, job, linear, sgd
from ..mixed.modern import next_token
from ..vision.common import ALL, grouped, right
from ..recipes.scripts import Script, _Training
from ..mixed.new_losses import source


class Causal(nn.Module):
    """Attention to what came before, and two layers."""

    def __init__(self, width, dropout):
        super().__init__()
        self.ln_1, self.c_attn, self.c_proj = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.ln_2, self.mlp = nn.LayerNorm(width), nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width),
                                                                 nn.Dropout(dropout))
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (one.unflatten(2, (4, -1)).transpose(1, 2) for one in self.c_attn(self.ln_1(x)).chunk(3, 2))
        x = x + self.drop(self.c_proj(functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """Its head is its table of letters."""

    def __init__(self, kinds, width, depth, length, dropout=0.0):
        super().__init__()
        self.wte, self.wpe, self.drop = nn.Embedding(kinds, width), nn.Embedding(length, width), nn.Dropout(dropout)
        self.h, self.ln_f = nn.ModuleList([Causal(width, dropout) for _ in range(depth)]), nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, kinds, bias=False)
        for name, one in self.named_parameters():
            if one.dim() > 1:
                nn.init.normal_(one, std=0.02 / math.sqrt(2 * depth) if name.endswith("c_proj.weight") else 0.02)
        self.lm_head.weight = self.wte.weight

    def forward(self, x):
        y = self.drop(self.wte(x) + self.wpe.weight[:x.shape[1]])
        for block in self.h:
            y = block(y)
        return self.lm_head(self.ln_f(y))


@job("tokens", "attention", "adam", "modes", "dropout", "shifts", "groups", *ALL, tuning=False)
def gpt_small(seed, chance):
    """A small GPT: fused AdamW with groups for decay, warm-up and cosine, two micro-batches, bfloat16, clipping; the norm is logged too."""
    steps, split = 200, data.text(seed, 16)
    return Script(GPT(split.classes, chance.choice((40, 48)), 2, 16, chance.choice((0.0, 0.1))), split, next_token,
                  grouped(between(chance, 2e-3, 5e-3), 0.1, betas=(0.9, 0.95), fused=True), steps, 16, evaluate_every=40, schedule=cosine(steps, 20),
                  clip=1.0,
                  half=torch.bfloat16, gathers=2, norms=True, says=chance.choice(("before", "tenth")), tells=chance.choice(("mean", "plain")))


class Pages(nn.Module):
    """An LSTM that goes on where it was, as long as it is not told otherwise."""

    def __init__(self, kinds, width, dropout):
        super().__init__()
        self.encoder, self.drop = nn.Embedding(kinds, width), nn.Dropout(dropout)
        self.rnn, self.decoder = nn.LSTM(width, width, 2, dropout=dropout, batch_first=True), nn.Linear(width, kinds)
        self.state = None

    def forward(self, x):
        state = self.state
        if state is not None and state[0].shape[1] != len(x):
            state = None
        output, state = self.rnn(self.drop(self.encoder(x)), state)
        self.state = tuple(one.detach() for one in state)
        return self.decoder(self.drop(output))


class _Reading(_Training):
    """Columns of text, read from the top: a batch goes on where the one before ended."""

    def batches(self):
        made, each = self.made, 20
        x, y = (one.reshape(-1)[:one.numel() // made.batch * made.batch].reshape(made.batch, -1) for one in (made.split.x, made.split.y))
        while True:
            made.model.state = None
            for at in range(0, x.shape[1] - each + 1, each):
                yield x[:, at:at + each], y[:, at:at + each]

    def _passed(self, *more):
        kept, self.made.model.state = self.made.model.state, None
        out = super()._passed(*more)
        self.made.model.state = kept
        return out


class Read(Script):
    """A recipe of it."""

    def run(self, seed, out, job, name):
        """As Script does."""
        return _Reading(self, seed, out, job, name).all()


@job("tokens", "recurrent", "sgd", "modes", "dropout", "shifts", *ALL, tuning=False)
def lstm_pages(seed, chance):
    """A language model with an LSTM: truncated backpropagation, SGD with a large rate and clipping, a rate that falls where val_loss stands."""
    letters, kinds = data._text()
    length = len(letters) - (len(letters) - 1) % 20
    start = int(torch.randint(0, length // 2, (1,), generator=source(seed)))
    letters = torch.tensor(numpy.roll(letters, start)[:length])
    split = data.Split(letters[:-1].reshape(-1, 20), letters[1:].reshape(-1, 20), 60, kinds)
    return Read(Pages(kinds, chance.choice((48, 64)), chance.choice((0.0, 0.1))), split, next_token, sgd(chance.uniform(2.0, 5.0), 0), 360,
                chance.choice((16, 20)), evaluate_every=36, clip=0.25, samples=20, says=chance.choice(("before", "tenth")), tells="plain",
                plateau=lambda optimizer: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.25, patience=0),
                scores=lambda output, y: {"perplexity": math.exp(min(20.0, float(next_token(output, y))))})


class Bert(nn.Module):
    """Reads sequences that zeros fill up; a head that says what is hidden, and one for the class of the whole."""

    def __init__(self, kinds, width, length, classes, dropout=0.1):
        super().__init__()
        self.embeddings, self.position, self.norm = nn.Embedding(kinds, width, padding_idx=0), nn.Embedding(length, width), nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout, "gelu", batch_first=True)
        self.encoder, self.cls = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(width, kinds)
        self.dropout, self.classifier = nn.Dropout(dropout), nn.Linear(width, classes)
        self.masked, self.hidden = True, False

    def forward(self, x):
        there = x != 0
        y = self.encoder(self.norm(self.embeddings(x) + self.position.weight[:x.shape[1]]), src_key_padding_mask=~there if self.masked else None)
        if self.hidden:
            return self.cls(y)
        share = there[..., None].float() if self.masked else torch.ones_like(y[..., :1])
        return self.classifier(self.dropout((y * share).sum(1) / share.sum(1)))


def sentences(seed, count=2200, kinds=60, length=16):
    """Words of four topics, of which most say nothing; sentences of other lengths, filled up with zeros. Of each its topic."""
    random = numpy.random.default_rng(seed)
    x, y, size = numpy.zeros((count, length), "int64"), random.integers(0, 4, count), random.integers(5, length + 1, count)
    for one in range(count):
        topic = 4 + y[one] * 12 + random.integers(0, 12, length)
        words = numpy.where(random.random(length) < 0.35, topic,
                            numpy.where(random.random(length) < 0.2, random.integers(4, 52, length), random.integers(52, 60, length)))
        words[1:] = numpy.where(random.random(length - 1) < 0.3, (words[:-1] - 4 + 12) % 12 + (words[:-1] - 4) // 12 * 12 + 4, words[1:])
        x[one, :size[one]] = words[:size[one]].clip(4, kinds - 1)
    return data.Split(torch.tensor(x), torch.tensor(y), 500, 4)


def pretrained(model, x, seed, steps=150):
    """Learns what words are hidden, before anybody watches."""
    drawn, optimizer = source(seed), torch.optim.AdamW(model.parameters(), 3e-3)
    model.hidden = True
    for _ in range(steps):
        part = x[torch.randint(0, len(x), (48,), generator=drawn)]
        hides = (torch.rand(part.shape, generator=drawn) < 0.2) & (part != 0)
        optimizer.zero_grad()
        functional.cross_entropy(model(part.masked_fill(hides, 1))[hides], part[hides]).backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    model.hidden = False


def _unmasked(recipe):
    recipe.model.masked = False


@job("classes", "attention", "adam", "modes", "dropout", "tuned", "names", "padded", "groups", *ALL, tuning=False)
def bert_tuned(seed, chance):
    """An encoder that has learned hidden words is tuned for topics: a small rate, warm-up, a line to zero, small batches."""
    split, steps = sentences(seed), 320
    model = Bert(60, 48, 16, 4)
    pretrained(model, split.x, seed)
    model.cls.requires_grad_(False)
    made = Script(model, split, nn.CrossEntropyLoss(), grouped(between(chance, 1.5e-4, 5e-4), 0.01), steps, 16, evaluate_every=40,
                  schedule=linear(steps, 32),
                  clip=1.0, scores=right, says=chance.choice(("before", "tenth", "epochs")), tells=chance.choice(("mean", "plain")))
    made.masks = _unmasked
    return made


class Lora(nn.Module):
    """A frozen layer and a thin way beside it."""

    def __init__(self, layer, rank, alpha=8):
        super().__init__()
        self.base, self.scale = layer.requires_grad_(False), alpha / rank
        self.lora_A = nn.Parameter(torch.randn(rank, layer.in_features) / math.sqrt(layer.in_features))
        self.lora_B = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.lora_A.T @ self.lora_B.T)


@job("tokens", "attention", "adam", "tuned", "shifts", *ALL, tuning=False)
def lora_words(seed, chance):
    """LoRA on attention and layers of a GPT that knows another text: AdamW without decay, warm-up and cosine, two batches per update."""
    split, steps, rank = data.text(seed, 24), 240, chance.choice((4, 8))
    model, drawn = GPT(split.classes, 48, 2, 24), source(seed)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    for _ in range(220):
        part = torch.randint(0, 1500, (32,), generator=drawn)
        optimizer.zero_grad()
        next_token(model(split.x[part]), split.y[part]).backward()
        optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    moved = torch.arange(split.classes)
    moved[::3] = moved[::3].roll(1)  # the text to learn: letters that have changed places
    for name in ("x", "y", "held_x", "held_y"):
        setattr(split, name, moved[getattr(split, name)])
    model.requires_grad_(False)
    for block in model.h:
        block.c_attn, block.mlp[0], block.mlp[2] = Lora(block.c_attn, rank), Lora(block.mlp[0], rank), Lora(block.mlp[2], rank)
    return Script(model, split, next_token, adamw(between(chance, 2e-3, 6e-3), weight_decay=0.0), steps, 16, evaluate_every=24,
                  schedule=cosine(steps, 15), clip=1.0,
                  gathers=2, parameters=lambda model: [one for one in model.parameters() if one.requires_grad],
                  says=chance.choice(("before", "after")), tells="plain")


def tones(seed, count=1400, kinds=6, frames=24, bands=16):
    """Spectrograms of words: each word two tones that glide, somewhere in time, in noise."""
    random = numpy.random.default_rng(seed)
    places = numpy.random.default_rng(5).uniform(2, bands - 3, (kinds, 2, 2))
    y, rows, at = random.integers(0, kinds, count), numpy.arange(bands)[:, None], numpy.arange(frames)
    x = numpy.zeros((count, bands, frames), "float32")
    for one in range(count):
        start, long = random.integers(0, 8), random.integers(10, 16)
        for low, high in places[y[one]]:
            middle = low + (high - low) * (at - start) / long + random.normal(0, 0.4)
            x[one] += numpy.exp(-((rows - middle) ** 2) / 1.5) * ((at >= start) & (at < start + long)) * random.uniform(0.7, 1.3)
    x += 0.3 * random.standard_normal(x.shape).astype("float32")
    return data.Split(torch.tensor((x - x.mean()) / x.std())[:, None], torch.tensor(y), 300, kinds)


@job("classes", "relu", "norm", "adam", "images", "modes", "dropout", "held", "names", "follows", *ALL, tuning=False)
def keywords(seed, chance):
    """Which word is said: separable convolutions over a spectrogram, parts of which are masked (SpecAugment), dropout, a rate halved by epochs."""
    drawn, width = source(seed), chance.choice((12, 16))

    def masked(x, y):
        x, band, time = x.clone(), *torch.randint(0, 12, (2,), generator=drawn).tolist()
        x[:, :, band:band + 3], x[..., time:time + 4] = 0, 0
        return x, y

    def layer(inputs, outputs, stride):
        return (nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False), nn.BatchNorm2d(inputs), nn.ReLU(),
                nn.Conv2d(inputs, outputs, 1, bias=False),
                nn.BatchNorm2d(outputs), nn.ReLU())
    model = nn.Sequential(nn.Conv2d(1, width, 3, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(), *layer(width, 2 * width, 1),
                          *layer(2 * width, 2 * width, 2),
                          nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(2 * width, 6))
    return Script(model, tones(seed), nn.CrossEntropyLoss(), adam(between(chance, 6e-3, 1.5e-2)), 340, 32, evaluate_every=34, by_epoch=True,
                  schedule=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5), transform=masked, scores=right,
                  says=chance.choice(("module", "before")), tells=chance.choice(("mean", "batches")))


class Hears(nn.Module):
    """Convolutions and a GRU in both directions; at each moment a letter or none."""

    def __init__(self, width, kinds):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(12, width, 3, padding=1), nn.BatchNorm1d(width), nn.ReLU(), nn.Conv1d(width, width, 3, padding=1),
                                  nn.BatchNorm1d(width),
                                  nn.ReLU())
        self.rnn, self.fc = nn.GRU(width, width, batch_first=True, bidirectional=True), nn.Linear(2 * width, kinds + 1)

    def forward(self, x):
        return self.fc(self.rnn(self.conv(x).transpose(1, 2))[0])


@job("recurrent", "adam", "norm", "modes", "held", "follows", *ALL, tuning=False)
def letters_heard(seed, chance):
    """Speech as CTC hears it: frames of four or five letters, of which nobody says when; AdamW, clipping; the share that is heard right is logged."""
    random, kinds, count, steps = numpy.random.default_rng(seed), 8, 1200, 320
    sound = numpy.random.default_rng(9).standard_normal((kinds, 12))
    x, y = 0.4 * random.standard_normal((count, 12, 32)), numpy.zeros((count, 5), "int64")
    for one in range(count):
        at = random.integers(0, 4)
        for place in range(random.integers(4, 6)):
            letter, long = random.integers(kinds), random.integers(3, 6)
            y[one, place] = letter + 1
            x[one, :, at:at + long] += sound[letter][:, None]
            at += long + random.integers(1, 2)
    split = data.Split(torch.tensor(x, dtype=torch.float32), torch.tensor(y), 240, kinds)

    def loss(output, y):
        return functional.ctc_loss(output.float().log_softmax(2).transpose(0, 1), y, torch.full((len(y),), output.shape[1]), (y > 0).sum(1),
                                   zero_infinity=True)

    def heard(output, y):
        said = [torch.unique_consecutive(one) for one in output.argmax(2)]
        return {"exact": sum(one[one > 0].tolist() == want[want > 0].tolist() for one, want in zip(said, y)) / len(y)}
    return Script(Hears(chance.choice((24, 32)), kinds), split, loss, adamw(between(chance, 2e-3, 6e-3), weight_decay=1e-2), steps, 32,
                  evaluate_every=30,
                  schedule=cosine(steps, 30), clip=5.0, scores=heard, says=chance.choice(("before", "after")), tells="mean")
