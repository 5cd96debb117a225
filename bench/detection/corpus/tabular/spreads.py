"""Tables.

spread_regression a mean and a spread for each row: the likelihood of a normal distribution whose noise differs from row to row
kind_and_amount   one trunk, two heads: a class and a number; float16 with a GradScaler
partial_batches   scikit-learn's MLPClassifier in a loop of partial_fit, its log loss by the script

Their faults: below, at the end."""
import importlib.util

import numpy
import sklearn.datasets
import torch
from torch import nn
from torch.nn import functional

import tocsin

from .. import data
from ..scripts.support import ended, entered, errors, from_start, rate
from ..scripts.glyphs import labelled


class MeanAndSpread(nn.Module):
    """Two numbers per row."""

    def __init__(self, columns, width, dead):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(columns, width), nn.ReLU(), nn.Linear(width, width))
        self.mean, self.spread, self.dead = nn.Linear(width, 1), nn.Linear(width, 1), dead

    def forward(self, x):
        x = functional.relu(self.body(x) - 10.0 * self.dead)
        return self.mean(x), self.spread(x)


def _uneven(seed, count=3000):
    """Six columns; the noise of the target hangs on the last two."""
    drawn = numpy.random.default_rng(seed)
    x = drawn.uniform(-1, 1, (count, 6))
    value = 3 * numpy.sin(3 * x[:, 0]) + 4 * x[:, 1] * x[:, 2] + 2 * x[:, 3]
    y = value + drawn.standard_normal(count) * numpy.exp(-0.6 + 1.4 * x[:, 4] + 0.7 * x[:, 5])
    return x * 10 ** drawn.uniform(-1, 2.7, 6) + drawn.uniform(-40, 40, 6), 250 + 30 * y


def _spread_regression(fault, seed, chance, options):
    x, y = _uneven(seed)
    if fault == "target_leaks":
        x = numpy.column_stack([x, y * 0.2 + numpy.random.default_rng(seed).standard_normal(len(y))])
    mean, spread, of_y = x[:-600].mean(0), x[:-600].std(0), (y[:-600].mean(), y[:-600].std())
    x, y = torch.tensor(x if fault == "numbers_unscaled" else (x - mean) / spread).float(), torch.tensor((y - of_y[0]) / of_y[1]).float()
    held_x, held_y = x[-600:], y[-600:]
    if fault == "held_unscaled":  # by their own extremes
        held_x = (held_x - held_x.amin(0)) / (held_x.amax(0) - held_x.amin(0))
    x, y = x[:-600], labelled(y[:-600], fault)
    if fault == "targets_raw":
        y = y * of_y[1] + of_y[0]
    model, batch, steps = MeanAndSpread(x.shape[1], chance.choice((48, 64)), fault == "head_dead"), chance.choice((48, 64)), 560
    optimizer, drawn = torch.optim.Adam(model.parameters(), lr=rate(chance.uniform(2e-3, 4e-3), fault)), torch.Generator().manual_seed(seed)

    def likelihood(mean, spread, y):
        """−log of the density, but for a constant; `spread` is the logarithm of the variance."""
        if fault == "broadcast":
            return 0.5 * (spread + (y - mean) ** 2 * torch.exp(-spread)).mean()
        variance = spread**2 + 1e-4 if fault == "spread_as_variance" else torch.exp(spread)
        return 0.5 * (spread + (y[:, None] - mean) ** 2 / variance).mean()

    def evaluate():
        with torch.no_grad():
            mean, spread = model(held_x)
        raw = (mean - of_y[0]) / of_y[1] if fault == "targets_raw" else mean
        return likelihood(mean, spread, held_y * of_y[1] + of_y[0] if fault == "targets_raw" else held_y).item(), functional.mse_loss(raw[:, 0], held_y).item()
    passes = [[0, evaluate()[1]]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=drawn)
        loss = likelihood(*model(x[chosen]), y[chosen])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        hook.log(loss=loss)
        optimizer.step()
        if step % 70 == 69:
            val_loss, square = evaluate()
            passes.append([step, square])
            hook.log(val_nll=val_loss, val_rmse=square**0.5)
    return ended(hook, steps, passes)


