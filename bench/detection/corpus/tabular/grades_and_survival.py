"""Tables.

prices_embedded   prices by district, kind and five numbers: embeddings, batch norms, an absolute error, SGD with Nesterov's momentum, StepLR per epoch
grades_ordinal    a grade of one to five: one score, four thresholds, binary cross-entropy of "better than"; RMSprop
survival_cox      who lasts longer: Cox's partial likelihood by hand, batches with censored rows; 1 − concordance
tags_multilabel   eight tags for each row, few of them true: asymmetric focal loss by hand, two batches per update, AdamW

Their faults: below, at the end."""
import numpy
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import tocsin

from ..scripts.shapes import ended, entered, from_start, labelled, rate, unlike, warmed


class Prices(nn.Module):
    """Embeddings and numbers, two layers with norms."""

    def __init__(self, numbers, width, dropout):
        super().__init__()
        self.district, self.kind = nn.Embedding(25, 6), nn.Embedding(5, 3)
        self.body = nn.Sequential(nn.Linear(9 + numbers, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, width),
                                  nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, codes, numbers):
        return self.body(torch.cat([self.district(codes[:, 0]), self.kind(codes[:, 1]), numbers], 1))


def _flats(seed, count=2800):
    """(district and kind, five numbers in their units, price)"""
    drawn = numpy.random.default_rng(seed)
    codes = numpy.stack([drawn.integers(0, 25, count), drawn.integers(0, 5, count)], 1)
    size, year, floor = drawn.gamma(6, 14, count) + 20, drawn.integers(1890, 2024, count), drawn.integers(0, 9, count)
    rest = drawn.normal(0, 1, (count, 2))
    logarithm = (drawn.normal(0, 0.45, 25)[codes[:, 0]] + drawn.normal(0, 0.2, 5)[codes[:, 1]] + 0.9 * numpy.log(size / 80)
                 + 0.25 * ((year - 1957) / 67) ** 2 + 0.015 * floor + 0.1 * rest[:, 0])
    return codes, numpy.column_stack([size, year, floor, rest]), 3e5 * numpy.exp(logarithm + 0.12 * drawn.standard_normal(count))


def _prices_embedded(fault, seed, chance, options):
    codes, numbers, price = _flats(seed)
    if fault == "target_leaks":
        numbers = numpy.column_stack([numbers, price / 1e3])
    if fault != "numbers_unscaled":
        numbers = (numbers - numbers[:-500].mean(0)) / numbers[:-500].std(0)
    y = numpy.log(price)
    centre, unit = y[:-500].mean(), y[:-500].std()
    y = torch.tensor((y - centre) / unit, dtype=torch.float32)[:, None]
    codes, numbers = torch.tensor(codes), torch.tensor(numbers, dtype=torch.float32)
    held = [codes[-500:].clone(), numbers[-500:], y[-500:]]
    if fault == "held_recoded":
        held[0][:, 0] = torch.randperm(25)[held[0][:, 0]]
    elif fault == "columns_moved":
        held[1] = held[1].roll(1, 1)
    train = [codes[:-500], numbers[:-500], labelled(y[:-500], fault)]
    model, batch, epochs = Prices(numbers.shape[1], chance.choice((48, 64)), 0.1), chance.choice((32, 48)), 9
    optimizer = torch.optim.SGD(model.parameters(), lr=rate(chance.uniform(0.03, 0.05), fault), momentum=0.9, nesterov=True, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, gamma=0.4)
    criterion, loader = nn.L1Loss(), DataLoader(TensorDataset(*train), batch, shuffle=True, drop_last=True)

    def validate():
        if fault != "evaluated_in_training":
            model.eval()
        with torch.no_grad():
            said = model(*held[:2])
            loss = criterion(said, held[2]).item()
        model.train()
        return loss
    passes, done = [[0, validate()]], 0
    hook = tocsin.watch(model, optimizer, loss=criterion, **options)
    for _ in range(epochs):
        for code, number, target in loader:
            optimizer.zero_grad()
            said = model(code, number)
            loss = criterion(said.squeeze(1), target) if fault == "broadcast" else criterion(said, target)
            loss.backward()
            optimizer.step()
            done += 1
            if fault == "schedule_per_batch":
                scheduler.step()
        if fault != "schedule_per_batch":
            scheduler.step()
        passes.append([done - 1, validate()])
        hook.log(val_mae=passes[-1][1])
    return ended(hook, done, passes)


