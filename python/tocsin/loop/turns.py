"""Who is captured when several optimizers share the steps of a loop."""

import weakref
from typing import Any, Optional

from tocsin.library import abi


class Turns:
    """The grid is that of the loop's steps. An optimizer that does not update in each of them may
    never update in one that is due; it is captured at its first update after that, once."""

    def __init__(self) -> None:
        self._due = -1  # the last step that was
        self._taken: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()

    def take(self, who: Any, step: int, due: bool) -> Optional[int]:
        """None: not now. Else flags for the descriptors of its tensors."""
        if due:
            self._due = step
        if self._taken.get(who, -1) >= self._due:
            return None
        self._taken[who] = step
        return 0 if due else abi.TENSOR_OFF_GRID
