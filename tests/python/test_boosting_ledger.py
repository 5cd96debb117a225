"""What the ledger of boosters computes of labels and columns, against slow and obvious forms; and that it lets nothing go but sums."""
import math

import numpy
import pytest

from tests.reference.rules.parity import unlike
from tocsin.ledger import boosting_columns as columns
from tocsin.ledger.boosting import BoosterLedger, DataSet
from tocsin.ledger.boosting_rows import MOST_COLUMNS, rows_of
from tocsin.ledger.boosting_trivial import LabelSet, trivial


def table(rows=2000, width=5, seed=0):
    random = numpy.random.default_rng(seed)
    values = random.normal(size=(rows, width)).astype(numpy.float32)
    return random, values, values[:, 0] + random.normal(size=rows)


def facts(train, held=None, objective="", **more):
    ledger = BoosterLedger(DataSet("train", train[1], table=train[0]), [] if held is None else [DataSet("held", held[1], table=held[0])],
                           ["train"], more.get("names", ["a", "b", "c", "d", "e"]), objective)
    return ledger.facts


# --- what the best constant costs ---------------------------------------------------------------


def brute(loss, train, judged, candidates):
    """The loss on `judged` of the candidate that is best on `train`."""
    def mean(labels, constant):
        return numpy.average([loss(label, constant) for label in labels.labels], weights=labels.weights)
    best = min(candidates, key=lambda constant: mean(train, constant))
    return mean(judged, best)


@pytest.mark.parametrize("metric, loss, labels", [
    ("rmse", lambda y, c: (y - c) ** 2, "positive"),
    ("mae", lambda y, c: abs(y - c), "positive"),
    ("rmsle", lambda y, c: (math.log1p(y) - math.log1p(c)) ** 2, "positive"),
    ("quantile", lambda y, c: max(0.9 * (y - c), -0.1 * (y - c)), "positive"),
    ("poisson", lambda y, c: c - y * math.log(c), "positive"),
    ("gamma-nloglik", lambda y, c: y / c + math.log(c), "positive"),
    ("tweedie-nloglik@1.3", lambda y, c: c ** 0.7 / 0.7 - y * c ** -0.3 / -0.3, "positive"),
    ("logloss", lambda y, c: -y * math.log(c) - (1 - y) * math.log(1 - c), "binary")])
def test_the_constant_of_a_metric_is_the_best_of_the_training_labels(metric, loss, labels):
    random = numpy.random.default_rng(3)
    draw = {"positive": lambda n: random.gamma(2.0, size=n) + 0.1, "binary": lambda n: (random.random(n) < 0.3).astype(float)}[labels]
    train, judged = LabelSet(draw(300), random.random(300)), LabelSet(draw(200), random.random(200))
    candidates = numpy.linspace(0.01, 0.99 if labels == "binary" else 6, 3000)
    value, _ = trivial(metric, train, judged, {"alpha": 0.9})
    assert value == pytest.approx(brute(loss, train, judged, candidates), rel=2e-3)


def test_classes_are_answered_by_their_shares():
    train, judged = LabelSet([0, 0, 1, 2]), LabelSet([0, 2])
    assert trivial("mlogloss", train, judged, {})[0] == pytest.approx((math.log(2) + math.log(4)) / 2)
    assert trivial("merror", train, judged, {})[0] == 0.5
    assert trivial("error", LabelSet([0, 0, 1]), LabelSet([0, 1, 1, 1]), {})[0] == 0.75
    assert trivial("auc", LabelSet([0, 1]), LabelSet([0, 1]), {})[0] == 0.5
    value, turn = trivial("aucpr", LabelSet([0, 1]), LabelSet([0, 0, 0, 1]), {})
    assert (value, turn(0.9)) == (0.75, pytest.approx(0.1))


@pytest.mark.parametrize("settings", [{"scale_pos_weight": 4.0}, {"scale_pos_weight": "4"}, {"balanced": True}])
def test_where_training_weighs_positives_metrics_of_probabilities_have_no_constant(settings):
    train, judged = LabelSet([1.0] * 25 + [0.0] * 75), LabelSet([1.0, 0.0])
    for metric in ("binary_logloss", "logloss", "error"):
        assert trivial(metric, train, judged, settings) is None
        assert trivial(metric, train, judged, {"scale_pos_weight": 1, "balanced": False}) is not None
    assert trivial("auc", train, judged, settings)[0] == 0.5, "an order has one"


