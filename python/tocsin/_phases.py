"""Times of the phases of a step, cheap enough for every step."""

from time import time_ns
from typing import Any, Dict, Iterable, Iterator, List

from . import _client
from ._contain import Errors

PHASES = ("data_wait", "forward", "backward", "optimizer", "communication", "evaluation",
          "checkpoint", "initialization", "finalization")


class Phase:
    """``with phase: …``; may be entered again inside itself."""

    __slots__ = ("_phases", "id", "_began")

    def __init__(self, phases: "Phases", name: int) -> None:
        self._phases, self.id = phases, name
        self._began: List[int] = []

    def __enter__(self) -> None:
        self._began.append(time_ns())

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        begin = self._began.pop()
        self._phases.add(self.id, begin, time_ns() - begin)


class _Nothing:
    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        return None


NOTHING = _Nothing()


class Phases:
    """Of one hook. The track is ``phase``, as of its spans."""

    def __init__(self, client: _client.Client, errors: Errors) -> None:
        self._client = client
        self._errors = errors
        self._known: Dict[str, Phase] = {}

    def get(self, name: str) -> Phase:
        """``ValueError`` for a name that is none of :data:`PHASES`."""
        found = self._known.get(name)
        if found is None:
            if name not in PHASES:
                raise ValueError(f"{name!r} is no phase ({', '.join(PHASES)}): "
                                 "hook.span() takes any name")
            found = self._known[name] = Phase(self, self._client.name(_client.NAME_SPAN, name))
        return found

    def add(self, name: int, start: int, duration: int) -> None:
        """Never raises: what is off stays off."""
        try:
            self._client.span(name, 0, start, duration, 0)
        except Exception as error:  # noqa: BLE001
            self._errors.add("phase", error)

    def add_named(self, name: str, start: int, duration: int) -> None:
        """The same by name, of times that an adapter has taken."""
        self.add(self.get(name).id, start, duration)

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
