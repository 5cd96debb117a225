"""What is wanted of the run, and what the run answers: the hook's half that speaks about commands."""

import ctypes
import json
import os
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, Mapping, Optional

from . import _abi
from ._contain import contained


class StopRequest:
    """Why the loop should stop. True in a condition."""

    __slots__ = ("mode", "reason", "rule", "deadline", "command_id")

    def __init__(self, command: Mapping[str, Any]) -> None:
        args = command.get("args") or {}
        reason = command.get("reason") or {}
        self.mode: str = args.get("mode", "stop")
        self.reason: str = reason.get("summary", "")
        self.rule: str = reason.get("rule", "")
        self.deadline: Dict[str, Any] = args.get("deadline") or {}
        self.command_id: str = command.get("command_id", "")

    def __repr__(self) -> str:
        return f"StopRequest(mode={self.mode!r}, rule={self.rule!r}, reason={self.reason!r})"


class Commands:
    """Part of :class:`tocsin.hook.Hook`, which owns the handle."""

    enabled: bool
    _fast: Any
    _handle: Optional[int]
    _failed: Callable[[str, BaseException], None]
    _name: Callable[..., int]

    def __init__(self) -> None:
        self._stop: Optional[StopRequest] = None
        self._stop_acknowledged = False
        self._checkpoint_written = False
        self._functions: Dict[str, Any] = {}

    def should_stop(self) -> Optional[StopRequest]:
        """One atomic read. The first true answer sends the acknowledgement ``accepted``."""
        if not self.enabled:
            return None
        wanted = self._fast.tocsin_stop_requested(self._handle)
        if wanted == 0:
            return None
        return self._wanted(wanted)

    @contained()
    def _wanted(self, wanted: int) -> Optional[StopRequest]:
        if self._checkpoint_written:
            self._checkpoint_done()
        if wanted & _abi.WANTS_ATTENTION:
            self._attend()
        if not wanted & _abi.WANTS_STOP:
            return None
        command = self._command(b"stop")
        if command is None:
            return None
        if self._stop is None or self._stop.command_id != command.get("command_id"):
            self._stop = StopRequest(command)
            self._ack(self._stop.command_id, "stop", "accepted")
        return self._stop

    def _command(self, slot: Optional[bytes]) -> Any:
        size = 4096
        while True:
            buffer, length = ctypes.create_string_buffer(size), ctypes.c_size_t()
            result = self._fast.tocsin_command(self._handle, slot, buffer, size,
                                               ctypes.byref(length))
            if result == _abi.TOO_SMALL:
                size = length.value + 1
                continue
            return json.loads(buffer.value) if result == _abi.OK else None

    def _ack(self, command_id: str, action: str, phase: str, **more: Any) -> None:
        text = json.dumps({"command_id": command_id, "action": action, "phase": phase, **more})
        data = text.encode("utf-8")
        self._fast.tocsin_ack(self._handle, data, len(data))

    def _attend(self) -> None:
        for slot in self._command(None) or []:
            if slot == "stop" or slot not in self._functions:
                continue
            function, bounds = self._functions[slot]
            command = self._command(slot.encode("utf-8"))
            if command is None:
                continue
            identity = command.get("command_id", "")
            args = command.get("args") or {}
            value = args.get("value")
            if bounds is not None and not (isinstance(value, (int, float))
                                           and bounds[0] <= value <= bounds[1]):
                self._ack(identity, slot, "refused", reason="out_of_bounds")
                continue
            try:
                function(value if slot.startswith("adjust/") else args)
            except Exception as error:  # noqa: BLE001 - the script's own function
                self._failed("on_command", error)
                self._ack(identity, slot, "refused", reason=str(error)[:200])
                continue
            self._ack(identity, slot, "applied")

    @contained()
    def on_command(self, action_or_name: str, function: Callable[[Any], Any],
                   bounds: Optional[Any] = None) -> None:
        """Opts in to ``adjust/<name>`` (a bare name means that) or an action of the script's own.

        ``function`` runs inside ``should_stop()``, on the training thread; ``bounds`` is (low, high).
        """
        slot = action_or_name
        if "/" not in slot and slot not in ("profile",):
            slot = "adjust/" + slot
        self._functions[slot] = (function, bounds)
        self._name(_abi.NAME_COMMAND, slot)

    @contextmanager
    def checkpointing(self) -> Iterator[None]:
        """Around writing a checkpoint for a stop: says that it has begun, and how it went.

        ``checkpoint_done`` is held back for the path that ``acknowledge_stop(checkpoint=…)`` may add, at
        most until the next ``should_stop()`` or ``close()``.
        """
        self._phase("checkpointing")
        try:
            yield
        except BaseException as error:
            self._phase("checkpoint_failed", reason=str(error)[:200])
            raise
        self._checkpoint_written = self._stop is not None

    def _checkpoint_done(self, **more: Any) -> None:
        if self._checkpoint_written or more:
            self._checkpoint_written = False
            self._phase("checkpoint_done", **more)

    @contained()
    def _phase(self, phase: str, **more: Any) -> None:
        if self._stop is not None:
            self._ack(self._stop.command_id, "stop", phase, **more)

    @contained()
    def acknowledge_stop(self, checkpoint: Optional[str] = None,
                         error: Optional[str] = None) -> None:
        """The loop ends now: ``checkpoint_done`` if a path is given, then ``stopping``."""
        if self._stop is None:
            return
        if checkpoint is not None:
            try:
                size = os.path.getsize(checkpoint)
            except OSError:
                size = 0
            self._checkpoint_done(checkpoint={"path": str(checkpoint), "bytes": size})
        elif error is not None:
            self._phase("checkpoint_failed", reason=str(error)[:200])
        else:
            self._checkpoint_done()
        self._phase("stopping")
        self._stop_acknowledged = True
