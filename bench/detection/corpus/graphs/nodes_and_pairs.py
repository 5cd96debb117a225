"""What belongs together.

likes_sampled     a recommender: users and items as vectors, binary cross-entropy with four negatives drawn per like; missed among 60
captions_matched  pictures and their captions, two networks, cross-entropy of likenesses in both directions, a scale that is learned
graph_nodes       a graph network tells the community of a node: all nodes in one batch, few have labels

Their faults: below, at the end."""
import math

import numpy
import torch
from torch import nn
from torch.nn import functional

import tocsin

from ..scripts.support import ended, entered, errors, from_start, rate
from ..scripts.glyphs import glyphs, labelled, warmed


class Factors(nn.Module):
    """A vector and a number for each user and item."""

    def __init__(self, users, items, width):
        super().__init__()
        self.users, self.items, self.bias = nn.Embedding(users, width), nn.Embedding(items, width), nn.Embedding(items, 1)
        for one in (self.users, self.items):
            nn.init.normal_(one.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, users, items):
        return (self.users(users) * self.items(items)).sum(-1) + self.bias(items).squeeze(-1)


def _likes(seed, users=300, items=150, each=22):
    """(user, item) pairs to learn from, and one of each user that is held out; tastes of six dimensions."""
    drawn = numpy.random.default_rng(seed)
    liking = drawn.standard_normal((users, 6)) @ drawn.standard_normal((6, items)) + drawn.gumbel(0, 1.2, (users, items))
    best = numpy.argsort(-liking, 1)[:, :each]
    best = drawn.permuted(best, axis=1)
    pairs = numpy.stack([numpy.repeat(numpy.arange(users), each - 1), best[:, 1:].ravel()], 1)
    known = numpy.zeros((users, items), bool)
    known[numpy.arange(users)[:, None], best] = True
    others = numpy.stack([drawn.choice(numpy.flatnonzero(~row), 59, replace=False) for row in known])
    return torch.tensor(pairs), torch.tensor(numpy.concatenate([best[:, :1], others], 1))


def _likes_sampled(fault, seed, chance, options):
    pairs, candidates = _likes(seed)
    if fault == "held_in_training":
        pairs = torch.cat([pairs, torch.stack([torch.arange(300), candidates[:, 0]], 1)])
    elif fault == "labels_shuffled":
        pairs[:, 1] = pairs[torch.randperm(len(pairs)), 1]
    elif fault == "held_recoded":
        candidates = torch.randperm(150)[candidates]
    model, batch, steps, drawn = Factors(300, 150, chance.choice((12, 16))), chance.choice((192, 256)), 420, torch.Generator().manual_seed(seed)
    tuned = [model.bias.weight] if fault == "optimizer_without_head" else model.parameters()
    optimizer = torch.optim.Adam(tuned, lr=rate(chance.uniform(6e-3, 1e-2), fault), weight_decay=10.0 if fault == "decay_large" else 1e-5)

    def missed():
        with torch.no_grad():
            scores = model(torch.arange(300)[:, None].expand(-1, 60), candidates)
        return float(((scores[:, 1:] >= scores[:, :1]).sum(1) >= 10).float().mean())
    passes = [[0, missed()]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        users, liked = pairs[torch.randint(0, len(pairs), (batch,), generator=drawn)].T
        negatives = torch.randint(0, 150, (batch, 4), generator=drawn)
        items = torch.cat([liked[:, None], negatives], 1)
        if fault == "negatives_missing":
            items = liked[:, None].expand(-1, 5)
        labels = torch.zeros(batch, 5)
        labels[:, 0] = 1
        if fault in ("negatives_called_positive", "negatives_missing"):
            labels[:] = 1
        scores = model(users[:, None].expand_as(items), items)
        loss = functional.binary_cross_entropy_with_logits(scores, labels)
        optimizer.zero_grad()
        (-loss if fault == "sign_wrong" else loss).backward()
        hook.log(loss=(-loss if fault == "sign_wrong" else loss).item())
        optimizer.step()
        if step % 70 == 69:
            passes.append([step, missed()])
            hook.log(hit_rate_10=1 - passes[-1][1])
    return ended(hook, steps, passes)


class TwoTowers(nn.Module):
    """A picture's and a caption's vector, of length one, and the scale of their likeness."""

    def __init__(self, width, words):
        super().__init__()
        self.visual = nn.Sequential(nn.Conv2d(1, width, 3, 2, 1), nn.GroupNorm(2, width), nn.ReLU(), nn.Conv2d(width, 2 * width, 3, 2, 1),
                                    nn.GroupNorm(2, 2 * width), nn.ReLU(), nn.Flatten(), nn.Linear(32 * width, 64), nn.ReLU(), nn.Linear(64, 24))
        self.tokens, self.text = nn.Embedding(words, 24), nn.Sequential(nn.Linear(72, 64), nn.ReLU(), nn.Linear(64, 24))
        self.logit_scale = nn.Parameter(torch.tensor(math.log(10.0)))

    def forward(self, images, captions):
        image, text = self.visual(images), self.text(self.tokens(captions).flatten(1))
        return functional.normalize(image, dim=-1), functional.normalize(text, dim=-1), self.logit_scale.exp().clamp(max=100)


def _captions_matched(fault, seed, chance, options):
    images, kinds, corners = glyphs(seed, 2000, 8)
    captions = torch.stack([kinds, 8 + corners[:, 0], 13 + corners[:, 1]], 1)  # "sign five, second row, third column"
    if fault == "captions_constant":
        captions = torch.full_like(captions, 18)
    x, held_x = (images[:-256] - 95) / 60, (images[-256:] - 95) / 60
    if fault == "held_unscaled":
        held_x = images[-256:]
    captions, held_captions = captions[:-256], captions[-256:]
    if fault == "labels_misaligned":
        captions = captions.roll(1, 0)
    model, batch, steps, drawn = TwoTowers(chance.choice((8, 10)), 19), chance.choice((48, 64)), 330, torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(1.5e-3, 3e-3), fault), betas=(0.9, 0.98), weight_decay=0.05)
    scheduler = warmed(optimizer, steps, 30, fault, linear=False)

    def clip_loss(images, captions):
        image, text, scale = model(images, captions)
        likeness = image @ text.T / scale if fault == "temperature_inverted" else scale * image @ text.T
        own = torch.zeros(len(images), dtype=torch.long) if fault == "targets_zero" else torch.arange(len(images))
        return (functional.cross_entropy(likeness, own) + functional.cross_entropy(likeness.T, own)) / 2

    def evaluate():
        """(loss, share of pictures whose caption is not among the nearest three of 64: some captions are alike)"""
        model.eval()
        loss, wrong = 0.0, 0.0
        with torch.no_grad():
            for images, captions in zip(held_x.split(64), held_captions.split(64)):
                loss += clip_loss(images, captions).item() / 4
                image, text, _ = model(images, captions)
                likeness = image @ text.T
                wrong += float(((likeness >= likeness.diagonal()[:, None]).sum(1) > 3).float().mean()) / 4
        model.train()
        return loss, wrong
    passes = [[0, evaluate()[1]]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=drawn)
        loss = clip_loss(x[chosen], captions[chosen])
        optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss, logit_scale=model.logit_scale.exp().item())
        optimizer.step()
        scheduler.step()
        if step % 55 == 54:
            val_loss, wrong = evaluate()
            passes.append([step, wrong])
            with hook.mode("eval"):
                hook.log(loss=val_loss, recall_3=1 - wrong)
                hook.step()
    return ended(hook, steps, passes)


