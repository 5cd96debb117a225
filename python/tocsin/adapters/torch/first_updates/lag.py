"""Target networks: copies of a trained network that nobody trains and that should follow it (docs/ledger.md, ``ledger/target/…``).

They are found by the names of variables and attributes around the loop, ``target_net``, ``self.q_net_target``, if their parameters have the
shapes of a trained network's and no optimizer holds them. A few elements of both are compared now and then. On a device nothing is waited
for: the counts stay there until they are sent.
"""

import re
import sys
import weakref
from time import perf_counter
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from tocsin.loop.marks import Marks
from tocsin.loop.sink import Sink
from tocsin.tensors.torch_names import local
from tocsin.tensors.torch_staging import capturing

TENSORS, ELEMENTS = 8, 128  # of each tensor at most
MOST = 4  # networks
DENSE = 96  # the first looks, at each step; later once a second, where steps are short
SHARE = 0.002  # of the time of training
FIELDS = ("updates", "looks", "moves", "changes", "equal")
_NAMED = re.compile(r"(^|[^a-z])(target|tgt)s?($|[^a-z])")
_DEPTH, _MOST_VALUES = 64, 10000  # frames, and values in all
_NOT_THEIRS = ("tocsin", "torch.", "numpy", "lightning.", "contextlib", "threading", "builtins")
_OPTIMIZED = 1  # co_flags of a function: its locals are a copy
_OURS = 3  # references to that copy: the frame's, ours, and the question's


