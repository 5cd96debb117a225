"""tools/lib/named_files.py: names of files in pages and comments that lead nowhere."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lib"))

import named_files  # noqa: E402

FILES = {"rules/engine.cc": "", "rules/engine.h": "", "rules/builtin/all_zero.cc": "", "rules/README.md": "", "tools/kafka": "",
         "bench/decode_bench.cc": "", "docs/rules/all_zero.md": "", "README.md": ""}


def missing(folder, **texts):
    files = {**FILES, **{name.replace("__", "/"): text for name, text in texts.items()}}
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [problem.split(": ", 1)[1].split(" does")[0] for problem in named_files.missing(folder, sorted(files))]


@pytest.mark.parametrize("text", [
    "`rules/engine.cc`", "see rules/engine.{h,cc}", "`rules/builtin/<name>.cc`", "`builtin/all_zero.cc`", "`engine.h`", "`engine.*`",
    "`tools/kafka`", "`bench/decode_bench`", "`rules/builtin/`", "[rules](docs/rules/all_zero.md)", "https://example.com/rules/none.cc",
    "`/etc/rules/none.cc`", "`train.py`", "`telemetry.db`",
])
def test_what_is_there_is_quiet(tmp_path, text):
    assert missing(tmp_path, **{"docs__a.md": text}) == []


@pytest.mark.parametrize("text, name", [
    ("`rules/gone.cc`", "rules/gone.cc"), ("see rules/engine.{h,py}", "rules/engine.{h,py}"), ("`rules/gone/<name>.cc`", "rules/gone/<name>.cc"),
    ("`gone.h`", "gone.h"), ("`tools/gone`", "tools/gone"), ("`rules/gone/`", "rules/gone"), ("in docs/rules/gone.md.", "docs/rules/gone.md"),
])
def test_what_is_not_is_named(tmp_path, text, name):
    assert missing(tmp_path, **{"docs__a.md": text}) == [name]


def test_comments_are_read_and_includes_are_the_compilers(tmp_path):
    assert missing(tmp_path, **{"rules__a.cc": '#include "rules/gone.h"\n// As rules/lost.h and state.cc say, engine.cc does not.\n'}) == [
        "rules/lost.h", "state.cc"]
    assert missing(tmp_path, **{"rules__a.cc": "#include <hwy/each.h>\n// After each.h, as they ask.\n"}) == []


def test_the_changelog_speaks_of_what_was(tmp_path):
    assert missing(tmp_path, **{"CHANGELOG.md": "`rules/gone.cc`"}) == []
