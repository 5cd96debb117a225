"""The page's committed files are those that its sources make: told without Node by their hashes, with npm byte by byte."""
import gzip
import hashlib
import itertools
import pathlib
import re
import shutil
import subprocess

import numpy
import pytest

WEB = pathlib.Path(__file__).resolve().parents[2] / "insights" / "web"


def test_the_built_files_are_of_these_sources():
    listed = dict(reversed(line.split(maxsplit=1)) for line in (WEB / "dist" / "inputs.sha256").read_text().splitlines())
    there = {"build.mjs", "package-lock.json", "tsconfig.json", *(f"src/{path.name}" for path in (WEB / "src").iterdir())}
    assert set(listed) == there, "build the page again: cd insights/web && npm ci && npm run build"
    for name, wanted in listed.items():
        assert hashlib.sha256((WEB / name).read_bytes()).hexdigest() == wanted, f"{name} has changed: build the page again"


def test_files_are_small():
    """80 kB by Brotli for the first screens and 120 for all are the design's budgets. Gzip, as they travel, makes an eighth more; in
    November 2026 Brotli made 71.5 and 92.4 kB of them."""
    def packed(*names):
        return sum(len(gzip.compress((WEB / "dist" / name).read_bytes(), 9)) for name in names)

    first = ("app.js", "chunk.js", "app.css", "index.html")
    assert packed(*first) < 90_000
    assert packed(*first, "heavy.js") < 130_000
    assert {path.name for path in (WEB / "dist").iterdir()} == {*first, "heavy.js", "LICENSES.txt", "inputs.sha256"}, "each is embedded"
    for path in (WEB / "src").iterdir():
        assert len(path.read_text().splitlines()) <= 300, path


def test_no_source_writes_html_or_names_another_server():
    for path in (WEB / "src").iterdir():
        text = path.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")  # the name of a language: nothing is asked there
        assert "innerHTML" not in text and "dangerouslySetInnerHTML" not in text, path
        assert "https://" not in text and "http://" not in text, path


@pytest.mark.skipif(not shutil.which("npm"), reason="npm is not here")
def test_a_new_build_gives_the_same_bytes(tmp_path):
    for name in ("build.mjs", "package.json", "package-lock.json", "tsconfig.json", "src"):
        (shutil.copytree if (WEB / name).is_dir() else shutil.copy)(WEB / name, tmp_path / name)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=tmp_path, check=True, capture_output=True, timeout=240)
    subprocess.run(["node", "build.mjs"], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    built = {path.name: path.read_bytes() for path in (tmp_path / "dist").iterdir()}
    assert built == {path.name: path.read_bytes() for path in (WEB / "dist").iterdir()}


# Machado and others (2009), at full strength: what is seen without red, green and blue cones.
SIGHTS = {"all": numpy.eye(3),
          "protanopia": numpy.array([[.152286, 1.052583, -.204868], [.114503, .786281, .099216], [-.003882, -.048116, 1.051998]]),
          "deuteranopia": numpy.array([[.367322, .860646, -.227968], [.280085, .672501, .047413], [-.011820, .042940, .968881]]),
          "tritanopia": numpy.array([[1.255528, -.076749, -.178779], [-.078411, .930809, .147602], [.004733, .691367, .303900]])}
TO_XYZ = numpy.array([[.4124564, .3575761, .1804375], [.2126729, .7151522, .0721750], [.0193339, .1191920, .9503041]])


def light_of(colour):
    """Linear red, green and blue of "#rrggbb"."""
    values = numpy.array([int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)])
    return numpy.where(values <= .04045, values / 12.92, ((values + .055) / 1.055) ** 2.4)


def lab_of(light):
    """CIE L*a*b*, D65: a distance of 2 can just be seen side by side."""
    xyz = TO_XYZ @ light / [.95047, 1, 1.08883]
    x, y, z = numpy.where(xyz > .008856, numpy.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return numpy.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme,ground", [("light", "#ffffff"), ("dark", "#1d2125")])
def test_u26_eight_lines_are_told_apart_with_each_kind_of_sight(theme, ground):
    text = (WEB / "src" / "colours.ts").read_text()
    colours = re.findall(r"#[0-9a-f]{6}", re.search(theme + r": \[(.*?)\]", text, re.DOTALL).group(1))
    assert len(colours) == 8
    for sight, matrix in SIGHTS.items():
        seen = [lab_of(numpy.clip(matrix @ light_of(colour), 0, 1)) for colour in colours]
        for (i, a), (j, b) in itertools.combinations(enumerate(seen), 2):
            assert numpy.linalg.norm(a - b) > 20, f"{colours[i]} and {colours[j]} with {sight}"
    behind = (TO_XYZ @ light_of(ground))[1]
    for colour in colours:
        bright, dim = sorted([(TO_XYZ @ light_of(colour))[1] + .05, behind + .05], reverse=True)
        assert bright / dim >= 3, f"{colour} on {ground}"
