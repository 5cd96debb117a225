"""The ledger's arithmetic: moments of a loss call against plain loops over samples, constants against a search."""
import math

import numpy
import pytest

from tests.support import hook_support  # noqa: F401 (the path of the package)

from tocsin.ledger.constants import Constant, split
from tocsin.ledger.moments import HEAD, Form, moments, prepared
from tocsin.ledger.operations import Operations

OPS = Operations()


def told(form, outputs, targets, weights=None, inputs=None, loss=None):
    """(form, head, tail) of a call."""
    arrays = [None if one is None else numpy.asarray(one) for one in (outputs, targets, weights, inputs)]
    call = prepared(OPS, form, *arrays, loss=loss)
    vector = moments(OPS, call)
    assert vector.shape == (call.form.length,)
    return (call.form, *split(call.form, vector))


def plain_loss(form, z, t):
    """The loss of one sample, written once more and slowly. `t`: a class, shares of classes, or quantities."""
    if form.kind == "cross_entropy":
        shares = numpy.zeros(len(z))
        if numpy.ndim(t) == 0:
            shares[int(t)] = 1
        else:
            shares[:] = t
        p = [math.exp(one - max(z)) for one in z] if form.from_logits else list(z)
        p = [one / sum(p) for one in p]
        return -sum(((1 - form.smoothing) * s + form.smoothing / len(z)) * math.log(q) for s, q in zip(shares, p))
    total = 0.0
    for a, b in zip(z, t):
        if form.kind == "binary":
            b = (1 - form.smoothing) * b + form.smoothing / 2
            p = 1 / (1 + math.exp(-a)) if form.from_logits else a
            total -= b * math.log(p) + (1 - b) * math.log(1 - p)
        elif form.kind == "squared":
            total += (a - b) ** 2
        elif form.kind == "absolute":
            total += abs(a - b)
        elif form.kind == "huber":
            far = abs(a - b)
            total += far * far / 2 if far <= form.delta else form.delta * far - form.delta ** 2 / 2
        elif form.kind == "poisson":
            total += math.exp(a) - b * a if form.from_logits else a - b * math.log(a + 1e-7)
    return total / len(z)


def samples_of(rng, form, n=37):
    """(outputs, targets) that the loss can be given."""
    if form.kind == "cross_entropy":
        z = rng.standard_normal((n, 5))
        return (z if form.from_logits else numpy.exp(z) / numpy.exp(z).sum(1, keepdims=True)), rng.integers(0, 5, n)
    z = rng.standard_normal((n, 3))
    if form.kind == "binary":
        return (z if form.from_logits else 1 / (1 + numpy.exp(-z))), rng.integers(0, 2, (n, 3)).astype(float)
    if form.kind == "poisson":
        return (z if form.from_logits else numpy.exp(z)), rng.poisson(2.0, (n, 3)).astype(float)
    return z, rng.standard_normal((n, 3)) * 2


FORMS = [Form("cross_entropy"), Form("cross_entropy", from_logits=False), Form("cross_entropy", smoothing=0.2), Form("binary"),
         Form("binary", from_logits=False, smoothing=0.1), Form("squared"), Form("absolute"), Form("huber", delta=0.7), Form("poisson"),
         Form("poisson", from_logits=False)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.kind}-{form.from_logits}-{form.smoothing}")
