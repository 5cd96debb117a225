"""Traces of PyTorch's profiler that a run has sent, as files: ``python3 -m tocsin.trace`` (docs/capture-by-hand.md)."""

import sys

from .traces.download import main, read

__all__ = ["main", "read"]


if __name__ == "__main__":
    sys.exit(main())
