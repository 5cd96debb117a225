"""Sums of the ledger against brute force: sample by sample, pair by pair, with the functions of torch themselves."""
import itertools
import math

import pytest
import torch
import torch.nn.functional as F

from tocsin.adapters.torch.ledger import host as torch_ledger_host, rows as torch_ledger_rows
from tocsin.adapters.torch.ledger.calls import Arguments, measure

@pytest.fixture(autouse=True, params=("numpy", "many", "torch"))
def computed_by(request, monkeypatch):
    """Small calls are computed by NumPy; the same is asked of what computes large ones, and of torch."""
    if request.param == "many":
        monkeypatch.setattr(torch_ledger_host, "MOST", 1)
    elif request.param == "torch":
        monkeypatch.setattr(torch_ledger_host, "_found", None)


EXACT = {torch.float64: 1e-9, torch.float32: 2e-5}


def told(name, state, *args, learns=True, **kwargs):
    measured = measure(Arguments(name, args, kwargs), state, learns)
    return {**measured.known, **dict(zip(measured.fields, measured.numbers.tolist() if measured.numbers is not None else ()))}


def by_hand(loss, outputs, targets, same):
    """Sums of pairs. ``loss(i, j)``: of output i with target j; ``same(i, j)``: their targets are alike."""
    count = len(outputs)
    half, out = count // 2, {"pairs": 0, "wins": 0, "straight": 0.0, "crossed": 0.0}
    for i in range(half):
        j = i + half
        if same(i, j):
            continue
        straight, crossed = loss(i, i) + loss(j, j), loss(i, j) + loss(j, i)
        out["straight"] += straight
        out["crossed"] += crossed
        if abs(crossed - straight) > 1e-6 * abs(crossed):
            out["pairs"] += 1
            out["wins"] += straight < crossed
    return out


def check(found, expected, dtype):
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=EXACT[dtype], abs=EXACT[dtype]), name


@pytest.mark.parametrize("dtype", (torch.float64, torch.float32))
@pytest.mark.parametrize("function", ("cross_entropy", "nll_loss"))
@pytest.mark.parametrize("weighted,smoothing,ignored,reduction", itertools.product(
    (False, True), (0.0, 0.1), (False, True), ("mean", "sum", "none")))
def test_classes(dtype, function, weighted, smoothing, ignored, reduction):
    if function == "nll_loss" and smoothing:
        return
    torch.manual_seed(5)
    classes, state, counts = 5, {}, [0] * 5
    weight = torch.rand(classes, dtype=dtype) + 0.2 if weighted else None
    options = {"reduction": reduction, **({"weight": weight} if weighted else {}),
               **({"label_smoothing": smoothing} if smoothing else {}), **({"ignore_index": 2} if ignored else {})}
    for call in range(4):
        scores, targets = torch.randn(23, classes, dtype=dtype), torch.randint(0, classes, (23,))
        given = scores if function == "cross_entropy" else F.log_softmax(scores, 1)
        found = told(function, state, given, targets, **options)
        kept = [i for i in range(23) if not (ignored and targets[i] == 2)]
        v = [1.0] * classes if weight is None else weight.tolist()
        scale = len(kept) / sum(v[targets[i]] for i in kept) if weighted and reduction == "mean" else 1.0
        one = {**options, "reduction": "none"}

        def loss(i, j):
            return scale * float(getattr(F, function)(given[kept[i]][None], targets[kept[j]][None], **one))

        expected = by_hand(loss, kept, kept, lambda i, j: targets[kept[i]] == targets[kept[j]])
        expected["loss"] = sum(loss(i, i) for i in range(len(kept)))
        expected["samples"] = len(kept)
        p = [(v[k] * counts[k] + 0.5) for k in range(classes)]
        p = [(1 - smoothing) * one / sum(p) + smoothing / classes for one in p]
        trivial = 0.0
        for i in kept:
            t = int(targets[i])
            trivial += -(1 - smoothing) * v[t] * math.log(p[t]) - smoothing / classes * sum(
                v[k] * math.log(p[k]) for k in range(classes))
        expected["trivial"] = scale * trivial
        expected["right"] = sum(int(scores[i].argmax() == targets[i]) for i in kept)
        expected["answers"] = max(sum(int(scores[i].argmax()) == k for i in kept) for k in range(classes))
        expected["labels"] = max(sum(int(targets[i]) == k for i in kept) for k in range(classes))
        expected["target_spread"] = len(kept) * (1 - sum(
            (sum(int(targets[i]) == k for i in kept) / len(kept)) ** 2 for k in range(classes)))
        expected["output_spread"] = len(kept) * float(given[kept].var(0, unbiased=False).mean())
        expected["past"] = float(call > 0 and reduction != "none")
        check(found, expected, dtype)
        value = getattr(F, function)(given, targets, **options)
        if reduction == "mean":
            assert found["loss"] / found["samples"] == pytest.approx(float(value), rel=EXACT[dtype])
        else:
            assert found["loss"] == pytest.approx(float(value.sum()), rel=EXACT[dtype])
        for i in kept:
            counts[targets[i]] += 1


