"""Labels and predictions side by side, against sums done by hand and pair by pair."""
import random

import numpy
import pytest

from tocsin._scoring import scored


def test_a_characteristic_by_hand():
    told = scored([0.9, 0.8, 0.7, 0.6], [1, 0, 1, 0])
    assert told["roc/area"] == 0.75  # of the four pairs three are in order
    assert told["roc/tpr/0.25"] == pytest.approx(0.75)  # halfway from (0, 0.5) to (0.5, 1)
    assert told["roc/tpr/0.95"] == 1 and len(told) == 20


def test_the_area_is_the_share_of_pairs_in_order():
    chance = random.Random(8)
    for _ in range(200):
        truth = [0, 1] + [chance.randint(0, 1) for _ in range(chance.randint(0, 30))]
        scores = [chance.randint(0, 6) / 6 for _ in truth]  # many of them equal
        pairs = [(p > n) + (p == n) / 2 for p, t in zip(scores, truth) for n, u in zip(scores, truth) if t and not u]
        told = scored(scores, truth)
        assert told["roc/area"] == pytest.approx(sum(pairs) / len(pairs))
        rates = [told[name] for name in sorted(told) if name.startswith("roc/tpr")]
        assert rates == sorted(rates)


def test_residuals_are_prediction_less_label():
    told = scored(numpy.array([[1.5], [2.5], [4.5]], dtype=numpy.float32), [1.0, 2.5, 3.5])
    assert told["residual/mean"] == pytest.approx(0.5) and told["residual/p50"] == pytest.approx(0.5)
    assert told["residual/min"] == 0 and told["residual/max"] == 1
    assert told["residual/std"] == pytest.approx(numpy.std([0.5, 0.0, 1.0]))


@pytest.mark.parametrize("predictions, labels", [
    ([0.1, 0.2, 0.3], [0, 1, 2]),                # several classes
    ([[0.1, 0.9], [0.8, 0.2]], [0, 1]),          # a score per class
    ([0.1, 0.2], [1, 1]),                        # one class alone
    ([0.1], [0, 1]), ([], []),                   # no pairs
    ([0.1, float("nan")], [0, 1]), ([0.1, 0.2], [0.5, float("inf")]),
])
def test_nothing_of_what_is_neither(predictions, labels):
    assert scored(predictions, labels) == {}