class Targets:
    """Of one sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._pairs: Dict[str, "_Pair"] = {}
        self._scans, self._next_scan = 0, 0
        self._at: Any = None
        self._looks, self._next = 0, 0.0
        self._words = 0

    def wake(self) -> None:
        """At times, from another thread: the next word of the loop comes here, though the clock is lent."""
        if self._sink.reward is not None:
            self._sink.clock.keep(True, "lag")

    def scan(self) -> None:
        """Around the caller. Cheap: only what has such a name is looked at."""
        if len(self._pairs) >= MOST:
            return
        torch = sys.modules["torch"]
        modules = list(_around(torch.nn.Module))
        wanted = [(name, one) for name, one in modules if _NAMED.search(name.lower())]
        if not wanted:
            return
        trained = self._trained()
        sources = list(self._models(modules, trained))
        for name, one in wanted:
            shapes = _shapes(one)
            own = {id(parameter) for parameter in one.parameters()}
            if not shapes or name in self._pairs or any(pair.is_of(one) for pair in self._pairs.values()) or len(self._pairs) >= MOST:
                continue
            alike = [source for source in sources if _shapes(source) == shapes]
            if own & trained:
                alike = [source for source in alike if source is one]  # a second name of the trained one
            source = _best(one, alike)
            if source is not None:
                self._pairs[name] = _Pair(self._sink, name, one, source)

    def look(self) -> None:
        """At a word of the loop. Once for each step at most."""
        at = self._sink.clock.position()
        if at == self._at:
            return
        self._at = at
        self._words += 1
        if self._words == 1:
            self._sink.clock.keep(True, "lag")
        elif self._words >= DENSE:
            self._sink.clock.keep(False, "lag")
        self._scans += 1
        if self._scans > self._next_scan and len(self._pairs) < MOST:
            self._next_scan = 2 * self._scans
            self.scan()
        if not self._pairs or capturing():
            return
        began = perf_counter()
        if self._looks >= DENSE and began < self._next:
            return
        self._looks += 1
        with sys.modules["torch"].no_grad():
            for name in list(self._pairs):
                if not self._pairs[name].look(at[1]):
                    del self._pairs[name]
        now = perf_counter()
        self._next = now + (now - began) / SHARE

    def _trained(self) -> Set[int]:
        """Ids of the parameters that the optimizers of the loop hold."""
        optimizers = [one for one in (parts()[1] for parts in (getattr(adapter, "parts", None) for adapter in self._sink.adapters())
                                      if parts is not None) if one is not None]
        return {id(parameter) for optimizer in optimizers for group in optimizer.param_groups for parameter in group["params"]}

    def _models(self, found: List[Tuple[str, Any]], trained: Set[int]) -> Iterator[Any]:
        """Trained networks: those that are watched, what is around, and their parts."""
        seen: Set[int] = set()
        watched = [parts()[0] for parts in (getattr(adapter, "parts", None) for adapter in self._sink.adapters()) if parts is not None]
        for model in [one for one in watched if one is not None] + [one for _, one in found]:
            for part in model.modules():
                if id(part) not in seen and any(id(parameter) in trained for parameter in part.parameters()):
                    seen.add(id(part))
                    yield part


def parameters_of_targets(model: Any, trained: Set[int]) -> Set[int]:
    """Ids of the parameters of target networks that are parts of ``model``: it is by design that nobody trains them."""
    out: Set[int] = set()
    for name, part in model.named_modules():
        own = {id(parameter) for parameter in part.parameters()}
        if not own or own & trained or not _NAMED.search(name.rpartition(".")[2].lower()):
            continue
        shapes = _shapes(part)
        if any(_shapes(other) == shapes for other in model.modules()
               if other is not part and any(id(parameter) in trained for parameter in other.parameters())):
            out |= own
    return out


class _Pair:
    """A copy and what it was copied from."""

    def __init__(self, sink: Sink, name: str, copy: Any, source: Any) -> None:
        self._copy, self._source = weakref.ref(copy), weakref.ref(source)
        self._marks = Marks(sink, "target/" + re.sub(r"[^\w.-]", "_", name)[:64])
        self._before: Optional[Tuple[Any, Any]] = None
        self._sums: Any = None
        self._since: Optional[int] = None  # the step of the newest word
        self._updates, self._told = 0, 0
        with sys.modules["torch"].no_grad():
            self._begin()

    def is_of(self, copy: Any) -> bool:
        return self._copy() is copy

    def _begin(self) -> None:
        copy, source = self._copy(), self._source()
        self._before = _some(copy), _some(source)
        self._sums = self._counts(*self._before)

    def _counts(self, copy: Any, source: Any) -> Any:
        """Looks, whether the source has moved, whether the copy has, whether they are equal."""
        torch = sys.modules["torch"]
        old_copy, old_source = self._before or (copy, source)
        ones = torch.ones((), dtype=torch.bool, device=copy.device)
        return torch.stack([ones, (source != old_source).any(), (copy != old_copy).any(), (copy == source).all()]).float()

    def look(self, step: int) -> bool:
        """False: they are gone, or have been changed."""
        copy, source = self._copy(), self._source()
        if copy is None or source is None:
            return False
        now = _some(copy), _some(source)
        if now[0].shape != now[1].shape or self._before is None or now[0].device != self._before[0].device \
                or now[0].device != now[1].device or now[0].shape != self._before[0].shape:
            return False
        self._sums = self._sums + self._counts(*now)
        self._before = now
        if self._since is not None:
            self._updates += max(0, step - self._since)
        self._since = step
        # A word at 1, 1½, 2, 3, 4, 6, 8 … times sixteen updates.
        if self._updates and self._told + self._updates >= max(16, 1.3 * self._told):
            self._told += self._updates
            sums, updates = self._sums, self._updates
            self._sums, self._updates = sums * 0, 0
            torch = sys.modules["torch"]
            self._marks.tell(FIELDS, torch.cat([torch.full((1,), float(updates), dtype=sums.dtype, device=sums.device), sums]))
        return True


def _some(module: Any) -> Any:
    """A few elements of its largest parameters, always the same ones."""
    torch = sys.modules["torch"]
    flat = [local(one.detach()).reshape(-1) for one in module.parameters()]
    flat = sorted((one for one in flat if one.numel()), key=lambda one: -int(one.numel()))[:TENSORS]
    return torch.cat([one[::max(1, -(-int(one.numel()) // ELEMENTS))].float() for one in flat])


def _shapes(module: Any) -> List[Tuple[int, ...]]:
    return [tuple(one.shape) for one in module.parameters() if one.numel()]


def _best(copy: Any, alike: List[Any]) -> Any:
    """The one that the copy is of: itself, one with equal elements in host memory, or the first."""
    for source in alike:
        if source is copy:
            return source
    for source in alike:
        first, other = next(iter(copy.parameters())), next(iter(source.parameters()))
        if first.device.type == other.device.type == "cpu" and bool((_some(copy) == _some(source)).all()):
            return source
    return alike[0] if alike else None


def _around(kind: type) -> Iterator[Tuple[str, Any]]:
    """(name, module) of variables of the callers, attributes of objects among them, and parts of modules. Nothing of theirs is run."""
    frame = sys._getframe(1)
    seen: Set[int] = set()
    left = _MOST_VALUES
    for _ in range(_DEPTH):
        frame = frame.f_back  # type: ignore[assignment]
        if frame is None:
            return
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(_NOT_THEIRS):
            continue
        values = frame.f_locals
        items = list(values.items())
        if frame.f_code.co_flags & _OPTIMIZED and type(values) is dict and sys.getrefcount(values) <= _OURS:
            values.clear()  # a copy that the frame would keep, and with it what the loop lets go; unless the script has called locals()
        pending = [(name, value, 2) for name, value in reversed(items) if not name.startswith("__")]
        while pending and left > 0:
            left -= 1
            name, value, depth = pending.pop()
            if issubclass(type(value), kind):
                yield name, value  # whatever else it is called: a target may be no copy, but a second name
                if id(value) not in seen:
                    seen.add(id(value))
                    yield from ((inner, part) for inner, part in value.named_children() if _NAMED.search(inner.lower()))
            elif depth and id(value) not in seen:
                seen.add(id(value))
                pending += [(inner, part, depth - 1) for inner, part in _attributes(value)]


def _attributes(value: Any) -> List[Tuple[str, Any]]:
    """Of an object of the script's, as they lie in its dictionary."""
    kind = type(value)
    if issubclass(kind, (type, type(sys), dict, list, tuple, str)) or str(kind.__module__).startswith(_NOT_THEIRS):
        return []
    try:
        held = object.__getattribute__(value, "__dict__")
        return [(name, part) for name, part in held.items() if isinstance(name, str)] if type(held) is dict else []
    except (AttributeError, RuntimeError):  # it has none, or another thread changes it
        return []
