"""tools/docs_writing.py: what a sentence, a cell and a line of help are, and that the list of pages only shrinks."""

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import docs_writing as writing  # noqa: E402


@pytest.mark.parametrize("text, expected", [
    ("One two three. Four five!\nSix\nseven? Eight", [3, 2, 2, 1]),
    ("Use `tocsin check --strict x.yaml` first.", [3]),  # a span of code is one word
    ("Code ``with ` inside. And a dot`` ends here.", [4]),
    ("It is `exact`. So it stops.", [3, 3]),
    ("Read [the long page](docs/page.md) or [another][ref].", [6]),  # what a link shows, not where it leads
    ("![a picture of it](images/a.svg)\n", []),
    ("# A heading. With a dot\n\nWords here.", [2]),
    ("Numbers, e.g. 3.5 ms, i.e. few, are fine. So it is.", [8, 3]),
    ("Files, folders etc. are kept. All of them.", [5, 3]),
    ("A list of:\n\n- one thing\n- another\n  thing here\n1. third\n", [3, 2, 3, 1]),
    ("- Bullet one. It has two.\n  - Below it\n", [2, 3, 2]),
    ("**A lead-in.** Then words.\n\n**Other**: more words here.", [2, 3]),
    ("He said **so.** And left.", [3, 2]),  # bold inside of a paragraph is no lead-in
    ("Text (in brackets.) Next one.", [3, 2]),
    ("> quoted words\n> go on. End.", [4, 1]),
    ("One – two — three.", [3]),  # a dash is no word
    ("Before.\n```sh\nthis is. not counted. at all\n```\nAfter it.", [1, 2]),
    ("- item\n\n  ```yaml\n  key: value. more\n  ```\n\n  goes on\n", [1, 2]),
    ("| Key | Meaning |\n|---|---|\n| a | many words here. And more |\n", []),
    ("Mine.\n<!-- config:begin rules -->\n\nNot mine at all. Nor this.\n\n<!-- config:end -->\nMine too.", [1, 2]),
    ("Words <!-- a remark. Not seen --> go on.<br>Next.", [3, 1]),
])
def test_sentences(text, expected):
    assert writing.sentences(text) == expected


def test_cells_are_counted_between_bars_that_are_neither_code_nor_escaped():
    text = "| Key | Meaning |\n|---|---|\n| `a|b` | one [two three](x.md) four |\n| c | either \\| or |\n"
    assert max(writing.cells(text)) == 4
    assert writing.cells("| `a|b` | one two |\n") == [0, 1, 2, 0]
    assert writing.cells("```\n| not | a table |\n```\n") == []
    assert writing.cells("<!-- table:begin -->\n| made | by a program |\n<!-- table:end -->\n") == []


def test_figures_of_a_page():
    page = "# Title\n\nOne two three. Four.\n\n| a b | c |\n|---|---|\n\n<!-- config:begin -->\n\n| k |\n\n<!-- config:end -->\n"
    assert writing.measured(page) == writing.Figures(mean=2.0, sentence=3, cell=2, lines=7)
    assert writing.measured("# Only a heading\n") == writing.Figures(0.0, 0, 0, 1)


def test_the_change_log_may_be_long(tmp_path):
    for name in ("CHANGELOG.md", "page.md"):
        (tmp_path / name).write_text("Words.\n" * 300)
    assert writing.figures_of(tmp_path / "CHANGELOG.md", tmp_path).lines == 0
    assert writing.figures_of(tmp_path / "page.md", tmp_path).lines == 300


