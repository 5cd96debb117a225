"""Which launch of a run a record belongs to, settled in the order of the log (docs/launches.md).

The engine settles attempts by the same rules (``rules/engine/memory/launches.h``), so that a reader without an engine names the attempt that the
engine's events name. Ranks of one launch may state different attempts: each states the second in which it opened.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

NODE_AGENT = 0xFFFFFFFF


class Process(NamedTuple):
    """One process of a worker: name hash, rank, and when its client opened (``incarnation``)."""
    worker: int
    rank: int
    incarnation: int


class _Attempt:
    __slots__ = ("number", "key", "started")

    def __init__(self, number: int, key: str, started: bool) -> None:
        self.number, self.key, self.started = number, key, started


class _Member:
    __slots__ = ("attempt", "key", "order", "started", "moved")

    def __init__(self, attempt: int, key: str, order: int, started: bool) -> None:
        self.attempt, self.key, self.order, self.started, self.moved = attempt, key, order, started, False


class Launches:
    """The attempts of one run."""

    def __init__(self) -> None:
        self._attempts: List[_Attempt] = []
        self._members: Dict[Process, _Member] = {}
        self._order = 0
        self._heard: Dict[int, Set[Process]] = {}  # by attempt
        self._gone: Set[Process] = set()
        self._world: Dict[int, int] = {}  # by attempt: processes that it says it has

    def attempt_of(self, frame: Any) -> int:
        """The number of the attempt that a frame belongs to. Frames come in the order of the log. Raises nothing."""
        head, body = frame.header, frame.lifecycle or {}
        process = Process(head["worker"], head["rank"], head["incarnation"])
        if process.rank == NODE_AGENT:
            return self._attempts[-1].number if self._attempts else head["attempt"]
        event, key = body.get("event"), str(body.get("launch") or "")
        if event == "start":
            number = self._start(process, key, head["attempt"])
        elif event == "heartbeat":
            number = self._heartbeat(process, key, head["attempt"])
        else:
            number = self._frame(process, head["attempt"])
        if event in ("end", "leave"):
            self._gone.add(process)
        self._world[number] = max(self._world.get(number, 1), head["world_size"])
        return number

    def ended(self, number: int) -> bool:
        """All processes of this attempt have been heard, and have ended."""
        heard = self._heard.get(number, set())
        return len(heard) >= self._world.get(number, 1) and heard <= self._gone

    # ---- records

    def _start(self, process: Process, key: str, stated: int) -> int:
        """A ``start`` record. ``key``: what the processes of one launch share, may be empty."""
        known = self._members.get(process)
        if known is not None and known.started:
            return self._frame(process, stated)
        if not self._attempts:
            return self._open(process, key, stated, True)
        newest = self._attempts[-1]
        fits = _agree(key, newest.key)
        if fits and not self._over(newest) and not self._another_in(process, newest):
            return self._join(process, key, True)
        older = None if fits else self._older_with(key)
        if older is not None and not self._another_in(process, older):
            self._members[process] = _Member(older.number, key, 0, True)
            self._heard.setdefault(older.number, set()).add(process)
            return older.number
        return self._open(process, key, stated, True)

    def _heartbeat(self, process: Process, key: str, stated: int) -> int:
        """A heartbeat, which tells the key of a process whose start was not seen."""
        known = self._members.get(process)
        if known is None or known.started or known.key or not key:
            return self._frame(process, stated)
        known.key = key
        newest = self._attempts[-1]
        if known.attempt != newest.number or _agree(key, newest.key):
            if known.attempt == newest.number and not newest.key:
                newest.key = key
            return self._frame(process, stated)
        older = self._older_with(key)
        if older is not None:
            known.attempt = older.number
            return older.number
        return self._open(process, key, stated, False)

    def _frame(self, process: Process, stated: int) -> int:
        """Any other record."""
        known = self._members.get(process)
        if known is not None:
            newest = self._attempts[-1]
            if known.attempt == newest.number or self._over(newest) or self._replaced(process, known) \
                    or not _agree(self._key_of(known), newest.key):
                return known.attempt
            known.attempt, known.moved, known.started = newest.number, known.moved or known.started, False
            self._heard.setdefault(newest.number, set()).add(process)
            return newest.number
        if not self._attempts:
            return self._open(process, "", stated, False)
        number = self._attempts[-1].number
        latest = self._latest_of(process, number)
        if latest is not None and process.incarnation < latest.incarnation:
            return number  # of a launch that is not remembered
        if self._over(self._attempts[-1]) or (latest is not None and stated > number):
            return self._open(process, "", stated, False)
        return self._join(process, "", False)

    # ---- what is known

    def _over(self, attempt: _Attempt) -> bool:
        return self.ended(attempt.number)

    def _others(self, process: Process) -> List[Tuple[Process, _Member]]:
        return [(one, its) for one, its in self._members.items()
                if one[:2] == process[:2] and one.incarnation != process.incarnation]

    def _another_in(self, process: Process, attempt: _Attempt) -> bool:
        """Its worker takes part there already, by another process. One that came along only keeps the place."""
        return any(its.attempt == attempt.number and its.order and not (its.moved and attempt.started)
                   for _, its in self._others(process))

    def _replaced(self, process: Process, known: _Member) -> bool:
        """Its worker was started again since, in whatever attempt."""
        return any(its.order > known.order for _, its in self._others(process))

    def _latest_of(self, process: Process, number: int) -> Optional[Process]:
        found = [(its.order, one) for one, its in self._others(process) if its.attempt == number and its.order]
        return max(found)[1] if found else None

    def _key_of(self, member: _Member) -> str:
        return member.key or next((one.key for one in self._attempts if one.number == member.attempt), "")

    def _older_with(self, key: str) -> Optional[_Attempt]:
        return next((one for one in reversed(self._attempts[:-1]) if key and one.key == key), None)

    # ---- changes

    def _enter(self, process: Process, key: str, started: bool) -> None:
        self._order += 1
        number = self._attempts[-1].number
        self._members[process] = _Member(number, key, self._order, started)
        self._heard.setdefault(number, set()).add(process)

    def _open(self, process: Process, key: str, stated: int, started: bool) -> int:
        number = max(stated, self._attempts[-1].number + 1 if self._attempts else 1)
        self._attempts.append(_Attempt(number, key, started))
        self._enter(process, key, started)
        return number

    def _join(self, process: Process, key: str, started: bool) -> int:
        newest = self._attempts[-1]
        newest.key = newest.key or key
        self._enter(process, key, started)
        return newest.number


def _agree(one: str, other: str) -> bool:
    return not one or not other or one == other
