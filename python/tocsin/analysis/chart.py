"""A chart: its numbers, a sentence, and a picture (SVG) that a notebook shows."""

import html
import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

_WIDTH, _HEIGHT, _LEFT, _TOP, _BELOW, _RIGHT = 640, 220, 64, 28, 34, 12
_COLOURS = ("#1f77b4", "#d95f02", "#2a9d4a", "#9467bd", "#8c564b", "#c2185b")


class NotInstalled(ImportError):
    """A library that this conversion needs is not here."""


class Chart:
    """``data``: what is drawn, as plain values. A notebook shows it; ``save("x.svg")``, ``.html`` or ``.png`` writes it."""

    def __init__(self, title: str, sentence: str, data: Any, panels: Sequence["Panel"]) -> None:
        self.title, self.sentence, self.data, self._panels = title, sentence, data, list(panels)

    def svg(self) -> str:
        tops = [sum(panel.height for panel in self._panels[:place]) for place in range(len(self._panels) + 1)]
        height = tops[-1] or _HEIGHT
        inside = "".join(f'<g transform="translate(0 {top})">{panel.svg()}</g>' for top, panel in zip(tops, self._panels))
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img" '
                f'font-family="sans-serif" font-size="11"><title>{html.escape(self.title)}</title><desc>{html.escape(self.sentence)}</desc>'
                f'<rect width="100%" height="100%" fill="white"/>{inside}</svg>')

    def save(self, path: str) -> None:
        """By the name's ending: ``.svg``; ``.html``, a page of its own; ``.png``, by matplotlib."""
        if str(path).endswith(".png"):
            self.figure().savefig(path)
            return
        if str(path).endswith(".svg"):
            text = self.svg()
        elif str(path).endswith((".html", ".htm")):
            text = (f"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{html.escape(self.title)}</title>"
                    f"<p>{html.escape(self.sentence)}</p>{self.svg()}</html>\n")
        else:
            raise ValueError(f"{path}: expected a name that ends with .svg, .html or .png")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def figure(self) -> Any:
        """The same as a figure of matplotlib, one axes below the other: ``chart.figure().axes[0].set_yscale("log")``."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise NotInstalled("figure() and .png need matplotlib: pip install \"tocsin[plot]\"") from None
        heights = [panel.height for panel in self._panels]
        out = Figure(figsize=(8, 2.8 * (sum(heights) or _HEIGHT) / _HEIGHT), layout="constrained")
        if heights:
            grid = out.add_gridspec(len(heights), 1, height_ratios=heights)
            for place, panel in enumerate(self._panels):
                panel.draw(out.add_subplot(grid[place, 0], projection=panel.projection))
        return out

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, str]:
        del include, exclude
        return {"text/plain": self.sentence, "image/svg+xml": self.svg()}

    def __repr__(self) -> str:
        return self.sentence


def number(value: Optional[float]) -> str:
    return "none" if value is None or not math.isfinite(value) else f"{value:.4g}"


def _scale(low: float, high: float, begin: float, end: float) -> Callable[[float], float]:
    span = (high - low) or 1.0
    return lambda value: begin + (value - low) / span * (end - begin)


def _frame(title: str, x: Tuple[float, float, str], y: Tuple[float, float, str]) -> str:
    """Title and axes: (from, to, what)."""
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BELOW
    return (f'<text x="{_LEFT}" y="16" font-weight="bold">{html.escape(title)}</text>'
            f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#444"/>'
            f'<text x="{_LEFT}" y="{bottom + 14}">{number(x[0])}</text><text x="{right}" y="{bottom + 14}" text-anchor="end">{number(x[1])}</text>'
            f'<text x="{(_LEFT + right) / 2}" y="{bottom + 26}" text-anchor="middle">{html.escape(x[2])}</text>'
            f'<text x="{_LEFT - 4}" y="{bottom}" text-anchor="end">{number(y[0])}</text>'
            f'<text x="{_LEFT - 4}" y="{_TOP + 8}" text-anchor="end">{number(y[1])}</text>'
            f'<text x="12" y="{(_TOP + bottom) / 2}" transform="rotate(-90 12 {(_TOP + bottom) / 2})" text-anchor="middle">{html.escape(y[2])}</text>')


class Panel:
    """One picture of a chart."""

    height = _HEIGHT                  # of the SVG, in its units; it is 640 wide
    projection: Optional[str] = None  # of matplotlib's axes: "3d"

    def svg(self) -> str:
        raise NotImplementedError

    def draw(self, axes: Any) -> None:
        """Onto axes of matplotlib."""
        raise NotImplementedError


class Bars(Panel):
    def __init__(self, title: str, edges: Sequence[float], counts: Sequence[int], x: str, y: str) -> None:
        self.title, self.edges, self.counts, self.x, self.y = title, edges, counts, x, y

    def svg(self) -> str:
        return _bars(self.title, self.edges, self.counts, self.x, self.y)

    def draw(self, axes: Any) -> None:
        axes.bar(list(self.edges[:-1]), list(self.counts), [after - edge for edge, after in zip(self.edges, self.edges[1:])], align="edge")
        axes.set(title=self.title, xlabel=self.x, ylabel=self.y)


class Band(NamedTuple):
    """Around a line: from the least to the greatest at each x; ``bad``: where values are not finite."""
    points: Sequence[Tuple[float, float, float]]
    bad: Sequence[float]


class Lines(Panel):
    def __init__(self, title: str, named: Dict[str, Sequence[Tuple[float, float]]], x: str, y: str,
                 range_y: Optional[Tuple[float, float]] = None, dots: bool = False, bands: Optional[Dict[str, Band]] = None) -> None:
        self.title, self.named, self.x, self.y, self.range_y, self.dots, self.bands = title, named, x, y, range_y, dots, bands or {}

    def svg(self) -> str:
        return _lines(self.title, self.named, self.x, self.y, self.range_y, self.dots, self.bands)

    def draw(self, axes: Any) -> None:
        for name, line in self.named.items():
            (drawn,) = axes.plot([at for at, _ in line], [value for _, value in line], "." if self.dots else "-", label=name)
            band = self.bands.get(name)
            if band is not None:
                axes.fill_between([at for at, _, _ in band.points], [low for _, low, _ in band.points], [high for _, _, high in band.points],
                                  alpha=0.2, color=drawn.get_color())
                for at in band.bad:
                    axes.axvline(at, color="#b42318", alpha=0.4)
        axes.set(title=self.title, xlabel=self.x, ylabel=self.y)
        if self.range_y is not None:
            axes.set_ylim(*self.range_y)
        if self.named:
            axes.legend()


class Grid(Panel):
    def __init__(self, title: str, rows: Dict[str, List[Optional[float]]], x: str) -> None:
        self.title, self.rows, self.x = title, rows, x

    def svg(self) -> str:
        return _grid(self.title, self.rows, self.x)

    def draw(self, axes: Any) -> None:
        cells = [[math.nan if value is None else value for value in line] for line in self.rows.values()]
        if cells:
            axes.imshow(cells, aspect="auto", vmin=0, vmax=100, cmap="Blues", interpolation="nearest")
        axes.set(title=self.title, xlabel=self.x)
        axes.set_yticks(range(len(self.rows)), list(self.rows))


def _bars(title: str, edges: Sequence[float], counts: Sequence[int], x: str, y: str) -> str:
    high = max(counts, default=0) or 1
    to_x, to_y = _scale(edges[0], edges[-1], _LEFT, _WIDTH - _RIGHT), _scale(0, high, _HEIGHT - _BELOW, _TOP)
    out = [_frame(title, (edges[0], edges[-1], x), (0, high, y))]
    for place, count in enumerate(counts):
        if count:
            left = to_x(edges[place])
            out.append(f'<rect x="{left:.1f}" y="{to_y(count):.1f}" width="{max(0.5, to_x(edges[place + 1]) - left - 0.5):.1f}" '
                       f'height="{to_y(0) - to_y(count):.1f}" fill="{_COLOURS[0]}">'
                       f'<title>{number(edges[place])} to {number(edges[place + 1])}: {count}</title></rect>')
    return "".join(out)


def _lines(title: str, named: Dict[str, Sequence[Tuple[float, float]]], x: str, y: str, range_y: Optional[Tuple[float, float]], dots: bool,
           bands: Dict[str, Band]) -> str:
    points = [point for line in named.values() for point in line if math.isfinite(point[1])]
    points += [(at, one) for band in bands.values() for at, *ends in band.points for one in ends]
    low_x, high_x = min((at for at, _ in points), default=0.0), max((at for at, _ in points), default=1.0)
    low, high = range_y or (min((value for _, value in points), default=0.0), max((value for _, value in points), default=1.0))
    to_x, to_y = _scale(low_x, high_x, _LEFT, _WIDTH - _RIGHT), _scale(low, high, _HEIGHT - _BELOW, _TOP)
    out = [_frame(title, (low_x, high_x, x), (low, high, y))]
    for place, (name, line) in enumerate(named.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        band = bands.get(name)
        if band is not None:
            out += _band(band, to_x, to_y, colour)
        drawn = [(to_x(at), to_y(value)) for at, value in line if math.isfinite(value)]
        if dots:
            out += [f'<circle cx="{left:.1f}" cy="{top:.1f}" r="2" fill="{colour}"/>' for left, top in drawn]
        elif drawn:
            out.append(f'<path d="M{" ".join(f"{left:.1f},{top:.1f}" for left, top in drawn)}" fill="none" stroke="{colour}"/>')
        out.append(f'<text x="{_WIDTH - _RIGHT}" y="{16 + 12 * place}" text-anchor="end" fill="{colour}">{html.escape(name)}</text>')
    return "".join(out)


def _band(band: Band, to_x: Callable[[float], float], to_y: Callable[[float], float], colour: str) -> List[str]:
    out = []
    if any(low < high for _, low, high in band.points):
        around = [(at, high) for at, _, high in band.points] + [(at, low) for at, low, _ in reversed(band.points)]
        out.append(f'<polygon points="{" ".join(f"{to_x(at):.1f},{to_y(one):.1f}" for at, one in around)}" fill="{colour}" opacity="0.2"/>')
    return out + [f'<rect x="{to_x(at):.1f}" y="{_HEIGHT - _BELOW}" width="2" height="5" fill="#b42318"><title>not finite</title></rect>' for at in band.bad]


def _grid(title: str, rows: Dict[str, List[Optional[float]]], x: str) -> str:
    """Colour from 0 (white) to 100 (dark)."""
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BELOW
    left = _LEFT + 130
    columns = max((len(values) for values in rows.values()), default=1) or 1
    tall = (bottom - _TOP) / max(1, len(rows))
    out = [f'<text x="{_LEFT}" y="16" font-weight="bold">{html.escape(title)}</text>'
           f'<text x="{(left + right) / 2}" y="{bottom + 16}" text-anchor="middle">{html.escape(x)}</text>']
    for place, (name, values) in enumerate(rows.items()):
        top = _TOP + place * tall
        out.append(f'<text x="{left - 4}" y="{top + tall / 2 + 4:.1f}" text-anchor="end" font-size="{min(11, max(4, tall)):.0f}">{html.escape(name)}</text>')
        for at, value in enumerate(values):
            if value is not None and math.isfinite(value):
                share = max(0.0, min(100.0, value)) / 100.0
                out.append(f'<rect x="{left + (right - left) * at / columns:.1f}" y="{top:.1f}" width="{(right - left) / columns + 0.1:.2f}" '
                           f'height="{tall:.1f}" '
                           f'fill="rgb({round(255 - 225 * share)},{round(255 - 150 * share)},{round(255 - 75 * share)})"/>')
    return "".join(out)
