"""Labels of a loss that is a function: read from the gradient of the model's output."""
import contextlib

import pytest
import torch
from torch.nn import functional

from tests.support.hook_support import Telemetry

import tocsin
from tocsin.adapters.torch.models import targets as torch_targets

BOTH = {"every": "1 step", "overhead": "100%", "collections": {"labels": {"statistics": ["classes"]}, "predictions": {"statistics": ["classes"]}}}


def read(loss, output, scale=1.0):
    """What is read of the gradient of a loss of these outputs."""
    output = output.detach().requires_grad_()
    (loss(output) * scale).backward()
    return torch_targets.read_targets(output.detach(), output.grad)


@pytest.fixture(params=(1.0, 65536.0, 0.25), ids=("mean", "scaled", "accumulated"))
def scale(request):
    return request.param


@pytest.mark.parametrize("smoothing", (0.0, 0.1))
@pytest.mark.parametrize("spread", (0.05, 1.0, 4.0))
def test_the_labels_of_a_cross_entropy(scale, smoothing, spread):
    torch.manual_seed(1)
    labels = torch.randint(0, 7, (32,))
    found = read(lambda z: functional.cross_entropy(z, labels, label_smoothing=smoothing), spread * torch.randn(32, 7), scale)
    assert found.loss == torch_targets.LOGITS and torch.equal(found.targets, labels)


def test_what_is_ignored_is_left_out():
    labels = torch.tensor([0, 1, 2, -100, 1, 0])
    found = read(lambda z: functional.cross_entropy(z, labels), torch.randn(6, 3))
    assert torch.equal(found.targets, labels[labels >= 0]) and len(found.predictions) == 5


@pytest.mark.parametrize("smoothing", (0.0, 0.1))
@pytest.mark.parametrize("classes_at", (1, -1))
@pytest.mark.parametrize("places", ((5,), (3, 4)))
def test_the_labels_of_each_place(scale, smoothing, classes_at, places):
    torch.manual_seed(7)
    labels = torch.randint(0, 6, (8, *places))
    output = torch.randn(8, *places, 6).movedim(-1, classes_at)
    found = read(lambda z: functional.cross_entropy(z.movedim(classes_at, 1), labels, label_smoothing=smoothing), output, scale)
    assert found.loss == torch_targets.LOGITS and torch.equal(found.targets, labels)
    assert torch.equal(found.predictions, output.movedim(classes_at, -1))


def test_padded_places_are_left_out():
    torch.manual_seed(8)
    labels = torch.randint(1, 5, (4, 6))
    labels[:, 4:] = 0
    found = read(lambda z: functional.cross_entropy(z.flatten(0, 1), labels.flatten(), ignore_index=0), torch.randn(4, 6, 5))
    assert torch.equal(found.targets, torch.where(labels > 0, labels, torch_targets.IGNORED))


def test_the_next_word_inside_a_model_leaves_out_the_last_place():
    torch.manual_seed(9)
    words = torch.randint(0, 9, (3, 7))
    found = read(lambda z: functional.cross_entropy(z[:, :-1].flatten(0, 1), words[:, 1:].flatten()), torch.randn(3, 7, 9))
    assert torch.equal(found.targets[:, :-1], words[:, 1:]) and found.targets[:, -1].tolist() == [torch_targets.IGNORED] * 3


@pytest.mark.parametrize("loss", (lambda z: z.square().mean(), lambda z: -z[:, 0].mean(), lambda z: functional.mse_loss(z, torch.ones(6, 4, 5)),
                                  lambda z: (z - z.mean(2, keepdim=True)).square().mean()))
def test_nor_of_other_losses_at_each_place(loss):
    torch.manual_seed(10)
    assert read(loss, torch.randn(6, 4, 5)) is None


@pytest.mark.parametrize("shape", ((40,), (40, 1)))
def test_the_labels_of_a_binary_cross_entropy(scale, shape):
    torch.manual_seed(2)
    labels = torch.randint(0, 2, (40,))
    found = read(lambda z: functional.binary_cross_entropy_with_logits(z.reshape(-1), labels.float()), torch.randn(shape), scale)
    assert found.loss == torch_targets.SWITCHES and torch.equal(found.targets, labels)


