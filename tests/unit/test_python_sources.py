"""What Python would warn of when a user imports the package for the first time (since 3.12 on stderr) is an error here."""

import pathlib
import warnings

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = [path.relative_to(ROOT).as_posix() for folder in ("python", "tools", "bench", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize("source", SOURCES)
def test_it_compiles_without_a_warning(source):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compile((ROOT / source).read_text(encoding="utf-8"), source, "exec")
