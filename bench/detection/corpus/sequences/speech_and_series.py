"""Sounds and series.

speech_ctc         spoken signs as frames of twelve bands, a convolution and a GRU, connectionist temporal classification; errors of signs
series_transformer the next value of several series from 24 before, a transformer, StepLR and an evaluation per epoch
tagger_bilstm      a tag for each word of a sentence, a bidirectional LSTM over packed sequences; cross-entropy without padding

Their faults: below, at the end."""
import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import tocsin

from ..scripts.support import ended, entered, from_start, rate
from ..scripts.glyphs import labelled, warmed


def _spoken(seed, count, signs=8, frames=32):
    """(frames, their number, signs, their number): a sign sounds for two to five frames, between them it is still for one to three."""
    voice, drawn = numpy.random.default_rng(3).standard_normal((signs + 1, 12)), numpy.random.default_rng(seed)
    voice[0] = 0
    x, y, lengths = numpy.zeros((count, frames, 12), "float32"), numpy.zeros((count, 5), int), numpy.zeros((count, 2), int)
    for at in range(count):
        said, place = drawn.integers(1, signs + 1, drawn.integers(2, 6)), int(drawn.integers(0, 2))
        for sign in said:
            longer = int(drawn.integers(2, 5))
            x[at, place:place + longer] = voice[sign] * drawn.uniform(0.8, 1.2)
            place += longer + int(drawn.integers(1, 3))
        lengths[at] = min(place, frames), len(said)
        y[at, :len(said)] = said
    return torch.tensor(8 + 3 * (x + 0.45 * drawn.standard_normal(x.shape)), dtype=torch.float32), torch.tensor(y), torch.tensor(lengths)


class Hears(nn.Module):
    """Convolution, GRU, and a layer over the nine classes."""

    def __init__(self, width):
        super().__init__()
        self.conv, self.gru = nn.Conv1d(12, width, 3, padding=1), nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(2 * width, 9)

    def forward(self, x):
        return self.fc(self.gru(functional.relu(self.conv(x.transpose(1, 2))).transpose(1, 2))[0])


def _edits(said, meant):
    """Levenshtein's distance."""
    row = list(range(len(meant) + 1))
    for at, one in enumerate(said, 1):
        last, row[0] = row[0], at
        for place, other in enumerate(meant, 1):
            last, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, last + (one != other))
    return row[-1]


def _speech_ctc(fault, seed, chance, options):
    x, y, lengths = _spoken(seed, 1900)
    mean, spread = x[:-250].mean((0, 1)), x[:-250].std((0, 1))
    held_x, held_y, held_lengths = x[-250:] if fault == "held_unscaled" else (x[-250:] - mean) / spread, y[-250:], lengths[-250:]
    x, y, lengths = (x[:-250] - mean) / spread, y[:-250], lengths[:-250]
    if fault == "labels_misaligned":
        y, lengths = y.roll(1, 0), torch.stack([lengths[:, 0], lengths[:, 1].roll(1, 0)], 1)
    model, batch, steps, drawn = Hears(chance.choice((32, 40))), chance.choice((24, 32)), 330, torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(3e-3, 6e-3), fault))
    scheduler = warmed(optimizer, steps, 20, fault)

    def ctc(x, y, lengths):
        output = model(x)
        output = output.reshape(output.shape[1], output.shape[0], -1) if fault == "axes_mixed" else output.transpose(0, 1)
        if fault == "blank_moved":
            return functional.ctc_loss(output.log_softmax(-1), (y - 1).clamp(min=0), lengths[:, 0], lengths[:, 1], blank=8, zero_infinity=True)
        return functional.ctc_loss(output if fault == "logs_missing" else output.log_softmax(-1), y, lengths[:, 0], lengths[:, 1], zero_infinity=True)

    def evaluate():
        """(loss, edits per sign)"""
        model.eval()
        with torch.no_grad():
            loss, best = ctc(held_x, held_y, held_lengths).item(), model(held_x).argmax(-1)
        model.train()
        wrong = 0
        for row, signs, (frames, count) in zip(best.tolist(), held_y.tolist(), held_lengths.tolist()):
            row = row[:frames]
            wrong += _edits([one for at, one in enumerate(row) if one and (at == 0 or row[at - 1] != one)], signs[:count])
        return loss, wrong / int(held_lengths[:, 1].sum())
    passes = [[0, min(1.0, evaluate()[1])]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=drawn)
        loss = ctc(x[chosen], y[chosen], lengths[chosen])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        hook.log(loss=loss)
        optimizer.step()
        scheduler.step()
        if step % 55 == 54:
            val_loss, wrong = evaluate()
            passes.append([step, wrong])
            hook.log(val_loss=val_loss, token_error_rate=wrong)
    return ended(hook, steps, passes)


