"""tests/complaints.md has each complaint once, and each test that it names."""
import pathlib
import re

TESTS = pathlib.Path(__file__).resolve().parents[1]


def test_no_number_is_missing_and_each_test_is_there():
    rows = [line.split("|") for line in (TESTS / "complaints.md").read_text().splitlines() if re.match(r"\| U\d", line)]
    assert [row[1].strip() for row in rows] == [f"U{number:02}" for number in range(1, 52)]
    known = "\n".join(path.read_text() for folder in ("e2e", "unit") for path in (TESTS / folder).rglob("*") if path.suffix in (".py", ".cc"))
    for row in rows:
        shown = row[3].strip()
        named = re.findall(r"`(test_\w+|[A-Z]\w+)`", shown)
        assert named or "Open" in shown or "bench/" in shown, f"{row[1]}: neither a test nor what is missing"
        for name in named:
            assert re.search(rf"def {name}\b|, {name}\)|class {name}\b", known), f"{row[1]}: no test {name}"
