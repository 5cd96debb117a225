"""What is said to the script once, however often there is reason to."""

import warnings
from typing import Any, Dict, Set

from tocsin.library.texts import NAME_BYTES


class Once:
    """Warnings of one hook, each kind once."""

    def __init__(self) -> None:
        self._said: Set[str] = set()

    def warn(self, kind: str, text: str, stacklevel: int = 3) -> None:
        if kind not in self._said:
            self._said.add(kind)
            warnings.warn(f"tocsin: {text}", RuntimeWarning, stacklevel=stacklevel + 1)

    def cut(self, name: Any) -> None:
        """A name that the library is about to cut."""
        self.warn("cut", f"a name is too long, or no text, and was cut: {name!r:.60} (at most {NAME_BYTES} bytes; all are counted in "
                  "stats()['cut_names_total'])", 4)

    def settings(self, counters: Dict[str, Any]) -> None:
        """What the library could not use of the settings."""
        said = "; ".join(counters.get("warnings", ()))
        if said:
            self.warn("settings", f"{said} (defaults hold there, and the hook is on)", 6)
        for number, text in enumerate(counters.get("capture_warnings", ())):
            self.warn(f"capture {number}", f"capture: {text}", 6)

    def no_rules(self) -> None:
        """The script asks for issues, and nobody judges here."""
        self.warn("issues", "issues() is empty: no rules judge in this process. Give rules=, for instance watch(rules=True); what "
                  "tocsin up has found is in tocsin issues list")