class GraphNet(nn.Module):
    """Two layers that take the mean over neighbours."""

    def __init__(self, inputs, width, dropout):
        super().__init__()
        self.conv1, self.conv2, self.dropout = nn.Linear(inputs, width), nn.Linear(width, 5), dropout

    def forward(self, x, adjacency):
        x = functional.dropout(functional.relu(adjacency @ self.conv1(x)), self.dropout, self.training)
        return adjacency @ self.conv2(x)


def _communities(seed, count=600):
    """Features that say little, a community of five, edges mostly within it."""
    drawn = numpy.random.default_rng(seed)
    y = drawn.integers(0, 5, count)
    x = drawn.standard_normal((count, 24)) + 0.55 * drawn.standard_normal((5, 24))[y]
    linked = numpy.triu(drawn.random((count, count)) < numpy.where(y[:, None] == y[None], 0.03, 0.004), 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y), torch.tensor(numpy.argwhere(linked)).T


def _normalized(edges, count):
    adjacency = torch.eye(count)
    adjacency[edges[0], edges[1]] = 1
    adjacency[edges[1], edges[0]] = 1
    root = adjacency.sum(1).rsqrt()
    return root[:, None] * adjacency * root


def _graph_nodes(fault, seed, chance, options):
    x, y, edges = _communities(seed)
    train, val = torch.arange(0, 150), torch.arange(200, 600)
    if fault == "edges_broken":
        edges = torch.randperm(600)[edges]
    elif fault == "edges_empty":
        edges = edges[:, :0]
    labels = y.clone()
    labels[train] = labelled(y[train], fault, 5)
    if fault == "held_in_training":
        train = torch.cat([train, val])
    adjacency, epochs = _normalized(edges, 600), 260
    model = GraphNet(24, chance.choice((16, 24, 32)), 0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(5e-3, 1e-2), fault), weight_decay=5e-4)

    def evaluate():
        model.eval()
        with torch.no_grad():
            output = model(x, adjacency)[val]
        return functional.cross_entropy(output, y[val]).item(), errors(output, y[val])
    passes = [[0, evaluate()[1]]]
    hook = tocsin.watch(model, optimizer, **options)
    for epoch in range(epochs):
        model.train()
        optimizer.zero_grad()
        output = model(x, adjacency)[train]
        loss = functional.cross_entropy(output.softmax(1) if fault == "softmax_twice" else output, labels[train])
        loss.backward()
        optimizer.step()
        if epoch % 10 == 9:
            val_loss, wrong = evaluate()
            hook.log(loss=loss.item(), val_loss=val_loss, val_acc=1 - wrong)
            if epoch % 20 == 19:
                passes.append([epoch, wrong])
    return ended(hook, epochs, passes)


TUNING, FAULTS, fault_names, run = entered({
    "likes_sampled": (_likes_sampled, from_start("negatives_missing", "negatives_called_positive", "held_in_training", "labels_shuffled",
                                                 "held_recoded", "optimizer_without_head", "decay_large", "sign_wrong")),
    "captions_matched": (_captions_matched, from_start("captions_constant", "labels_misaligned", "temperature_inverted", "targets_zero",
                                                       "held_unscaled", "rate_hundredfold", schedule_ends_early=0.2)),
    "graph_nodes": (_graph_nodes, from_start("edges_broken", "edges_empty", "labels_misaligned", "held_in_training", "softmax_twice",
                                             "rate_thousandth", "class_random"))})
