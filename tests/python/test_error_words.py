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
    said = words_of(raised(inner))
    assert said == f"JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1) ({pathlib.Path(__file__).name}:{line} in inner)"


def test_a_long_text_keeps_its_place_and_further_lines_follow():
    def fail():
        raise RuntimeError("x" * 1000 + "\nsecond\nthird")

    first, *rest = words_of(raised(fail)).splitlines()
    assert len(first) < 260 and first.startswith("RuntimeError: xxx") and first.endswith(" in fail)") and rest == ["second", "third"]
    assert len(words_of(raised(lambda: int("7" * 4000 + "\n" + "y" * 4000)))) <= 500


def test_code_without_a_file_has_no_place():
    error = raised(lambda: exec(compile("1 / 0", "<string>", "exec"), {}))  # noqa: S102
    assert words_of(error).startswith("ZeroDivisionError: division by zero")
    assert place_of(None) is None


def test_an_exception_whose_text_cannot_be_made_is_told_by_its_kind():
    class Odd(Exception):
        def __str__(self):
            raise ValueError("no text")

    assert words_of(raised(lambda: (_ for _ in ()).throw(Odd()))).startswith("Odd")
