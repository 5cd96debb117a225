"""What the ledger tells of single classes: sums against brute force, which classes, and when."""
import contextlib
import math
from types import SimpleNamespace

import numpy
import pytest
import torch
import torch.nn.functional as F

from tests.support.hook_support import Telemetry, wire

import tocsin
from tocsin.adapters.torch.ledger import budget, host
from tocsin.adapters.torch.ledger.by_class import EVALUATION, TRAINING
from tocsin.adapters.torch.ledger.calls import Arguments, measure
from tocsin.ledger.book import Book
from tocsin.ledger.by_class import FIELDS, TOLD, Looks, Passes, chosen, rows_of
from tocsin.ledger.moments import Form, moments, prepared
from tocsin.ledger.operations import Operations

CLASSES = 4


def by_hand(scores, targets, counts=None):
    """FIELDS × classes."""
    logs = torch.log_softmax(torch.as_tensor(scores).double(), 1)
    out = {field: [0.0] * CLASSES for field in FIELDS}
    kept = [i for i in range(len(targets)) if counts is None or counts[i]]
    for i in kept:
        t, answer = int(targets[i]), int(logs[i].argmax())
        out["labels"][t] += 1
        out["answers"][answer] += 1
        out["right"][t] += answer == t
        out["loss"][t] -= float(logs[i, t])
    half = len(kept) // 2
    for a in range(half):
        for i, j in ((kept[a], kept[a + half]), (kept[a + half], kept[a])):
            t = int(targets[i])
            if t != int(targets[j]) and logs[i, t] != logs[j, t]:
                out["pairs"][t] += 1
                out["wins"][t] += bool(logs[i, t] > logs[j, t])
    return numpy.array([out[field] for field in FIELDS])


@pytest.mark.parametrize("by", ("numpy", "torch"))
@pytest.mark.parametrize("kind", ("plain", "ignored", "weighted", "soft", "places", "nll"))
def test_sums_of_torch_are_those_of_each_sample_and_each_pair(by, kind, monkeypatch):
    if by == "torch":
        monkeypatch.setattr(host, "_found", None)
    torch.manual_seed(3)
    state, expected = {}, 0
    for _ in range(3):
        scores, targets = torch.randn(23, CLASSES), torch.randint(0, CLASSES, (23,))
        given, name, options, counts = scores, "cross_entropy", {}, None
        told = targets
        if kind == "ignored":
            options, counts = {"ignore_index": 2}, targets != 2
        elif kind == "weighted":
            options = {"weight": torch.tensor([0.1, 1.0, 2.0, 5.0]), "label_smoothing": 0.1}
        elif kind == "soft":
            told = F.one_hot(targets, CLASSES).float() * 0.96 + 0.01
        elif kind == "nll":
            name, given = "nll_loss", torch.log_softmax(scores, 1)
        elif kind == "places":  # of rows, as (rows, classes, places): pairs are those of rows that follow each other
            scores, targets = torch.randn(24, CLASSES), torch.randint(0, CLASSES, (24,))
            given, told = scores.reshape(6, 4, CLASSES).movedim(2, 1), targets.reshape(6, 4)
        measure(Arguments(name, (given, told), options), state, True)
        expected = expected + by_hand(scores, targets, counts)
    assert state[TRAINING].numpy() == pytest.approx(expected, abs=1e-4) and EVALUATION not in state


def test_a_target_of_several_classes_is_of_none():
    state = {}
    measure(Arguments("cross_entropy", (torch.randn(8, CLASSES), torch.full((8, CLASSES), 0.25)), {}), state, True)
    assert state[TRAINING][0].sum() == 0 and state[TRAINING][4:].sum() == 0


def test_batches_of_one_sample_make_pairs_with_each_other():
    torch.manual_seed(1)
    state, scores, targets = {}, torch.randn(6, CLASSES), torch.tensor([0, 1, 2, 2, 3, 0])
    for i in range(6):
        measure(Arguments("cross_entropy", (scores[i:i + 1], targets[i:i + 1]), {}), state, True)
    expected = sum(by_hand(scores[i:i + 2], targets[i:i + 2]) for i in (0, 2, 4))
    assert state[TRAINING].numpy() == pytest.approx(expected, abs=1e-4)