def test_sums_are_those_of_a_loop_over_samples(form, weighted):
    rng = numpy.random.default_rng(1)
    z, t = samples_of(rng, form)
    n = len(z)
    t[7] = t[7 + n // 2]  # a pair with one target
    w = rng.choice([0.0, 0.5, 2.0], n) if weighted else numpy.ones(n)
    _, head, _ = told(form, z, t, w if weighted else None)
    own = [plain_loss(form, a, b) for a, b in zip(z, t)]
    counting = [i for i in range(n) if w[i] > 0]
    pairs = [(i, i + n // 2) for i in range(n // 2) if w[i] > 0 and w[i + n // 2] > 0 and numpy.any(t[i] != t[i + n // 2])]
    straight = [own[i] + own[j] for i, j in pairs]
    crossed = [plain_loss(form, z[i], t[j]) + plain_loss(form, z[j], t[i]) for i, j in pairs]
    expected = {"rows": n, "samples": len(counting), "weight": w.sum(), "loss": sum(w[i] * own[i] for i in range(n)),
                "pairs": len(pairs), "wins": sum(s < x for s, x in zip(straight, crossed)), "straight": sum(straight),
                "crossed": sum(crossed), "one_target": 0,
                "output_spread": numpy.var(z[counting], axis=0).mean() * len(counting)}
    if form.kind == "cross_entropy":
        counts, said = numpy.bincount(t[counting], minlength=5), numpy.bincount(z[counting].argmax(1), minlength=5)
        expected.update(labels=counts.max(), answers=said.max(), right=sum(z[i].argmax() == t[i] for i in counting),
                        target_spread=(1 - ((counts / counts.sum()) ** 2).sum()) * len(counting))
    else:
        expected.update(target_spread=numpy.var(t[counting], axis=0).mean() * len(counting))
    assert {name: head[name] for name in expected} == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert weighted or any(s > x for s, x in zip(straight, crossed)), "not all pairs win"


def constant_of(form, targets, weights):
    """The constant that the documented formula makes of past targets, for each unit."""
    total = weights.sum()
    if form.kind == "cross_entropy":
        counts = numpy.array([weights[targets == k].sum() for k in range(5)])
        share = (counts + 0.5) / (total + 2.5)
        return (1 - form.smoothing) * share + form.smoothing / 5
    sums = (weights[:, None] * targets).sum(0)
    if form.kind == "binary":
        return (1 - form.smoothing) * (sums + 0.5) / (total + 1) + form.smoothing / 2
    return sums / total if form.kind == "squared" else (sums + 0.5) / total


def loss_at(form, constant, target):
    """The loss of a sample whose output is the constant, as probabilities or quantities."""
    if form.kind == "cross_entropy":
        return plain_loss(Form("cross_entropy", from_logits=False, smoothing=form.smoothing), constant, target)
    if form.kind == "binary":
        kept = [(1 - form.smoothing) * one + form.smoothing / 2 for one in target]
        return -sum(b * math.log(q) + (1 - b) * math.log(1 - q) for b, q in zip(kept, constant)) / len(constant)
    if form.kind == "poisson" and form.from_logits:
        return sum(q - b * math.log(q) for b, q in zip(target, constant)) / len(constant)
    return plain_loss(form, constant, target)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [one for one in FORMS if one.kind not in ("absolute", "huber")], ids=lambda form: f"{form.kind}-{form.from_logits}-{form.smoothing}")
def test_trivial_is_the_loss_of_the_constant_of_the_steps_before(form, weighted):
    rng = numpy.random.default_rng(2)
    constant, past = Constant(), []
    for step in range(6):
        z, t = samples_of(rng, form, 20 + step)
        w = rng.choice([0.0, 0.5, 2.0], len(z)) if weighted else numpy.ones(len(z))
        full, head, tail = told(form, z, t, w)
        got = constant.loss(full, head, tail)
        if step == 0:
            assert got is None
        else:
            at = constant_of(form, numpy.concatenate([one for one, _ in past]), numpy.concatenate([one for _, one in past]))
            assert got == pytest.approx(sum(v * loss_at(form, at, one) for v, one in zip(w, t)), rel=1e-9)
        constant.learn(full, head, tail)
        past.append((t, w))


@pytest.mark.parametrize("form", [Form("absolute"), Form("huber", delta=0.7)], ids=lambda form: form.kind)
def test_constants_that_need_all_targets_are_the_best_ones_of_the_past(form):
    """Against every target of the past and a fine grid: no other constant is better on them by more than rounding."""
    rng = numpy.random.default_rng(3)
    constant, past = Constant(), numpy.zeros((0, 3))
    for step in range(5):
        z, t = samples_of(rng, form, 30)
        full, head, tail = told(form, z, t)
        got = constant.loss(full, head, tail)
        if step:
            best = []
            for unit in range(3):
                def cost(c):
                    return sum(plain_loss(form, [c], [one]) for one in past[:, unit])
                tries = numpy.concatenate([past[:, unit], numpy.linspace(-1, 1, 2001)])
                costs = [cost(c) for c in tries]
                best.append(tries[int(numpy.argmin(costs))])
                assert cost(constant._middle(full)[unit]) <= min(costs) * (1 + 1e-12)
            assert got == pytest.approx(sum(plain_loss(form, best, one) for one in t), rel=2e-2)
        constant.learn(full, head, tail)
        past = numpy.concatenate([past, t])


def test_a_median_of_many_targets_stays_near_the_true_one():
    """20 000 values of which 1024 are kept: within 1 % of the ranks."""
    rng = numpy.random.default_rng(4)
    constant, values = Constant(), rng.exponential(1.0, (100, 200, 1))
    for batch in values:
        constant.learn(*told(Form("absolute"), numpy.zeros_like(batch), batch))
    form = told(Form("absolute"), values[0], values[0])[0]
    assert abs(numpy.mean(values < constant._middle(form)[0]) - 0.5) < 0.01


def test_the_constant_regrets_no_more_than_kt_does():
    """Krichevsky and Trofimov: (K − 1)/2 · ln n + K nats behind the best constant in hindsight."""
    rng = numpy.random.default_rng(5)
    t = rng.choice(5, 2000, p=[0.6, 0.2, 0.1, 0.1, 0.0])
    constant, trivial = Constant(), 0.0
    for at in range(len(t)):
        full, head, tail = told(Form("cross_entropy"), numpy.zeros((1, 5)), t[at:at + 1])
        trivial += constant.loss(full, head, tail) or math.log(5)
        constant.learn(full, head, tail)
    share = numpy.bincount(t, minlength=5) / len(t)
    hindsight = -len(t) * sum(p * math.log(p) for p in share if p > 0)
    assert 0 <= trivial - hindsight <= 2 * math.log(len(t)) + 5


def test_smoothed_one_hot_and_numbered_classes_are_the_same_call():
    rng = numpy.random.default_rng(6)
    z, t = samples_of(rng, Form("cross_entropy"))
    form = Form("cross_entropy", smoothing=0.1)
    assert told(form, z, t)[1] == pytest.approx(told(form, z, numpy.eye(5)[t])[1])


def test_places_of_texts_are_samples_and_padding_is_none():
    """Rows of 6 places; pairs are of the same place, in different rows."""
    rng = numpy.random.default_rng(7)
    z, t, w = rng.standard_normal((8, 6, 5)), rng.integers(0, 5, (8, 6)), numpy.ones((8, 6))
    w[3, 2:] = 0
    form, head, tail = told(Form("cross_entropy"), z, t, w)
    pairs = [(i, p) for i in range(4) for p in range(6) if w[i, p] and w[i + 4, p] and t[i, p] != t[i + 4, p]]
    assert (head["samples"], head["pairs"]) == (44, len(pairs))
    assert tail.sum() == 44 and form.units == 5
    one = Form("cross_entropy")
    assert head["straight"] == pytest.approx(sum(plain_loss(one, z[i, p], t[i, p]) + plain_loss(one, z[i + 4, p], t[i + 4, p]) for i, p in pairs))
    assert head["crossed"] == pytest.approx(sum(plain_loss(one, z[i, p], t[i + 4, p]) + plain_loss(one, z[i + 4, p], t[i, p]) for i, p in pairs))


def test_labels_and_outputs_that_know_nothing_of_each_other_win_half_of_their_pairs():
    """Rare positives too: 20 000 pairs in which w = ½ has the deviation 0.5/√pairs; four of them is an error in 16 000."""
    rng = numpy.random.default_rng(8)
    for t in (rng.integers(0, 10, 40000), (rng.random(40000) < 0.03).astype(int)):
        z = rng.standard_normal((40000, 10)) + numpy.arange(10)  # sure of one class, and wrong
        head = told(Form("cross_entropy"), z, t)[1]
        assert head["pairs"] > 1000
        assert abs(head["wins"] / head["pairs"] - 0.5) < 4 * 0.5 / math.sqrt(head["pairs"])


def test_outputs_that_are_constant_leave_no_pairs():
    head = told(Form("squared"), numpy.full((64, 1), 0.3), numpy.random.default_rng(9).standard_normal((64, 1)))[1]
    assert (head["pairs"], head["output_spread"]) == (0, 0) and head["straight"] == pytest.approx(head["crossed"])


def test_targets_that_are_alike_are_told_and_no_others():
    z = numpy.random.default_rng(10).standard_normal((6, 4))
    assert told(Form("cross_entropy"), z, numpy.full(6, 2))[1]["one_target"] == 1
    assert told(Form("cross_entropy"), z[:1], numpy.array([2]))[1]["one_target"] == 0, "one sample says nothing"
    assert told(Form("squared"), z, numpy.tile(z[:1], (6, 1)))[1]["one_target"] == 1
    other = numpy.tile(z[:1], (6, 1))
    other[5, 3] += 1
    assert told(Form("squared"), z, other)[1]["one_target"] == 0
    assert told(Form("squared"), z, other, [1, 1, 1, 1, 1, 0])[1]["one_target"] == 1, "the other one does not count"
    assert told(Form("squared"), z, other, numpy.zeros(6))[1]["samples"] == 0


def test_probabilities_in_the_place_of_scores_have_a_ceiling():
    rng = numpy.random.default_rng(11)
    z, t = samples_of(rng, Form("cross_entropy", from_logits=False))
    assert told(Form("cross_entropy"), z, t)[1]["ceiling"] == pytest.approx(math.log(math.e + 4) - 1)
    assert told(Form("cross_entropy", from_logits=False), z, t)[1]["ceiling"] == 0
    assert told(Form("cross_entropy"), 3 * z, t)[1]["ceiling"] == 0


def test_targets_that_are_the_input_are_counted_against_chance():
    rng = numpy.random.default_rng(12)
    x = rng.choice(9, (16, 20), p=[0.6] + [0.05] * 8)
    z = rng.standard_normal((16, 20, 9))
    for t, same in ((x, 320), (numpy.roll(x, 1, axis=1), int((x == numpy.roll(x, 1, axis=1)).sum()))):
        head = told(Form("cross_entropy"), z, t, inputs=x)[1]
        share = numpy.bincount(x.ravel(), minlength=9) / 320
        assert (head["input_places"], head["same_as_input"]) == (320, same)
        assert head["same_by_chance"] == pytest.approx(320 * (share ** 2).sum())
    assert not told(Form("cross_entropy"), z, x, inputs=x.astype(float))[0].same, "quantities are no tokens"


def test_images_have_a_constant_for_each_place_or_for_each_channel():
    rng = numpy.random.default_rng(13)
    small, large = rng.standard_normal((6, 8, 8, 3)), rng.standard_normal((6, 50, 50, 3))
    form, head, tail = told(Form("squared"), 0 * small, small)
    assert (form.units, head["samples"]) == (192, 6)
    assert tail[:192] == pytest.approx(small.mean(0).ravel())
    form, head, tail = told(Form("squared"), 0 * large, large)
    assert (form.units, head["samples"]) == (3, 6 * 2500)
    assert tail[:3] == pytest.approx(large.mean((0, 1, 2)))
    assert head["loss"] / head["samples"] == pytest.approx(numpy.mean(large ** 2))


def test_shapes_that_do_not_fit_are_no_call():
    assert prepared(OPS, Form("cross_entropy"), numpy.zeros((4, 3)), numpy.zeros((4, 2, 2))) is None
    assert prepared(OPS, Form("squared"), numpy.zeros((4, 3)), numpy.zeros(4)) is None
    assert prepared(OPS, Form("squared"), numpy.zeros(()), numpy.zeros(4)) is None


def test_the_head_has_the_fields_of_the_contract():
    page = (hook_support.ROOT / "docs" / "ledger.md").read_text(encoding="utf-8")
    internal = {"rows", "weight"}
    assert all(f"`{name}`" in page for name in HEAD if name not in internal)