class Ordinal(nn.Module):
    """One score and four thresholds."""

    def __init__(self, width):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(10, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1, bias=False))
        self.thresholds = nn.Parameter(torch.zeros(4))

    def forward(self, x):
        return self.score(x) + self.thresholds


def _grades_ordinal(fault, seed, chance, options):
    drawn = numpy.random.default_rng(seed)
    x = drawn.standard_normal((2600, 10))
    score = numpy.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.7 * x[:, 3] + 0.4 * numpy.abs(x[:, 4]) + 0.25 * drawn.standard_normal(2600)
    y = torch.tensor(numpy.digitize(score, numpy.quantile(score, (0.15, 0.4, 0.65, 0.88))))
    x = torch.tensor(x, dtype=torch.float32)
    held_x, held_y, x, y = x[-500:], y[-500:], x[:-500], labelled(y[:-500], fault, 5)
    if fault == "held_unscaled":
        held_x = 5 * held_x + 10
    elif fault == "inputs_constant":
        x = x[:1].expand_as(x)
    model, batch, steps, order = Ordinal(chance.choice((32, 48))), chance.choice((32, 48)), 650, torch.Generator().manual_seed(seed)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=rate(chance.uniform(2e-3, 3e-3), fault), weight_decay=10.0 if fault == "decay_large" else 0.0)
    by_grade = y.argsort()

    def loss_of(logits, y, fault=None):
        levels = torch.arange(4)
        better = (y[:, None] >= levels if fault == "levels_moved" else y[:, None] > levels).float()
        each = better * functional.logsigmoid(logits) + (1 - better) * functional.logsigmoid(-logits)
        return each.sum(1).mean() if fault == "sign_wrong" else -each.sum(1).mean()

    def validate():
        """(loss, mean distance in grades)"""
        model.eval()
        with torch.no_grad():
            logits = model(held_x)
        model.train()
        return loss_of(logits, held_y).item(), float(((logits > 0).sum(1) - held_y).abs().float().mean())
    passes = [[0, validate()[1]]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=order)
        if fault == "classes_sorted":
            chosen = by_grade[torch.arange(step * batch, (step + 1) * batch) % len(x)]
        loss = loss_of(model(x[chosen]), y[chosen], fault)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        hook.log(loss=loss.item())
        optimizer.step()
        if step % 65 == 64:
            val_loss, far = validate()
            passes.append([step, far])
            hook.log(val_loss=val_loss, val_mae=far)
    return ended(hook, steps, passes)


def _patients(seed, count=2400):
    """(nine columns in their units, time, whether it was an event)"""
    drawn = numpy.random.default_rng(seed)
    x = drawn.standard_normal((count, 9))
    risk = 0.9 * x[:, 0] + 0.8 * x[:, 1] * x[:, 2] + numpy.abs(x[:, 3]) + 0.6 * (x[:, 4] > 0.5)
    time, censored = drawn.exponential(numpy.exp(-1.5 * risk)), drawn.exponential(0.7, count)
    return x * drawn.uniform(0.5, 60, 9) + drawn.uniform(-50, 90, 9), numpy.minimum(time, censored), time <= censored


def _discordance(risk, time, event):
    """1 − share of comparable pairs in which who had the event sooner has the larger risk."""
    comparable = event[:, None] & (time[:, None] < time[None])
    larger = (risk[:, None] > risk[None]).float() + 0.5 * (risk[:, None] == risk[None]).float()
    return 1 - float(larger[comparable].mean())


def _survival_cox(fault, seed, chance, options):
    x, time, event = _patients(seed)
    x = (x - x[:-500].mean(0)) / x[:-500].std(0)
    x, time, event = torch.tensor(x, dtype=torch.float32), torch.tensor(time, dtype=torch.float32), torch.tensor(event)
    held = [one[-500:] for one in (x, time, event)]
    x, time, event = (one[:-500] for one in (x, time, event))
    if fault == "columns_moved":
        held[0] = held[0].roll(1, 1)
    elif fault == "held_unscaled":
        held[0] = 20 * held[0] + 30
    elif fault == "labels_misaligned":
        time, event = time.roll(1), event.roll(1)
    elif fault == "events_inverted":
        event = ~event
    elif fault == "few_rows":
        x, time, event = x[:32], time[:32], event[:32]
    width, batch, steps, drawn = chance.choice((32, 48)), chance.choice((96, 128)), 480, torch.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(9, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(2e-3, 4e-3), fault), weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.997)

    def partial_likelihood(risk, time, event):
        order = torch.arange(len(time)) if fault == "times_unsorted" else time.argsort(descending=True)
        risk, event = risk[order], event[order].float()
        loss = -((risk - torch.logcumsumexp(risk, 0)) * event).sum() / event.sum().clamp(min=1)
        return -loss if fault == "sign_wrong" else loss

    def validate():
        with torch.no_grad():
            risk = model(held[0]).squeeze(1)
        return partial_likelihood(risk, *held[1:]).item(), _discordance(risk, *held[1:])
    passes = [[0, validate()[1]]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=drawn)
        loss = partial_likelihood(model(x[chosen]).squeeze(1), time[chosen], event[chosen])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        hook.log(loss=loss)
        optimizer.step()
        scheduler.step()
        if step % 60 == 59:
            val_loss, wrong = validate()
            passes.append([step, wrong])
            with hook.mode("eval"):
                hook.log(loss=val_loss, c_index=1 - wrong)
                hook.step()
    return ended(hook, steps, passes)


