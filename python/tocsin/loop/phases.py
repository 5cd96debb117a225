"""Times of the phases of a step, cheap enough for every step."""

import os
import weakref
from time import time_ns
from typing import Any, Callable, ContextManager, Dict, FrozenSet, Iterable, Iterator, Set, Tuple, Union

from tocsin.library import abi

PHASES = ("data_wait", "forward", "backward", "optimizer", "communication", "evaluation",
          "checkpoint", "initialization", "finalization")
PASSES = frozenset(("forward", "backward", "evaluation", "initialization"))  # told by the model's calls

Wanted = Union[bool, str, Iterable[str]]


def without_passes(said: Wanted) -> Wanted:
    """``watch(phases=…)`` of who times the model's passes himself."""
    if said is False:
        return False
    return [name for name in (PHASES if said is True else [said] if isinstance(said, str) else said) if name not in PASSES]


class Phase:
    """What is known of a phase. ``enter()`` and ``leave()`` stand around it, also inside itself; ``add(start,
    duration)`` is for times that somebody takes himself."""

    __slots__ = ("id", "enter", "leave", "add", "ended", "manager")

    def __init__(self, client: abi.Client, name: int) -> None:
        self.id = name
        found = client.phase(name)
        self.enter, self.leave, self.add = found["enter"], found["leave"], found["add"]
        self.ended: Callable[[], int] = found.get("ended", int)  # when it was left last; 0: never
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

    def __init__(self, client: abi.Client, wanted: Iterable[str] = PHASES) -> None:
        """``wanted``: what is timed unasked, as the section ``capture`` says."""
        self._client = client
        self._wanted = frozenset(wanted) & _of_environment()
        self.unasked: Set[str] = set()  # what is timed unasked, as far as somebody has begun
        self._known: Dict[str, Phase] = {}
        self._by_hand: Dict[str, Phase] = {}
        self._automatic: "weakref.WeakSet[Any]" = weakref.WeakSet()
        self._opened = time_ns()

    def wanted(self, said: Wanted = True) -> FrozenSet[str]:
        """What is timed unasked from now on, of what ``watch(phases=…)`` was given: True, False (the update alone) or
        names. ``ValueError`` for a name that is none of :data:`PHASES`."""
        names = frozenset(PHASES if said is True else ("optimizer",) if said is False
                          else (said,) if isinstance(said, str) else said)
        for name in names.difference(PHASES):
            raise ValueError(f"phases: {name!r} is no phase ({', '.join(PHASES)})")
        names &= self._wanted
        self.unasked |= names
        return names

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

    def name_of(self, name: str) -> int:
        """The id under which its spans go out."""
        return self._phase(name).id

    def passes(self, *given: Any) -> Any:
        """Functions of the library for the hooks on a model; None where it has none."""
        return self._client.passes(*given)

    def around(self, name: str) -> Tuple[Callable[[], None], Callable[[], None]]:
        """(``enter()``, ``leave()``), for calls of every step."""
        phase = self._phase(name)
        return phase.enter, phase.leave

    def automatic(self, owner: Any, wanted: Iterable[str] = PHASES) -> None:
        """``owner`` times phases unasked; ``owner.by_hand(name)`` is called when the script times one itself, also when
        it has done so before, and for each that is not ``wanted``. Held weakly."""
        self._automatic.add(owner)
        for name in PHASES:
            if name in self._by_hand or name not in wanted:
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
            found = self._known[name] = Phase(self._client, self._client.name(abi.NAME_SPAN, name))
        return found

    def finalize(self, last_step: int) -> None:
        """The hook closes: what came after the last step is ``finalization``. ``last_step``: when it ended, 0 for none; of
        one that was kept open for a ``log()`` the end of its update counts."""
        if last_step and "finalization" in self.unasked.difference(self._by_hand):
            self.of("finalization")(last_step, max(0, time_ns() - last_step))

    def updated(self) -> int:
        """When an optimizer's update ended last; 0 for none that was timed."""
        optimizer = self._known.get("optimizer")
        return 0 if optimizer is None else optimizer.ended()

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


def _of_environment() -> FrozenSet[str]:
    """``TOCSIN_PHASES``: ``off``, or the names of those that are timed unasked."""
    said = os.environ.get("TOCSIN_PHASES", "").strip().lower()
    if not said or said == "on":
        return frozenset(PHASES)
    return frozenset(name.strip() for name in said.split(","))
