"""What one more chat tool takes: its source, its test, its page and its line, as a person writes them."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST = 120
CHATS = sorted(path.stem for path in (ROOT / "actions/builtin").glob("*.cc") if "chat_descriptor(" in path.read_text())


def lines_of(name):
    page = (ROOT / f"docs/actions/{name}.md").read_text()
    written = re.sub(r"<!-- config:begin -->.*?<!-- config:end -->\n", "", page, flags=re.S)
    assert len(written) < len(page), "the page has its table"
    registered = re.findall(rf"^builtin_action\({name}\)$", (ROOT / "actions/CMakeLists.txt").read_text(), flags=re.M)
    texts = [(ROOT / f"actions/builtin/{name}.cc").read_text(), (ROOT / f"tests/unit/actions/{name}_test.cc").read_text(), written]
    return sum(len(text.splitlines()) for text in texts) + len(registered)


def test_the_chat_to_copy_is_the_smallest_and_stays_small():
    assert "mattermost.cc" in (ROOT / "CONTRIBUTING.md").read_text()
    sizes = {name: lines_of(name) for name in CHATS}
    assert len(sizes) >= 6
    assert min(sizes, key=sizes.get) == "mattermost", sizes
    assert sizes["mattermost"] < MOST, sizes


@pytest.mark.parametrize("part", ["source", "test", "page"])
def test_it_has_each_of_its_parts(part):
    path = {"source": "actions/builtin/mattermost.cc", "test": "tests/unit/actions/mattermost_test.cc", "page": "docs/actions/mattermost.md"}[part]
    text = re.sub(r"<!-- config:begin -->.*?<!-- config:end -->", "", (ROOT / path).read_text(), flags=re.S)
    needed = {"source": "Change:", "test": "EXPECT_", "page": "## Limits"}[part]
    assert needed in text and max(map(len, text.splitlines())) <= 180, "short by its content, not by long lines"
