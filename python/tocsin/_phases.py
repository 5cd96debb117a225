"""Times of the phases of a step, cheap enough for every step."""

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
            found = self._known[name] = Phase(self._client, self._errors,
                                              self._client.name(_client.NAME_SPAN, name))
        return found

    def of(self, name: str) -> Callable[[int, int], None]:
        """``add(start, duration)`` of times that somebody takes himself, for calls of every step: without a
        call between it and the client. May raise as any call of the client."""
        return partial(self._client.time, self.get(name).id)

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
