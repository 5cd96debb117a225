"""The pages that say which test shows which promise have each number once, and name tests that are there."""
import pytest

from tests.support.named_tests import is_there, named, rows


def test_no_complaint_is_missing_and_each_test_is_there():
    found = rows("complaints.md", "U")
    assert [number for number, _, _ in found] == [f"U{number:02}" for number in range(1, 52)]
    for number, _, shown in found:
        assert named(shown) or "Open" in shown or "bench/" in shown, f"{number}: neither a test nor what is missing"
        assert [name for name in named(shown) if not is_there(name)] == [], number


@pytest.mark.parametrize(("letter", "count"), [("W", 18), ("R", 12), ("A", 12)])
def test_what_alertmanager_lacks_is_shown_by_tests_that_are_there(letter, count):
    found = rows("alertmanager.md", letter)
    assert [number for number, _, _ in found] == [f"{letter}{number}" for number in range(1, count + 1)]
    for number, _, shown in found:
        assert named(shown), f"{number}: no test"
        assert [name for name in named(shown) if not is_there(name)] == [], number


@pytest.mark.parametrize(("letter", "count"), [("H", 23), ("I", 17), ("J", 13), ("K", 14)])
def test_what_the_debugger_does_is_shown_by_tests_that_are_there(letter, count):
    found = rows("debugger.md", letter)
    assert [number for number, _, _ in found] == [f"{letter}{number}" for number in range(1, count + 1)]
    for number, _, shown in [*found, *rows("debugger.md", "LM")]:
        assert named(shown), f"{number}: no test"
        assert [name for name in named(shown) if not is_there(name)] == [], number


def test_a_name_of_no_test_is_found_out():
    assert not is_there("test_of_a_promise_that_nobody_" + "keeps") and is_there("test_a_name_of_no_test_is_found_out")
