"""Times of the phases of a step, cheap enough for every step."""

import weakref
from time import time_ns
from typing import Any, Callable, ContextManager, Dict, Iterable, Iterator, Tuple

from . import _client

PHASES = ("data_wait", "forward", "backward", "optimizer", "communication", "evaluation",
          "checkpoint", "initialization", "finalization")


class Phase:
    """What is known of a phase. ``enter()`` and ``leave()`` stand around it, also inside itself; ``add(start,
    duration)`` is for times that somebody takes himself."""

    __slots__ = ("id", "enter", "leave", "add", "manager")

    def __init__(self, client: _client.Client, name: int) -> None:
        self.id = name
        found = client.phase(name)
        self.enter, self.leave, self.add = found["enter"], found["leave"], found["add"]
        depth = found["depth"]
        # Of a class of its own, whose methods are functions that want no object: `with` calls them and nothing else.
        # `goes_on`: somebody is inside.
        self.manager: ContextManager[None] = type("Phase", (), {
            "__slots__": (), "__enter__": staticmethod(self.enter), "__exit__": staticmethod(self.leave),
            "goes_on": property(lambda _: depth() > 0)})()


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        return None


NOTHING = _Nothing()


class Phases:
    """Of one hook. The track is ``phase``, as of its spans. What a script marks itself counts, and nothing beside it."""

    def __init__(self, client: _client.Client) -> None:
        self._client = client
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
        """``add(start, duration)`` of times that somebody takes himself, for calls of every step."""
        return self._phase(name).add

    def around(self, name: str) -> Tuple[Callable[[], None], Callable[[], None]]:
        """(``enter()``, ``leave()``), for calls of every step."""
        phase = self._phase(name)
        return phase.enter, phase.leave

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
            found = self._known[name] = Phase(self._client, self._client.name(_client.NAME_SPAN, name))
        return found

    def waiting_for(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same batches; the time until each of them is there is ``data_wait``."""
        wait = self.get("data_wait").manager
        source = iter(batches)
        while True:
            with wait:
                try:
                    batch = next(source)
                except StopIteration:
                    return
            yield batch
