"""A box in three dimensions on paper: a fixed parallel projection, the box's edges and labels, and a bar of colours."""

import html
import math
from typing import Any, List, Sequence, Tuple

from .chart import number
from .colours import VALUES, colours
from .columns import numpy

TURN, TILT = 35.0, 30.0  # degrees: how far the box is turned to the left, and from how far above it is seen
_SINE_TURN, _COSINE_TURN = math.sin(math.radians(TURN)), math.cos(math.radians(TURN))
_SINE_TILT, _COSINE_TILT = math.sin(math.radians(TILT)), math.cos(math.radians(TILT))


def seen(points: Any) -> Any:
    """(…, 3) → (…, 3): right, up, and how far away. x goes right, y away, z up. All three grow with the lengths of the box, so that what is
    nearer has the smaller third number: it grows with y, and falls with x and z."""
    x, y, z = points[..., 0], points[..., 1], points[..., 2]
    away = y * _COSINE_TURN - x * _SINE_TURN
    return numpy.stack([x * _COSINE_TURN + y * _SINE_TURN, z * _COSINE_TILT + away * _SINE_TILT, away * _COSINE_TILT - z * _SINE_TILT], axis=-1)


class Paper:
    """Where the box (0, 0, 0) to ``sides`` lies in an SVG: inside ``width`` × ``height``, beginning at ``left``, ``top``."""

    def __init__(self, sides: Tuple[float, float, float], left: float, top: float, width: float, height: float) -> None:
        self.sides = sides
        corners = seen(numpy.array([[x, y, z] for x in (0, sides[0]) for y in (0, sides[1]) for z in (0, sides[2])], float))
        self._low, self._high = corners.min(axis=0), corners.max(axis=0)
        spans = self._high - self._low
        self._scale = min(width / spans[0], height / spans[1])
        self._left, self._top = left + (width - spans[0] * self._scale) / 2, top + (height - spans[1] * self._scale) / 2

    def at(self, points: Any) -> Any:
        """(…, 3) of the box → (…, 2) of the SVG."""
        found = seen(numpy.asarray(points, float))
        return numpy.stack([self._left + (found[..., 0] - self._low[0]) * self._scale,
                            self._top + (self._high[1] - found[..., 1]) * self._scale], axis=-1)

    def behind(self, names: Sequence[str], ends: Sequence[Tuple[str, str]]) -> str:
        """The floor and the two walls behind, to draw first; with names and first and last labels of x, y (as rows, from the back) and z."""
        x, y, z = self.sides
        lines = [[(0, 0, 0), (x, 0, 0), (x, y, 0), (0, y, 0), (0, 0, 0), (0, 0, z), (0, y, z), (x, y, z), (x, y, 0)], [(0, y, 0), (0, y, z)]]
        out = [f'<path d="{"".join(path(self.at(line)) for line in lines)}" fill="none" stroke="#999"/>']

        def label(point: Tuple[float, float, float], word: str, anchor: str, right: float, down: float) -> None:
            (left, top) = self.at(point)
            out.append(f'<text x="{left + right:.1f}" y="{top + down:.1f}" text-anchor="{anchor}">{html.escape(word)}</text>')
        label((0, 0, 0), ends[0][0], "middle", 4, 15)
        label((x, 0, 0), ends[0][1], "end", -6, 15)
        label((x / 2, 0, 0), names[0], "end", -10, 22)
        label((x, y, 0), ends[1][0], "start", 5, 12)
        label((x, 0, 0), ends[1][1], "start", 8, 12)
        label((x, y / 2, 0), names[1], "start", 10, 20)
        label((0, 0, 0), ends[2][0], "end", -6, 2)
        label((0, 0, z), ends[2][1], "end", -6, 4)
        label((0, 0, z / 2), names[2], "end", -10, 4)
        return "".join(out)


def path(points: Any, close: bool = False) -> str:
    return "M" + " ".join(f"{left:.1f},{top:.1f}" for left, top in points) + ("Z" if close else "")


def word(colour: Any) -> str:
    return f"#{int(colour[0]):02x}{int(colour[1]):02x}{int(colour[2]):02x}"


def bar(left: float, top: float, height: float, low: float, high: float) -> str:
    """The colours of values from ``low`` (below) to ``high``."""
    parts = 32
    shown: List[str] = [f'<rect x="{left}" y="{top + height * (parts - 1 - place) / parts:.2f}" width="10" height="{height / parts + 0.3:.2f}" '
                        f'fill="{word(colour)}"/>' for place, colour in enumerate(colours(numpy.linspace(0, 1, parts), VALUES))]
    return "".join(shown) + (f'<text x="{left + 14}" y="{top + 9}">{number(high)}</text>'
                             f'<text x="{left + 14}" y="{top + height}">{number(low)}</text>')
