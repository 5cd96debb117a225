"""Runs a notebook without Jupyter: its code cells in order, in one namespace, as nbclient would."""
import ast
import builtins
import json
import os
import pathlib

KEYS = {"markdown": {"cell_type", "id", "metadata", "source"}, "code": {"cell_type", "execution_count", "id", "metadata", "outputs", "source"}}


def check_notebook(text):
    """The document, where it is one of nbformat 4.5 without outputs."""
    document = json.loads(text)
    assert set(document) == {"cells", "metadata", "nbformat", "nbformat_minor"} and (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    assert document["metadata"]["kernelspec"] == {"display_name": "Python 3", "language": "python", "name": "python3"}
    for cell in document["cells"]:
        assert set(cell) == KEYS[cell["cell_type"]] and all(isinstance(line, str) for line in cell["source"])
        assert cell["cell_type"] == "markdown" or (cell["execution_count"] is None and cell["outputs"] == [])
    names = [cell["id"] for cell in document["cells"]]
    assert len(set(names)) == len(names) and all(len(name) <= 64 for name in names)
    return document


def run_notebook(path, change=lambda code: code):
    """(namespace, {title of the section: [what was displayed, the last value]}). `change`: what a reader edits before running."""
    shown = {}
    space = {"__name__": "__main__"}
    before, builtins.display = os.getcwd(), lambda value: shown[title].append(value)
    os.chdir(pathlib.Path(path).parent)  # as Jupyter does
    title = ""
    try:
        for cell in check_notebook(pathlib.Path(path).read_text())["cells"]:
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown":
                title = text.split("\n")[0].lstrip("# ")
                shown.setdefault(title, [])
                continue
            tree = ast.parse(change(text))
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, str(path), "exec"), space)  # noqa: S102
            if last is not None:
                shown[title].append(eval(compile(ast.Expression(last.value), str(path), "eval"), space))  # noqa: S307
    finally:
        os.chdir(before)
        del builtins.display
    return space, shown