@pytest.mark.parametrize("weighted,smoothing", itertools.product((False, True), (0.0, 0.2)))
def test_shares_of_classes(weighted, smoothing):
    torch.manual_seed(6)
    weight = torch.rand(4, dtype=torch.float64) + 0.2 if weighted else None
    state, past = {}, torch.zeros(4, dtype=torch.float64)
    for _ in range(3):
        scores, targets = torch.randn(10, 4, dtype=torch.float64), torch.softmax(torch.randn(10, 4, dtype=torch.float64), 1)
        found = told("cross_entropy", state, scores, targets, weight=weight, label_smoothing=smoothing)
        value = F.cross_entropy(scores, targets, weight=weight, label_smoothing=smoothing)
        v = torch.ones(4, dtype=torch.float64) if weight is None else weight
        p = v * past + 0.5
        p = p / p.sum() * (1 - smoothing) + smoothing / 4
        constant = F.cross_entropy(p.log().expand(10, 4), targets, weight=weight, label_smoothing=smoothing)
        assert found["loss"] / 10 == pytest.approx(float(value), rel=1e-9)
        assert found["trivial"] / 10 == pytest.approx(float(constant), rel=1e-9)
        assert found["pairs"] == 5
        past += targets.sum(0)


@pytest.mark.parametrize("shape", ((6, 5, 7), (4, 5, 3, 4)))
def test_places_are_samples(shape):
    torch.manual_seed(7)
    scores = torch.randn(shape, dtype=torch.float64)
    targets = torch.randint(0, 5, (shape[0], *shape[2:]))
    targets[torch.rand(targets.shape) < 0.3] = -100
    found = told("cross_entropy", {}, scores, targets)
    rows = scores.flatten(2).movedim(1, -1).reshape(-1, 5)
    flat = targets.flatten()
    other = told("cross_entropy", {}, rows, flat)
    assert found == pytest.approx(other, rel=1e-12)
    assert found["samples"] == int((flat >= 0).sum())
    assert found["loss"] / found["samples"] == pytest.approx(float(F.cross_entropy(scores, targets)), rel=1e-12)


def test_places_of_one_sample_make_no_pairs():
    found = told("cross_entropy", {}, torch.randn(1, 5, 40), torch.randint(0, 5, (1, 40)))
    assert found["samples"] == 40 and found["pairs"] == 0


UNITS = {
    "mse_loss": {}, "l1_loss": {}, "smooth_l1_loss": {"beta": 0.7}, "huber_loss": {"delta": 0.6},
    "poisson_nll_loss": {"log_input": False}, "binary_cross_entropy": {}, "binary_cross_entropy_with_logits": {},
    "gaussian_nll_loss": {"full": True}, "kl_div": {},
}


def call_of(name, shape):
    z, t = torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)
    if name == "poisson_nll_loss":
        return (z.abs() + 0.1, (3 * t).abs().round()), {}
    if name.startswith("binary"):
        z = z.sigmoid() if name == "binary_cross_entropy" else z
        return (z, (t > 0.4).double()), {}
    if name == "gaussian_nll_loss":
        return (z, t, torch.rand(shape, dtype=torch.float64).requires_grad_() + 0.2), {}
    if name == "kl_div":
        return (F.log_softmax(z, 1), torch.softmax(t, 1)), {}
    return (z, t), {}