@pytest.mark.parametrize("shape", ((6, 1, 8, 8), (6, 8, 8), (6, 3, 8, 8), (4, 50, 1)))
@pytest.mark.parametrize("share", (0.5, 0.03))
def test_the_labels_of_a_binary_cross_entropy_at_each_place(scale, shape, share):
    """Masks of a segmentation; most points of most images are background."""
    torch.manual_seed(11)
    labels = (torch.rand(shape) < share).long()
    found = read(lambda z: functional.binary_cross_entropy_with_logits(z, labels.float()), torch.randn(shape), scale)
    assert found.loss == torch_targets.SWITCHES and torch.equal(found.targets, labels)


def test_places_that_a_mask_leaves_out():
    torch.manual_seed(12)
    labels, mask = torch.randint(0, 2, (4, 1, 6, 6)), torch.rand(4, 1, 6, 6) < 0.7
    found = read(lambda z: (functional.binary_cross_entropy_with_logits(z, labels.float(), reduction="none") * mask).sum() / mask.sum(),
                 torch.randn(4, 1, 6, 6))
    assert torch.equal(found.targets, torch.where(mask, labels, torch_targets.IGNORED))


def test_samples_that_a_mask_leaves_out():
    torch.manual_seed(14)
    labels, mask = torch.randint(0, 2, (40,)), torch.rand(40) < 0.7
    found = read(lambda z: (functional.binary_cross_entropy_with_logits(z, labels.float(), reduction="none") * mask).mean(), torch.randn(40))
    assert torch.equal(found.targets, labels[mask]) and len(found.predictions) == int(mask.sum())


def test_points_that_are_sure_have_their_label_though_no_gradient():
    labels = torch.randint(0, 2, (4, 1, 6, 6))
    output = torch.randn(4, 1, 6, 6)
    output[0] = torch.where(labels[0] > 0, 200.0, -200.0)
    found = read(lambda z: functional.binary_cross_entropy_with_logits(z, labels.float()), output)
    assert torch.equal(found.targets, labels)


@pytest.mark.parametrize("loss", (lambda z, y: functional.mse_loss(z, y), lambda z, y: functional.mse_loss(z.sigmoid(), y), lambda z, y: functional.l1_loss(z, y),
                                  lambda z, y: -z.mean(), lambda z, y: (1 - z).relu().mean(), lambda z, y: functional.softplus(-2 * z).mean(),
                                  lambda z, y: 1 - 2 * (z.sigmoid() * y).sum() / (z.sigmoid().sum() + y.sum())))
def test_nor_of_other_losses_of_a_number_at_each_place(loss):
    torch.manual_seed(13)
    assert read(lambda z: loss(z, (torch.rand(6, 1, 8, 8) < 0.3).float()), torch.randn(6, 1, 8, 8)) is None


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16, torch.float64))
def test_outputs_of_other_precisions(dtype):
    torch.manual_seed(3)
    labels = torch.randint(0, 5, (24,))
    output = torch.randn(24, 5).to(dtype).requires_grad_()
    functional.cross_entropy(output.float(), labels).backward()
    found = torch_targets.read_targets(output.detach(), output.grad)
    assert torch.equal(found.targets, labels)


@pytest.mark.parametrize("loss", (
    lambda z, y: functional.mse_loss(z[:, 0], y.float()), lambda z, y: functional.l1_loss(z[:, 0], y.float()),
    lambda z, y: functional.multi_margin_loss(z, y), lambda z, y: z.square().mean(), lambda z, y: -z[:, 0].mean(),
    lambda z, y: functional.nll_loss(torch.log(z.abs() + 1), y), lambda z, y: functional.cross_entropy(z, y) + z.square().mean()))
def test_of_other_losses_nothing_is_said(loss):
    torch.manual_seed(4)
    labels = torch.randint(0, 4, (16,))
    assert read(lambda z: loss(z, labels), torch.randn(16, 4)) is None


@pytest.mark.parametrize("loss", (
    lambda z, y: functional.mse_loss(z, y), lambda z, y: functional.l1_loss(z, y), lambda z, y: functional.smooth_l1_loss(z, y),
    lambda z, y: -z.mean(), lambda z, y: (1 - z).relu().mean(), lambda z, y: functional.softplus(-2 * z).mean()))
def test_nor_of_other_losses_of_one_number(loss):
    torch.manual_seed(5)
    assert read(lambda z: loss(z, torch.randn(32)), 0.1 * torch.randn(32)) is None


def test_targets_that_are_broadcast_against_the_outputs():
    torch.manual_seed(6)
    target = torch.randn(20)
    found = read(lambda z: ((z - target) ** 2).mean(), torch.randn(20, 1))
    assert found.loss == torch_targets.QUANTITY
    assert found.targets.tolist() == pytest.approx([float(target.mean())] * 20, rel=1e-4)


