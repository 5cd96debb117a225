"""A captured tensor in three dimensions: a surface or points of a matrix, slices or cubes of a tensor with three axes.

What is farther away is drawn first, so that what is nearer hides it. The projection is fixed, and the order follows from the grid: along each axis the
indices come nearer (projection.py). No two parts of such a grid hide each other in turn.
"""

import html
from typing import Any, Callable, Dict, List, Optional, Tuple

from .chart import Chart, NotInstalled, Panel, number
from .colours import VALUES, colours, data_uri
from .columns import numpy
from .projection import TILT, TURN, Paper, bar, path, seen, word

_MOST = {"surface": (40, 40), "points": (40, 40), "slices": (8, 256, 256), "cubes": (16, 16, 16)}  # drawn along each axis
_HEIGHT = 440  # of the SVG, in its units
_FACES = ((1.0, 0), (0.82, 1), (0.66, 2))  # how bright: above, in front, to the right; the axis along which it looks


def tensor_plot(values: Any, kind: Optional[str] = None, above: Optional[float] = None, title: str = "Tensor") -> Chart:
    """A chart of a tensor in three dimensions.

    ``values``: a matrix (rows, columns) or a tensor (layers, rows, columns). ``kind``: of a matrix ``surface`` (default), whose height is the value, or
    ``points``, one for each element; of a tensor ``slices`` (default), its matrices above each other, or ``cubes``, one for each element whose magnitude is
    at least ``above`` (default: half of the greatest magnitude). Row 0 and column 0 are at the back, layer 0 is below.

    Large tensors are thinned: of each block of elements the one of the greatest magnitude is drawn, and of more than 8 slices only some. The sentence says
    so. ``data``: ``drawn``, the array after that; ``block``, elements along each axis that became one; ``shape``; ``least``, ``greatest``: (value, place) of
    the whole tensor, None where nothing is finite; ``not_finite``, their number. Not finite elements are red; a surface has a hole there. Raises
    ValueError for another number of axes, complex numbers, an empty tensor or a kind that does not fit.
    """
    if numpy is None:
        raise NotInstalled("tensor_plot needs numpy: pip install numpy")
    given = numpy.asarray(values)
    if numpy.iscomplexobj(given):
        raise ValueError("values: complex numbers have no height; give abs(values) or values.real")
    given = given.astype(float)
    kinds = {2: ("surface", "points"), 3: ("slices", "cubes")}.get(given.ndim)
    if kinds is None or 0 in given.shape:
        more = "; choose one of its parts, for instance values[0]" if given.ndim > 3 else ""
        raise ValueError(f"values: expected (rows, columns) or (layers, rows, columns), none of them 0, got the shape {given.shape}{more}")
    kind = kind or kinds[0]
    if kind not in kinds:
        raise ValueError(f"kind: expected {' or '.join(kinds)} for {given.ndim} axes, got {kind!r}")
    if kind == "surface" and min(given.shape) < 2:
        raise ValueError(f"a surface needs at least 2 rows and 2 columns, got the shape {given.shape}; kind=\"points\" draws it")
    if above is not None and kind != "cubes":
        raise ValueError("above chooses among cubes; it needs a tensor of three axes and kind=\"cubes\"")
    drawn, block = _thinned(given, _MOST[kind], kind == "slices")
    finite = numpy.isfinite(given)
    data: Dict[str, Any] = {"drawn": drawn, "block": block, "shape": given.shape, "not_finite": int((~finite).sum()),
                            "least": _extreme(given, finite, numpy.nanargmin), "greatest": _extreme(given, finite, numpy.nanargmax)}
    told = _sentence(kind, data)
    panel = _KINDS[kind](title, drawn, data)
    if isinstance(panel, _Cubes):
        shown = panel.choose(above)
        told += f" {int(shown.sum())} of {shown.size} cubes are drawn: those of a magnitude of at least {number(panel.above)}."
    return Chart(title, told, data, [panel])


