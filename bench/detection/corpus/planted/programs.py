"""The planted set: three small programs, and in each the kinds of faults that TheDeepChecker's benchmark plants in its three.

planted_shallow     two convolutions on small digits, gradient descent
planted_deep        four convolutions with batch normalisation and dropout on signs, Adam
planted_regression  two hidden layers on ten columns, Adam

Words, code and data are ours; what is taken over is which mistakes are made. Faults beyond scripts.support.WORDS mean what WORDS says below.
Not every one does harm: harm.py decides by the evaluations, as in every set since the sixth."""
import numpy
import sklearn.datasets
import torch
from torch import nn
from torch.nn import functional

import tocsin

from ..scripts.glyphs import glyphs
from ..scripts.support import ended, entered, errors, from_start, labelled

WORDS = {
    "rate_large": "thirty times the learning rate",
    "rate_small": "a hundredth of the learning rate",
    "epsilon_tiny": "Adam with an epsilon of 1e-16 and a rate of 0.1",
    "scaled_twice": "inputs are divided by their range a second time",
    "inputs_raw": "inputs are not scaled",
    "decay_missing": "no weight decay",
    "start_constant": "all weights start at one value",
    "start_random": "weights start with a spread that knows nothing of the layer's width",
    "activation_softmax": "softmax behind the first layer",
    "output_sigmoid": "a sigmoid behind the last layer, with targets that are also below zero",
    "loss_summed": "a sum where a mean was meant",
    "loss_axis": "the loss is summed over the batch and averaged over the classes",
    "loss_unfit": "squared error for classes, cross-entropy for numbers",
    "logits_as_probabilities": "the softmax is missing: the loss takes the logarithm of plain outputs",
    "softmax_over_batch": "the softmax runs over the batch, not over the classes",
    "classes_unbalanced": "of class k only a share of 1 / (k + 1) is kept, squared",
    "augmented_away": "augmentation with noise and boxes that leave little of a picture",
    "normalisation_missing": "no batch normalisation",
    "averages_stand": "batch normalisation never updates its averages",
}


class _Softmax(nn.Module):
    """Over the channels, or units."""

    def forward(self, x):
        return functional.softmax(x, 1)


def _first(fault):
    return _Softmax() if fault == "activation_softmax" else nn.ReLU()


def _shallow(fault):
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), _first(fault), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))


def _deep(fault):
    def normalised(width):
        if fault == "normalisation_missing":
            return nn.Identity()
        return nn.BatchNorm2d(width, momentum=0.0 if fault == "averages_stand" else 0.1)
    layers = []
    for at, (before, width) in enumerate(((1, 12), (12, 12), (12, 20), (20, 20))):
        layers += [nn.Conv2d(before, width, 3, padding=1, bias=False), normalised(width), _first(fault) if at == 0 else nn.ReLU()]
        layers += [nn.MaxPool2d(2), nn.Dropout(0.1)] if at % 2 else []
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(180, 10))


def _regression(fault):
    last = [nn.Sigmoid()] if fault == "output_sigmoid" else []
    return nn.Sequential(nn.Linear(10, 32), _first(fault), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1), *last)


def _started(model, fault):
    """The weights before the first update."""
    with torch.no_grad():
        for weight in (one for one in model.parameters() if one.dim() > 1):
            if fault == "start_constant":
                weight.fill_(0.1)
            elif fault == "start_random":
                weight.normal_(0.0, 2.0)
    return model


def _digits(seed):
    data = sklearn.datasets.load_digits()
    order = numpy.random.default_rng(seed).permutation(len(data.target))
    return torch.tensor(data.images[order]).float()[:, None], torch.tensor(data.target[order]).long(), 1400


def _signs(seed):
    images, kinds, _ = glyphs(seed, 2600)
    return images, kinds.long(), 2000


def _patients(seed):
    data = sklearn.datasets.load_diabetes(scaled=False)
    order = numpy.random.default_rng(seed).permutation(len(data.target))
    return torch.tensor(data.data[order]).float(), torch.tensor(data.target[order]).float(), 342


def _scaled(x, count, fault):
    """Pictures by their range, columns by their own."""
    if fault == "inputs_raw":
        return x
    low, span = (x[:count].amin(0), x[:count].amax(0) - x[:count].amin(0)) if x.dim() == 2 else (x[:count].min(), x[:count].max() - x[:count].min())
    x = (x - low) / span
    return x / span if fault == "scaled_twice" else x


