"""The documents are true: tables, links, example configurations and commands."""
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

from tests.support.program import BINARY, BUILD, run_cli

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONFIGURATION = re.compile(r"^(# tocsin\.yaml|(rules|route|transport|receivers|collect|capture|router|engine):)", re.MULTILINE)
RULE_IN_PYTHON = "from tocsin.rules import Rule\nclass BigGradient(Rule):\n    def invoke_at_step(self, step): return False\n"


def blocks(language):
    """(page:number, text) of every fenced block of a language."""
    for page in PAGES:
        for number, match in enumerate(BLOCK.finditer(page.read_text()), 1):
            if match[1] == language:
                yield pytest.param(match[2], id=f"{page.relative_to(ROOT)}:{number}")


def completed(text):
    """A fragment as a file: where it only names receivers, they are added."""
    if not re.search(r"^receivers:", text, re.MULTILINE):
        names = {"docs", *re.findall(r"\b(?:receiver|silence_notices): *\"?([\w-]+)", text)}
        for listed in re.findall(r"\b(?:actions|receivers): *\[([^\]]*)\]", text):
            names.update(name.strip(" \"'") for name in listed.split(",") if name.strip())
        text += "receivers:\n" + "".join(f"  {name}:\n    publish_metric: {{}}\n" for name in sorted(names))
    return text


def problems_of(text, folder):
    path = folder / "tocsin.yaml"
    path.write_text(text)
    code, out, _ = run_cli("check", path)
    return code, out


def documents(*arguments):
    return subprocess.run([sys.executable, ROOT / "tools" / "docs", *arguments], text=True, capture_output=True,
                          env={**os.environ, "TOCSIN_BINARY": str(BINARY)}, timeout=120, check=False)


def test_tables_links_and_examples_are_up_to_date():
    ran = documents("--check")
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("text", blocks("yaml"))
def test_configuration_of_a_page_is_valid(text, tmp_path):
    if not CONFIGURATION.search(text):
        pytest.skip("no configuration of ours")
    if text.startswith("from:"):
        pytest.skip("a golden file: tests/e2e/test_golden.py runs it")
    for path in re.findall(r"_file: *([^\s},#]+)", text):
        secret = tmp_path / pathlib.Path(path).name
        secret.write_text("ml-oncall\n" if "topic" in secret.name else "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n")
        text = text.replace(path, str(secret))
    for path in re.findall(r"\bsource: *([^\s},#]+)", text):
        source = tmp_path / path
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(RULE_IN_PYTHON)
    text = re.sub(r"\blibrary: *[^\s},#]+", f"library: {BUILD.resolve()}/tests/unit/rules/libnorm_jump.so", text)
    code, out = problems_of(completed(text), tmp_path)
    assert code == 0, f"{out}\n{completed(text)}"


def test_a_wrong_example_would_be_noticed(tmp_path):
    code, out = problems_of(completed("rules:\n  - use: exploding_tensors\n"), tmp_path)
    assert code == 3 and "did you mean exploding_tensor?" in out


def subcommands(text):
    """The subcommand of each line that runs tocsin: ["topics", "plan"]."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and words[0] in ("tocsin", "build/release/app/tocsin", "build/dev/app/tocsin") and len(words) > 1:
            known = [word for word in words[1:3] if re.fullmatch(r"[a-z]+(-[a-z]+)*", word)]
            yield known if known[:1] in (["topics"], ["rules"], ["config"]) else known[:1]


def test_commands_of_the_pages_exist():
    seen = {tuple(command) for block in blocks("sh") for command in subcommands(block.values[0])}
    for page in PAGES:  # and what stands in running text
        for code in re.findall(r"`(tocsin [a-z][^`]*)`", page.read_text()):
            seen.update(map(tuple, subcommands(code)))
    assert ("check",) in seen and ("topics", "plan") in seen
    for command in sorted(seen):
        code, out, err = run_cli(*command, "--help")
        assert code == 0 and "Usage" in out, (command, err)


def test_every_page_is_on_the_map():
    index = (ROOT / "docs" / "index.md").read_text()
    for page in (ROOT / "docs").rglob("*.md"):
        if page.name != "index.md":
            assert f"({page.relative_to(ROOT / 'docs')})" in index, page