@pytest.mark.parametrize("shape", ((20, 3), (20,), (8, 2, 3)))
@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("weighted", (False, True))
def test_units(name, weighted, shape):
    if name == "kl_div" and len(shape) < 2 or weighted and not name.startswith("binary"):
        return
    torch.manual_seed(8)
    options, state, past = dict(UNITS[name]), {}, []
    if weighted:
        options["weight"] = torch.rand(shape, dtype=torch.float64) + 0.5
        if name.endswith("logits"):
            options["pos_weight"] = torch.tensor(3.0, dtype=torch.float64)
    function = getattr(F, name)
    for call in range(3):
        args, _ = call_of(name, shape)
        found = told(name, state, *args, **options)
        z, t, rest = args[0], args[1], args[2:]

        def loss(i, j, output=None):
            own = dict(options)
            if "weight" in own:
                own["weight"] = own["weight"][j][None]
            more = tuple(one[i][None].detach() for one in rest)
            return float(function((z if output is None else output)[i][None], t[j][None], *more, reduction="none", **own).mean())

        count = shape[0]
        expected = by_hand(loss, z, t, lambda i, j: torch.equal(t[i], t[j]))
        expected["loss"] = sum(loss(i, i) for i in range(count))
        expected["samples"] = count
        expected["output_spread"] = count * float(z.var(0, unbiased=False).mean())
        expected["target_spread"] = count * float(t.var(0, unbiased=False).mean())
        check(found, expected, torch.float64)
        value = function(*args, reduction="mean", **options)
        assert found["loss"] / count == pytest.approx(float(value), rel=1e-9)
        assert found["past"] == float(call > 0)
        past.append((t, options.get("weight")))
        if call:
            assert found["trivial"] == pytest.approx(constant(name, function, past[:-1], t, options), rel=1e-6 if name in ("huber_loss", "smooth_l1_loss") else 1e-9)


