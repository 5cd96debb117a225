"""What is wanted of the run, and what the run answers."""

import os
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Mapping, Optional

from tocsin.library import abi
from tocsin.process.contain import Errors, contained


def _within(value: Any, bounds: Optional[Any]) -> bool:
    """None: anything is."""
    if bounds is None:
        return True
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and bounds[0] <= value <= bounds[1]


class StopRequest:
    """Why the loop should stop. True in a condition."""

    __slots__ = ("mode", "reason", "rule", "deadline", "command_id", "not_before_step")

    def __init__(self, command: Mapping[str, Any]) -> None:
        args = command.get("args") or {}
        reason = command.get("reason") or {}
        self.mode: str = args.get("mode", "stop")
        self.reason: str = reason.get("summary", "")
        self.rule: str = reason.get("rule", "")
        self.deadline: Dict[str, Any] = args.get("deadline") or {}
        self.command_id: str = command.get("command_id", "")
        self.not_before_step: Optional[int] = args.get("not_before_step")

    def __repr__(self) -> str:
        return f"StopRequest(mode={self.mode!r}, rule={self.rule!r}, reason={self.reason!r})"


class Commands:
    """Talks to the router on behalf of one hook. ``client`` None: of a hook that is off."""

    def __init__(self, client: Optional[abi.Client], errors: Errors) -> None:
        self.errors = errors
        self.acknowledged = False
        self._client = client
        self._stop: Optional[StopRequest] = None
        self._checkpoint_written = False
        self._functions: Dict[str, Any] = {}

    @property
    def enabled(self) -> bool:
        return self._client is not None and self._client.open

    def answer(self, wanted: int) -> Optional[StopRequest]:
        """``wanted``: bits of what the library says is wanted. The first time that a stop is, the
        acknowledgement ``accepted`` goes out."""
        if self._checkpoint_written:
            self.checkpoint_done()
        if wanted & abi.WANTS_ATTENTION:
            self._attend()
        if not wanted & abi.WANTS_STOP:
            return None
        command = self._client.command(b"stop")
        if command is None:
            return None
        if self._stop is None or self._stop.command_id != command.get("command_id"):
            self._stop = StopRequest(command)
            self._ack(self._stop.command_id, "stop", "accepted")
        return self._stop

    def _ack(self, command_id: str, action: str, phase: str, **more: Any) -> None:
        self._client.ack({"command_id": command_id, "action": action, "phase": phase, **more})

    def _attend(self) -> None:
        for slot in self._client.command(None) or []:
            if slot == "stop" or slot not in self._functions:
                continue
            function, bounds = self._functions[slot]
            command = self._client.command(slot.encode("utf-8"))
            if command is None:
                continue
            identity = command.get("command_id", "")
            args = command.get("args") or {}
            value = args.get("value")
            if not _within(value, bounds) or not _within(value, args.get("bounds")):
                self._ack(identity, slot, "refused", reason="out_of_bounds")
                continue
            try:
                function(value if slot.startswith("adjust/") else args)
            except Exception as error:  # noqa: BLE001 - the script's own function
                self.errors.add("on_command", error)
                self._ack(identity, slot, "refused", reason=str(error)[:200])
                continue
            self._ack(identity, slot, "applied")

    def takes_profile(self) -> bool:
        """The script answers commands of the slot ``profile`` itself."""
        return "profile" in self._functions

    def on_command(self, action_or_name: str, function: Callable[[Any], Any],
                   bounds: Optional[Any] = None) -> None:
        """See :meth:`tocsin.Hook.on_command`."""
        slot = action_or_name
        if "/" not in slot and slot not in ("profile",):
            slot = "adjust/" + slot
        self._functions[slot] = (function, bounds)
        self._client.name(abi.NAME_COMMAND, slot)

    @contextmanager
    def checkpointing(self) -> Iterator[None]:
        """See :meth:`tocsin.Hook.checkpointing`. ``checkpoint_done`` is held back for the path that
        ``acknowledge(checkpoint=…)`` may add, at most until the next ``answer()`` or the end."""
        self.phase("checkpointing")
        try:
            yield
        except BaseException as error:
            self.phase("checkpoint_failed", reason=str(error)[:200])
            raise
        self._checkpoint_written = self._stop is not None

    def checkpoint_done(self, **more: Any) -> None:
        """Sends what checkpointing() held back, or what ``more`` says."""
        if self._checkpoint_written or more:
            self._checkpoint_written = False
            self.phase("checkpoint_done", **more)

    @contained()
    def phase(self, phase: str, **more: Any) -> None:
        """Answers the stop that was accepted; without one it says nothing."""
        if self._stop is not None:
            self._ack(self._stop.command_id, "stop", phase, **more)

    def acknowledge(self, checkpoint: Optional[str], error: Optional[str]) -> None:
        """See :meth:`tocsin.Hook.acknowledge_stop`."""
        if self._stop is None:
            return
        if checkpoint is not None:
            try:
                size = os.path.getsize(checkpoint)
            except OSError:
                size = 0
            self.checkpoint_done(checkpoint={"path": str(checkpoint), "bytes": size})
        elif error is not None:
            self.phase("checkpoint_failed", reason=str(error)[:200])
        else:
            self.checkpoint_done()
        self.phase("stopping")
        self.acknowledged = True
