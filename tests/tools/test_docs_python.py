"""tools/docs: the reference of the hook is what the docstrings say, and lists every method."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import docs_python  # noqa: E402

MODULES = {
    "__init__.py": "from ._watch import watch\nfrom .hook import Hook\n",
    "_watch.py": 'def watch(model: object = None):\n    """Start. See docs/gpu.md."""\n',
    "_part.py": 'class Part:\n    def helps(self, name: str, *, often: int = 1) -> None:\n        """Help.\n\n'
                '        ``name``: whom,\n        and why.\n        ``often``: how often.\n        """\n',
    "hook.py": 'class Hook(Part):\n    @property\n    def place(self) -> int:\n        """Where."""\n    def _hidden(self):\n        pass\n'}


def package(folder):
    made = folder / "python" / "tocsin"
    made.mkdir(parents=True)
    for name, text in MODULES.items():
        (made / name).write_text(text)
    (folder / "docs" / "hook").mkdir(parents=True)
    return made


def filled(folder, names):
    page = folder / "docs" / "hook" / "reference.md"
    return docs_python.with_python(page, f"<!-- python:begin {names} -->\n<!-- python:end -->\n", package(folder))


def test_entries_are_signatures_and_docstrings(tmp_path):
    text = filled(tmp_path, "watch Hook.helps Hook.place")
    assert "tocsin.watch(model=None)" in text
    assert "See [gpu](../gpu.md)." in text
    assert "hook.helps(name, *, often=1)" in text
    assert "- `name`: whom,\n  and why.\n- `often`: how often." in text
    assert "```python\nhook.place\n```" in text
    assert "_hidden" not in text


@pytest.mark.parametrize("names, problem", [("watch Hook.place", "Hook.helps"), ("Hook.helps Hook.place Hook.gone", "Hook.gone")])
def test_a_list_that_is_not_the_package_is_refused(tmp_path, names, problem):
    with pytest.raises(SystemExit, match=problem):
        filled(tmp_path, names)


def test_a_page_without_lists_stays(tmp_path):
    assert docs_python.with_python(tmp_path / "page.md", "Words.\n", tmp_path) == "Words.\n"
