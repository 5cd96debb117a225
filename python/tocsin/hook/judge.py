"""Rules that judge in this process: the lines that say what they found."""

import threading
from typing import Any, Dict, List, Optional

from tocsin.library import abi
from tocsin.process.facts import say

_WAIT_MS = 10_000  # woken earlier by whatever is found, and by the end


class Judge:
    """Says each issue once, from a thread of its own that sleeps in the library until there is one:
    only the interpreter's own stderr reaches a notebook."""

    def __init__(self, client: "abi.Client", without_receivers: str = "") -> None:
        """``without_receivers``: rules whose ``actions`` nobody carries out here."""
        if without_receivers:
            say(f"rules that judge in this process have no receivers: nothing is done for the actions of {without_receivers}. "
                "watch(stop=…) ends the run from here; tocsin up carries out all of them")
        self._client = client
        self._told = 0
        self._kept: Optional[List[Dict[str, Any]]] = None  # once the client is closed
        self._lock = threading.Lock()
        self._wait = client.waiting_issues()
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="tocsin-issues", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while self._wait(self._told, _WAIT_MS) in (abi.OK, abi.TIMEOUT):
                if self._ending:
                    return
                self.tell()
        except Exception:  # noqa: BLE001 - nobody hears of it here; issues() says so
            pass

    def tell(self) -> int:
        """Lines for what has not been told; how many issues there are."""
        with self._lock:
            for issue in self._client.issues(self._told):
                self._told = issue["number"] + 1
                if issue["told"]:
                    say(issue["text"])
            return self._told

    def tell_all(self) -> int:
        """The same when everything so far is judged; waits a second for that. No thread of ours is
        left: one that came back to an interpreter that is gone would harm the process."""
        self._client.flush(1000)
        self._join()
        return self.tell()

    def _join(self) -> None:
        self._ending = True
        self._client.wake()
        if self._thread is not threading.current_thread():
            self._thread.join(5.0)

    def end(self) -> None:
        """The client was closed just now, which has ended the wait: what it found last."""
        self._ending = True
        self._thread.join(5.0)
        self.tell()
        self._kept = self._client.issues(0)

    def issues(self) -> List[Dict[str, Any]]:
        found = self._client.issues(0) if self._kept is None else self._kept
        return [{"id": issue["id"], "text": issue["text"], "severity": issue["data"]["labels"].get("severity"),
                 "summary": issue["data"]["annotations"].get("summary", ""), **issue["data"]}
                for issue in found]
