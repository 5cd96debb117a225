"""Tests of what is given to people: wheels, packages, an installation. `make test-packages` makes them first and then runs these."""
import pathlib

import pytest

from tests.packages.clean_root import BASE, CXX, PYTHON, CleanRoot, pip_of_debian

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def wheels():
    """The hook's wheel and the program's."""
    found = {file.name.split("-")[0]: file for file in (ROOT / "dist").glob("tocsin*.whl")}
    assert set(found) == {"tocsin", "tocsin_server"}, "run `make wheel`"
    return found


@pytest.fixture(scope="session")
def installed(wheels, tmp_path_factory):
    """A clean root with both wheels installed into /venv, from nothing but the two files."""
    root = CleanRoot(tmp_path_factory.mktemp("root"), BASE + CXX)
    pip, files = root.put(pip_of_debian(), "/opt"), [root.put(file, "/dist") for file in wheels.values()]
    for command in ([f"/usr/bin/{PYTHON}", "-m", "venv", "--without-pip", "/venv"],
                    ["/venv/bin/python", pip + "/pip", "install", "--no-index", "--no-cache-dir", *files]):
        done = root.run(*command)
        assert done.returncode == 0, done.stdout + done.stderr
    return root