def test_rankings_are_compared_with_random_orders():
    labels, groups = numpy.array([3, 0, 1, 2, 0, 0, 1.0]), [4, 3]

    def gain(order, most):
        return sum((2 ** label - 1) / math.log2(place + 2) for place, label in enumerate(order[:most]))

    random, means = numpy.random.default_rng(0), []
    for start, size in ((0, 4), (4, 3)):
        own = labels[start:start + size]
        means.append(numpy.mean([gain(random.permutation(own), 2) for _ in range(40000)]) / gain(sorted(own, reverse=True), 2))
    value, turn = trivial("ndcg@2", LabelSet(labels), LabelSet(labels, groups=groups), {})
    assert 1 - value == pytest.approx(numpy.mean(means), abs=0.005) and turn(1.0) == 0
    assert trivial("ndcg@2", LabelSet(labels), LabelSet(labels), {}) is None, "without queries"


@pytest.mark.parametrize("metric, labels", [("own", [0.0, 1]), ("logloss", [0.0, 2]), ("mlogloss", [0.5, 1]), ("gamma", [0.0, 0]), ("map@3", [0.0, 1]),
                                            ("rmse", [])])
def test_of_other_metrics_nothing_is_said(metric, labels):
    assert trivial(metric, LabelSet(labels), LabelSet(labels), {}) is None


# --- columns -----------------------------------------------------------------------------------


def test_fits_are_squared_correlations_of_what_is_there():
    random, values, labels = table()
    values[random.random(values.shape) < 0.2] = numpy.nan
    found = columns.fits(values, labels, None)
    for at in range(values.shape[1]):
        there = ~numpy.isnan(values[:, at])
        assert found[at] == pytest.approx(numpy.corrcoef(values[there, at], labels[there])[0, 1] ** 2, abs=1e-6)


def test_classes_explain_what_lies_between_their_means():
    random, values, _ = table(600, 2)
    labels = random.integers(0, 4, 600).astype(float)
    values[:, 0] += labels
    values[random.random(600) < 0.2, 1] = numpy.nan
    found = columns.fits(values, labels, columns.class_codes(labels))
    for at in (0, 1):
        there = ~numpy.isnan(values[:, at])
        x, t = values[there, at].astype(float), labels[there]
        within = sum(((x[t == k] - x[t == k].mean()) ** 2).sum() for k in range(4))
        share = 1 - within / ((x - x.mean()) ** 2).sum()
        assert found[at] == pytest.approx(max(1 - (1 - share) * (len(x) - 1) / (len(x) - 4), 0), abs=1e-6)


def test_constant_columns_and_few_elements_fit_nothing():
    random, values, labels = table(400)
    values[:, 0], values[:, 1] = 1e6, labels
    values[199:, 1] = numpy.nan
    values[:, 2] = labels * 1e-4 + 1e3  # of which float32 leaves little
    found = columns.fits(values, labels, None)
    assert (found[:2] == 0).all() and found[2] < 0.97


def test_a_copy_is_equal_beyond_chance_and_the_frequent_class_is_not():
    labels = (numpy.arange(1000) % 100 == 0).astype(float)
    assert columns.equality(labels.astype(numpy.float32), labels) == 1
    assert columns.equality(numpy.zeros(1000, dtype=numpy.float32), labels) == pytest.approx(0)


def test_the_leak_is_first_and_its_neighbours_do_not_know_it():
    random, values, labels = table()
    values[:, 3] = labels + 0.15 * labels.std() * random.normal(size=len(labels))
    (first, fit, shifted, equal), *_ = columns.best_columns(values, labels, None, True)
    assert first == 3 and fit == pytest.approx(0.978, abs=0.003) and shifted < 0.01 and equal == 0
    walk = numpy.cumsum(random.normal(size=2000))
    values[:, 2] = walk + 0.01
    (first, fit, shifted, _), *_ = columns.best_columns(values, walk, None, True)
    assert first == 2 and fit > 0.999 and 1 - shifted < 0.01


