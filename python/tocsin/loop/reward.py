"""Sums of learning by reward, as scalars of the role ``ledger`` (docs/ledger.md, ``ledger/reward/…``): what the rule ``reward`` reads.

They are sent together in a training step, when the episodes or the transitions have grown by a 64th since the last time.
Nothing of an element travels: how many values there were, and how many differ from the one before.
"""

import hashlib
import re
from typing import Any, Dict, Iterable, Optional, Tuple

from tocsin.process.contain import contained

PREFIX = "ledger/reward/"
# Logged names that say of a job that it learns by reward.
_NAMES = re.compile(r"(?i)(^|[^a-z])(rewards?|rew|returns?|episodic)($|[^a-z])")
SIGNALS = frozenset(("reward", "done", "observation", "advantage", "entropy", "ratio", "priority", "weight"))
_SWITCHES = ("done", "ratio")  # of which it matters how many are 1
_GROWTH = 64
_PATIENCE = 256  # transitions at least from one word to the next, where no episode ends
MOST_KEPT = 65536  # fingerprints
_BYTES = 1024  # of a row
EVERY = 16  # steps from one observation that is looked at to the next, about; and rows of many
MODES = ("train", "global")
_ADDED = frozenset(("planned", "environments"))  # of which the newest counts: they are no sums


def is_reward(name: Any) -> bool:
    return isinstance(name, str) and _NAMES.search(name) is not None and not name.startswith("ledger/")


class Prints:
    """How many different rows there were, from the fingerprints of an even share of them."""

    def __init__(self) -> None:
        self._kept: Dict[int, None] = {}
        self._mask = 0

    def new(self, row: bytes) -> int:
        """How many rows this one stands for, if it was not there before; 0: it was, or it is none of the share."""
        value = int.from_bytes(hashlib.blake2b(row, digest_size=8).digest(), "little")
        if value & self._mask or value in self._kept:
            return 0
        self._kept[value] = None
        weight = self._mask + 1
        if len(self._kept) > MOST_KEPT:
            self._mask = 2 * self._mask + 1
            self._kept = {one: None for one in self._kept if not one & self._mask}
        return weight


