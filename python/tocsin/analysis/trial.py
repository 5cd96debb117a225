"""A trial over a directory, with frames. What it has saved is read when a method asks for it."""

from typing import Any, Optional, Tuple

from tocsin.rules.recording import RecordedTrial
from .curves import Plotting
from .frame import Frame
from .live import FollowedDirectory, Living
from .recorded import RecordedSource
from .selection import Query, query_of


def _late(name: str) -> Any:
    """An attribute of a trial that is only known when it was read."""
    def get(self: Any) -> Any:
        self.begin()
        return self.__dict__[f"_late_{name}"]

    def put(self: Any, value: Any) -> None:
        self.__dict__[f"_late_{name}"] = value
    return property(get, put)


class DirectoryTrial(Plotting, Living, RecordedTrial):
    """:class:`tocsin.rules.Trial`, ``series``, ``live`` and ``plot``."""

    run = _late("run")
    job = _late("job")
    loaded_all_steps = _late("loaded_all_steps")

    def __init__(self, directory: str, name: str, range_steps: Optional[Tuple[int, int]], run: Optional[str],
                 until: Optional[int] = None) -> None:
        self._directory = directory
        self._begun = True  # while it is made
        super().__init__(directory, name, range_steps, run, read=False, until=until)
        self._begun = False
        self.source = self.new_source(until)
        self.source.run_of(run)

    def new_source(self, until: Optional[int]) -> RecordedSource:
        return RecordedSource(self._directory, until)

    def begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._fill_what_is_new()

    def refresh(self) -> None:
        self._begun = True
        super().refresh()

    def maybe_refresh(self) -> None:
        self.begin()
        super().maybe_refresh()

    def series(self, query: str, stat: Any = None, mode: Any = None, workers: Any = None, steps: Any = None,
               points: Optional[int] = None, smooth: Optional[int] = None) -> Frame:
        """A lazy frame of this run's newest launch. ``query``: ``metric("loss")``, ``tensor("gradient/.*")``, ``collection("gradients")``,
        ``system("hw.gpu.utilization")``, ``span("forward")``, ``step()``, with ``{mode="train"}``; or the name of a metric. ``stat``: one
        statistic of tensors, or several. ``steps``: from, up to without. ``points``: thinned to at most so many, plus one."""
        asked = query_of(query, stat=stat, mode=mode, workers=workers, steps=steps if steps is not None else self._range,
                         points=points, smooth=smooth)
        found = self.source.run_of(self._wanted)
        if found is not None:
            asked = asked._replace(run=found[0], attempt=found[1])
        return Frame(self.source, asked)

    def follow(self, query: Query) -> FollowedDirectory:
        if self._until is not None:
            raise ValueError("live: this trial shows a past moment; open it without at")
        return FollowedDirectory(self.new_source(None), self._directory, self._wanted, query)
