"""Links, lists and series.

graph_links       which nodes of a graph are linked: two layers of neighbours' means, likeness by a dot product, negatives drawn each time
next_item         what is bought next: a GRU over the last items, Bayesian personalised ranking against one negative
quantile_load     six hours of load ahead in three quantiles, a GRU over a day, pinball losses by hand, ReduceLROnPlateau

Their faults: below, at the end."""
import copy

import numpy
import torch
from torch import nn
from torch.nn import functional

import tocsin

from ..scripts.shapes import ended, entered, from_start, rate, unlike


def _linked(seed, count=500):
    """(features, edges): those who are near in a plane that features hint at are linked."""
    drawn = numpy.random.default_rng(seed)
    place = drawn.uniform(0, 1, (count, 2))
    x = numpy.tanh(4 * (place - 0.5) @ drawn.standard_normal((2, 16))) + 0.8 * drawn.standard_normal((count, 16))
    far = numpy.hypot(*(place[:, None] - place[None]).transpose(2, 0, 1))
    edges = numpy.argwhere(numpy.triu(drawn.random((count, count)) < 0.9 * numpy.exp(-((far / 0.07) ** 2)), 1))
    return torch.tensor(x, dtype=torch.float32), torch.tensor(drawn.permutation(edges)).T


class Links(nn.Module):
    """Each node from itself and the mean of its neighbours, twice."""

    def __init__(self, inside, width):
        super().__init__()
        self.own1, self.near1 = nn.Linear(inside, width), nn.Linear(inside, width, bias=False)
        self.own2, self.near2 = nn.Linear(width, width), nn.Linear(width, width, bias=False)

    def forward(self, x, mean):
        x = functional.relu(self.own1(x) + self.near1(mean @ x))
        return self.own2(x) + self.near2(mean @ x)


def _mean_of(edges, count):
    adjacency = torch.zeros(count, count)
    adjacency[edges[0], edges[1]] = 1
    adjacency[edges[1], edges[0]] = 1
    return adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)


