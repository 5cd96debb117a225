"""The version stands once, in python/tocsin/__init__.py. Whatever else has one takes it from there."""
import ast
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

from tests.support.program import BUILD, ROOT, run_cli

sys.path.insert(0, str(ROOT / "tools" / "lib"))

import package_version  # noqa: E402

VERSION = package_version.read(ROOT)


def test_the_package_assigns_it_as_text():
    tree = ast.parse((ROOT / "python/tocsin/__init__.py").read_text())
    stated = [node.value.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__version__"]
    assert stated == [VERSION]


def test_it_is_the_newest_release_of_the_changelog():
    releases = re.findall(r"^## (\d+\.\d+\.\d+)\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert releases[0] == VERSION


@pytest.mark.parametrize("name", ["python/pyproject.toml", "python/tocsin_server/pyproject.toml"])
def test_a_python_project_has_no_version_of_its_own(name):
    project = tomllib.loads((ROOT / name).read_text())["project"]
    assert "version" not in project and project["dynamic"] == ["version"]


def test_no_source_or_build_file_repeats_it():
    files = subprocess.run(["git", "ls-files", "*.cc", "*.h", "*.cmake", "*CMakeLists.txt", "*.toml", "*.py", ":!tests", "tools", "deploy"],
                           cwd=ROOT, check=True, text=True, capture_output=True).stdout.split()
    repeated = [name for name in files if pathlib.Path(ROOT, name).is_file()
                and re.search(rf'(?<!// )"{re.escape(VERSION)}"|VERSION {re.escape(VERSION)}\b', pathlib.Path(ROOT, name).read_text(errors="replace"))]
    assert repeated == ["python/tocsin/__init__.py"]


def test_the_program_prints_it():
    assert run_cli("version")[1] == f"tocsin {VERSION}\n"


@pytest.mark.parametrize("library", ["libtocsin_client.so", "libtocsin_engine.so"])
def test_a_library_is_named_by_it(library):
    link = BUILD / "collectors/hook" / f"{library}.0"
    assert link.resolve().name == f"{library}.{VERSION}"