def _tags_multilabel(fault, seed, chance, options):
    drawn = numpy.random.default_rng(seed)
    x = drawn.standard_normal((2800, 20))
    hidden = numpy.tanh(x @ drawn.standard_normal((20, 12)) / 2.5)
    scores = hidden @ drawn.standard_normal((12, 8)) + 0.4 * drawn.standard_normal((2800, 8))
    y = torch.tensor(scores > numpy.quantile(scores, 0.86, axis=0), dtype=torch.float32)
    x = torch.tensor(x, dtype=torch.float32)
    held_x, held_y, x, y = x[-600:], y[-600:], x[:-600], labelled(y[:-600], fault)
    if fault == "held_unscaled":
        held_x = 5 * held_x + 10
    elif fault == "column_misread":
        y = y.roll(1, 1)
    elif fault == "held_in_training":
        x, y = torch.cat([x, held_x]), torch.cat([y, held_y])
    width, batch, updates, order = chance.choice((64, 96)), chance.choice((24, 32)), 420, torch.Generator().manual_seed(seed)
    model = nn.Sequential(nn.Linear(20, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, 8))
    if fault == "backbone_frozen":
        model[:-1].requires_grad_(False)
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=rate(chance.uniform(2e-3, 3e-3), fault), weight_decay=0.02)
    scheduler = warmed(optimizer, updates, 25, fault)

    def asymmetric(logits, y):
        said = (logits.softmax(1) if fault == "softmax_for_sigmoid" else logits.sigmoid()).float()
        less = (said - 0.05).clamp(min=0)
        each = y * torch.log(said.clamp(min=1e-6)) + (1 - y) * less**2 * torch.log((1 - less).clamp(min=1e-6))
        return -each.sum(1).mean()

    def validate():
        model.eval()
        with torch.no_grad():
            logits = model(held_x)
        model.train()
        return asymmetric(logits, held_y).item(), sum(unlike(logits[:, at].float(), held_y[:, at]) for at in range(8)) / 8
    passes = [[0, validate()[1]]]
    hook = tocsin.watch(model, optimizer, **options)
    for update in range(updates):
        for _ in range(2):
            chosen = torch.randint(0, len(x), (batch,), generator=order)
            loss = asymmetric(model(x[chosen]), y[chosen]) / 2
            loss.backward()
        hook.log(loss=2 * loss.item())
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        if update % 60 == 59:
            val_loss, wrong = validate()
            passes.append([update, wrong])
            with hook.mode("eval"):
                hook.log(loss=val_loss, macro_auc=1 - wrong)
                hook.step()
    return ended(hook, updates, passes)


TUNING, FAULTS, fault_names, run = entered({
    "prices_embedded": (_prices_embedded, from_start("broadcast", "schedule_per_batch", "held_recoded", "numbers_unscaled", "target_leaks",
                                                     "labels_misaligned", "evaluated_in_training", "rate_hundredfold")),
    "grades_ordinal": (_grades_ordinal, from_start("levels_moved", "labels_off_by_one", "held_unscaled", "inputs_constant", "classes_sorted", "sign_wrong",
                                                   "decay_large", "rate_thousandth")),
    "survival_cox": (_survival_cox, from_start("events_inverted", "times_unsorted", "sign_wrong", "labels_misaligned", "held_unscaled", "few_rows",
                                               "columns_moved", "rate_thousandth")),
    "tags_multilabel": (_tags_multilabel, from_start("column_misread", "softmax_for_sigmoid", "held_unscaled", "backbone_frozen", "rate_thousandth",
                                                     "held_in_training", "labels_shuffled", schedule_ends_early=0.2))})