def test_more_than_4096_classes_are_not_counted():
    state = {}
    measure(Arguments("cross_entropy", (torch.randn(4, 4097), torch.arange(4)), {}), state, True)
    assert TRAINING not in state


def test_an_infinite_loss_is_a_large_one():
    state = {}
    scores = torch.tensor([[0.0, 0.0, -math.inf, 0.0], [1.0, 0.0, 0.0, 0.0]])
    measure(Arguments("cross_entropy", (scores, torch.tensor([2, 0])), {}), state, True)
    assert state[TRAINING][3, 2] == 100 and bool(state[TRAINING].isfinite().all())


@pytest.mark.parametrize("soft", (False, True))
def test_sums_of_arrays_are_the_same(soft):
    numpy.random.seed(2)
    scores, targets = numpy.random.randn(23, CLASSES), numpy.random.randint(0, CLASSES, 23)
    call = prepared(Operations(), Form("cross_entropy"), scores, numpy.eye(CLASSES)[targets] if soft else targets)
    vector = moments(Operations(), call)
    assert len(vector) == call.form.length
    assert vector[-call.form.by_class:].reshape(len(FIELDS), CLASSES) == pytest.approx(by_hand(scores, targets), abs=1e-6)


def test_samples_without_weight_count_for_no_class():
    scores, targets, weights = numpy.random.randn(8, CLASSES), numpy.array([0, 1, 2, 3] * 2), numpy.array([1.0, 0.0] * 4)
    vector = moments(Operations(), prepared(Operations(), Form("cross_entropy"), scores, targets, weights))
    table = vector[-6 * CLASSES:].reshape(6, CLASSES)
    assert table[0].tolist() == [2, 0, 2, 0] and table[1].sum() == 4 and table[4].sum() == 0


# ---- when and of which


def test_looks_are_at_doubled_updates_whatever_is_measured():
    each, seldom, resumed = Looks(), Looks(), Looks()
    assert [step for step in range(600) if each.due(step)] == [64, 128, 256, 512]
    assert [step for step in range(0, 1000, 32) if seldom.due(step)] == [64, 128, 256, 512], "whatever is measured"
    assert [step for step in range(1000, 1300) if resumed.due(step)] == [1024, 1088, 1216]


