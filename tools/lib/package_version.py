"""The version of Tocsin. It stands once, in python/tocsin/__init__.py; CMakeLists.txt reads the same line."""

import re


def read(root):
    text = (root / "python" / "tocsin" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(\d+\.\d+\.\d+)"$', text, re.MULTILINE).group(1)
