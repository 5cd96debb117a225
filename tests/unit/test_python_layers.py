"""tests/check_python_layers.py finds each kind of breach, in a small package made for it."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import check_python_layers  # noqa: E402

LAYERS = """
[rooms]
wire:
base:
loop/torch:  base
hook:        base loop/torch wire
.:           hook

[doors]
sink:        loop/torch/sink.py

[libraries]
numpy:       base/ hook/a.py
"""

# What uses every line once, so that a package without a breach is silent.
PACKAGE = {
    "__init__.py": "from .hook.a import A\n",
    "wire.py": "import struct\n",
    "sink.py": '"""A door."""\n\nfrom .loop.torch.sink import Sink\n\n__all__ = ["Sink"]\n',
    "base/__init__.py": "",
    "base/facts.py": "import numpy\nimport os\n",
    "base/texts.py": "from .facts import say\n",
    "loop/__init__.py": "",
    "loop/torch/__init__.py": "",
    "loop/torch/sink.py": "from tocsin.base import facts\n",
    "hook/__init__.py": "",
    "hook/a.py": "import numpy\nfrom tocsin import wire\nfrom tocsin.base.facts import say\n\n\ndef f():\n    from ..loop.torch.sink import Sink\n",
}
PYPROJECT = '[tool.setuptools]\npackages = ["tocsin", "tocsin.base", "tocsin.loop", "tocsin.loop.torch", "tocsin.hook"]\n'


def findings(folder, layers=LAYERS, pyproject=PYPROJECT, **changes):
    files = {**PACKAGE, **{name.replace("__in__", "/"): text for name, text in changes.items()}}
    texts = {"tests/python_layers.txt": layers, "python/pyproject.toml": pyproject,
             **{f"python/tocsin/{name}": text for name, text in files.items() if text is not None}}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return list(check_python_layers.breaches(folder))


# A folder without code of its own is a room too.
def test_a_package_in_order_is_silent(tmp_path):
    assert findings(tmp_path, LAYERS.replace("wire:\n", "wire:\nloop:\n", 1)) == []


def listed(text):
    return LAYERS.replace("wire:\n", "wire:\nloop:\n" + text, 1)


@pytest.mark.parametrize("line", [
    "from tocsin.hook.a import A", "from tocsin.hook import a", "import tocsin.hook.a", "from ..hook.a import A", "from ..hook import a",
    "def f():\n    from tocsin.hook.a import A", "def f():\n    import tocsin.hook.a", "class C:\n    from tocsin.hook import a",
    "import importlib\nimportlib.import_module('tocsin.hook.a')", "if TYPE_CHECKING:\n    from tocsin.hook.a import A",
    "try:\n    from tocsin.hook.a import A\nexcept ImportError:\n    pass",
])
def test_an_edge_that_is_not_declared_is_found_wherever_it_stands(tmp_path, line):
    found = findings(tmp_path, listed(""), **{"base__in__up.py": line + "\n"})
    assert [text for text in found if "circle" not in text] == [f"python/tocsin/base/up.py:{line.count(chr(10), 0, line.index('hook')) + 1}: base may not import hook"]


def test_an_edge_that_nothing_needs_is_named(tmp_path):
    found = findings(tmp_path, listed("").replace("hook:        base loop/torch wire", "hook:        base loop/torch loop wire"))
    assert len(found) == 1 and found[0].endswith(": hook imports nothing of loop; take it out")


def test_a_circle_of_rooms_is_found_although_it_is_declared(tmp_path):
    found = findings(tmp_path, listed("").replace("base:\n", "base:        hook\n"), **{"base__in__up.py": "def f():\n    from tocsin.hook.b import B\n",
                                                                                   "hook__in__b.py": ""})
    assert found == ["tests/python_layers.txt: a circle of rooms: base → hook → base"]


def test_a_circle_of_modules_within_a_room_is_found(tmp_path):
    found = findings(tmp_path, listed(""), **{"base__in__facts.py": "import numpy\n\n\ndef say():\n    from .texts import fits\n"})
    assert found == ["python/tocsin: a circle of modules: base.facts → base.texts → base.facts"]


def test_files_of_the_package_import_no_doors(tmp_path):
    found = findings(tmp_path, listed(""), **{"hook__in__b.py": "from tocsin import sink\n"})
    assert found == ["python/tocsin/hook/b.py:1: sink is a door for users; import what stands behind it (loop/torch/sink.py)"]


@pytest.mark.parametrize("line, words", [
    ("X = 3", "a door only hands on"), ("def f():\n    pass", "a door only hands on"), ("from .base.facts import say", "the door sink hands on"),
])
def test_a_door_only_hands_on(tmp_path, line, words):
    found = findings(tmp_path, listed(""), **{"sink.py": PACKAGE["sink.py"] + line + "\n"})
    assert len(found) == 1 and found[0].startswith("python/tocsin/sink.py:6: ") and words in found[0]


@pytest.mark.parametrize("changes, words", [
    ({"wire.py": "import torch\n"}, "tests/python_layers.txt knows no torch"),
    ({"wire.py": "def f():\n    import numpy.linalg\n"}, "numpy belongs to base/ hook/a.py"),
    ({"base__in__facts.py": ""}, "base/ imports no numpy; take it out"),
])
def test_libraries_have_their_places(tmp_path, changes, words):
    found = findings(tmp_path, listed(""), **changes)
    assert len(found) == 1 and words in found[0]


@pytest.mark.parametrize("changes, words", [
    ({"new__in__x.py": "", "new__in____init__.py": ""}, "python/tocsin/new: tests/python_layers.txt does not list it"),
    ({"more.py": ""}, "python/tocsin/more: tests/python_layers.txt does not list it"),
    ({"hook__in____init__.py": None}, "python/tocsin/hook: no __init__.py"),
])
def test_rooms_are_listed_and_are_packages(tmp_path, changes, words):
    assert words in findings(tmp_path, listed(""), **changes)


def test_a_line_for_a_room_that_is_gone_is_named(tmp_path):
    assert any("there is no attic" in text for text in findings(tmp_path, listed("attic:\n")))


@pytest.mark.parametrize("before, after, words", [
    (', "tocsin.hook"', "", "python/pyproject.toml: lacks the package tocsin.hook"),
    (', "tocsin.hook"', ', "tocsin.hook", "tocsin.attic"', "python/pyproject.toml: lists what is no package: tocsin.attic"),
])
def test_the_list_of_packages_is_that_of_the_folders(tmp_path, before, after, words):
    assert findings(tmp_path, listed(""), PYPROJECT.replace(before, after)) == [words]


def test_the_package_is_in_order():
    assert list(check_python_layers.breaches(ROOT)) == []
