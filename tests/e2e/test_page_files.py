"""The page's committed files are those that its sources make: told without Node by their hashes, with npm byte by byte."""
import gzip
import hashlib
import pathlib
import shutil
import subprocess

import pytest

WEB = pathlib.Path(__file__).resolve().parents[2] / "insights" / "web"


def test_the_built_files_are_of_these_sources():
    listed = dict(reversed(line.split(maxsplit=1)) for line in (WEB / "dist" / "inputs.sha256").read_text().splitlines())
    there = {"build.mjs", "package-lock.json", "tsconfig.json", *(f"src/{path.name}" for path in (WEB / "src").iterdir())}
    assert set(listed) == there, "build the page again: cd insights/web && npm ci && npm run build"
    for name, wanted in listed.items():
        assert hashlib.sha256((WEB / name).read_bytes()).hexdigest() == wanted, f"{name} has changed: build the page again"


def test_files_are_small():
    """As they travel: 80 kB by Brotli is the design's budget, and gzip makes more of them."""
    assert sum(len(gzip.compress((WEB / "dist" / name).read_bytes(), 9)) for name in ("app.js", "app.css", "index.html")) < 80_000
    for path in (WEB / "src").iterdir():
        assert len(path.read_text().splitlines()) <= 300, path


def test_no_source_writes_html_or_names_another_server():
    for path in (WEB / "src").iterdir():
        text = path.read_text()
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