def _augmented(x, drawn):
    """Noise, and a box of zeros over most of each picture."""
    noisy = x + 1.5 * torch.randn(x.shape, generator=drawn)
    noisy[:, :, : 3 * x.shape[2] // 4, : 3 * x.shape[3] // 4] = 0
    return noisy


def _of_classes(output, y, fault):
    if fault == "softmax_twice":
        return functional.cross_entropy(functional.softmax(output, 1), y)
    if fault == "loss_summed":
        return functional.cross_entropy(output, y, reduction="sum")
    hot = functional.one_hot(y, 10).float()
    if fault == "loss_unfit":
        return functional.mse_loss(functional.softmax(output, 1), hot)
    if fault == "logits_as_probabilities":
        return -(hot * output.clamp(min=1e-8).log()).sum(1).mean()
    logarithms = functional.log_softmax(output, 0 if fault == "softmax_over_batch" else 1)
    if fault == "loss_axis":
        return -(hot * logarithms).sum(0).mean()
    return -(hot * logarithms).sum(1).mean() if fault == "softmax_over_batch" else functional.cross_entropy(output, y)


def _of_numbers(output, y, fault):
    if fault == "broadcast":
        return functional.mse_loss(output, y.expand(len(y), len(y)))
    if fault == "loss_unfit":
        return functional.binary_cross_entropy_with_logits(output[:, 0], y)
    return functional.mse_loss(output[:, 0], y, reduction="sum" if fault == "loss_summed" else "mean")


def _optimizer(model, rate, decay, plain, fault):
    rate *= {"rate_large": 30.0, "rate_small": 0.01}.get(fault, 1.0)
    decay = {"decay_missing": 0.0, "decay_large": 1.0}.get(fault, decay)
    if fault == "epsilon_tiny":
        return torch.optim.Adam(model.parameters(), lr=0.1, eps=1e-16, weight_decay=decay)
    return torch.optim.SGD(model.parameters(), lr=rate, weight_decay=decay) if plain else torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)


def _thinned(x, y):
    """The first rows of each class, fewer of each next one."""
    counts = torch.bincount(y, minlength=10)
    kept = torch.cat([(y == at).nonzero()[:, 0][: max(1, int(counts[at]) // (at + 1) ** 2)] for at in range(10)])
    return x[kept], y[kept]


def _program(data, network, rate, steps, plain=False):
    """A job of entered(): reads, trains, evaluates."""
    def train(fault, seed, chance, options):
        x, y, count = data(seed)
        numbers, x = y.is_floating_point(), _scaled(x, count, fault)
        mean, spread = (y[:count].mean(), y[:count].std()) if numbers else (0, 1)
        held_x, held_y, x, y = x[count:], y[count:], x[:count], labelled(y[:count], fault, 10)
        y = (y - mean) / spread if numbers and fault != "targets_raw" else y
        x, y = _thinned(x, y) if fault == "classes_unbalanced" else (x, y)
        model, batch = _started(network(fault), fault), chance.choice((32, 48))
        optimizer, drawn = _optimizer(model, rate * chance.uniform(0.8, 1.2), 1e-5, plain, fault), torch.Generator().manual_seed(seed)
        loss_of = _of_numbers if numbers else _of_classes

        def evaluate():
            model.eval()
            with torch.no_grad():
                output = model(held_x)
            model.train()
            if not numbers:
                return errors(output, held_y)
            told = output[:, 0] if fault == "targets_raw" else output[:, 0] * spread + mean
            return functional.mse_loss(told, held_y).item() / float(spread) ** 2
        passes, at, order = [[0, evaluate()]], 0, torch.randperm(len(x), generator=drawn)
        hook = tocsin.watch(model, optimizer, **options)
        for step in range(steps):
            if at + batch > len(x):
                at, order = 0, torch.randperm(len(x), generator=drawn)
            chosen = order[at:at + batch]
            at += batch
            inputs = _augmented(x[chosen], drawn) if fault == "augmented_away" else x[chosen]
            loss = loss_of(model(inputs), y[chosen], fault)
            optimizer.zero_grad()
            (-loss if fault == "sign_wrong" else loss).backward()
            optimizer.step()
            hook.log(loss=loss)
            if step % 40 == 39:
                passes.append([step, evaluate()])
                hook.log(val_error=passes[-1][1])
        return ended(hook, steps, passes)
    return train


EVERYWHERE = from_start("rate_large", "rate_small", "epsilon_tiny", "sign_wrong", "scaled_twice", "inputs_raw", "decay_missing", "decay_large",
                        "start_constant", "start_random", "labels_shuffled", "loss_summed", "loss_unfit", "activation_softmax")
PICTURES = {**EVERYWHERE, **from_start("softmax_twice", "logits_as_probabilities", "softmax_over_batch", "loss_axis", "classes_unbalanced",
                                       "augmented_away")}

TUNING, FAULTS, fault_names, run = entered({
    "planted_shallow": (_program(_digits, _shallow, 0.1, 480, plain=True), PICTURES),
    "planted_deep": (_program(_signs, _deep, 3e-3, 200), {**PICTURES, **from_start("normalisation_missing", "averages_stand")}),
    "planted_regression": (_program(_patients, _regression, 3e-3, 400), {**EVERYWHERE, **from_start("broadcast", "targets_raw", "output_sigmoid")}),
})
