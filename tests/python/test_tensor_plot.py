"""A tensor in three dimensions: its numbers are those of a scan, and what is nearer hides what is farther away."""
import base64
import math
import re
import struct
import zlib
from xml.etree import ElementTree

import numpy
import pytest

from tocsin.analysis import tensor_plot
from tocsin.analysis.colours import HEAT, NOT_FINITE, VALUES, colours, data_uri

SVG = "{http://www.w3.org/2000/svg}"


def onto_paper(points):
    """Right, up and away of points of the box: a turn by 35° about the upright axis, then a tilt by 30°, as matrices."""
    turn, tilt = math.radians(35), math.radians(30)
    about = numpy.array([[math.cos(turn), math.sin(turn), 0], [-math.sin(turn), math.cos(turn), 0], [0, 0, 1]])
    over = numpy.array([[1, 0, 0], [0, math.sin(tilt), math.cos(tilt)], [0, math.cos(tilt), -math.sin(tilt)]])
    return points @ (over @ about).T


def hit(polygon, spots):
    """For each spot of the paper how far away the plane of a convex polygon is there; NaN: the spot is outside it or on its edge."""
    flat = polygon[:, :2]
    edges = numpy.roll(flat, -1, axis=0) - flat
    to = spots[:, None, :] - flat
    side = edges[:, 0] * to[:, :, 1] - edges[:, 1] * to[:, :, 0]
    inside = (side > 1e-9).all(axis=1) | (side < -1e-9).all(axis=1)
    across = numpy.cross(polygon[1] - polygon[0], polygon[2] - polygon[0])
    if abs(across[2]) < 1e-12:
        return numpy.full(len(spots), numpy.nan)
    away = polygon[0, 2] - ((spots - polygon[0, :2]) @ across[:2]) / across[2]
    return numpy.where(inside, away, numpy.nan)


def what_is_seen(polygons, spots):
    """(how far away what was painted last is, how far away the nearest is) at each spot."""
    depths = numpy.array([hit(onto_paper(one), spots) for one in polygons])
    some = numpy.isfinite(depths).any(axis=0)
    depths = depths[:, some]
    last = len(depths) - 1 - numpy.isfinite(depths)[::-1].argmax(axis=0)
    return depths[last, numpy.arange(depths.shape[1])], numpy.nanmin(depths, axis=0), some


def spots_over(polygons, chance, count=400):
    seen = onto_paper(numpy.concatenate(list(polygons)))
    return chance.uniform(seen[:, :2].min(axis=0), seen[:, :2].max(axis=0), size=(count, 2))


@pytest.mark.parametrize("shape", [(2, 2), (9, 6), (6, 11)])
def test_of_a_surface_the_nearest_triangle_is_on_top_everywhere(shape):
    chance = numpy.random.default_rng(sum(shape))
    triangles, _ = tensor_plot(chance.normal(size=shape))._panels[0].triangles()  # steep: much of it is hidden
    assert len(triangles) == 2 * (shape[0] - 1) * (shape[1] - 1)
    painted, nearest, some = what_is_seen(triangles, spots_over(triangles, chance))
    assert some.sum() > 100 and numpy.allclose(painted, nearest)
    backwards, nearest, _ = what_is_seen(triangles[::-1], spots_over(triangles, chance))
    assert len(triangles) < 10 or not numpy.allclose(backwards, nearest)  # the order matters, so the check can fail


def test_of_cubes_the_nearest_is_on_top_and_no_visible_face_is_missing():
    chance = numpy.random.default_rng(4)
    tensor = chance.normal(size=(4, 5, 3))
    panel = tensor_plot(tensor, "cubes", above=0.9)._panels[0]
    faces, _ = panel.faces()
    shown = abs(tensor) >= 0.9
    whole = []
    for layer, row, column in numpy.argwhere(shown):  # every face of every cube
        low = numpy.array([column, 4 - row, layer])
        for axis in range(3):
            for end in (0, 1):
                square = numpy.array([[0, 0], [1, 0], [1, 1], [0, 1]], float)
                whole.append((low + numpy.insert(square, axis, end, axis=1)) / 5)
    spots = spots_over(whole, chance)
    painted, _, some = what_is_seen(faces, spots)
    _, nearest, covered = what_is_seen(whole, spots)
    assert covered.sum() > 100 and (some == covered).all() and numpy.allclose(painted, nearest)


