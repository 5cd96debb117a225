"""Class-activation maps: the numbers of the papers' formulas, and on a network trained with the hook the place that decides the class."""
import re
from xml.etree import ElementTree

import numpy
import pytest
import torch

import tocsin
from tests.python.test_tensor_plot import SVG, png
from tests.support.program import ROOT
from tocsin.analysis import activation_map, create_trial

CAPTURE = re.compile(r"<!-- run by tests/python/test_class_activation.py -->\n```py\n(.*?)^```$", re.S | re.M)


def tensors(samples=3, seed=1):
    chance = numpy.random.default_rng(seed)
    return (chance.normal(size=(samples, 3, 12, 20)), chance.normal(size=(samples, 4, 3, 5)), chance.normal(size=(samples, 4, 3, 5)),
            chance.normal(size=(6, 4)))


def test_grad_cam_is_the_formula_of_selvaraju():
    images, features, gradients, _ = tensors()
    values = activation_map(images, features, gradients).data["values"]
    for sample in range(3):
        for row in range(3):
            for column in range(5):
                total = sum(gradients[sample, channel].mean() * features[sample, channel, row, column] for channel in range(4))
                assert values[sample, row, column] == pytest.approx(max(0.0, total))


def test_cam_is_the_formula_of_zhou():
    images, features, _, weights = tensors()
    values = activation_map(images, features, weights=weights, label=[5, 0, 2]).data["values"]
    for sample, label in enumerate([5, 0, 2]):
        assert numpy.allclose(values[sample], sum(weights[label, channel] * features[sample, channel] for channel in range(4)))
    assert (values < 0).any()
    one = activation_map(images, features, weights=weights, label=2)
    assert numpy.array_equal(one.data["values"][2], values[2]) and "CAM, sample 0, class 2: " in one.svg()


def test_the_map_over_the_image_is_bilinear_from_0_to_1_of_the_greatest():
    images, features, gradients, weights = tensors()
    for data in (activation_map(images, features, gradients).data, activation_map(images, features, weights=weights, label=1).data):
        positive = numpy.maximum(data["values"], 0) / data["values"].max(axis=(1, 2), keepdims=True)
        wanted = torch.nn.functional.interpolate(torch.tensor(positive)[:, None], size=(12, 20), mode="bilinear", align_corners=False)[:, 0]
        assert numpy.allclose(data["scaled"], wanted.numpy())
        for scaled, peak in zip(data["scaled"], data["peaks"]):
            assert scaled[peak] == scaled.max()
    smaller = activation_map(images[:, :, :2, :3], features, gradients).data["scaled"]  # fewer pixels than cells
    assert smaller.shape == (3, 2, 3) and smaller.max() <= 1


def test_channels_last_and_a_single_sample_are_the_same_numbers():
    images, features, gradients, _ = tensors()
    wanted = activation_map(images, features, gradients)
    last = activation_map(*(numpy.moveaxis(one, 1, -1) for one in (images, features, gradients)), channels_last=True)
    assert all(numpy.array_equal(wanted.data[name], last.data[name]) for name in ("values", "scaled")) and last.svg() == wanted.svg()
    single = activation_map(images[1], features[1], gradients[1])
    assert numpy.array_equal(single.data["values"][0], wanted.data["values"][1])


def test_the_sentence_says_what_nothing_speaks_for_and_what_is_not_finite():
    images, features, gradients, weights = tensors(samples=11)
    weights[0], weights[1], features = [1, 0, 0, 0], [-1, 0, 0, 0], abs(features)
    chart = activation_map(images, features, weights=weights, label=[0, 1] + 9 * [0])
    first = chart.data["peaks"][0]
    assert str(chart).startswith(f"CAM of 11 samples, 3 × 5 cells over 12 × 20 pixels. Strongest: sample 0 at row {first[0]}, column {first[1]}; sample 2 at ")
    assert "; and 6 more. Nothing speaks for the class in sample 1. 3 more samples are not drawn." in str(chart)
    assert chart.data["peaks"][1] is None and len(ElementTree.fromstring(chart.svg()).findall(f".//{SVG}image")) == 8 * 3
    features[0, 0, 0, 0] = numpy.nan
    broken = activation_map(images, features, weights=weights, label=0)
    assert "1 of 165 values are not finite." in str(broken) and numpy.isnan(broken.data["scaled"][0]).sum() in range(1, 60)
    assert broken.data["peaks"][0] is not None
    nothing = activation_map(images, numpy.full_like(features, numpy.nan), gradients)
    assert nothing.data["peaks"] == [None] * 11 and nothing.svg().endswith("</svg>")


