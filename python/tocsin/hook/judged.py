"""Whether anybody judges what this process writes, said once where nobody does."""

import os
from typing import Any, Dict

from tocsin.process.facts import say

_EVERY = 2  # looks, of one a second


class Judged:
    """Of one hook. The library finds out, on a thread of its own (``stats()["judged"]``: true, false, None where it
    is not known); here it is only told."""

    def __init__(self, client: Any, rank: int) -> None:
        self._client, self._silent, self._looks = client, rank != 0, 0

    def look(self) -> None:
        """Now and then, until it is known."""
        self._looks += 1
        if not self._silent and self._looks % _EVERY == 0:
            self.tell(self._client.counters())

    def tell(self, counters: Dict[str, Any]) -> None:
        judged = counters.get("judged")
        if self._silent or judged is None:
            return
        self._silent = True
        if judged or counters.get("dry_run"):
            return
        out = str(counters.get("out", ""))
        later = f", or tocsin evaluate --from {out} when it is over" if os.path.isdir(out) else ""
        say(f"nobody judges run {str(counters.get('run', ''))[:8]}: no engine reads {out}. Start one with tocsin up, or give "
            f"watch(rules=True){later}")
