"""How far each worker of a launch has come, as its records say: what makes a step complete."""

from typing import Any, Dict, List, Set, Tuple

from tocsin import wire
from tocsin.reading.launches import NODE_AGENT


class _Worker:
    """One process of a worker. A process that takes its place begins anew."""

    __slots__ = ("rank", "incarnation", "gone", "ended", "seen")

    def __init__(self, rank: int, incarnation: int) -> None:
        self.rank, self.incarnation, self.gone = rank, incarnation, False
        self.ended: Dict[int, int] = {}  # by mode: the newest step that it said it has ended
        self.seen: Dict[int, int] = {}  # by mode: the newest step of its values

    def passed(self, mode: int, step: int) -> bool:
        if self.gone:
            return True
        return (self.ended if self.ended else self.seen).get(mode, -1) >= step


class Completeness:
    """Of one launch. A step is complete when every process of the launch has said that it ended it, or has left. A process that
    says no ends of steps (a producer of its own make) has passed a step when it has sent a value of it."""

    def __init__(self) -> None:
        self._workers: Dict[int, _Worker] = {}  # by hash of the name
        self._world = 1

    def hear(self, frame: Any) -> None:
        """Frames of this launch in the order of the log."""
        head = frame.header
        if head["rank"] == NODE_AGENT:
            return
        self._world = max(self._world, head["world_size"])
        one = self._workers.get(head["worker"])
        if one is None or head["incarnation"] > one.incarnation:
            one = self._workers[head["worker"]] = _Worker(head["rank"], head["incarnation"])
        elif head["incarnation"] < one.incarnation:
            return
        mode = head["mode"]
        if frame.kind == wire.STEP_END:
            for row in frame.rows:
                one.ended[mode] = max(one.ended.get(mode, -1), row["step"])
        elif frame.kind in (wire.SUMMARY, wire.SCALAR):
            newest = max((row.get("step", head["step"]) for row in frame.rows), default=-1)
            one.seen[mode] = max(one.seen.get(mode, -1), newest)
        elif frame.kind == wire.LIFECYCLE and (frame.lifecycle or {}).get("event") in ("end", "leave"):
            one.gone = True

    def complete(self, mode: int, step: int) -> bool:
        return len(self._workers) >= self._world and all(one.passed(mode, step) for one in self._workers.values())

    def behind(self, mode: int, step: int) -> Tuple[List[int], List[int]]:
        """Who has not passed a step: (hashes of the names of workers, ranks that were never heard)."""
        heard: Set[int] = {one.rank for one in self._workers.values()}
        return ([name for name, one in self._workers.items() if not one.passed(mode, step)],
                [rank for rank in range(self._world) if rank not in heard] if len(self._workers) < self._world else [])