def test_fingerprints_know_rows_again_and_no_others():
    random, values, labels = table(5000)
    salted = columns.Fingerprints(values.shape[1])
    assert columns.overlap(salted.of(values, labels), salted.of(values[:50], labels[:50])) == (50, 0)
    other = values[:50].copy()
    other[:, 4] = numpy.nextafter(other[:, 4], 9)
    assert columns.overlap(salted.of(values, labels), salted.of(other, labels[:50])) == (0, 0)
    assert columns.overlap(salted.of(values[:3].repeat(2, 0), labels[:3].repeat(2)), salted.of(values, labels)) == (3, 6)
    assert (salted.of(values, labels) != columns.Fingerprints(values.shape[1]).of(values, labels)).any(), "salted"


def test_distances_are_those_of_the_distribution_functions():
    random = numpy.random.default_rng(1)
    first, second = numpy.round(random.normal(size=(300, 3)), 1), numpy.round(random.normal(0.5, 1, size=(200, 3)), 1)
    first[:20, 1] = numpy.nan
    for at, found in enumerate(columns.distances(first, second)):
        one, two = first[~numpy.isnan(first[:, at]), at], second[:, at]
        places = numpy.unique(numpy.r_[one, two])
        gap = max(abs((one <= place).mean() - (two <= place).mean()) for place in places)
        assert found == pytest.approx(gap, abs=1e-12)
    assert columns.class_distance(numpy.array([0.0, 0, 1, 1]), numpy.array([0.0, 2])) == 0.5


# --- a whole booster ---------------------------------------------------------------------------


def test_what_is_told_names_columns_and_holds_no_row():
    random, values, labels = table()
    told = facts((values[:1500], labels[:1500]), (values[1400:], labels[1400:]))
    assert told["ledger/data/train/read"] == 1500 and "ledger/data/train/column_fit/a" in told
    assert (told["ledger/data/held/seen"], told["ledger/data/held/compared"], told["ledger/data/held/same"]) == (100, 600, 0)
    assert all(isinstance(value, float) and math.isfinite(value) for value in told.values()) and len(told) < 40


def test_one_set_that_cannot_be_read_leaves_the_others():
    random, values, labels = table()
    wrong, errors = labels.copy(), []
    wrong[0] = numpy.nan
    ledger = BoosterLedger(DataSet("train", labels, table=values),
                           [DataSet("broken", wrong, table=values), DataSet("held", labels[:500], table=values[:500])],
                           ["train"], [], "", None, errors.append)
    assert len(errors) == 1 and ledger.facts["ledger/data/held/seen"] == 500 and "ledger/data/train/column_fit/f0" in ledger.facts


def test_rows_that_cannot_be_read_leave_the_labels():
    class Elsewhere:
        shape = (2000, 5)

        def tocsr(self):
            raise MemoryError("on another device")

    _, _, labels = table()
    errors = []
    ledger = BoosterLedger(DataSet("train", labels, table=Elsewhere()), [], ["train"], [], "", None, errors.append)
    assert isinstance(errors[0], MemoryError) and ledger.facts == {"ledger/data/train/rows": 2000}
    assert ledger.judge({("train", "rmse"): 1.0})["ledger/train-rmse/trivial"] == pytest.approx(2000 * labels.var())


def test_rounds_are_sums_over_the_rows_of_their_set():
    random, values, labels = table()
    ledger = BoosterLedger(DataSet("train", labels, table=values), [DataSet("held", labels[:500])], ["learn"], [])
    told = ledger.judge({("learn", "rmse"): 0.5, ("held", "rmse"): 2.0, ("held", "own"): 1.0, ("other", "rmse"): 1.0})
    assert told["ledger/held-rmse/samples"] == 500 and told["ledger/held-rmse/loss"] == 2000
    assert told["ledger/learn-rmse/trivial"] == pytest.approx(2000 * labels.var())
    assert not any("own" in name or "other" in name for name in told)
    assert ledger.judge({("held", "rmse"): math.nan}) == {} and ledger.judge({("held", "rmse"): 1.0})["ledger/held-rmse/loss"] == 500


def test_tables_are_read_evenly_and_left_as_they_are():
    values = numpy.arange(400000, dtype=float).reshape(-1, 2)
    values[0, 0], before = numpy.inf, values.copy()
    read = rows_of(values)
    assert len(read.values) == 65536 and read.numbers[-1] > 199990 and numpy.isnan(read.values[0, 0])
    assert (values == before).all() or numpy.isinf(values[0, 0])
    assert rows_of(numpy.zeros((3, MOST_COLUMNS + 1))) is None and rows_of(numpy.zeros(3)) is None and rows_of("table.csv") is None