def test_the_first_screen_fits():
    """The README: at most 150 lines, and three pictures, each in a light and a dark form."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 150
    pictures = re.findall(r'(?:srcset|src)="(docs/images/[^"]+)"', page)
    assert len(pictures) == 6 and all((ROOT / picture).exists() for picture in pictures)


# ---- limits, and the list

GOOD = writing.Figures(12.0, 30, 9, 100)


def found(tmp_path, figures, listed="", write=False):
    """The problems, and what stands in the list afterwards."""
    path = tmp_path / "writing.txt"
    path.write_text(writing.HEAD + listed)
    problems = list(writing.problems(figures, path, write))
    return problems, path.read_text()[len(writing.HEAD):]


@pytest.mark.parametrize("figures, problem", [
    (GOOD._replace(mean=20.1), "a.md: 20.1 words per sentence, allowed are 20.0"),
    (GOOD._replace(sentence=41), "a.md: 41 words in the longest sentence, allowed are 40"),
    (GOOD._replace(cell=26), "a.md: 26 words in the longest cell, allowed are 25"),
    (GOOD._replace(lines=251), "a.md: 251 lines, allowed are 250"),
])
def test_each_limit_is_one(tmp_path, figures, problem):
    assert found(tmp_path, {"a.md": figures})[0] == [problem]
    assert found(tmp_path, {"a.md": writing.LIMITS})[0] == []


def test_a_listed_page_may_stay_and_may_not_get_worse(tmp_path):
    listed = " 23.5    -   44    -  a.md\n"
    today = GOOD._replace(mean=23.5, cell=44)
    assert found(tmp_path, {"a.md": today}, listed) == ([], listed)
    assert found(tmp_path, {"a.md": today._replace(mean=23.6)}, listed)[0] == [
        "a.md: 23.6 words per sentence, allowed are 23.5 (writing.txt)"]
    assert found(tmp_path, {"a.md": today._replace(sentence=41)}, listed)[0] == [
        "a.md: 41 words in the longest sentence, allowed are 40"]


@pytest.mark.parametrize("figures, lowered", [
    ({"a.md": GOOD._replace(mean=23.4, cell=44)}, " 23.4    -   44    -  a.md\n"),
    ({"a.md": GOOD._replace(mean=23.5)}, " 23.5    -    -    -  a.md\n"),
    ({"a.md": GOOD}, ""),
    ({}, ""),  # the page is gone
])
def test_a_page_that_got_better_is_lowered(tmp_path, figures, lowered):
    listed = " 23.5    -   44    -  a.md\n"
    problems, text = found(tmp_path, figures, listed)
    assert len(problems) == 1 and "is not lowered" in problems[0] and text == listed
    assert found(tmp_path, figures, listed, write=True) == ([], lowered)


def test_writing_never_raises_a_figure(tmp_path):
    listed = " 23.5    -    -    -  a.md\n"
    worse = GOOD._replace(mean=25.0, cell=90)
    problems, text = found(tmp_path, {"a.md": worse, "new.md": worse}, listed, write=True)
    assert len(problems) == 4 and text == listed


def test_of_a_page_that_a_merge_listed_twice_the_lower_figures_count(tmp_path):
    listed = " 23.5    -   44    -  a.md\n 22.0   61    -    -  a.md\n"
    problems, text = found(tmp_path, {"a.md": GOOD._replace(mean=22.0)}, listed, write=True)
    assert problems == [] and text == " 22.0    -    -    -  a.md\n"


def test_a_line_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="not four figures and a page"):
        found(tmp_path, {"a.md": GOOD}, "23.5 a.md\n")


# ---- help

HELP = """\
Show everything about one issue
Usage: tocsin issues show [OPTIONS] id

Positionals:
  id ID REQUIRED              Issue ID from the list

Options:
  --at TIME Excludes: --judge Show it as it was then
  -o,--output FORMAT:{text,json} Needs: --from
                              Write in this format
  -h,--help                   Print this help and exit

Subcommands:
  list                        List open issues

Exit codes:
  0   done
"""


def test_help_is_read_line_by_line():
    assert dict(writing.options(HELP)) == {"--at": "Show it as it was then", "-o,--output": "Write in this format",
                                           "-h,--help": "Print this help and exit"}
    assert writing.subcommands(HELP) == {"list": "List open issues"}
    assert list(writing.help_problems("tocsin issues show", HELP)) == []


@pytest.mark.parametrize("right, wrong, where", [
    ("Show everything", "All there is", "tocsin x --help:"),
    ("Show it as", "The page as", "tocsin x --help --at:"),
    ("Write in this format", "format of it", "tocsin x --help -o,--output:"),
    ("List open issues", "issues that are open", "tocsin x --help list:"),
    ("List open issues", "list open issues", "tocsin x --help list:"),  # a capital letter
    ("List open issues", "List open issues.", "tocsin x --help list: ends with a full stop"),
])
def test_a_line_of_help_that_is_no_imperative_is_named(right, wrong, where):
    problems = list(writing.help_problems("tocsin x", HELP.replace(right, wrong)))
    assert len(problems) == 1 and problems[0].startswith(where)


def test_the_help_of_every_command_is_asked_for():
    texts = {("--help",): HELP, ("list", "--help"): "Open issues\nUsage: tocsin list\n"}
    problems = list(writing.all_help_problems(lambda *arguments: texts[arguments]))
    assert len(problems) == 1 and problems[0].startswith("tocsin list --help: begins with Open")
