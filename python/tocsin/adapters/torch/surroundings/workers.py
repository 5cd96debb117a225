"""Random numbers of the workers of a data loader: are they those of another worker, or of the epoch before?

PyTorch seeds each worker differently, and anew for each epoch. A ``worker_init_fn`` may undo that. So only workers with such a function are looked
at, of data sets with an index (each worker gets other samples), where processes are forked: a spawned worker runs PyTorch's own function. After
the function has run, the worker writes hashes of the states of its generators into shared memory, and whether they are used for the first
batches. Nothing is written for generators that nobody draws from. The parent looks once a second, from the thread that says where the process stands.
"""

import functools
import hashlib
import inspect
import mmap
import os
import pickle
import struct
import sys
from typing import Any, Dict, List, Optional

from tocsin.loop.sink import Sink
from tocsin.process.replacing import Replacing

GENERATORS = ("numpy", "random", "torch")
_BATCHES = 4  # after which a generator must have been drawn from
_SLOTS = 1024
# Process, parent, group (a loader's iterator), kind (data set and function), epoch's seed, worker, states of the generators, which of them are used.
_SLOT = struct.Struct("<QQQQQQQQQQ")
_START = 64  # of the slots; before them a byte that says that something was written


class Workers(Replacing):
    """Of one hook."""

    def __init__(self, sink: Sink) -> None:
        super().__init__()
        self._sink = sink
        self._memory = mmap.mmap(-1, _START + _SLOTS * _SLOT.size)
        self._told = False
        with sink.guard("workers"):
            module = sys.modules["torch.utils.data._utils.worker"]
            self.replace(module, "_worker_loop", self._around(vars(module)["_worker_loop"]))
        sink.attach(self)

    def look(self, counters: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        """A finding (docs/wire.md, ``preflight``), once; else None."""
        del counters
        if self._told or not self._memory[0]:
            return None
        self._memory[0] = 0
        slots = [one for one in _SLOT.iter_unpack(self._memory[_START:]) if one[1] == os.getpid() and one[9]]
        finding = self._alike(slots) or self._repeated(slots)
        self._told = finding is not None
        return finding

    # ---- the parent

    def _alike(self, slots: List[Any]) -> Optional[Dict[str, Any]]:
        for place, name in enumerate(GENERATORS):
            groups: Dict[Any, int] = {}
            for one in slots:
                if one[9] & 1 << place:
                    groups[one[2], one[4], one[6 + place]] = groups.get((one[2], one[4], one[6 + place]), 0) + 1
            count = max(groups.values(), default=0)
            if count > 1:
                return self._finding("workers_alike", count, name)
        return None

    def _repeated(self, slots: List[Any]) -> Optional[Dict[str, Any]]:
        """The same states in two epochs whose seeds differ."""
        for place, name in enumerate(GENERATORS):
            epochs: Dict[Any, Dict[int, int]] = {}
            for one in slots:
                if one[9] & 1 << place:
                    epochs.setdefault((one[3], one[5], one[6 + place]), {})[one[4]] = 1
            count = sum(len(seeds) > 1 for seeds in epochs.values())
            if count:
                return self._finding("workers_repeat", count, name)
        return None

    def _finding(self, kind: str, count: int, generator: str) -> Dict[str, Any]:
        models = [one.parts()[0] for one in self._sink.adapters() if hasattr(one, "named_parameters")]
        known = [type(one).__name__ for one in models if one is not None]
        return {"kind": kind, "model": known[0] if known else "the model", "count": count, "names": [generator]}

    def _training(self) -> bool:
        models = [one.parts()[0] for one in self._sink.adapters() if hasattr(one, "named_parameters")]
        return any(getattr(one, "training", False) for one in models)

    # ---- the child

    def _around(self, inner: Any) -> Any:
        names = list(inspect.signature(inner).parameters)
        places = {name: names.index(name) for name in ("dataset_kind", "data_queue", "base_seed", "init_fn", "worker_id")}
        data = names.index("dataset_holder") if "dataset_holder" in names else names.index("dataset")

        @functools.wraps(inner)  # also its place: who spawns a worker pickles a reference to PyTorch's own function
        def loop(*args: Any, **kwargs: Any) -> Any:
            if len(args) == len(names) and args[places["init_fn"]] is not None and args[places["dataset_kind"]] == 0:
                try:
                    if self._undo and self._training():  # as it was when the process was forked
                        held = args[data][0] if names[data] == "dataset_holder" else args[data]
                        given = args[places["init_fn"]]
                        note = _Note(self._memory, id(args[places["data_queue"]]), hash((id(held), id(given))) & (1 << 63) - 1,
                                     int(args[places["base_seed"]]) & (1 << 63) - 1, args[places["worker_id"]])
                        changed = list(args)
                        changed[places["init_fn"]] = functools.partial(_begin, given, note)
                        args = tuple(changed)
                except Exception:  # the job's worker goes on
                    pass
            return inner(*args, **kwargs)

        return loop


class _Note:
    """Of one worker, in its own process."""

    def __init__(self, memory: Any, group: int, kind: int, seed: int, worker: int) -> None:
        self._memory, self._key = memory, (group, kind, seed, worker)
        self._states: List[int] = []
        self._batches = 0

    def begin(self) -> None:
        self._states = _states()
        fetcher = sys.modules["torch.utils.data._utils.fetch"]._MapDatasetFetcher  # type: ignore[attr-defined]
        inner = fetcher.fetch

        def fetch(*args: Any, **kwargs: Any) -> Any:
            result = inner(*args, **kwargs)
            self._batches += 1
            try:
                if self._used() or self._batches >= _BATCHES:
                    fetcher.fetch = inner
            except Exception:
                fetcher.fetch = inner
            return result

        fetcher.fetch = fetch

    def _used(self) -> bool:
        """Writes which generators were drawn from, if any was."""
        used = sum(1 << place for place, (before, now) in enumerate(zip(self._states, _states())) if before != now)
        if not used:
            return False
        own = os.getpid()
        place = _START + own % _SLOTS * _SLOT.size
        self._memory[place:place + _SLOT.size] = _SLOT.pack(own, os.getppid(), *self._key, *self._states, used)
        self._memory[0] = 1
        return True


def _begin(given: Any, note: _Note, worker: int) -> None:
    given(worker)
    try:
        note.begin()
    except Exception:
        pass


def _states() -> List[int]:
    """Hashes of the states of numpy, random and torch; 0: it is not loaded."""
    numpy, torch = sys.modules.get("numpy"), sys.modules["torch"]
    states = (None if numpy is None else numpy.random.get_state(), sys.modules["random"].getstate(),  # type: ignore[attr-defined]
              torch.get_rng_state().numpy().tobytes())
    return [0 if one is None else int.from_bytes(hashlib.blake2b(pickle.dumps(one), digest_size=8).digest(), "little") for one in states]


def sentence(finding: Dict[str, Any]) -> str:
    """For the person at the terminal."""
    again = "the same random numbers in each epoch" if finding["kind"] == "workers_repeat" else "the same random numbers"
    return (f"{finding['count']} workers of a data loader draw {again} ({', '.join(finding['names'])}), and so do augmentations, seed each with "
            "torch.initial_seed() in worker_init_fn")
