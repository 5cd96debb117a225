"""The picture of the house is what tests/layers.txt says."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

import check_layers  # noqa: E402
import docs_house  # noqa: E402

LAYERS = """
[rooms]
core:
rules: core
app: core rules

[inner]
core: # values
rules: run state  # the door
rules/run: state | series.h  # series
rules/state: | state.h  # what is remembered
app: # the program
"""


@pytest.fixture()
def house(monkeypatch):
    monkeypatch.setattr(docs_house, "layers", lambda: check_layers.Rules(LAYERS))


def filled(what):
    return docs_house.with_house(f"<!-- house:begin {what} -->\nold\n<!-- house:end -->")


def test_an_arrow_that_a_longer_way_stands_for_is_not_drawn(house):
    picture = filled("rooms")
    assert "  rules --> core\n" in picture and "  app --> rules\n" in picture
    assert "app --> core" not in picture and "old" not in picture


def test_inner_rooms_stand_in_the_order_in_which_they_know_each_other(house):
    rows = [line for line in filled("rules").splitlines() if line.startswith("| `")]
    assert rows == ["| `state` | what is remembered | – |", "| `run` | series | `state` |", "| `.` | the door | `run` |"]


def test_a_room_that_is_none_is_refused(house):
    with pytest.raises(SystemExit, match="there is no room kitchen"):
        filled("kitchen")


def test_the_pages_have_it():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert docs_house.with_house(text) == text
    for room in ("rules", "app", "actions", "routing", "collectors", "collectors/hook", "ingest"):
        page = (ROOT / room / "README.md").read_text(encoding="utf-8")
        assert f"<!-- house:begin {room} -->" in page
        assert docs_house.with_house(page) == page