def test_nothing_is_drawn_from_the_generators_of_the_script():
    _, values, labels = table()
    numpy.random.seed(5)
    state = numpy.random.get_state()[1].copy()
    facts((values, labels), (values, labels))
    assert (numpy.random.get_state()[1] == state).all()


# --- null data: what the rule decides is false of honest sets as rarely as it says -----------------


def test_honest_columns_are_never_a_leak():
    random = numpy.random.default_rng(7)
    for number in range(300):
        rows = int(random.integers(200, 400))
        labels = [random.normal(size=rows), random.standard_t(2, size=rows), random.integers(0, 5, rows).astype(float)][number % 3]
        values = random.normal(size=(rows, 20)).astype(numpy.float32)
        values[:, 0] = labels * 0.5 + random.normal(size=rows) * labels.std()
        codes = columns.class_codes(labels) if number % 3 == 2 else None
        assert all(fit < 0.97 and equal < 0.99 for _, fit, _, equal in columns.best_columns(values, labels, codes, True))


def drawn(random, kind, rows):
    if kind == "heavy":
        return random.standard_t(3, size=(rows, 4)).astype(numpy.float32)
    if kind == "few":
        return random.integers(0, 3, size=(rows, 4)).astype(numpy.float32)
    values = random.lognormal(0, 2, size=(rows, 4)).astype(numpy.float32)
    values[random.random(values.shape) < 0.3] = numpy.nan
    return values


@pytest.mark.parametrize("kind", ["heavy", "few", "skewed with holes"])
def test_sets_of_one_world_are_not_told_apart(kind):
    """10 000 pairs of sets in all, judged as the reference of the rule does, with no margin: alarms are fewer than 0.0005."""
    random, alarms, null = numpy.random.default_rng(5), 0, {"margin": 0.0}
    for _ in range(3334):
        train, held = drawn(random, kind, int(random.integers(60, 150))), drawn(random, kind, int(random.integers(60, 120)))
        found, moved = columns.distances(train, held), columns.drifts(train)
        at = int(numpy.argmax(found))
        n, m = (int((~numpy.isnan(values[:, at])).sum()) for values in (train, held))
        alarms += unlike(null, found[at], moved[at], n, m, 1 + math.log(4), 1)
    assert alarms <= 2 + 3 * math.sqrt(2)


def test_a_moved_set_is_told_apart_and_time_order_is_not():
    random, p = numpy.random.default_rng(6), {"margin": 0.05}
    train, held = random.normal(size=(2000, 1)), random.normal(size=(500, 1))

    def told(first, second):
        return unlike(p, columns.distances(first, second)[0], columns.drifts(first)[0], columns.compared(len(first)), columns.compared(len(second)), 1, 1)

    assert not told(train, held) and told(train, held + 0.5) and told(train, held * 100)
    trend = numpy.linspace(0, 3, 2500)[:, None] + random.normal(size=(2500, 1))
    assert not told(trend[:2000], trend[2000:]), "split by time"
    assert told(random.permutation(trend[:2000]), trend[2000:]), "nothing says that it was"
    labels = random.integers(0, 10, 2500).astype(float)
    few = labels[2000:][labels[2000:] < 7]
    cases = 10 * math.log(2)
    assert unlike(p, columns.class_distance(labels[:2000], few), columns.class_drift(labels[:2000]), 2000, few.size, cases, cases)
    assert not unlike(p, columns.class_distance(labels[:2000], labels[2000:]), columns.class_drift(labels[:2000]), 2000, 500, cases, cases)


def test_labels_that_are_sorted_have_no_drift():
    _, values, labels = table()
    order = numpy.argsort(labels)
    told = facts((values[order][:1500], labels[order][:1500]), (values[order][1500:], labels[order][1500:]))
    assert told["ledger/data/held/target_drift"] == 0 and told["ledger/data/held/target_distance"] == 1
    assert told["ledger/data/held/columns"] == 5


def test_rankings_tell_of_rows_alone():
    _, values, labels = table()
    told = facts((values[:1500], labels[:1500]), (values[1400:], labels[1400:]), "rank:ndcg")
    assert told["ledger/data/held/seen"] == 100 and not any("distance" in name for name in told)