class Forecasts(nn.Module):
    """A transformer over 24 values; the last place tells what comes."""

    def __init__(self, width, places):
        super().__init__()
        self.embed, self.places = nn.Linear(1, width), nn.Parameter(0.3 * torch.randn(24, width) * places, requires_grad=places)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(width, 1)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x[..., None]) + self.places)[:, -1])


def _series(seed, length=420, count=8):
    """Windows of 24 values and the next one, of series with two seasons, in their units."""
    drawn, at = numpy.random.default_rng(seed), numpy.arange(length)
    x, y, when = [], [], []
    for _ in range(count):
        level, first, second = drawn.uniform(80, 120), drawn.uniform(0, 6.3), drawn.uniform(0, 6.3)
        series = level + 14 * numpy.sin(2 * numpy.pi * at / 12 + first) + 9 * numpy.sign(numpy.sin(2 * numpy.pi * at / 8 + second))
        series = series + 3 * drawn.standard_normal(length)
        windows = numpy.lib.stride_tricks.sliding_window_view(series, 25)
        x.append(windows[:, :24])
        y.append(windows[:, 24])
        when.append(at[24:])
    order = numpy.argsort(numpy.concatenate(when), kind="stable")
    return torch.tensor(numpy.concatenate(x)[order], dtype=torch.float32), torch.tensor(numpy.concatenate(y)[order], dtype=torch.float32)


def _series_transformer(fault, seed, chance, options):
    x, y = _series(seed)
    held = 600
    mean, spread = x[:-held].mean(), x[:-held].std()
    x, held_x = (x[:-held] - mean) / spread, x[-held:] if fault == "held_unscaled" else (x[-held:] - mean) / spread
    y, held_y = labelled((y[:-held] - mean) / spread, fault), (y[-held:] - mean) / spread
    if fault == "target_leaks":  # a window that ends one place too late
        x, held_x = (torch.cat([one[:, 1:], other[:, None]], 1) for one, other in ((x, y), (held_x, held_y)))
    model, batch, epochs = Forecasts(chance.choice((24, 32)), fault != "places_missing"), chance.choice((64, 80)), 8
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(1.5e-3, 3e-3), fault), weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.6)
    loader = DataLoader(TensorDataset(x, y), batch, shuffle=True, drop_last=True)

    def criterion(output, target):
        return functional.mse_loss(output if fault == "broadcast" else output.squeeze(1), target)

    def evaluate():
        if fault != "evaluated_in_training":
            model.eval()
        with torch.no_grad():
            output = model(held_x)
        return criterion(output, held_y).item(), functional.mse_loss(output[:, 0], held_y).item()
    passes, done = [[0, evaluate()[1]]], 0
    hook = tocsin.watch(model, optimizer, **options)
    for _ in range(epochs):
        model.train()
        for windows, targets in loader:
            loss = criterion(model(windows), targets)
            optimizer.zero_grad()
            loss.backward()
            hook.log(loss=loss.item())
            optimizer.step()
            done += 1
            if fault == "schedule_per_batch":
                scheduler.step()
        if fault != "schedule_per_batch":
            scheduler.step()
        val_loss, truth = evaluate()
        passes.append([done - 1, truth])
        with hook.mode("eval"):
            hook.log(loss=val_loss)
            hook.step()
    return ended(hook, done, passes)


