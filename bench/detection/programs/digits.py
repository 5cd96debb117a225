"""MNIST without a download: the 10 000 test digits that DeepLocalize's repository carries, each in seven places, in MNIST's shapes.

Programs ask for 60 000 and 10 000 images by number. Ten thousand digits in seven places (where they are, and a pixel aside) make as many. Digits of
the test set are never those of the training set."""
import csv
import functools
import io
import zipfile

import numpy

SHIFTS = ((0, 0), (0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, -1))
TEST = 1428  # digits kept for the test set: 10 000 / 7, rounded down


@functools.lru_cache(maxsize=1)
def read(path):
    """(images, labels) of a zipped table with a column `label` and one per pixel."""
    with zipfile.ZipFile(path) as archive:
        name = next(one for one in archive.namelist() if one.endswith(".csv") and not one.startswith("__"))
        rows = list(csv.reader(io.TextIOWrapper(archive.open(name), "utf-8")))
    values = numpy.array(rows[1:], dtype=numpy.uint8)
    at = rows[0].index("label")
    return numpy.delete(values, at, axis=1).reshape(-1, 28, 28), values[:, at]


def _placed(images, labels, count):
    """`count` images: each digit in the places of SHIFTS, in a fixed random order."""
    moved = numpy.concatenate([numpy.roll(images, shift, (1, 2)) for shift in SHIFTS])
    order = numpy.random.default_rng(0).permutation(len(moved))
    order = numpy.resize(order, count)
    return moved[order], numpy.tile(labels, len(SHIFTS))[order]


def load_data(path):
    """As keras.datasets.mnist.load_data()."""
    images, labels = read(path)
    return _placed(images[TEST:], labels[TEST:], 60000), _placed(images[:TEST], labels[:TEST], 10000)
