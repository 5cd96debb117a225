"""The head of a built-in part says what it does, line by line: it is the part's specification."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORDS = {"rules": ("Reads", "Window", "Fires", "Quiet", "Source"), "actions": ("Sends", "Retries", "Source"),
         "collectors": ("Gathers", "Every", "Cost", "Source")}
PARTS = [(room, path.relative_to(ROOT).as_posix()) for room in WORDS for path in sorted((ROOT / room / "builtin").glob("*.cc"))]


def head(text):
    return re.match(r"(?://.*\n)*", text)[0]


@pytest.mark.parametrize("room, path", PARTS)
def test_a_head_has_its_lines(room, path):
    lines = head((ROOT / path).read_text()).splitlines()
    assert re.match(r"// [A-Z]", lines[0]), "what it does, in one sentence"
    for word in WORDS[room]:
        assert any(re.match(rf"// {word} {{2,}}\S", line) for line in lines), f"no line `// {word}   …`"
    # A word that a formatter moved into the line before it is a line that is missing.
    for line in lines:
        assert not re.search(r"[^/ ] {1,2}(?:Reads|Window|Fires|Quiet|Sends|Retries|Idempotent|Needs|Gathers|Source) {2,}", line), line
