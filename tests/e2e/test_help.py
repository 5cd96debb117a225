"""Help, manual page and completions come from one declaration and name every command."""
import gzip
import json
import re
import subprocess

import pytest

from tests.support.program import BINARY, ROOT, run_cli


def listed(text):
    """Names below "Subcommands:"."""
    part = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.MULTILINE)
    return re.findall(r"^  ([a-z-]+)", part[1], re.MULTILINE) if part else []


def commands(path=()):
    """Every command with its help, the program itself first."""
    code, text, err = run_cli(*path, "--help")
    assert code == 0, err
    yield path, text
    for name in listed(text):
        yield from commands((*path, name))


ALL = dict(commands())


def test_every_command_is_walked():
    assert {("status",), ("issues", "show"), ("silence", "add"), ("topics", "export"), ("journal", "salvage")} <= set(ALL)


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_begins_with_a_verb_and_has_examples_and_exit_codes(path):
    text = ALL[path]
    assert re.match(r"[A-Z][a-z]+[ ,]", text) and not text.splitlines()[0].endswith("."), text.splitlines()[0]
    assert re.search(r"^Exit codes:\n  \w", text, re.MULTILINE), text
    examples = re.search(r"^Examples:\n((?:  .*\n)+)", text, re.MULTILINE)[1].splitlines()
    assert examples and all(line.strip().startswith("tocsin") for line in examples)


def test_exit_codes_are_each_commands_own():
    def codes(*path):
        return re.search(r"^Exit codes:\n((?:  .*\n)+)", ALL[path], re.MULTILINE)[1]
    assert "75" in codes("stop") and "75" not in codes("status") and "128+n" in codes("run")
    assert codes("issues", "list") != codes("issues", "show")


def test_the_manual_page_has_a_section_for_each_command(tmp_path):
    page = tmp_path / "tocsin.1.gz"
    subprocess.run([ROOT / "tools" / "manpage", BINARY, page], check=True, timeout=60)
    text = gzip.decompress(page.read_bytes()).decode()
    for path in ALL:
        if path:
            assert f'.SS "tocsin {" ".join(path)}"' in text
    assert text.count("Examples:") == len(ALL) - 1 and ".SH EXIT CODES" in text and "\\-\\-output" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_offers_what_help_offers_and_no_former_name(shell):
    script = run_cli("completion", shell)[1]
    for path in ALL:
        assert path == () or path[-1] in script
    mark = " -l " if shell == "fish" else "--"
    assert f"{mark}from" in script and f"{mark}output" in script
    for former in ("json", "to ", "to'", "to:"):
        assert f"{mark}{former}" not in script.replace("--to-", ""), former


MACHINE = [("version",), ("rules", "list"), ("rules", "describe", "overfit"), ("rules", "describe", "declared"),
           ("topics", "export"), ("schema", "vocabulary")]


@pytest.mark.parametrize("words", MACHINE, ids=" ".join)
def test_output_json_is_json(words):
    flags = [] if words[0] == "schema" else ["--output", "json"]
    code, out, err = run_cli(*words, *flags)
    assert code == 0, err
    assert json.loads(out)
    if flags:
        assert run_cli(*words, "--json")[1] == out, "the former name"


def test_output_json_of_what_needs_files(tmp_path):
    code, out, _ = run_cli("init", tmp_path / "t.yaml", "--output", "json")
    assert code == 0 and json.loads(out) == {"wrote": str(tmp_path / "t.yaml")}
    code, out, _ = run_cli("check", tmp_path / "t.yaml", "-o", "json")
    assert code == 0 and json.loads(out) == []
    code, _, err = run_cli("journal", "check", tmp_path / "none", "-o", "json")
    assert code == 4 and "none" in err
