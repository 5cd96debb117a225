"""Data that comes with scikit-learn, split and scaled as its users do."""
import functools

import numpy
import sklearn.datasets
import torch


class Split:
    """Inputs and targets for training and for evaluation, as tensors."""

    def __init__(self, x, y, held, classes=None):
        self.x, self.y = x[:-held], y[:-held]
        self.held_x, self.held_y = x[-held:], y[-held:]
        self.classes = classes


def _shuffled(x, y, seed):
    order = numpy.random.default_rng(seed).permutation(len(x))
    return x[order], y[order]


def _scaled(x):
    spread = x.std(0)
    return (x - x.mean(0)) / numpy.where(spread > 0, spread, 1)


@functools.lru_cache(maxsize=None)
def _digits():
    return sklearn.datasets.load_digits(return_X_y=True)


def digits(seed, shape=(64,), held=360):
    """1797 images of 8 × 8 points, 10 classes, values around 0."""
    x, y = _shuffled(*_digits(), seed)
    x = torch.tensor((x - 8) / 8, dtype=torch.float32).reshape(-1, *shape)
    return Split(x, torch.tensor(y), held, 10)


def images(seed):
    """The same as one channel of 8 × 8."""
    return digits(seed, (1, 8, 8))


def rows(seed):
    """The same as sequences of 8 rows."""
    return digits(seed, (8, 8))


def cancer(seed):
    """569 samples of 30 features, two classes."""
    x, y = _shuffled(*sklearn.datasets.load_breast_cancer(return_X_y=True), seed)
    return Split(torch.tensor(_scaled(x), dtype=torch.float32), torch.tensor(y), 120, 2)


def wine(seed):
    """178 samples of 13 features, three classes: an evaluation set of 40 is a noisy one."""
    x, y = _shuffled(*sklearn.datasets.load_wine(return_X_y=True), seed)
    return Split(torch.tensor(_scaled(x), dtype=torch.float32), torch.tensor(y), 40, 3)


def diabetes(seed):
    """442 samples of 10 features; the target is scaled, and most of it is noise."""
    x, y = _shuffled(*sklearn.datasets.load_diabetes(return_X_y=True), seed)
    return Split(torch.tensor(_scaled(x), dtype=torch.float32),
                 torch.tensor(_scaled(y), dtype=torch.float32)[:, None], 90)


@functools.lru_cache(maxsize=None)
def _text():
    sets = (sklearn.datasets.load_digits, sklearn.datasets.load_breast_cancer, sklearn.datasets.load_wine,
            sklearn.datasets.load_diabetes, sklearn.datasets.load_iris, sklearn.datasets.load_linnerud)
    text = "\n".join(load().DESCR for load in sets)
    letters = sorted(set(text))
    return numpy.array([letters.index(one) for one in text]), len(letters)


def text(seed, length=24):
    """The descriptions of the data sets as windows of letters, each with the letter that follows."""
    letters, kinds = _text()
    starts = numpy.random.default_rng(seed).permutation(len(letters) - length - 1)[:3000]
    windows = numpy.stack([letters[at:at + length + 1] for at in starts])
    return Split(torch.tensor(windows[:, :-1]), torch.tensor(windows[:, 1:]), 300, kinds)
