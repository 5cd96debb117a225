"""What is told of an exception that ended a script."""
import json
import pathlib

from tocsin.process.error_words import place_of, words_of


def raised(function):
    try:
        function()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_the_place_is_the_innermost_line_of_the_scripts_own_code():
    def inner():
        json.loads("{")  # raises within the standard library

    line = inner.__code__.co_firstlineno + 1
    said, *calls = words_of(raised(inner)).splitlines()
    name = pathlib.Path(__file__).name
    assert calls[:3] == ["Traceback (most recent call last):", f"  {name}:{raised.__code__.co_firstlineno + 2} in raised", f"  {name}:{line} in inner"]
    assert [call.split(":")[0] for call in calls[3:]] == ["  json/__init__.py", "  json/decoder.py", "  json/decoder.py"]
    assert said == f"JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1) ({pathlib.Path(__file__).name}:{line} in inner)"


def test_a_long_text_keeps_its_place_and_further_lines_follow():
    def fail():
        raise RuntimeError("x" * 1000 + "\nsecond\nthird")

    first, *rest = words_of(raised(fail)).splitlines()
    assert len(first) < 260 and first.startswith("RuntimeError: xxx") and first.endswith(" in fail)") and rest[:3] == ["second", "third", "Traceback (most recent call last):"]

    def fail_at_length():
        raise RuntimeError("ü" * 3000 + "\n" + "y" * 4000)
    assert len(words_of(raised(fail_at_length)).encode()) <= 2000


def test_of_a_deep_stack_the_innermost_calls_stay():
    def down(depth):
        return 1 / 0 if depth == 0 else down(depth - 1)
    line = down.__code__.co_firstlineno + 1
    lines = words_of(raised(lambda: down(100))).splitlines()
    assert lines[1:3] == ["Traceback (most recent call last):", "  … 91 calls above"]  # raised, the lambda, and down 101 times
    assert lines[3:] == [f"  {pathlib.Path(__file__).name}:{line} in down"] * 12
    wide = compile(f"def {'f' * 900}(depth): return 1 / 0 if depth == 0 else {'f' * 900}(depth - 1)", "wide.py", "exec")
    names = {}
    exec(wide, names)  # noqa: S102
    said = words_of(raised(lambda: names["f" * 900](9)))
    assert len(said.encode()) <= 2000 and said.splitlines()[-1].startswith("  wide.py:1 in fff")


def test_what_led_to_an_exception_is_told_with_its_place():
    def load():
        try:
            {}["images"]
        except KeyError as error:
            raise ValueError("no such column") from error

    def hidden():
        try:
            {}["images"]
        except KeyError:
            raise ValueError("no such column") from None
    line = load.__code__.co_firstlineno + 2
    assert f"Caused by KeyError: 'images' ({pathlib.Path(__file__).name}:{line} in load)" in words_of(raised(load)).splitlines()
    assert "Caused by" not in words_of(raised(hidden))
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first  # a ring ends
    assert words_of(first) == "ValueError: a\nCaused by ValueError: b"


def test_values_and_lines_of_source_stay_where_they_are():
    def fail():
        token = "sesame-open"  # noqa: S105
        return {"token": token}["missing"]
    assert "sesame" not in words_of(raised(fail)) and 'return {"token"' not in words_of(raised(fail))


def test_code_without_a_file_has_no_place():
    error = raised(lambda: exec(compile("1 / 0", "<string>", "exec"), {}))  # noqa: S102
    assert words_of(error).startswith("ZeroDivisionError: division by zero")
    assert place_of(None) is None


def test_an_exception_whose_text_cannot_be_made_is_told_by_its_kind():
    class Odd(Exception):
        def __str__(self):
            raise ValueError("no text")

    assert words_of(raised(lambda: (_ for _ in ()).throw(Odd()))).startswith("Odd")
