"""tests/crash-points.md has a row for each point, and each row names tests that exist."""
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]
POINTS = [f"K{number}" for number in range(1, 18)]


def rows():
    lines = [line.split("|")[1:-1] for line in (TESTS / "crash-points.md").read_text().splitlines() if line.startswith("| K")]
    return {cells[0].strip(): cells[-1] for cells in lines}


def cpp():
    """The text of every C++ test."""
    return "\n".join(path.read_text() for folder in ("unit", "contract", "simulation", "integration") for path in (TESTS / folder).rglob("*.cc"))


def proofs(point, cell, sources):
    """The tests that a row names; a name that leads nowhere is an error."""
    found = []
    for name in re.findall(r"`([^`]+)`", cell):
        if name.startswith("e2e/"):
            path, _, test = name.partition("::")
            text = (TESTS / path).read_text()
            own = re.findall(rf"^def (test_\w*{point.lower()}_\w+)", text, re.M)
            assert (test and f"def {test}(" in text) or own or (not test and path == "e2e/test_leaders.py"), f"{point}: no test of it in {path}"
            found.append(name)
        elif re.match(r"[A-Z]\w+\.", name):
            suite, test = name.rstrip("….").split(".")
            assert re.search(rf"TEST(_F|_P)?\({suite}, {test}", sources), f"{point}: no test {name}"
            found.append(name)
        elif name.endswith("_test") or "_" in name:
            assert name in sources or list(TESTS.rglob(f"{name}.cc")), f"{point}: nothing is called {name}"
            found.append(name)
    return found


def test_each_point_has_a_test_that_exists():
    table, sources = rows(), cpp()
    assert list(table) == POINTS
    for point in POINTS:
        cell = table[point]
        if cell.strip() == "the same":
            cell = table[POINTS[POINTS.index(point) - 1]]
        elif "each restart above" in cell:
            continue
        assert proofs(point, cell, sources), f"{point} names no test"
