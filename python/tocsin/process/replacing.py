"""Functions of a library that are replaced as long as a hook is open: what every part of the hook shares that does so."""

import functools
from typing import Any, Callable, List


class Replacing:
    """An adapter of no model and no optimizer. What is replaced keeps it; the sink holds it weakly."""

    def __init__(self) -> None:
        self._undo: List[Callable[[], None]] = []

    def watches(self, model: Any, optimizer: Any) -> bool:
        del model, optimizer
        return False

    def detach(self) -> None:
        for undo in self._undo:
            undo()
        self._undo = []

    def replace(self, owner: Any, name: str, ours: Any) -> None:
        """``ours`` in the place of ``owner.name``, which is put back on ``detach()`` unless somebody else has replaced it in the
        meantime: what they call is ours then, which does nothing more."""
        inner = owner.__dict__[name]
        setattr(owner, name, ours)
        self._undo.append(functools.partial(_put_back, owner, name, ours, inner))


def _put_back(owner: Any, name: str, ours: Any, inner: Any) -> None:
    if owner.__dict__.get(name) is ours:
        setattr(owner, name, inner)