def _graph_links(fault, seed, chance, options):
    x, edges = _linked(seed)
    held, edges = edges[:, :300], edges[:, 300:]
    mean, asked = _mean_of(edges[:, torch.arange(edges.shape[1]) % 4 != 0], 500), edges[:, ::4]
    if fault == "edges_broken":
        mean = _mean_of(torch.randperm(500)[edges], 500)
    elif fault == "edges_directed":
        asked = torch.stack([asked[0], asked[1].roll(1)])
    elif fault == "held_in_training":
        asked = torch.cat([asked, held], 1)
    held_x = x[:, torch.arange(-1, 15)] if fault == "columns_moved" else x
    held_mean = _mean_of(torch.randperm(500)[edges], 500) if fault == "held_recoded" else _mean_of(edges, 500)
    model, steps = Links(16, chance.choice((32, 48))), 450
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(3e-3, 6e-3), fault), weight_decay=10.0 if fault == "decay_large" else 1e-4)
    drawn = torch.Generator().manual_seed(seed)
    apart = torch.randint(0, 500, (2, 300), generator=drawn)

    def scores(x, mean, pairs):
        z = model(x, mean)
        return (z[pairs[0]] * z[pairs[1]]).sum(1)

    def evaluate():
        """1 − AUC of links that are held out against pairs drawn by lot."""
        model.eval()
        with torch.no_grad():
            said = scores(held_x, held_mean, torch.cat([held, apart], 1))
        model.train()
        return unlike(said, torch.cat([torch.ones(300), torch.zeros(300)]))
    passes = [[0, evaluate()]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        count = asked.shape[1]
        others = torch.randint(0, 500, (2, count), generator=drawn)
        if fault == "negatives_are_edges":
            others = asked[:, torch.randperm(count, generator=drawn)]
        said = scores(x, mean, torch.cat([asked, others], 1))
        loss = functional.binary_cross_entropy_with_logits(said, torch.cat([torch.ones(count), torch.zeros(count)]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            passes.append([step, evaluate()])
            hook.log(loss=loss.item(), val_auc=1 - passes[-1][1])
    return ended(hook, steps, passes)


def _baskets(seed, count=2600, items=80, length=9):
    """Rows of items: each comes from the group that follows the last one's, or from a group that the shopper likes."""
    rules, drawn = numpy.random.default_rng(8), numpy.random.default_rng(seed)
    follows, liked = rules.permutation(16), drawn.integers(0, 16, count)
    out, group = numpy.zeros((count, length), int), drawn.integers(0, 16, count)
    for at in range(length):
        out[:, at] = 1 + group * 5 + numpy.minimum(drawn.geometric(0.5, count) - 1, 4)
        group = numpy.where(drawn.random(count) < 0.7, follows[group], liked)
    return torch.tensor(out), items + 1


class NextItem(nn.Module):
    """The shopper as a GRU's last state, items as vectors."""

    def __init__(self, items, width):
        super().__init__()
        self.items, self.bias, self.gru = nn.Embedding(items, width, padding_idx=0), nn.Embedding(items, 1), nn.GRU(width, width, batch_first=True)
        nn.init.normal_(self.items.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, past, asked):
        state = self.gru(self.items(past))[1][0]
        return (self.items(asked) @ state[:, :, None]).squeeze(2) + self.bias(asked).squeeze(2)


def _next_item(fault, seed, chance, options):
    rows, items = _baskets(seed)
    past, held_past, goal, held_goal = rows[:-400, :-1], rows[-400:, :-1], rows[:-400, -1], rows[-400:, -1]
    if fault == "labels_misaligned":
        goal = goal.roll(1)
    elif fault == "inputs_constant":
        past = past[:1].expand_as(past)
    elif fault == "sequences_reversed":
        past = past.flip(1)
    elif fault == "held_recoded":
        held_past = torch.cat([torch.zeros(1, dtype=torch.long), 1 + torch.randperm(items - 1)])[held_past]
    model, batch, steps, drawn = NextItem(items, chance.choice((24, 32))), chance.choice((64, 96)), 600, torch.Generator().manual_seed(seed)
    tuned = copy.deepcopy(model) if fault == "optimizer_of_old_model" else model
    optimizer = torch.optim.Adam(tuned.parameters(), lr=rate(chance.uniform(5e-3, 8e-3), fault))

    def missed():
        """Share of baskets whose next item is not among the best ten."""
        with torch.no_grad():
            said = model(held_past, torch.arange(items).expand(400, -1))
        said[:, 0] = -1e9
        return float(((said > said.gather(1, held_goal[:, None])).sum(1) >= 10).float().mean())
    passes = [[0, missed()]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(past), (batch,), generator=drawn)
        other = torch.randint(1, items, (batch,), generator=drawn)
        if fault == "negatives_missing":
            other = torch.zeros_like(other)
        said = model(past[chosen], torch.stack([goal[chosen], other], 1))
        margin = said[:, 1] - said[:, 0] if fault == "negatives_positive" else said[:, 0] - said[:, 1]
        loss = -torch.log(torch.sigmoid(margin) + 1e-8).mean()
        optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
        if step % 60 == 59:
            passes.append([step, missed()])
            hook.log(hit_rate=1 - passes[-1][1])
    return ended(hook, steps, passes)


def _load(seed, length=2400):
    """A load by the hour, in megawatts: day, week, a wandering level, and a noise that is larger by day."""
    drawn, at = numpy.random.default_rng(seed), numpy.arange(length)
    day = numpy.sin((at - 8) / 24 * 2 * numpy.pi)
    level = 0.06 * numpy.cumsum(drawn.standard_normal(length))
    level = level - numpy.convolve(level, numpy.ones(97) / 97, "same")
    return 420 + 90 * (day + 0.4 * numpy.sin(at / 12 * 2 * numpy.pi) - 0.5 * (at // 24 % 7 > 4) + 2 * level
                       + (0.15 + 0.1 * (day > 0)) * drawn.standard_normal(length))


class Quantiles(nn.Module):
    """A GRU over the past; six hours by three quantiles."""

    def __init__(self, width):
        super().__init__()
        self.gru, self.out = nn.GRU(1, width, batch_first=True), nn.Linear(width, 18)

    def forward(self, x):
        return self.out(self.gru(x[..., None])[0][:, -1]).unflatten(1, (6, 3))


def _quantile_load(fault, seed, chance, options):
    values = _load(seed)
    mean, spread = values[:2000].mean(), values[:2000].std()
    values = torch.tensor((values - mean) / spread, dtype=torch.float32)
    windows = values.unfold(0, 30, 1)
    train, held = windows[:1970], windows[2000:]
    x, y, held_x, held_y = train[:, :24], train[:, 24:], held[:, :24], held[:, 24:]
    if fault == "horizon_moved":
        y = y.roll(17, 0)
    elif fault == "target_leaks":
        x, held_x = train[:, 6:], held[:, 6:]
    elif fault == "held_unscaled":
        held_x = held_x * float(spread / 100) + float(mean / 100)
    elif fault == "few_rows":
        x, y = x[:32], y[:32]
    model, batch, steps, drawn = Quantiles(chance.choice((20, 24))), chance.choice((32, 48)), 360, torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(8e-3, 1.2e-2), fault))
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max" if fault == "plateau_of_max" else "min", factor=0.3, patience=1)
    levels = torch.tensor([0.1, 0.5, 0.9])

    def pinball(said, y, levels):
        rest = y[:, :, None] - said
        return torch.maximum(levels * rest, (levels - 1) * rest).mean()

    def validate():
        model.eval()
        with torch.no_grad():
            loss = pinball(model(held_x), held_y, levels).item()
        model.train()
        return loss
    passes = [[0, validate()]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=drawn)
        loss = pinball(model(x[chosen]), y[chosen], 1 - levels if fault == "quantiles_swapped" else levels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        hook.log(loss=loss.item())
        optimizer.step()
        if step % 40 == 39:
            val_loss = validate()
            scheduler.step(val_loss)
            passes.append([step, val_loss])
            with hook.mode("eval"):
                hook.log(loss=val_loss)
                hook.step()
    return ended(hook, steps, passes)


TUNING, FAULTS, fault_names, run = entered({
    "graph_links": (_graph_links, from_start("edges_broken", "edges_directed", "negatives_are_edges", "held_in_training", "held_recoded", "decay_large",
                                             "rate_thousandth", "columns_moved")),
    "next_item": (_next_item, from_start("labels_misaligned", "inputs_constant", "sequences_reversed", "held_recoded", "negatives_missing",
                                         "negatives_positive", "optimizer_of_old_model", "rate_hundredfold")),
    "quantile_load": (_quantile_load, from_start("quantiles_swapped", "horizon_moved", "target_leaks", "held_unscaled", "few_rows", "plateau_of_max",
                                                 "rate_thousandth", "rate_hundredfold"))})
