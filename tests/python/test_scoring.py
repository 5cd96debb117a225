"""Labels and predictions side by side, against sums done by hand and pair by pair."""
import random

import numpy
import pytest

from tocsin.frameworks.scoring import scored
from tocsin.frameworks.trees import hyperparameters, objective


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


def test_the_error_of_each_tenth_of_the_labels():
    labels = numpy.array([0.5, 1.0, 9.5, 10.5])  # tenths of 1: the first two in the first, the last two at both ends of the last
    told = scored(labels + [1, -3, 2, 4], labels)
    assert (told["residual/label_min"], told["residual/label_max"]) == (0.5, 10.5)
    errors = {name: value for name, value in told.items() if name.startswith("residual/abs/")}
    assert errors == {"residual/abs/0": pytest.approx(2), "residual/abs/9": pytest.approx(3)}
    one = scored(numpy.array([1.0, 2.0]), numpy.array([1.5, 1.5]))
    assert not [name for name in one if name.startswith("residual/abs/")], "labels without a range"


def test_the_objective_says_whether_whole_numbers_are_quantities():
    labels, predictions = numpy.array([0.0, 1.0, 2.0, 3.0]), numpy.array([0.5, 1.0, 2.0, 2.0])
    assert scored(predictions, labels) == {}
    assert scored(predictions, labels, "count:poisson")["residual/abs/9"] == pytest.approx(1)
    assert "roc/area" in scored(predictions[:2], labels[:2], "binary:logistic")
    assert "residual/mean" in scored(predictions[:2], labels[:2], "reg:squarederror")


def test_the_objective_stands_in_the_name_of_a_hyperparameter():
    config = '{"learner": {"objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}}}}'
    assert hyperparameters(config) == {"hyperparameters/objective/reg:squarederror": 1.0, "hyperparameters/scale_pos_weight": 1.0}
    assert objective(config) == "reg:squarederror"
    assert hyperparameters('{"learner": {"objective": {"name": 7}}}') == {"hyperparameters/name": 7.0}
    assert objective("{}") == ""
