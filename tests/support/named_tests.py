"""The tests that a page of promises names: are they there?"""
import functools
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]


@functools.cache
def _sources():
    folders = ("contract", "e2e", "integration", "python", "simulation", "tools", "unit")
    return "\n".join(path.read_text() for folder in folders for path in (TESTS / folder).rglob("*") if path.suffix in (".py", ".cc"))


def rows(page, letters):
    """[number, promise, what shows it] of each row whose number is one of `letters` and digits, in the order of the page."""
    cells = [line.split("|") for line in (TESTS / page).read_text().splitlines() if re.match(rf"\| [{letters}]\d+ \|", line)]
    return [[cell.strip() for cell in row[1:4]] for row in cells]


def named(shown):
    """Names of tests in a cell: Python's, a class, or the second word of a GoogleTest."""
    return re.findall(r"`(test_\w+|[A-Z]\w+)`", shown)


def is_there(name):
    return re.search(rf"def {name}\b|, {name}\)|class {name}\b", _sources()) is not None