def test_slices_lie_above_each_other_and_each_picture_is_its_matrix():
    tensor = numpy.random.default_rng(6).normal(size=(3, 4, 5))
    pictures = ElementTree.fromstring(tensor_plot(tensor).svg()).findall(f".//{SVG}image")
    assert len(pictures) == 3
    shares = (tensor - tensor.min()) / (tensor.max() - tensor.min())
    tops = []
    for layer, picture in enumerate(pictures):
        assert numpy.array_equal(png(picture.get("href")), colours(shares[layer]))
        a, b, c, d, left, top = map(float, re.fullmatch(r"matrix\((.*)\)", picture.get("transform")).group(1).split())
        assert a > 0 > c and b > 0 and d > 0  # columns go right and nearer, rows left and nearer
        tops.append(top)
    assert tops == sorted(tops, reverse=True)


def png(uri):
    """Pixels of a PNG, by its specification."""
    raw, parts, at = base64.b64decode(uri.removeprefix("data:image/png;base64,")), {}, 8
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    while at < len(raw):
        length, kind = struct.unpack_from(">I4s", raw, at)
        content = raw[at + 8:at + 8 + length]
        assert struct.unpack_from(">I", raw, at + 8 + length)[0] == zlib.crc32(kind + content)
        parts[kind] = content
        at += 12 + length
    columns, rows, depth, colour = struct.unpack_from(">IIBB", parts[b"IHDR"])
    assert (depth, colour) == (8, 2)
    lines = numpy.frombuffer(zlib.decompress(parts[b"IDAT"]), "u1").reshape(rows, 1 + 3 * columns)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(rows, columns, 3)


def test_colours_are_those_of_the_scale_between_its_stops():
    for scale in (VALUES, HEAT):
        assert colours([0, 0.25, 0.5, 0.75, 1], scale).tolist() == [list(stop) for stop in scale]
    assert colours([0.125, -3, 9, math.nan, math.inf]).tolist() == [[64, 42, 112], list(VALUES[0]), list(VALUES[-1]), list(NOT_FINITE), list(NOT_FINITE)]
    pixels = numpy.random.default_rng(1).integers(0, 256, (3, 7, 3), "u1")
    assert numpy.array_equal(png(data_uri(pixels)), pixels)


def test_the_sentence_and_the_data_are_those_of_a_scan():
    tensor = numpy.random.default_rng(2).normal(size=(90, 50))
    tensor[17, 33], tensor[80, 2] = -40, 30
    chart = tensor_plot(tensor)
    assert str(chart) == ("90 × 50 elements, from -40 at (17, 33) to 30 at (80, 2). "
                          "Of each block of 3 × 2 the element of the greatest magnitude is drawn.")
    drawn = chart.data["drawn"]
    assert drawn.shape == (30, 25) and chart.data["block"] == (3, 2)
    for row in range(30):
        for column in range(25):
            block = tensor[3 * row:3 * row + 3, 2 * column:2 * column + 2].ravel()
            assert drawn[row, column] == block[abs(block).argmax()]
    odd = tensor_plot(numpy.arange(43 * 3.0).reshape(43, 3)).data["drawn"]  # the last block has one row only
    assert odd.shape == (22, 3) and odd[-1].tolist() == [126, 127, 128]
    slices = tensor_plot(numpy.arange(17)[:, None, None] * numpy.ones((17, 2, 2)))
    assert slices.data["drawn"][:, 0, 0].tolist() == [0, 3, 6, 9, 12, 15] and "Each 3rd slice is drawn: 6 of 17." in str(slices)
    cubes = tensor_plot(numpy.array([[[0, -1], [2, -3]], [[4, -5], [6, -7]]]), "cubes")
    assert "4 of 8 cubes are drawn: those of a magnitude of at least 3.5." in str(cubes)


