"""Times of the phases of a step, cheap enough for every step."""

import weakref
from functools import partial
from time import time_ns
from typing import Any, Callable, Dict, Iterable, Iterator, List

from . import _client
from ._contain import Errors

PHASES = ("data_wait", "forward", "backward", "optimizer", "communication", "evaluation",
          "checkpoint", "initialization", "finalization")


class Phase:
    """``with phase: …``; may be entered again inside itself."""

    __slots__ = ("_client", "_errors", "id", "_began")

    def __init__(self, client: _client.Client, errors: Errors, name: int) -> None:
        self._client, self._errors, self.id = client, errors, name
        self._began: List[int] = []

    @property
    def goes_on(self) -> bool:
        """Somebody is inside."""
        return bool(self._began)

    def __enter__(self) -> None:
        self._began.append(time_ns())

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        try:
            begin = self._began.pop()
            self._client.time(self.id, begin, time_ns() - begin)
        except Exception as problem:  # noqa: BLE001
            self._errors.add("phase", problem)


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        return None


NOTHING = _Nothing()


class Phases:
    """Of one hook. The track is ``phase``, as of its spans. What a script marks itself counts, and nothing beside it."""

    def __init__(self, client: _client.Client, errors: Errors) -> None:
        self._client = client
        self._errors = errors
        self._known: Dict[str, Phase] = {}
        self._by_hand: Dict[str, Phase] = {}
        self._automatic: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self._opened = time_ns()

    def get(self, name: str) -> Phase:
        """For a script's own hand. ``ValueError`` for a name that is none of :data:`PHASES`."""
        found = self._by_hand.get(name)
        if found is None:
            found = self._by_hand[name] = self._phase(name)
            for owner in list(self._automatic):
                owner.by_hand(name)
        return found

    def of(self, name: str) -> Callable[[int, int], None]:
        """``add(start, duration)`` of times that somebody takes himself, for calls of every step: without a
        call between it and the client. May raise as any call of the client."""
        return partial(self._client.time, self._phase(name).id)

    def automatic(self, owner: Any) -> None:
        """``owner`` times phases unasked; ``owner.by_hand(name)`` is called when the script times one itself, also when
        it has done so before. Held weakly."""
        self._automatic.add(owner)
        for name in self._by_hand:
            owner.by_hand(name)

    def take_opened(self) -> int:
        """When the hook was opened; 0 when that was taken before."""
        opened, self._opened = self._opened, 0
        return opened

    def _phase(self, name: str) -> Phase:
        found = self._known.get(name)
        if found is None:
            if name not in PHASES:
                raise ValueError(f"{name!r} is no phase ({', '.join(PHASES)}): "
                                 "hook.span() takes any name")
            found = self._known[name] = Phase(self._client, self._errors,
                                              self._client.name(_client.NAME_SPAN, name))
        return found

    def waiting_for(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same batches; the time until each of them is there is ``data_wait``."""
        wait = self.get("data_wait")
        source = iter(batches)
        while True:
            with wait:
                try:
                    batch = next(source)
                except StopIteration:
                    return
            yield batch
