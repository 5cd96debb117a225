"""How a hook ends: once, what is left to say is said, and delivered within a stated time."""

import threading
from typing import Any, Dict, Optional, TypeVar

from tocsin.library import abi
from tocsin.loop.sink import Sink
from tocsin.process import lifetime
from tocsin.process.contain import Errors
from tocsin.process.facts import say
from tocsin.settings.collections import Collections
from tocsin.standing.standing import Standing
from .commands import Commands
from .judge import Judge
from .judged import Judged

_Hook = TypeVar("_Hook", bound="Ends")


class Ends:
    """Of a :class:`tocsin.Hook`."""

    enabled: bool
    rank: int
    errors: Errors
    sink: Sink
    standing: Standing
    judge: Optional[Judge]
    _client: abi.Client
    _collections: Collections
    _commands: Commands
    _final: Dict[str, Any]  # the counters, once it has ended
    _judged: Judged
    _lock: threading.Lock

    def close(self, outcome: str = "completed", timeout: float = 5.0, *,
              error: Optional[str] = None, exit_code: Optional[int] = None) -> None:
        """End the run and deliver what is possible within ``timeout`` seconds. A second call does nothing.

        ``stats()`` and one line on stderr (not with ``TOCSIN_QUIET=1``) report what could not be delivered.
        """
        ending = self._end(outcome, error, exit_code)
        if ending is None:
            return
        self._client.close(ending, int(timeout * 1000))
        try:
            self._final = self._client.closed()
            self._judged.tell(self._final)
            if self.judge is not None:
                self.judge.end()
        except Exception as problem:  # noqa: BLE001
            self.errors.add("close", problem)
        if self._final.get("loss"):
            say(self._final["loss"])

    def close_at_exit(self, timeout: float = 5.0) -> None:
        """The interpreter ends, and does not say with which status: the library asks ``exit()``."""
        ending = self._end("completed", None, None)
        if ending is not None:
            if self.judge is not None:
                ending["issues_told"] = self.judge.tell_all()
            self._client.close_at_exit(ending, int(timeout * 1000))

    def closing(self) -> bool:
        """``close()`` goes on, on this or another thread."""
        return self._lock.locked()

    @property
    def acknowledged(self) -> bool:
        """The script has said that it ends because it was asked to stop."""
        return bool(self._commands.acknowledged)

    def _end(self, outcome: str, error: Optional[str],
             exit_code: Optional[int]) -> Optional[Dict[str, Any]]:
        """Says what is left to say, and switches off. The last record, if there is one to send."""
        lifetime.forget(self)
        with self._lock:
            if not self.enabled or not self.sink.active:
                return None
            self.sink.active = False  # of two threads that close, one does
        commands = self._commands
        try:
            self.standing.stop()
            self.standing.look_at_updates()
            self.sink.finalize()
            self.sink.close()
            commands.checkpoint_done()
            self._final = self._client.counters()
            self.say_wrong_calls(self._final)
            for text in self._collections.told(self._final.get("dry_run", False)) if self.rank == 0 else ():
                say(text)
        except Exception as problem:  # noqa: BLE001
            self.errors.add("close", problem)
        if outcome == "completed" and commands.acknowledged:
            outcome = "stopped_by_rule"
        status = {} if exit_code is None else {"exit_code": exit_code}
        if commands.acknowledged:
            commands.phase("stopped", **status)
        self.enabled = False
        return {"outcome": outcome, **({} if error is None else {"error": error}), **status}

    def __enter__(self: _Hook) -> _Hook:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.close(**lifetime.ending_of(kind, error))

    def forked(self) -> None:
        """In a child process this hook is the parent's: nothing is freed, nothing is sent."""
        self.enabled = False
        self.sink.forget()
        self._client.forget()
        self.errors.last = "disabled after fork"