@pytest.mark.parametrize("change, said", [
    (dict(images=numpy.ones((3, 2, 12, 20))), r"images: expected 1 or 3 channels .*channels_last=True"),
    (dict(images=numpy.ones((2, 3, 12, 20))), r"as many images as features, got 2 and 3"),
    (dict(features=numpy.ones((3, 5))), r"features: expected \(samples, channels, height, width\).*got the shape \(3, 5\)"),
    (dict(gradients=numpy.ones((3, 4, 5, 3))), r"gradients: expected the shape of features, \(3, 4, 3, 5\), got \(3, 4, 5, 3\)"),
    (dict(gradients=None), r"give either gradients \(Grad-CAM\) or weights and label \(CAM\)"),
    (dict(weights=numpy.ones((6, 4)), label=1), r"give either gradients"),
    (dict(gradients=None, weights=numpy.ones((4, 6)), label=1), r"weights: expected \(classes, 4\)"),
    (dict(gradients=None, weights=numpy.ones((6, 4))), r"label: CAM needs the class"),
    (dict(gradients=None, weights=numpy.ones((6, 4)), label=6), r"label: expected 0 to 5, got \[6, 6, 6\]"),
    (dict(gradients=None, weights=numpy.ones((6, 4)), label=[1, 2]), r"one for each of 3 samples"),
])
def test_shapes_that_do_not_fit_say_what_was_expected(change, said):
    images, features, gradients, _ = tensors()
    with pytest.raises(ValueError, match=said):
        activation_map(**{"images": images, "features": features, "gradients": gradients, **change})


def test_the_pictures_are_the_image_the_map_and_both():
    images, features, gradients, _ = tensors(samples=1)
    chart = activation_map(images, features, gradients)
    root = ElementTree.fromstring(chart.svg())
    plain, heat, over = (png(one.get("href")).astype(float) for one in root.findall(f".//{SVG}image"))
    image = images[0].transpose(1, 2, 0)
    assert numpy.allclose(plain, (image - image.min()) / (image.max() - image.min()) * 255, atol=0.51)
    scaled = chart.data["scaled"][0]
    opacity = 0.8 * numpy.sqrt(scaled)[..., None]
    assert numpy.allclose(over, plain * (1 - opacity) + heat * opacity, atol=0.51)
    assert heat[scaled == 0].max(initial=0) <= 4 and heat.reshape(-1, 3)[scaled.argmax()].sum() == heat.sum(axis=-1).max()
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= {"svg", "title", "desc", "rect", "g", "text", "circle", "image"}
    assert chart._repr_mimebundle_() == {"text/plain": str(chart), "image/svg+xml": chart.svg()}
    large = ElementTree.fromstring(activation_map(numpy.ones((1, 600, 520)), features[0], gradients[0]).svg())
    assert png(large.find(f".//{SVG}image").get("href")).shape == (200, 174, 3)  # every third pixel


def test_the_same_as_a_figure_of_matplotlib():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    images, features, gradients, _ = tensors(samples=2)
    chart = activation_map(images, features, gradients)
    for place, axes in enumerate(chart.figure().axes):
        assert axes.get_title() == f"Grad-CAM, sample {place}" and len(axes.get_images()) == 1
        (ring,) = axes.get_lines()
        assert (ring.get_ydata()[0], ring.get_xdata()[0]) == chart.data["peaks"][place]


class Net(torch.nn.Module):
    """The first channel of an image is its brightness, the others are that times how far left or right a pixel is, so that a place can decide the
    class. Without biases in the convolutions dark places say nothing."""

    def __init__(self):
        super().__init__()
        self.convolutions = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1, bias=False), torch.nn.ReLU(), torch.nn.MaxPool2d(2),
                                                torch.nn.Conv2d(8, 8, 3, padding=1, bias=False), torch.nn.ReLU())
        self.fc = torch.nn.Linear(8, 2)

    def classifier(self, features):
        return self.fc(features.mean(dim=(2, 3)) * 16)  # a square is a 16th of an image