def test_elements_that_are_not_finite_are_told_and_shown():
    tensor = numpy.arange(30.0).reshape(5, 6)
    tensor[1, 2], tensor[4, 5] = numpy.nan, numpy.inf
    surface = tensor_plot(tensor)
    assert str(surface) == "5 × 6 elements, from 0 at (0, 0) to 28 at (4, 4). 2 are not finite: holes."
    corners, _ = surface._panels[0].triangles()
    assert len(corners) == 2 * 4 * 5 - 6 - 1 and numpy.isfinite(corners).all()  # six triangles meet at (1, 2), one at the corner
    red = "#d62728"
    assert surface.svg().count(red) == 0 and tensor_plot(tensor, "points").svg().count(red) == 2
    cubes = tensor_plot(tensor[None], "cubes", above=1000)
    assert cubes._panels[0].shown.sum() == 2 and "2 of 30 cubes" in str(cubes)
    wide = numpy.ones((90, 90))
    wide[7, 7] = numpy.nan  # a thinned tensor keeps it
    assert numpy.isnan(tensor_plot(wide).data["drawn"]).sum() == 1
    for kind, shape in (("surface", (3, 3)), ("points", (3, 3)), ("slices", (2, 3, 3)), ("cubes", (2, 3, 3))):
        nothing = tensor_plot(numpy.full(shape, numpy.nan), kind)
        assert "none of them finite" in str(nothing) and nothing.svg().endswith("</svg>")
        extreme = tensor_plot(1.7e308 * numpy.linspace(-1, 1, math.prod(shape)).reshape(shape), kind)
        assert "nan" not in extreme.svg() and "inf" not in extreme.svg()


@pytest.mark.parametrize("given, kind, above, said", [
    (numpy.ones(5), None, None, r"expected \(rows, columns\) or \(layers, rows, columns\).*got the shape \(5,\)"),
    (numpy.ones((2, 3, 4, 5)), None, None, r"shape \(2, 3, 4, 5\); choose one of its parts, for instance values\[0\]"),
    (numpy.ones((0, 3)), None, None, r"none of them 0, got the shape \(0, 3\)"),
    (numpy.ones((2, 2), complex), None, None, r"complex numbers have no height"),
    (numpy.ones((2, 3)), "cubes", None, r"kind: expected surface or points for 2 axes, got 'cubes'"),
    (numpy.ones((1, 3)), None, None, r"at least 2 rows and 2 columns.*kind=\"points\""),
    (numpy.ones((2, 3)), None, 0.5, r"above chooses among cubes"),
])
def test_what_cannot_be_drawn_says_what_was_expected(given, kind, above, said):
    with pytest.raises(ValueError, match=said):
        tensor_plot(given, kind, above)


@pytest.mark.parametrize("kind, tensor", [("surface", numpy.eye(5)), ("points", numpy.eye(5)), ("points", numpy.ones((1, 4))),
                                          ("slices", numpy.ones((1, 2, 3))), ("cubes", numpy.eye(4)[None])])
def test_a_notebook_shows_a_sentence_and_a_picture_without_scripts(kind, tensor, tmp_path):
    chart = tensor_plot(tensor, kind, title="<fc> & co")
    bundle = chart._repr_mimebundle_()
    assert bundle["text/plain"] == str(chart) and bundle["image/svg+xml"] == chart.svg()
    root = ElementTree.fromstring(chart.svg())
    assert {one.tag.removeprefix(SVG) for one in root.iter()} <= {"svg", "title", "desc", "rect", "g", "path", "text", "circle", "image"}
    assert root.find(f"{SVG}title").text == "<fc> & co" and "script" not in chart.svg()
    width, height = map(float, root.get("viewBox").split()[2:])
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height
    chart.save(str(tmp_path / "x.html"))
    assert chart.svg() in (tmp_path / "x.html").read_text()


@pytest.mark.parametrize("kind, shape", [("surface", (6, 7)), ("points", (6, 7)), ("slices", (3, 4, 5)), ("cubes", (3, 4, 5))])
def test_the_same_as_a_figure_of_matplotlib(kind, shape, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    chart = tensor_plot(numpy.random.default_rng(8).normal(size=shape), kind)
    axes = chart.figure().axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_zlabel()) == ("column", "row", "value" if len(shape) == 2 else "layer")
    low, high = axes.get_ylim()
    assert low > high  # row 0 is at the back
    chart.save(str(tmp_path / "x.png"))
    assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"