class Rewards:
    """Of one sink. Nothing here waits for a device: what is on one is left out."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._sums: Dict[str, float] = {}
        self._last: Dict[str, Any] = {}
        self._transitions = self._episodes = self._others = 0.0  # others: values of what is trained on
        self._told_transitions = self._told_episodes = self._told_others = 0.0
        self._at: Any = None  # the step that has its word
        self._ids: Dict[str, int] = {}
        self._made, self._drawn = Prints(), Prints()

    def guard(self) -> Any:
        return self._sink.guard("reward")

    @property
    def open(self) -> bool:
        return bool(self._sink.active)

    def failed(self, error: BaseException) -> None:
        self._sink.failed("reward", error)

    # ---- what is told

    def add(self, field: str, value: float) -> None:
        if field in _ADDED:
            self._sums[field] = value
        else:
            self._sums[field] = self._sums.get(field, 0.0) + value

    def steps(self, number: int) -> None:
        """Transitions that came to be."""
        self._transitions += number
        self.add("transitions", number)

    def episode(self, total: float, terminated: bool) -> None:
        """One that has ended. ``terminated``: by the world, and not by a limit of time."""
        self._episodes += 1
        self.add("episodes", 1)
        self.add("returns", total)
        self.add("squares", total * total)
        if terminated:
            self.add("ends", 1)

    def signal(self, name: str, value: float) -> None:
        """One number, of one transition."""
        self.add("seen/" + name, 1)
        if name in self._last and self._last[name] != value:
            self.add("changes/" + name, 1)
        elif name not in self._last:
            self.add("changes/" + name, 0)
        self._last[name] = value
        if name in _SWITCHES:
            self.add("ones/" + name, float(value == 1))

    def signals(self, name: str, values: Any) -> None:
        """An array with a number for each transition."""
        array = _host(values)
        if array is None or array.size == 0:
            return
        flat = array.reshape(-1)
        if array.size == 1:
            self.signal(name, float(flat[0]))
            return
        changes = int((flat[1:] != flat[:-1]).sum()) + int(name in self._last and self._last[name] != flat[0])
        self.add("seen/" + name, flat.size)
        self._others += flat.size
        self.add("changes/" + name, changes)
        self._last[name] = flat[-1]
        if name in _SWITCHES:
            self.add("ones/" + name, int((flat == 1).sum()))

    def rewarded(self, seen: int, changes: int) -> None:
        """Rewards that were counted elsewhere."""
        self.add("seen/reward", seen)
        self.add("changes/reward", changes)

    def observed(self, observation: Any, number: int, transitions: int) -> None:
        """Rows of ``number`` transitions, which stand for so many."""
        array = _host(observation)
        if array is None or array.size <= number:  # one number each: it may be a dummy
            return
        rows = array.reshape(number, -1) if number > 1 and array.shape[0] == number else array.reshape(1, -1)
        rows = rows[::max(1, len(rows) // EVERY)]
        for row in rows:
            self.add("made", self._made.new(_some(row)) * transitions / len(rows))
        first = _some(rows[0])
        self.add("seen/observation", transitions)
        self.add("changes/observation", float(self._last.get("observation", first) != first))
        self._last["observation"] = first

    def drawn(self, parts: Iterable[Any]) -> None:
        """Rows that were drawn from a memory, as arrays that belong together."""
        arrays = [one for one in map(_host, parts) if one is not None and one.ndim > 0]
        if not arrays or any(len(one) != len(arrays[0]) for one in arrays):
            return
        flat = [one.reshape(len(one), -1) for one in arrays]
        self.keyed(b"".join(_some(one[at]) for one in flat) for at in range(len(flat[0])))

    def keyed(self, keys: Iterable[bytes]) -> None:
        """The same by what tells transitions apart."""
        number = fresh = 0
        for key in keys:
            number += 1
            fresh += self._drawn.new(key)
        self._others += number
        self.add("drawn", number)
        self.add("fresh", fresh)

    # ---- when it is sent

    def tick(self) -> None:
        """Sends what has come, if it is enough, and looks at target networks. At each word of the loop."""
        sink = self._sink
        clock = sink.clock
        if not counts(clock):
            return
        if sink.lag is not None and clock.mode in MODES:
            sink.lag.look()
        if not self._sums:
            return
        episodes, transitions = self._episodes - self._told_episodes, self._transitions - self._told_transitions
        others = self._others - self._told_others
        if (episodes < max(1.0, self._episodes / _GROWTH) and transitions < max(_PATIENCE, self._transitions / _GROWTH)
                and others < max(_PATIENCE, self._others / _GROWTH)):
            return
        position = clock.position()
        if position == self._at:
            return  # a step has one value of a name
        self._at = position
        self._told_episodes, self._told_transitions, self._told_others = self._episodes, self._transitions, self._others
        sums, self._sums = self._sums, {}
        for field in sorted(sums):
            identity = self._ids.get(field)
            if identity is None:
                identity = self._ids[field] = sink.scalar(PREFIX + field, "ledger")
            sink.publish_scalar(PREFIX + field, float(sums[field]))


class TellsRewards:
    """Of a :class:`tocsin.Hook`."""

    sink: Any

    @contained()
    def transitions(self, *, episode_returns: Any = None, drawn: Any = None, **signals: Any) -> None:
        """Tell the rule ``reward`` what a reinforcement-learning loop did since the last call.

        Values are NumPy arrays, tensors in host memory or numbers, one per transition. No element leaves the process.
        ``reward``, ``done``, ``observation``: of new transitions. ``advantage``, ``entropy``, ``ratio``, ``priority``,
        ``weight``: of transitions that are trained on. ``episode_returns``: of finished episodes. ``drawn``: one array, or
        several that belong together, with one row per transition drawn from a memory.
        :mod:`tocsin.gymnasium` reports rewards and returns by itself.
        """
        unknown = sorted(set(signals) - SIGNALS)
        if unknown:
            raise ValueError(f"{unknown[0]!r} is no signal ({', '.join(sorted(SIGNALS))})")
        rewards = rewards_of(self.sink)
        if rewards is None:
            return
        for name, values in signals.items():
            if values is None:
                continue
            if name == "observation":
                number = _number(signals.get("reward"))
                rewards.observed(values, number, number)
            else:
                rewards.signals(name, values)
        if signals.get("reward") is not None:
            rewards.steps(_number(signals["reward"]))
        for total in _flat(episode_returns):
            rewards.episode(float(total), False)
        if drawn is not None:
            rewards.drawn(drawn if isinstance(drawn, (tuple, list)) else (drawn,))
        rewards.tick()


def counts(clock: Any) -> bool:
    """What goes on is training: an agent may act while its model is in its eval state, and the mode follows that. If the script says
    that it evaluates, it does."""
    return clock.mode in MODES or bool(clock.follows)


def rewards_of(sink: Any) -> Optional[Rewards]:
    """None: nothing of it is wanted now."""
    if not sink.active or not sink.wants_ledger or not counts(sink.clock):
        return None
    if sink.reward is None:
        sink.reward = Rewards(sink)
    return sink.reward  # type: ignore[no-any-return]


def _host(values: Any) -> Any:
    """As an array; None: it is on a device, or no array of numbers."""
    import numpy

    if isinstance(values, dict) or (hasattr(values, "device") and str(getattr(values.device, "type", "cpu")) != "cpu"):
        return None
    if hasattr(values, "detach"):
        values = values.detach()
    array = numpy.asarray(values)
    return array if array.dtype.kind in "biuf" else None


def _flat(values: Any) -> Tuple[Any, ...]:
    array = None if values is None else _host(values)
    return () if array is None else tuple(array.reshape(-1))


def _number(values: Any) -> int:
    return 1 if values is None else max(1, len(_flat(values)))


def _some(row: Any) -> bytes:
    """A row's bytes, of a long one an even share."""
    return bytes(row[::max(1, row.nbytes // _BYTES)].tobytes())
