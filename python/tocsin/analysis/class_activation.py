"""Class-activation maps: which part of an image spoke for a class, from captured tensors of a convolutional network.

Grad-CAM (Selvaraju et al., ICCV 2017) takes the feature maps of a convolution and the gradients of the class's score by them. CAM (Zhou et al., CVPR 2016)
takes the weights of a classifier behind a global average pooling instead.
"""

import html
from typing import Any, List, Optional, Sequence, Tuple, Union

from .chart import Chart, NotInstalled, Panel, number
from .colours import HEAT, colours, data_uri
from .columns import numpy

_DRAWN = 8         # samples that a chart draws
_LISTED = 4        # samples that its sentence names
_SIDE = 190        # of a picture in the SVG
_MOST_PIXELS = 256  # of a picture's side; of larger ones every second pixel is drawn, or every third, …
_STRENGTH = 0.8    # how much of the image the strongest place hides
_LEFT, _TOP, _GAP = 12, 28, 18


def activation_map(images: Any, features: Any, gradients: Any = None, weights: Any = None, label: Union[int, Sequence[int], None] = None,
                   channels_last: bool = False) -> Chart:
    """A chart of the class-activation map of each sample over its image. Give ``gradients`` (Grad-CAM) or ``weights`` and ``label`` (CAM).

    ``images``: (samples, channels, height, width) with 1 or 3 channels, as the network got them. ``features``: (samples, channels, rows, columns), the
    output of a convolution. ``gradients``: of the class's score by ``features``, of the same shape. ``weights``: (classes, channels) of the layer behind a
    global average pooling. ``label``: the class, one for all samples or one for each. A single sample may come without its first axis. With
    ``channels_last`` channels are the last axis of images, features and gradients.

    ``data["values"]``: (samples, rows, columns). Of Grad-CAM they are 0 or more; of CAM negative where the place speaks against the class.
    ``data["scaled"]``: (samples, height, width), bilinear, 0 to 1 of the greatest value of the sample; negative values are 0. ``data["peaks"]``: by sample
    the (row, column) of the image where ``scaled`` is greatest, None where no value is above 0. Raises ValueError for shapes that do not fit.
    """
    if numpy is None:
        raise NotInstalled("activation_map needs numpy: pip install numpy")
    features = _samples("features", features, channels_last)
    images = _samples("images", images, channels_last)
    if images.shape[1] not in (1, 3):
        raise ValueError(f"images: expected 1 or 3 channels (samples, channels, height, width), got the shape {images.shape}"
                         + ("" if channels_last else "; channels_last=True if channels are the last axis"))
    if len(images) != len(features):
        raise ValueError(f"expected as many images as features, got {len(images)} and {len(features)}")
    if (gradients is None) == (weights is None):
        raise ValueError("give either gradients (Grad-CAM) or weights and label (CAM)")
    method, values = ("Grad-CAM", _by_gradients(features, _samples("gradients", gradients, channels_last))) if weights is None else \
        ("CAM", _by_weights(features, numpy.asarray(weights, float), label))
    scaled = numpy.stack([_over_image(_shares(one), images.shape[2:]) for one in values])
    peaks = [_peak(one) for one in scaled]
    names = [f"sample {place}" + ("" if label is None else f", class {_labels(label, len(values))[place]}") for place in range(len(values))]
    panels = [_ActivationPanel(f"{method}, {names[place]}", images[place], values[place], scaled[place], peaks[place])
              for place in range(min(_DRAWN, len(values)))]
    return Chart("Class activation", _sentence(method, values, scaled, peaks), {"values": values, "scaled": scaled, "peaks": peaks}, panels)


def _samples(name: str, given: Any, channels_last: bool) -> Any:
    """(samples, channels, height, width)."""
    out = numpy.asarray(given, float)
    if out.ndim == 3:
        out = out[None]
    if out.ndim != 4 or 0 in out.shape:
        raise ValueError(f"{name}: expected (samples, channels, height, width) or one sample (channels, height, width), got the shape {numpy.shape(given)}")
    return numpy.moveaxis(out, -1, 1) if channels_last else out


def _by_gradients(features: Any, gradients: Any) -> Any:
    if gradients.shape != features.shape:
        raise ValueError(f"gradients: expected the shape of features, {features.shape}, got {gradients.shape}")
    importance = gradients.mean(axis=(2, 3))
    return numpy.maximum(numpy.einsum("nc,nchw->nhw", importance, features), 0.0)  # NaN stays NaN


def _by_weights(features: Any, weights: Any, label: Union[int, Sequence[int], None]) -> Any:
    if weights.ndim != 2 or weights.shape[1] != features.shape[1]:
        raise ValueError(f"weights: expected (classes, {features.shape[1]}), one for each channel of features, got the shape {weights.shape}")
    if label is None:
        raise ValueError("label: CAM needs the class whose weights are taken")
    labels = _labels(label, len(features))
    if labels.min() < 0 or labels.max() >= len(weights):
        raise ValueError(f"label: expected 0 to {len(weights) - 1}, got {labels.tolist()}")
    return numpy.einsum("nc,nchw->nhw", weights[labels], features)


def _labels(label: Union[int, Sequence[int]], samples: int) -> Any:
    out = numpy.asarray(label)
    if out.ndim > 1 or (out.ndim == 1 and len(out) != samples) or not (out == out.astype(int)).all():
        raise ValueError(f"label: expected a class number, or one for each of {samples} samples, got {label!r}")
    return numpy.broadcast_to(out.astype(int), (samples,))