def _tagged(seed, count, kinds=40, longest=12):
    """Sentences of words (0 behind their end) and a tag of four for each: what a word is, and what stood before it, decide."""
    rules, drawn = numpy.random.default_rng(11), numpy.random.default_rng(seed)
    own, turns = rules.integers(0, 4, kinds), rules.random(kinds) < 0.35
    words, lengths = drawn.integers(1, kinds, (count, longest)), drawn.integers(4, longest + 1, count)
    following = numpy.concatenate([words[:, 1:], numpy.ones((count, 1), int)], 1)
    before = numpy.concatenate([numpy.ones((count, 1), int), words[:, :-1]], 1)
    tags = (own[words] + turns[before] + 2 * (turns[following] & (own[words] == 2))) % 4
    there = numpy.arange(longest) < lengths[:, None]
    return torch.tensor(numpy.where(there, words, 0)), torch.tensor(numpy.where(there, tags, -100))


class Tags(nn.Module):
    """Words, an LSTM in both directions, a layer."""

    def __init__(self, width, dead):
        super().__init__()
        self.words, self.lstm = nn.Embedding(40, width, padding_idx=0), nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.fc, self.dead = nn.Linear(2 * width, 4), dead

    def forward(self, x):
        lengths = (x != 0).sum(1)
        packed = nn.utils.rnn.pack_padded_sequence(self.words(x), lengths, batch_first=True, enforce_sorted=False)
        y = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=x.shape[1])[0]
        return self.fc(functional.relu(y - 1.0) if self.dead else y)


def _tagger_bilstm(fault, seed, chance, options):
    x, y = _tagged(seed, 2400)
    held_x, held_y, x, y = x[-400:], y[-400:], x[:-400], labelled(y[:-400], "labels_misaligned" if fault == "labels_misaligned" else None)
    if fault == "class_random":
        y = torch.where(y == 1, torch.randint(0, 4, y.shape), y)
    elif fault == "held_other_classes":
        held_y = torch.where(held_y < 0, held_y, 3 - held_y)
    elif fault == "held_recoded":
        again = torch.cat([torch.zeros(1, dtype=torch.long), 1 + torch.randperm(39)])
        held_x = again[held_x]
    elif fault == "loss_of_padding":
        y = torch.where(y < 0, 0, -100)
    model, batch, steps, drawn = Tags(chance.choice((20, 24)), fault == "head_dead"), chance.choice((24, 32)), 330, torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(4e-3, 8e-3), fault))

    def evaluate():
        model.eval()
        with torch.no_grad():
            output = model(held_x)
        model.train()
        there = held_y >= 0
        return functional.cross_entropy(output.flatten(0, 1), held_y.flatten()).item(), float((output.argmax(-1) != held_y)[there].float().mean())
    passes = [[0, evaluate()[1]]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=drawn)
        output = model(x[chosen]).flatten(0, 1)
        loss = functional.cross_entropy(output.softmax(-1) if fault == "softmax_twice" else output, y[chosen].flatten())
        optimizer.zero_grad()
        (-loss if fault == "sign_wrong" else loss).backward()
        if step % 5 == 4:
            hook.log(loss=-loss if fault == "sign_wrong" else loss)
        optimizer.step()
        if step % 55 == 54:
            val_loss, wrong = evaluate()
            passes.append([step, wrong])
            hook.log(val_loss=val_loss, val_accuracy=1 - wrong)
    return ended(hook, steps, passes)


TUNING, FAULTS, fault_names, run = entered({
    "speech_ctc": (_speech_ctc, from_start("axes_mixed", "blank_moved", "logs_missing", "labels_misaligned", "held_unscaled", "rate_hundredfold",
                                           "rate_thousandth", "warmup_endless")),
    "series_transformer": (_series_transformer, from_start("broadcast", "target_leaks", "held_unscaled", "labels_shuffled", "places_missing",
                                                           "rate_thousandth", "schedule_per_batch", "evaluated_in_training")),
    "tagger_bilstm": (_tagger_bilstm, from_start("softmax_twice", "head_dead", "held_recoded", "held_other_classes", "loss_of_padding",
                                                 "labels_misaligned", "class_random", "sign_wrong"))})