def test_few_classes_are_all_told():
    table = [[2.0, 0.0, 1.0], [3.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.5, 0.0, 2.0], [1.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    assert dict(rows_of(table)) == {
        "class_samples": 3, "class_count": 2, "class_labels/0": 2, "class_answers/0": 3, "class_right/0": 1, "class_loss/0": 1.5, "class_pairs/0": 1,
        "class_wins/0": 1, "class_labels/2": 1, "class_loss/2": 2, "class_pairs/2": 1}
    told = dict(rows_of(table, [7.0, 4.0, 0.0]))
    assert told["class_trained"] == 11 and told["class_trained/0"] == 7 and told["class_trained/1"] == 4 and "class_trained/2" not in told
    assert rows_of([[0.0] * 3] * 6) == []


def test_of_many_classes_the_worst_ones_are_told_beside_usual_ones():
    labels, answers, pairs = [100.0] * 1000, [100.0] * 1000, [90.0] * 1000
    wins, trained = [85.0] * 1000, [500.0] * 1000
    answers[17], wins[333], trained[801], labels[5] = 0.0, 40.0, 0.0, 0.0
    told = chosen(labels, answers, pairs, wins, trained)
    assert len(told) <= TOLD and {17, 333, 801} <= set(told) and 5 not in told
    usual = set(told) - {17, 333, 801}
    assert len(usual) == 40 and usual == {one for one in chosen(labels, labels, pairs, [85.0] * 1000, [500.0] * 1000)}, "chosen without a look at outputs"
    assert len(chosen(labels, [0.0] * 1000, pairs, [0.0] * 1000, [0.0] * 1000)) == TOLD


def test_a_pass_is_told_when_its_mode_ends():
    clock, told = SimpleNamespace(leaving=[], mode="eval"), []
    passes = Passes(clock, lambda: told.append(1))
    (leaves,) = clock.leaving

    def evaluation():
        first = passes.begins()
        leaves("eval")
        return first, len(told)

    leaves("train")
    assert told == [] and evaluation() == (True, 1)
    assert [evaluation() for _ in range(7)] == [(False, 2), (False, 2), (False, 3), (False, 3), (False, 3), (False, 3), (False, 4)]
    leaves("eval")
    assert len(told) == 4, "nothing new was measured"
    passes.trains()
    assert evaluation() == (True, 5)
    passes.begins()
    passes.end()
    assert len(told) == 6 and clock.leaving == [], "the hook closes within a pass"


def test_a_book_tells_at_looks_and_what_training_has_had():
    told, clock = {}, SimpleNamespace(mode="train", leaving=[], at=0)
    clock.position = lambda: ("train", clock.at)
    sink = SimpleNamespace(clock=clock, guard=lambda where: contextlib.nullcontext(), scalar=lambda name, role: 1,
                           publish_scalar=lambda name, value: told.__setitem__(name, told.get(name, 0) + value))
    book = Book(sink)
    scores, targets = numpy.eye(3)[[0, 1, 2, 0]], numpy.array([0, 1, 1, 0])
    call = prepared(Operations(), Form("cross_entropy"), scores, targets)
    for clock.at in range(64):
        assert "ledger/loss/class_samples" not in told
        book.add("loss", call.form, moments(Operations(), call))
        book.publish()
    assert (told["ledger/loss/class_samples"], told["ledger/loss/class_labels/1"], told["ledger/loss/class_right/1"]) == (256, 128, 64)
    assert "ledger/loss/class_labels/2" not in told
    told.clear()
    clock.mode = "eval"
    other = prepared(Operations(), Form("cross_entropy"), scores, numpy.array([2, 1, 1, 0]))
    for _ in range(2):
        book.add("loss", other.form, moments(Operations(), other), learns=False)
        book.publish()
    assert "ledger/loss/class_samples" not in told
    for leaves in clock.leaving:
        leaves("eval")
    assert (told["ledger/loss/class_samples"], told["ledger/loss/class_trained"], told["ledger/loss/class_labels/2"]) == (8, 256, 2)
    assert told["ledger/loss/class_trained/1"] == 128 and "ledger/loss/class_trained/2" not in told


def classes_of(out):
    """{(mode, step): {field: value}} of the rows of classes, and how many steps had any."""
    telemetry, found = Telemetry(out), {}
    for frame in telemetry.of_kind(wire.SCALAR):
        for row in frame.rows:
            name = telemetry.names[row["name"]]
            if "/class_" in name:
                found.setdefault((frame.header["mode"], row["step"]), {})[name.split("/class_")[1]] = row["value"]
    return found


def test_a_job_tells_its_classes_at_looks_and_at_the_end_of_each_pass(out, monkeypatch):
    monkeypatch.setattr(budget, "_every", lambda cost, step: 1)  # whatever the machine does
    torch.manual_seed(4)
    centres = torch.randn(5, 8) * 3
    model = torch.nn.Linear(8, 5)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with tocsin.watch(model, optimizer, out=out) as hook:
        for step in range(130):
            targets = torch.randint(0, 4, (40,))  # never 4
            optimizer.zero_grad()
            F.cross_entropy(model(centres[targets] + torch.randn(40, 8)), targets).backward()
            optimizer.step()
            if step in (99, 129):
                model.eval()
                with torch.no_grad():
                    for _ in range(3):
                        targets = torch.arange(5).repeat(8)[torch.randperm(40)]
                        F.cross_entropy(model(centres[targets] + torch.randn(40, 8)), targets)
                model.train() if step == 99 else None
        assert hook.stats()["hook_errors_total"] == {}
    told = classes_of(out)
    train, evaluated = ([key for key in told if key[0] == mode] for mode in (1, 2))
    assert [step for _, step in train] == [64, 128] and len(evaluated) == 2, "the second pass ends with the hook"
    assert told[train[0]]["count"] == 4 and told[train[0]]["samples"] == 65 * 40
    for key in evaluated:
        rows = told[key]
        assert rows["samples"] == 120 and rows["labels/4"] == 24 and "trained/4" not in rows and rows["trained/0"] > 100
        assert sum(rows[f"labels/{one}"] for one in range(5)) == 120 == sum(rows.get(f"answers/{one}", 0) for one in range(5))
        assert "right/4" not in rows and rows["right/0"] > 20 and rows["wins/0"] >= 0.9 * rows["pairs/0"]
