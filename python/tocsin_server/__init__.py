"""The program `tocsin` as a Python package: `pip install tocsin-server` puts the command on the path."""

import os
import sys

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "tocsin")


def main() -> None:
    """Becomes the program: same process, same arguments, its exit status."""
    os.execv(_PROGRAM, ["tocsin", *sys.argv[1:]])
