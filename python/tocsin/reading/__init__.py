"""What a run has written to a directory, read back: no server, standard library only."""

from .tensors import MODES, Tensors, rows

__all__ = ["MODES", "Tensors", "rows"]
