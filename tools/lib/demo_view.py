"""How the demo looks: lines that stay, and on a terminal one line that moves."""

import math
import os
import shutil
import sys
import time

CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
BLOCKS = "▁▂▃▄▅▆▇█"


class View:
    """Without a terminal (or with NO_COLOR) the same text, plain; the moving line becomes one per second."""

    def __init__(self, out=None):
        self.out = out or sys.stdout
        self.live = self.out.isatty() and os.environ.get("TERM") != "dumb"
        self.color = self.live and not os.environ.get("NO_COLOR")
        self.unicode = (self.out.encoding or "").lower().replace("-", "") == "utf8"
        self._status_shown, self._status_at = False, 0.0

    def paint(self, text, *styles):
        if not self.color or not styles:
            return text
        return f"\033[{';'.join(CODES[style] for style in styles)}m{text}\033[0m"

    def line(self, text=""):
        self._clear()
        print(text, file=self.out, flush=True)

    def title(self, text):
        self.line()
        self.line(self.paint(text, "bold"))

    def step(self, mark, text, *styles):
        self.line(f"  {self.paint(mark, *styles, 'bold')} {self.paint(text, *styles)}")

    def status(self, text, every=1.0):
        """The moving line; where nothing can move, a line every second."""
        now = time.monotonic()
        if self.live:
            width = shutil.get_terminal_size().columns - 1
            print(f"\r\033[K{text[:width]}", end="", file=self.out, flush=True)
            self._status_shown = True
        elif now - self._status_at >= every:
            self._status_at = now
            print(text, file=self.out, flush=True)

    def _clear(self):
        if self._status_shown:
            print("\r\033[K", end="", file=self.out)
            self._status_shown = False

    def table(self, headings, rows, right=()):
        widths = [max(len(str(row[i])) for row in [headings, *rows]) for i in range(len(headings))]

        def cells(row):
            padded = [str(cell).rjust(w) if i in right else str(cell).ljust(w)
                      for i, (cell, w) in enumerate(zip(row, widths))]
            return "  " + "  ".join(padded).rstrip()

        self.line(self.paint(cells(headings), "dim"))
        for row in rows:
            self.line(cells(row))

    def sparkline(self, values, width=24):
        """The whole course of a positive number, on a logarithmic scale; values that are none are marked."""
        if not self.unicode or not values:
            return ""
        shown = values if len(values) <= width else [values[i * (len(values) - 1) // (width - 1)] for i in range(width)]
        logs = [math.log(value) if 0 < value < math.inf else None for value in shown]
        known = [value for value in logs if value is not None] or [0.0]
        low, span = min(known), max(max(known) - min(known), 0.1)
        return "".join("×" if value is None else BLOCKS[int(7 * (value - low) / span)] for value in logs)
