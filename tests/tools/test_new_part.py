"""A new part as a newcomer registers it: configuring names every file that it still lacks, in seconds."""
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHAPTERS = {"rule": "A rule in fifteen minutes", "action": "An action, a collector", "collector": "An action, a collector"}
GENERATOR = "tests/reference/random_streams/rows.py"
FILES = {
    "rule": ["rules/builtin/losses/novel.cc", "tests/unit/rules/novel_test.cc", "docs/rules/novel.md",
             "tests/reference/rules/novel.py", "tests/reference/tables/novel.yaml", GENERATOR],
    "action": ["actions/builtin/novel.cc", "tests/unit/actions/novel_test.cc", "docs/actions/novel.md"],
    "collector": ["collectors/node/builtin/novel.cc", "tests/unit/collectors/novel_test.cc", "docs/collectors/novel.md"],
}
LINES = {"rule": "builtin_rule(losses/novel)", "action": "builtin_action(novel)", "collector": "builtin_collector(novel)"}


def own_words(kind):
    """What the room's own CMakeLists.txt says of a part of this kind: its macro, and the line that closes the list."""
    text = (ROOT / f"{kind}s" / "CMakeLists.txt").read_text()
    macro = re.search(rf"^(macro|function)\(builtin_{kind} name\)\n.*?^end\1\(\)\n", text, re.MULTILINE | re.DOTALL)[0]
    return macro, re.search(rf"^tocsin_builtin_table\({kind}s {kind} .*\)$", text, re.MULTILINE)[0]


def configure(folder, kind, files, line):
    """Exit code and output of configuring a tree with this part alone."""
    macro, table = own_words(kind)
    for name in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def novel(chance):\n" if name == GENERATOR else "")
    (folder / "cmake").mkdir()
    shutil.copy(ROOT / "cmake" / "TocsinRoom.cmake", folder / "cmake")
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\nproject(novel LANGUAGES NONE)\ninclude(cmake/TocsinRoom.cmake)\n"
        f"add_subdirectory({kind}s)\n")
    (folder / f"{kind}s").mkdir(exist_ok=True)
    (folder / f"{kind}s" / "CMakeLists.txt").write_text(f"add_custom_target(tocsin_{kind}s)\n{macro}{line}\n{table}\n")
    ran = subprocess.run(["cmake", "-S", folder, "-B", folder / "build"], capture_output=True, text=True, timeout=120, check=False)
    return ran.returncode, ran.stderr


@pytest.mark.parametrize("kind", FILES)
def test_a_whole_part_configures(tmp_path, kind):
    code, said = configure(tmp_path, kind, FILES[kind], LINES[kind])
    assert code == 0, said
    assert "novel(),\n" in (tmp_path / "build" / f"{kind}s" / f"{kind}s_table.cc").read_text()


@pytest.mark.parametrize("kind, lacking", [(kind, name) for kind, names in FILES.items() for name in names])
def test_the_missing_file_is_named(tmp_path, kind, lacking):
    code, said = configure(tmp_path, kind, [name for name in FILES[kind] if name != lacking], LINES[kind])
    assert code != 0
    named = re.findall(r"^ +([\w/<>.]+): ", said, re.MULTILINE)
    assert named == ["tests/reference/random_streams/<any>.py" if lacking == GENERATOR else lacking], said
    assert CHAPTERS[kind] in said


@pytest.mark.parametrize("kind", FILES)
def test_all_missing_files_are_named_at_once(tmp_path, kind):
    code, said = configure(tmp_path, kind, [], LINES[kind])
    assert code != 0
    assert len(re.findall(r"^ +([\w/<>.]+): ", said, re.MULTILINE)) == len(FILES[kind]), said


@pytest.mark.parametrize("kind", FILES)
def test_a_source_without_its_line_is_named(tmp_path, kind):
    code, said = configure(tmp_path, kind, FILES[kind], "")
    assert code != 0
    assert LINES[kind] in said


def test_contributing_has_the_chapters_that_messages_name():
    headings = re.findall(r"^## (.*)$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert set(CHAPTERS.values()) <= set(headings)