def _thinned(values: Any, most: Tuple[int, ...], by_slices: bool) -> Tuple[Any, Tuple[int, ...]]:
    """(of each block the element of the greatest magnitude, or one that is not finite; the block). ``by_slices``: whole matrices are left out."""
    block = tuple(-(-size // limit) for size, limit in zip(values.shape, most))
    if by_slices:
        values = values[::block[0]]
    for axis in range(1 if by_slices else 0, values.ndim):
        if block[axis] == 1:
            continue
        missing = -values.shape[axis] % block[axis]
        around = [(0, missing if one == axis else 0) for one in range(values.ndim)]
        magnitudes = numpy.pad(numpy.where(numpy.isfinite(values), abs(values), numpy.inf), around, constant_values=-1.0)
        parts = values.shape[:axis] + (-1, block[axis]) + values.shape[axis + 1:]
        taken = magnitudes.reshape(parts).argmax(axis=axis + 1)
        values = numpy.take_along_axis(numpy.pad(values, around).reshape(parts), numpy.expand_dims(taken, axis + 1), axis + 1).squeeze(axis + 1)
    return values, block


def _extreme(values: Any, finite: Any, find: Callable[[Any], Any]) -> Optional[Tuple[float, Tuple[int, ...]]]:
    if not finite.any():
        return None
    place = tuple(int(one) for one in numpy.unravel_index(find(numpy.where(finite, values, numpy.nan)), values.shape))
    return float(values[place]), place


def _sentence(kind: str, data: Dict[str, Any]) -> str:
    out = f"{' × '.join(map(str, data['shape']))} elements, "
    least, greatest = data["least"], data["greatest"]
    out += f"from {number(least[0])} at {least[1]} to {number(greatest[0])} at {greatest[1]}." if least else "none of them finite."
    if data["not_finite"]:
        out += f" {data['not_finite']} are not finite: {'holes' if kind == 'surface' else 'red'}."
    block = data["block"]
    if kind == "slices":
        if block[0] > 1:
            out += f" Each {_ordinal(block[0])} slice is drawn: {len(data['drawn'])} of {data['shape'][0]}."
        block = (1, *block[1:])
    if max(block) > 1:
        out += f" Of each block of {' × '.join(map(str, block))} the element of the greatest magnitude is drawn."
    return out


def _ordinal(count: int) -> str:
    return f"{count}{'th' if count % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(count % 10, 'th')}"


class _Scene(Panel):
    height = _HEIGHT
    projection = "3d"

    def __init__(self, title: str, drawn: Any, data: Dict[str, Any]) -> None:
        self.title, self.drawn, self.data = title, drawn, data
        self.low, self.high = (data["least"] or (0.0,))[0], (data["greatest"] or (1.0,))[0]
        self.shares = (drawn / 2 - self.low / 2) / ((self.high / 2 - self.low / 2) or 1.0)  # halves: differences stay finite
        self.paper = Paper(self.sides(), 60, 34, 470, _HEIGHT - 74)

    def sides(self) -> Tuple[float, float, float]:
        return 1.0, 1.0, 0.6

    def parts(self) -> List[str]:
        """What is drawn, the farthest first."""
        raise NotImplementedError

    def svg(self) -> str:
        *layers, rows, columns = self.data["shape"]
        up = ("layer", ("0", str(layers[0] - 1))) if layers else ("value", (number(self.low), number(self.high)))
        behind = self.paper.behind(("column", "row", up[0]), (("0", str(columns - 1)), ("0", str(rows - 1)), up[1]))
        return (f'<text x="12" y="18" font-weight="bold">{html.escape(self.title)}</text>{behind}<g stroke-width="0.4" stroke-linejoin="round">'
                f'{"".join(self.parts())}</g>{bar(556, 60, 120, self.low, self.high)}')

    def ground(self) -> Tuple[Any, Any]:
        """Rows and columns of the whole tensor at which the drawn elements stand, as grids."""
        rows, columns = self.drawn.shape[-2:]
        return numpy.meshgrid(numpy.arange(rows) * self.data["block"][-2], numpy.arange(columns) * self.data["block"][-1], indexing="ij")

    def turned(self, axes: Any) -> None:
        axes.invert_yaxis()
        axes.view_init(elev=TILT, azim=TURN - 90)
        axes.set(title=self.title, xlabel="column", ylabel="row", zlabel="value" if self.drawn.ndim == 2 else "layer")


class _Heights(_Scene):
    def heights(self) -> Any:
        """(rows, columns, 3) in the box; NaN stays NaN."""
        rows, columns = self.drawn.shape
        y, x = numpy.meshgrid(1 - numpy.arange(rows) / max(1, rows - 1), numpy.arange(columns) / max(1, columns - 1), indexing="ij")
        return numpy.stack([x, y, 0.6 * self.shares], axis=-1)


class _Surface(_Heights):
    def triangles(self) -> Tuple[Any, Any]:
        """((n, 3, 3) corners in the box, (n, 3) colours), the farthest first: cell by cell, of each cell the half behind its diagonal first."""
        corners = self.heights()
        far = numpy.stack([corners[:-1, :-1], corners[:-1, 1:], corners[1:, :-1]], axis=2)
        near = numpy.stack([corners[1:, 1:], corners[1:, :-1], corners[:-1, 1:]], axis=2)
        out = numpy.stack([far, near], axis=2).reshape(-1, 3, 3)
        out = out[numpy.isfinite(out).all(axis=(1, 2))]
        across = numpy.cross(out[:, 1] - out[:, 0], out[:, 2] - out[:, 0])
        upright = abs(across[:, 2]) / numpy.linalg.norm(across, axis=1)  # 1: level; less: steep, and darker
        return out, (colours(out[:, :, 2].mean(axis=1) / 0.6, VALUES) * (0.7 + 0.3 * upright)[:, None]).round().astype("u1")

    def parts(self) -> List[str]:
        corners, shades = self.triangles()
        return [f'<path d="{path(points, True)}" fill="{word(shade)}" stroke="{word(shade)}"/>' for points, shade in zip(self.paper.at(corners), shades)]

    def draw(self, axes: Any) -> None:
        rows, columns = self.ground()
        axes.plot_surface(columns, rows, numpy.where(numpy.isfinite(self.drawn), self.drawn, numpy.nan), cmap="viridis", rstride=1, cstride=1)
        self.turned(axes)


class _Points(_Heights):
    def parts(self) -> List[str]:
        corners = self.heights()
        finite = numpy.isfinite(corners).all(axis=-1)
        shades = colours(numpy.where(finite, self.shares, numpy.nan), VALUES)
        corners[..., 2] = numpy.where(finite, corners[..., 2], 0.0)
        found = self.paper.at(corners)
        order = numpy.argsort(-seen(corners)[..., 2].ravel(), kind="stable")
        rows, columns = self.drawn.shape
        radius = max(1.5, min(5.0, 120 / max(rows, columns)))
        return [f'<circle cx="{found[at][0]:.1f}" cy="{found[at][1]:.1f}" r="{radius:.1f}" fill="{word(shades[at])}" stroke="white"/>'
                for at in (divmod(int(place), columns) for place in order)]

    def draw(self, axes: Any) -> None:
        rows, columns = self.ground()
        finite = numpy.isfinite(self.drawn)
        axes.scatter(columns[finite], rows[finite], self.drawn[finite], c=self.drawn[finite], cmap="viridis")
        self.turned(axes)


class _Slices(_Scene):
    def sides(self) -> Tuple[float, float, float]:
        layers, rows, columns = self.drawn.shape
        return columns / max(rows, columns), rows / max(rows, columns), 0.24 * (layers - 1) or 0.05

    def parts(self) -> List[str]:
        x, y, z = self.sides()
        layers, rows, columns = self.drawn.shape
        out = []
        for layer in range(layers):  # the lowest first
            up = z * layer / max(1, layers - 1)
            origin, right, near = self.paper.at([(0, y, up), (x, y, up), (0, 0, up)])
            (a, b), (c, d) = (right - origin) / columns, (near - origin) / rows
            out.append(f'<image width="{columns}" height="{rows}" preserveAspectRatio="none" style="image-rendering:pixelated" '
                       f'transform="matrix({a:.5f} {b:.5f} {c:.5f} {d:.5f} {origin[0]:.2f} {origin[1]:.2f})" '
                       f'href="{data_uri(colours(self.shares[layer], VALUES))}"/>'
                       f'<path d="{path(self.paper.at([(0, 0, up), (x, 0, up), (x, y, up), (0, y, up)]), True)}" fill="none" stroke="#444"/>')
        return out

    def draw(self, axes: Any) -> None:
        rows, columns = self.ground()
        for layer, shares in enumerate(self.shares):
            axes.plot_surface(columns, rows, numpy.full(shares.shape, float(layer * self.data["block"][0])), facecolors=colours(shares, VALUES) / 255.0,
                              shade=False, rstride=1, cstride=1)
        self.turned(axes)


class _Cubes(_Scene):
    above = 0.0
    shown: Any = None

    def sides(self) -> Tuple[float, float, float]:
        layers, rows, columns = self.drawn.shape
        return columns / max(self.drawn.shape), rows / max(self.drawn.shape), layers / max(self.drawn.shape)

    def choose(self, above: Optional[float]) -> Any:
        """Which cubes are drawn: (layers, rows, columns) of bool."""
        finite = numpy.isfinite(self.drawn)
        magnitudes = numpy.where(finite, abs(self.drawn), 0.0)
        self.above = magnitudes.max() / 2 if above is None else float(above)
        self.shown = ~finite | (magnitudes >= self.above)
        return self.shown

    def faces(self) -> Tuple[Any, Any]:
        """((n, 4, 3) corners in the box, (n, 3) colours), the farthest first. Faces between two cubes, and those that look away, are left out."""
        unit, rows = 1.0 / max(self.drawn.shape), self.drawn.shape[1]
        squares, shades = [], []
        tones = colours(numpy.where(numpy.isfinite(self.drawn), self.shares, numpy.nan), VALUES)
        for layer, row, column in numpy.argwhere(self.shown):
            low = numpy.array([column, rows - 1 - row, layer], float)
            for bright, axis in _FACES:
                beside = [layer, row, column]
                beside[axis] += 1
                if beside[axis] < self.drawn.shape[axis] and self.shown[tuple(beside)]:
                    continue
                squares.append((low + _SQUARES[axis]) * unit)
                shades.append(tones[layer, row, column] * bright)
        return numpy.array(squares).reshape(-1, 4, 3), numpy.array(shades).reshape(-1, 3).round().astype("u1")

    def parts(self) -> List[str]:
        corners, shades = self.faces()
        return [f'<path d="{path(points, True)}" fill="{word(shade)}" stroke="#333"/>' for points, shade in zip(self.paper.at(corners), shades)]

    def draw(self, axes: Any) -> None:
        tones = colours(numpy.where(numpy.isfinite(self.drawn), self.shares, numpy.nan), VALUES) / 255.0
        axes.voxels(self.shown.transpose(2, 1, 0), facecolors=tones.transpose(2, 1, 0, 3), edgecolor="#333333", linewidth=0.3)
        self.turned(axes)


# Corners of a cube's faces by the axis along which they look: above (z 1), in front (y 0), to the right (x 1).
_SQUARES = numpy.array([[[0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]], [[0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 0, 1]],
                        [[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 0, 1]]], float) if numpy is not None else None
_KINDS: Dict[str, Any] = {"surface": _Surface, "points": _Points, "slices": _Slices, "cubes": _Cubes}