def job(out, loss, steps=4, passes=1, classes=3):
    """Rows of labels by step, of a training with this loss."""
    torch.manual_seed(0)
    model = torch.nn.Linear(6, classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture=BOTH)
    kept = []
    for _ in range(steps):
        optimizer.zero_grad()
        labels = []
        for _ in range(passes):
            y = torch.randint(0, max(classes, 2), (8,))
            loss(model(torch.randn(8, 6)), y).backward()
            labels.append(y)
        kept.append(torch.cat(labels))
        optimizer.step()
    hook.close()
    return kept, Telemetry(out)


def test_a_job_whose_loss_is_a_function_sends_labels_and_predictions(out):
    kept, told = job(out, functional.cross_entropy)
    for step, labels in enumerate(kept):
        rows = told.summaries(step)
        row = rows["cross_entropy_input_1"]
        assert (row["count"], row["sum"]) == (8, int(labels.sum()))
        assert rows["cross_entropy_input_0"]["count"] == 24
        assert told.vectors()[step, "cross_entropy_input_1"][36] == torch.bincount(labels).tolist()


class Tagger(torch.nn.Module):
    """A class at each place, and what it was made of."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = torch.nn.GRU(4, 6, batch_first=True), torch.nn.Linear(6, 3)

    def forward(self, x):
        states, last = self.cell(x)
        return self.head(states), last


def test_a_job_with_a_label_at_each_place(out, monkeypatch):
    monkeypatch.setattr(torch_targets, "MAX_NUMBERS", 5 * 3 * 6 + 1)  # six of the eight samples
    torch.manual_seed(0)
    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out, capture=BOTH)
    kept = []
    for _ in range(3):
        optimizer.zero_grad()
        y = torch.randint(0, 3, (8, 5))
        functional.cross_entropy(model(torch.randn(8, 5, 4))[0].transpose(1, 2), y).backward()
        kept.append(y)
        optimizer.step()
    hook.close()
    told = Telemetry(out)
    for step, labels in enumerate(kept):
        row = told.summaries(step)["cross_entropy_input_1"]
        assert (row["count"], row["sum"]) == (30, int(labels[:6].sum()))


def test_of_several_passes_of_a_step_as_many_samples_as_of_one(out):
    kept, told = job(out, lambda z, y: functional.cross_entropy(z, y) / 3, passes=3)
    assert told.summaries(1)["cross_entropy_input_1"]["sum"] == int(kept[1][::3].sum()) and len(kept[1]) == 24


def test_a_judge_of_true_and_made_samples_has_two_classes(out):
    passes = iter(range(100))

    def loss(z, _):
        truth = torch.full_like(z, float(next(passes) % 2))
        return functional.binary_cross_entropy_with_logits(z, truth)
    _, told = job(out, loss, passes=2, classes=1)
    row = told.summaries(3)["binary_cross_entropy_with_logits_input_1"]
    assert (row["count"], row["sum"]) == (8, 4)


def test_a_loss_that_does_not_tell_is_asked_three_times(out, monkeypatch):
    asked = []
    monkeypatch.setattr(torch_targets, "read_targets", lambda *_: asked.append(1))
    _, told = job(out, lambda z, y: z.abs().mean(), steps=10)
    assert len(asked) == 3 and all("input_1" not in name for step in range(10) for name in told.summaries(step))


def test_gradients_that_overflow_are_no_answer():
    class Sink:
        """Keeps what is published."""
        told = []

        def guard(self, _):
            return contextlib.nullcontext()

        def publish_later(self, tensors, ready):
            assert ready is None
            self.told.append([name for name, _, _ in tensors()])

    targets = torch_targets.Targets(Sink(), "")
    for factor in [float("inf")] * 5 + [0.0, 1.0]:
        output = torch.randn(8, 3, requires_grad=True)
        targets.begin()
        targets.passed([output])
        (functional.cross_entropy(output, torch.randint(0, 3, (8,))) * factor).backward()
        targets.take()
    assert Sink.told == [[]] * 6 + [["cross_entropy_input_0", "cross_entropy_input_1"]]


def test_nothing_is_hooked_without_a_wish_or_with_a_loss_module(out):
    model = torch.nn.Linear(6, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = tocsin.watch(model, optimizer, out=out, loss=torch.nn.CrossEntropyLoss(), capture={**BOTH, "ledger": False}, phases=False)
    assert not model._forward_hooks
    hook.close()