def batch(chance, samples, empty=True):
    """Images of 16 × 16 with a bright square of 4 × 4 in the left (class 0) or the right half (class 1), its place, and for each class whether the
    square is there. Every third image of ``empty`` has no square: nothing but a square can speak for a class."""
    labels = chance.integers(0, 2, samples)
    tops, lefts = chance.integers(0, 13, samples), chance.integers(0, 4, samples) + 9 * labels
    brightness = chance.random((samples, 16, 16)) * 0.1
    there = numpy.arange(samples) % 3 > 0 if empty else numpy.full(samples, True)
    for image, top, left, bright in zip(brightness, tops, lefts, there):
        if bright:
            image[top:top + 4, left:left + 4] = 1
    right = numpy.linspace(0, 1, 16)
    return torch.tensor(numpy.stack([brightness, brightness * (1 - right), brightness * right], axis=1), dtype=torch.float32), torch.tensor(labels), tops, lefts, \
        torch.tensor(numpy.eye(2)[labels] * there[:, None], dtype=torch.float32)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """(the folder of a run, the tensors of its last step, where the squares were)"""
    torch.manual_seed(3)
    chance, model, out = numpy.random.default_rng(3), Net(), str(tmp_path_factory.mktemp("cam") / "run1")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    hook = tocsin.watch(model, optimizer, out=out, run="r", job="squares", capture={
        "every": "1 step", "overhead": "100%", "collections": {"default": {"every": "1 step"}, "weights": {"raw": True, "every": "1 step"}}})
    capture = compile(CAPTURE.search((ROOT / "docs" / "analysis-recipes.md").read_text()).group(1), "docs/analysis-recipes.md", "exec")
    for step in range(120):
        images, labels, tops, lefts, targets = batch(chance, 32, empty=step < 119)
        optimizer.zero_grad()
        if step == 119:
            names = {"model": model, "images": images, "labels": labels, "hook": hook, "torch": torch}
            exec(capture, names)  # noqa: S102  the lines of the page
            scores, last = names["scores"], {name: names[name].detach().numpy().copy() for name in ("images", "features", "gradients", "scores")}
            last["weight"] = model.fc.weight.detach().numpy().copy()
        else:
            scores = model.classifier(model.convolutions(images))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, targets)
        loss.backward()
        hook.log({"loss": loss.item()})
        optimizer.step()
    hook.close()
    assert not hook.stats()["hook_errors_total"]
    return out, last, (labels.numpy(), tops, lefts)


def test_the_map_of_a_trained_network_is_greatest_on_the_square_that_decides(trained):
    out, last, (labels, tops, lefts) = trained
    trial = create_trial(out)
    images, features, gradients, weights = (trial.tensor(name).value(119, mode="train") for name in
                                            ("images", "features", "feature_gradients", "fc.weight"))
    for name, value in (("images", images), ("features", features), ("gradients", gradients), ("weight", weights)):
        assert numpy.array_equal(value, last[name]), name
    assert (last["scores"].argmax(axis=1) == labels).all()
    for chart in (activation_map(images[:, :1], features, gradients), activation_map(images[:, :1], features, weights=weights, label=labels)):
        peaks = chart.data["peaks"]
        assert all(peak is not None for peak in peaks)
        beside = [max(top - row, row - top - 3, left - column, column - left - 3, 0) for (row, column), top, left in zip(peaks, tops, lefts)]
        assert max(beside) <= 3 and beside.count(0) >= 16, beside  # pixels beside the square; a cell sees 8 × 8 pixels
    # behind a global average pooling the gradients are the weights, so both maps agree where they are positive
    by_gradients, by_weights = (activation_map(images[:, :1], features, **more).data for more in (
        {"gradients": gradients}, {"weights": weights, "label": labels}))
    assert numpy.allclose(by_gradients["values"] * 4, numpy.maximum(by_weights["values"], 0), atol=1e-4)
    assert numpy.allclose(by_gradients["scaled"], by_weights["scaled"], atol=1e-4)