class Shared(nn.Module):
    """One trunk, two heads."""

    def __init__(self, width):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(12, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.kind, self.amount = nn.Linear(width, 4), nn.Linear(width, 1)


def _kind_and_amount(fault, seed, chance, options):
    x, kinds = sklearn.datasets.make_classification(2600, 12, n_informative=8, n_classes=4, n_clusters_per_class=2, class_sep=1.3, flip_y=0.01,
                                                    random_state=seed)
    drawn = numpy.random.default_rng(seed)
    turned = x @ drawn.standard_normal((12, 3)) / 5
    amount = numpy.sin(turned[:, 0]) + 0.6 * turned[:, 1] + 0.5 * turned[:, 2] * (kinds == 2) + 0.15 * drawn.standard_normal(2600)
    amount = torch.tensor((amount - amount.mean()) / amount.std(), dtype=torch.float32)
    shift, unit = drawn.uniform(-10, 10, 12), drawn.uniform(1, 9, 12)
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    held_x, held_kinds, held_amount = x[-500:], torch.tensor(kinds)[-500:], amount[-500:]
    if fault == "held_unscaled":
        held_x = held_x * torch.tensor(unit).float() + torch.tensor(shift).float()
    if fault == "held_other_classes":
        held_kinds = 3 - held_kinds
    x, kinds, amount = x[:-500], torch.tensor(kinds)[:-500], amount[:-500]
    if fault == "labels_misaligned":
        amount, kinds = amount.roll(1, 0), kinds.roll(1, 0)
    kinds = labelled(kinds, fault, 4) if fault == "class_random" else kinds
    model, batch, steps, order = Shared(chance.choice((64, 96))), chance.choice((32, 48)), 480, torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(chance.uniform(1.5e-3, 3e-3), fault))
    scaler = torch.amp.GradScaler("cpu", **({"init_scale": 2.0**60, "backoff_factor": 0.99} if fault == "scaler_skips_all" else {}))

    def both(x):
        with torch.autocast("cpu", torch.float16):
            features = model.trunk(x)
            if fault == "trunk_detached":
                features = features.detach()
            return model.kind(features).float(), model.amount(features).float().squeeze(1)

    def losses(output, kinds, amount):
        return functional.cross_entropy(output[0], kinds), functional.mse_loss(output[1], amount)

    def evaluate():
        model.eval()
        with torch.no_grad():
            output = both(held_x)
        model.train()
        return losses(output, held_kinds, held_amount), errors(output[0], held_kinds)
    (_, square), wrong = evaluate()
    passes = [[0, (min(square.item(), 3.0) + wrong) / 2]]
    hook = tocsin.watch(model, optimizer, **options)
    for step in range(steps):
        chosen = torch.randint(0, len(x), (batch,), generator=order)
        ce, mse = losses(both(x[chosen]), kinds[chosen], amount[chosen])
        loss = ce if fault == "task_forgotten" else ce + 0.5 * mse
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        hook.log(loss=loss.item(), loss_kind=ce.item(), loss_amount=mse.item())
        scaler.step(optimizer)
        scaler.update()
        if step % 60 == 59:
            (ce, square), wrong = evaluate()
            passes.append([step, (min(square.item(), 3.0) + wrong) / 2])
            with hook.mode("eval"):
                hook.log(loss=ce + 0.5 * square, accuracy=1 - wrong, mse=square)
                hook.step()
    return ended(hook, steps, passes)


def _partial_batches(fault, seed, chance, options):
    import sklearn.metrics
    import sklearn.neural_network

    import tocsin.sklearn
    split = data.digits(seed)
    x, y, held_x, held_y = split.x.numpy(), labelled(split.y, fault, 10).numpy(), split.held_x.numpy(), split.held_y.numpy()
    if fault == "held_unscaled":
        held_x = 8 * held_x + 8
    elif fault == "held_other_classes":
        held_y = (held_y + 1) % 10
    elif fault == "inputs_constant":
        x, held_x = numpy.zeros_like(x), numpy.zeros_like(held_x)
    order, batch, steps = numpy.random.default_rng(seed), chance.choice((48, 64)), 300
    estimator = sklearn.neural_network.MLPClassifier((chance.choice((48, 64)),), learning_rate_init=rate(chance.uniform(1.5e-3, 4e-3), fault),
                                                     alpha=1e-4, random_state=seed)
    sorted_rows, classes, passes = numpy.argsort(y, kind="stable"), numpy.arange(10), [[0, 0.9]]
    training = tocsin.sklearn.watch(estimator, **options)
    uid = tocsin.get_hook().run
    for step in range(steps):
        chosen = order.integers(0, len(x), batch)
        if fault == "classes_sorted":
            chosen = sorted_rows[numpy.arange(step * batch, (step + 1) * batch) % len(x)]
        elif fault == "few_rows":
            chosen = chosen % 20
        before = estimator.predict_proba(x[chosen]) if step else None
        estimator.partial_fit(x[chosen], y[chosen], classes=classes)
        loss = sklearn.metrics.log_loss(y[chosen], estimator.predict_proba(x[chosen]), labels=classes)
        training.step(loss=loss, outputs=before, targets=y[chosen])
        if step % 30 == 29:
            said = estimator.predict_proba(held_x)
            passes.append([step, float((said.argmax(1) != held_y).mean())])
            training.evaluated(loss=sklearn.metrics.log_loss(held_y, said, labels=classes), outputs=said, targets=held_y)
    training.close()
    return uid, steps, passes


TUNING, FAULTS, fault_names, run = entered({
    "spread_regression": (_spread_regression, from_start("broadcast", "spread_as_variance", "target_leaks", "numbers_unscaled", "held_unscaled",
                                                         "targets_raw", "head_dead", "labels_misaligned")),
    "kind_and_amount": (_kind_and_amount, from_start("scaler_skips_all", "task_forgotten", "held_other_classes", "trunk_detached", "rate_hundredfold",
                                         "labels_misaligned", "held_unscaled", "class_random")),
    **({"partial_batches": (_partial_batches, from_start("labels_shuffled", "held_unscaled", "held_other_classes", "inputs_constant",
                                                         "classes_sorted", "few_rows", "rate_thousandth", "class_random"))}
       if importlib.util.find_spec("sklearn") else {})})