def constant(name, function, past, targets, options):
    """Σ over samples of the loss at the best constant of the targets before."""
    before = torch.cat([one for one, _ in past])
    flat = before.reshape(len(before), -1)
    own = {**options, "reduction": "none"}
    width = flat.shape[1]
    if name in ("l1_loss", "smooth_l1_loss", "huber_loss"):
        kept = torch.cat([one.reshape(len(one), -1)[::-(-len(one) // 16)] for one, _ in past])
        loss = F.l1_loss if name == "l1_loss" else function
        own_loss = {key: value for key, value in own.items() if key != "reduction"}
        answers = []
        for unit in range(width):
            low, high = float(kept[:, unit].min()), float(kept[:, unit].max())
            for _ in range(200):  # ternary search of a convex function
                a, b = low + (high - low) / 3, high - (high - low) / 3
                sums = [float(loss(torch.full_like(kept[:, unit], c), kept[:, unit], reduction="sum", **own_loss)) for c in (a, b)]
                low, high = (low, b) if sums[0] < sums[1] else (a, high)
            answers.append((low + high) / 2)
        answer = torch.tensor(answers, dtype=torch.float64)
        if name == "l1_loss":  # the middle of a range in which all are best
            ordered = kept.sort(0)[0]
            answer = (ordered[(len(kept) - 1) // 2] + ordered[len(kept) // 2]) / 2
    elif name.startswith("binary"):
        weight = torch.ones_like(before) if past[0][1] is None else torch.cat([one for _, one in past])
        weight = weight.reshape(len(before), -1)
        share = ((flat * weight).sum(0) + 0.5) / (weight.sum(0) + 1)
        w = float(options.get("pos_weight", torch.tensor(1.0)))
        share = w * share / (w * share + 1 - share)
        answer = share if name == "binary_cross_entropy" else torch.log(share / (1 - share))
    elif name == "kl_div":
        answer = ((flat.sum(0) + 0.5) / (flat.sum(0) + 0.5).sum()).log()
    elif name == "gaussian_nll_loss":
        answer, variance = flat.mean(0), flat.var(0, unbiased=False)
        return float(function(answer.expand(len(targets), width), targets.reshape(len(targets), -1),
                              variance.expand(len(targets), width), **own).mean(1).sum())
    else:
        answer = flat.mean(0)
    answer = answer.expand(len(targets), width).reshape(targets.shape)
    return float(function(answer, targets, **own).reshape(len(targets), -1).mean(1).sum())


def test_the_constant_minimizes_what_came_before():
    """No other constant is better on the targets that it was taken from."""
    torch.manual_seed(9)
    for name in UNITS:
        if name == "kl_div":
            continue
        args, _ = call_of(name, (16, 2))
        options, state = dict(UNITS[name]), {}
        told(name, state, *args, **options)
        best = told(name, state, *args, learns=False, **options)["trivial"]
        function = getattr(F, name)
        for scale in (0.9, 1.1):
            for move in (-0.05, 0.05):
                more = (torch.full_like(args[1], float(args[1].var(unbiased=False)) * scale),) if len(args) > 2 else ()
                answer = args[1].mean(0) * scale + move
                if name == "binary_cross_entropy":
                    answer = answer.clamp(0.01, 0.99)
                value = float(function(answer.expand_as(args[1]), args[1], *more, reduction="none", **options).mean(1).sum())
                assert best <= value + (0.1 if name.startswith("binary") else 1e-6), name  # KT counts are half a target off


def test_counts_of_kt_lose_little():
    """At most (K − 1)/2 · ln n + K more than the best constant afterwards."""
    torch.manual_seed(10)
    for classes in (2, 5, 20):
        state, total, all_targets = {}, 0.0, []
        for _ in range(200):
            t = torch.multinomial(torch.arange(1.0, classes + 1), 1, replacement=True)
            total += told("cross_entropy", state, torch.zeros(1, classes, dtype=torch.float64), t)["trivial"]
            all_targets.append(int(t))
        counts = [all_targets.count(k) for k in range(classes)]
        best = -sum(n * math.log(n / 200) for n in counts if n)
        assert total - best <= (classes - 1) / 2 * math.log(200) + classes


@pytest.mark.parametrize("places,counting", ((40, 40), (40, 0), (41, 17), (3000, 3000), (3000, 700), (30000, 30000), (30000, 90), (1, 1), (2, 2)))
def test_a_device_chooses_the_same_samples_without_being_asked(places, counting):
    torch.manual_seed(11)
    valid = torch.zeros(places, dtype=torch.bool)
    valid[torch.randperm(places)[:counting]] = True
    host = torch_ledger_rows.rows_that_count(torch, valid, 10, True)
    apart = -(-places // torch_ledger_rows.MAX_CANDIDATES)
    some = valid[::apart]
    device = torch_ledger_rows._rows_on_device(torch, some, apart, min(torch_ledger_rows.most(10), len(some)), True)
    if host is None:
        assert int(device.count) == 0 and not device.mask.any() and not device.pairs.any()
        return
    index = torch.arange(places) if host.index is None else host.index
    assert int(device.count) == host.count and torch.equal(device.index[device.mask], index)
    assert int(device.half) == host.half == int(device.pairs.sum())
    first, second = torch_ledger_rows.partner(torch, device)
    assert torch.equal(device.index[first][device.pairs], index[:host.half])
    assert torch.equal(device.index[second][device.pairs], index[host.half:2 * host.half])


@pytest.mark.parametrize("smoothing,weighted", ((0.0, False), (0.1, True)))
def test_masked_rows_count_for_nothing(monkeypatch, smoothing, weighted):
    """What a device computes, computed here."""
    torch.manual_seed(12)
    scores, targets = torch.randn(40, 6, dtype=torch.float64), torch.randint(0, 6, (40,))
    targets[::3] = -100
    options = {"label_smoothing": smoothing, "weight": torch.rand(6, dtype=torch.float64) if weighted else None}
    state, other = {}, {}
    expected = [told("cross_entropy", state, scores + k, targets, **options) for k in range(2)]

    def on_device(torch_, valid, width, pairing):
        return torch_ledger_rows._rows_on_device(torch_, valid, 1, min(torch_ledger_rows.most(width), len(valid)), pairing)

    monkeypatch.setattr("tocsin.adapters.torch.ledger.classes.rows_that_count", on_device)
    found = [told("cross_entropy", other, scores + k, targets, **options) for k in range(2)]
    for one, two in zip(found, expected):
        assert one == pytest.approx(two, rel=1e-9)
    nothing = told("cross_entropy", other, scores, torch.full((40,), -100), **options)
    assert nothing["samples"] == 0 and other["counts"].sum() == 2 * state["counts"].sum() / 2


def test_probabilities_in_the_place_of_scores_have_a_ceiling():
    torch.manual_seed(13)
    scores, targets = torch.softmax(torch.randn(16, 4), 1), torch.randint(0, 4, (16,))
    found = told("cross_entropy", {}, scores, targets)
    assert found["_ceiling"] == 1 and found["ceiling"] == pytest.approx(0.744, abs=1e-3)
    for other in (torch.randn(16, 4), scores + 0.01, scores[:4]):
        assert told("cross_entropy", {}, other, targets[:len(other)])["_ceiling"] == 0


def test_many_samples_are_looked_at_in_part():
    torch.manual_seed(14)
    scores, targets = torch.randn(5000, 4, dtype=torch.float64), torch.randint(0, 4, (5000,))
    found = told("cross_entropy", {}, scores, targets)
    assert found["samples"] == 512 and found["pairs"] <= 256
    assert found["loss"] / 512 == pytest.approx(float(F.cross_entropy(scores, targets)), rel=0.1)
    wide = told("mse_loss", {}, torch.randn(4, 3, 64, 64), torch.randn(4, 3, 64, 64))
    assert wide["samples"] == 4 and wide["loss"] / 4 == pytest.approx(2.0, rel=0.1)


def test_targets_that_are_all_alike_and_constant_outputs():
    found = told("cross_entropy", {}, torch.randn(8, 3), torch.ones(8, dtype=torch.long))
    assert found["one_target"] == 1 and found["pairs"] == 0 and found["straight"] == 0
    found = told("cross_entropy", {}, torch.zeros(8, 3), torch.arange(8) % 3)
    assert found["one_target"] == 0 and found["pairs"] == 0 and found["straight"] > 0
    found = told("mse_loss", {}, torch.zeros(8, 3), torch.arange(24.0).reshape(8, 3))
    assert found["pairs"] == 0 and found["output_spread"] == 0


def test_broadcast_targets_are_one_target():
    found = told("mse_loss", {}, torch.randn(8, 1), torch.randn(8))
    assert found["one_target"] == 1 and found["samples"] == 8


def test_an_infinite_loss_of_an_exchange_is_a_win_and_in_no_sum():
    scores = torch.full((2, 2), -math.inf)
    scores[0, 0] = scores[1, 1] = 0.0
    found = told("cross_entropy", {}, scores, torch.tensor([0, 1]))
    assert (found["pairs"], found["wins"], found["straight"], found["crossed"]) == (1, 1, 0, 0)


@pytest.mark.parametrize("name", ("cross_entropy", "mse_loss"))
def test_a_batch_of_one_pairs_with_the_one_before(name):
    torch.manual_seed(15)
    state, pairs = {}, []
    rows = [(torch.randn(1, 3, dtype=torch.float64), torch.tensor([k % 3]) if name == "cross_entropy" else torch.randn(1, 3).double())
            for k in range(6)]
    for z, t in rows:
        pairs.append(told(name, state, z, t))
    assert [one["pairs"] for one in pairs] == [0, 1, 0, 1, 0, 1] and all(one["samples"] == 1 for one in pairs)
    for k in (1, 3, 5):
        (z, t), (zz, tt) = rows[k - 1], rows[k]
        loss = getattr(F, name)
        assert pairs[k]["straight"] == pytest.approx(float(loss(z, t) + loss(zz, tt)), rel=1e-9)
        assert pairs[k]["crossed"] == pytest.approx(float(loss(z, tt) + loss(zz, t)), rel=1e-9)
    told(name, state, *rows[0])
    assert told(name, state, *rows[1], learns=False)["pairs"] == 0, "training and evaluation are apart"


@pytest.mark.parametrize("function,middle", (("binary_cross_entropy_with_logits", 0.0), ("binary_cross_entropy", 0.5)))
def test_answers_of_a_mask_are_the_mean_over_its_places(function, middle):
    torch.manual_seed(11)
    outputs = torch.randn(6, 1, 4, 5) - 1 if middle == 0.0 else torch.rand(6, 1, 4, 5) ** 2
    targets = (torch.rand(6, 1, 4, 5) < 0.1).float()
    found = told(function, {}, outputs, targets)
    said, wanted = [bool(one > middle) for one in outputs.flatten()], [bool(one) for one in targets.flatten()]
    assert found["samples"] == 6 and 0 < sum(said) < 60
    check(found, {"right": sum(a == b for a, b in zip(said, wanted)) / 20, "answers": 6 - sum(said) / 20, "labels": 6 - sum(wanted) / 20}, torch.float32)