def _shares(values: Any) -> Any:
    finite = values[numpy.isfinite(values)]
    greatest = finite.max() if len(finite) else 0.0
    positive = numpy.where(numpy.isfinite(values), numpy.maximum(values, 0.0), numpy.nan)
    return positive / greatest if greatest > 0 else positive


def _over_image(values: Any, shape: Tuple[int, int]) -> Any:
    """Bilinear, with the centres of cells and pixels in their places (PyTorch's ``align_corners=False``)."""
    for axis, size in enumerate(shape):
        at = ((numpy.arange(size) + 0.5) * values.shape[axis] / size - 0.5).clip(0, values.shape[axis] - 1)
        low = numpy.floor(at).astype(int)
        high = numpy.minimum(low + 1, values.shape[axis] - 1)
        part = (at - low).reshape((-1, 1) if axis == 0 else (1, -1))
        values = values.take(low, axis) * (1 - part) + values.take(high, axis) * part
    return values


def _peak(scaled: Any) -> Optional[Tuple[int, int]]:
    known = numpy.where(numpy.isfinite(scaled), scaled, 0.0)
    if not known.max() > 0:
        return None
    row, column = numpy.unravel_index(int(known.argmax()), known.shape)
    return int(row), int(column)


def _sentence(method: str, values: Any, scaled: Any, peaks: List[Optional[Tuple[int, int]]]) -> str:
    count = len(values)
    out = (f"{method} of {count} {'sample' if count == 1 else 'samples'}, {values.shape[1]} × {values.shape[2]} cells over "
           f"{scaled.shape[1]} × {scaled.shape[2]} pixels.")
    told = [f"sample {place} at row {peak[0]}, column {peak[1]}" for place, peak in enumerate(peaks) if peak is not None]
    if told:
        out += f" Strongest: {'; '.join(told[:_LISTED])}" + (f"; and {len(told) - _LISTED} more" if len(told) > _LISTED else "") + "."
    silent = [str(place) for place, peak in enumerate(peaks) if peak is None]
    if silent:
        out += f" Nothing speaks for the class in {'sample' if len(silent) == 1 else 'samples'} {', '.join(silent[:_LISTED])}"
        out += (f" and {len(silent) - _LISTED} more" if len(silent) > _LISTED else "") + "."
    bad = int((~numpy.isfinite(values)).sum())
    if bad:
        out += f" {bad} of {values.size} values are not finite."
    return out + (f" {count - _DRAWN} more samples are not drawn." if count > _DRAWN else "")


class _ActivationPanel(Panel):
    """The image, the map, and the map over the image, side by side. A ring marks the peak."""

    def __init__(self, title: str, image: Any, values: Any, scaled: Any, peak: Optional[Tuple[int, int]]) -> None:
        self.title, self.values, self.peak, self.shape = title, values, peak, scaled.shape
        every = -(-max(scaled.shape) // _MOST_PIXELS)
        share = scaled[::every, ::every]
        plain, heat = _pixels(image)[::every, ::every], colours(share, HEAT)
        opacity = (numpy.sqrt(numpy.where(numpy.isfinite(share), share, 1.0)) * _STRENGTH)[..., None]
        self.pictures = [("image", plain), ("map", heat), ("map over image", (plain * (1 - opacity) + heat * opacity).round().astype("u1"))]
        self.scale = _SIDE / max(scaled.shape)
        self.height = round(_TOP + scaled.shape[0] * self.scale + 26)

    def svg(self) -> str:
        rows, columns = self.shape[0] * self.scale, self.shape[1] * self.scale
        finite = self.values[numpy.isfinite(self.values)]
        told = f"{number(finite.min())} to {number(finite.max())}" if len(finite) else "no finite value"
        out = [f'<text x="{_LEFT}" y="16" font-weight="bold">{html.escape(self.title)}: {told}</text>']
        for place, (name, pixels) in enumerate(self.pictures):
            left = _LEFT + place * (_SIDE + _GAP)
            out.append(f'<image x="{left}" y="{_TOP}" width="{columns:.2f}" height="{rows:.2f}" preserveAspectRatio="none" '
                       f'style="image-rendering:pixelated" href="{data_uri(pixels)}"/>'
                       f'<text x="{left}" y="{_TOP + rows + 14:.1f}">{name}</text>')
            if self.peak is not None and place:
                x, y = (left + (self.peak[1] + 0.5) * self.scale, _TOP + (self.peak[0] + 0.5) * self.scale)
                out.append(f'<circle cx="{x:.2f}" cy="{y:.2f}" r="7" fill="none" stroke="black" stroke-width="3"/>'
                           f'<circle cx="{x:.2f}" cy="{y:.2f}" r="7" fill="none" stroke="white"><title>strongest: row {self.peak[0]}, '
                           f'column {self.peak[1]}</title></circle>')
        return "".join(out)

    def draw(self, axes: Any) -> None:
        axes.imshow(self.pictures[2][1], extent=(-0.5, self.shape[1] - 0.5, self.shape[0] - 0.5, -0.5), interpolation="nearest")
        if self.peak is not None:
            axes.plot([self.peak[1]], [self.peak[0]], "o", markersize=10, markerfacecolor="none", markeredgecolor="white")
        axes.set(title=self.title)


def _pixels(image: Any) -> Any:
    """(channels, height, width) → height × width × 3 bytes; the least of the image is black, the greatest white. Not finite: black."""
    finite = image[numpy.isfinite(image)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    grey = numpy.where(numpy.isfinite(image), (image - low) / ((high - low) or 1.0), 0.0)
    return (numpy.broadcast_to(grey, (3, *image.shape[1:])).transpose(1, 2, 0) * 255).round().astype("u1")
