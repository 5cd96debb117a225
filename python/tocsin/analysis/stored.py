"""Raw tensors that a run has put into a store, as a trial: ``create_trial("s3://bucket/prefix")``."""

import math
import re
import time
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional, Tuple

from tocsin import wire
from tocsin.reading.raw import NoRawTensor, array_of
from tocsin.reading.raw_objects import Damaged, Placed, elements_of, tensors_of
from tocsin.reading.s3 import Bucket, Object
from tocsin.rules.trial import ModeKeys, Row, SavedStep, Tensor, Trial, mode_of

_KEY = re.compile(r"(?:^|/)([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/(\d+)/([^/]+)/(train|eval|predict|global)-(\d+)-([0-9a-f]+)-(\d+)\.tcsn$")
_ROLES = {code: name for name, code in wire.ROLES.items()}
_AGAIN = 2.0  # seconds before a store is asked again what is new
_ELSEWHERE = "open the directory of the run, create_trial(\"run1\"), or its page at a server, create_trial(\"http://127.0.0.1:9760/runs/4e3046d4\")"


class _Call(NamedTuple):
    """What a worker sent at one call: an object, by what its key says."""

    order: Tuple[int, int, int]  # attempt, launch, number; a later one replaces an earlier one
    run: str
    worker: str
    mode: str
    step: int
    object: Object


def _no(what: str) -> NoReturn:
    raise ValueError(f"a store holds raw tensors only: for {what} {_ELSEWHERE}")


class StoredTensor(Tensor):
    """Elements and shapes; a store has no statistics."""

    _trial: "StoredTrial"

    def reduction_value(self, step_num: int, reduction_name: str, mode: ModeKeys = ModeKeys.GLOBAL, worker: Optional[str] = None,
                        abs: bool = False) -> Any:
        _no("statistics")

    def reduction_values(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: Optional[str] = None) -> Dict[Tuple[str, bool], Any]:
        _no("statistics")

    def statistic(self, step_num: int, name: str, mode: ModeKeys = ModeKeys.GLOBAL, worker: Optional[str] = None) -> Any:
        _no("statistics")

    def shape(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: Optional[str] = None) -> Tuple[int, ...]:
        self._row(step_num, mode, worker)
        saved = self._trial._find(step_num, mode)
        return self._trial.placed(self.name, saved, worker if worker is not None else min(saved.rows[self.name]))[1].shape


class StoredTrial(Trial):
    """Tensors, steps, modes and workers of a run. It does not know whether the run has ended, so ``loaded_all_steps`` stays False."""

    def __init__(self, address: str, name: Optional[str], range_steps: Optional[Tuple[int, int]], run: Optional[str]) -> None:
        """``address``: ``s3://bucket/prefix``, the ``to`` of ``capture.raw``, or that of one run below it. ``run``: uid or the beginning of
        one; None: the one that sent last. Raises ValueError: there is none; StoreError: the store refuses."""
        bucket, _, prefix = address[len("s3://"):].partition("/")
        self._bucket, self._prefix = Bucket(bucket), prefix.strip("/") + "/" if prefix.strip("/") else ""
        self._address, self._range = address, range_steps
        self._read: Dict[str, List[Placed]] = {}  # by key
        self._placed: Dict[Tuple[str, int, str, str], Tuple[str, Placed]] = {}  # by mode, step, tensor and worker
        self._asked = -math.inf
        super().__init__(name or "", "")
        calls = self._calls()
        self.run = self._chosen(calls, run)
        self.name = self.job = name or self.run
        self._take([call for call in calls if call.run == self.run])

    def _calls(self) -> List[_Call]:
        self._asked = time.monotonic()
        out = []
        for one in self._bucket.objects(self._prefix):
            said = _KEY.search(one.key)
            if said is not None:
                run, attempt, worker, mode, step, launch, number = said.groups()
                out.append(_Call((int(attempt), int(launch, 16), int(number)), run, worker, mode, int(step), one))
        return sorted(out, key=lambda call: call.order)

    def _chosen(self, calls: List[_Call], wanted: Optional[str]) -> str:
        if not calls:
            raise ValueError(f"{self._address} has no raw tensors; capture.raw.to of a run says where it puts them (docs/raw-tensors.md)")
        if wanted is None:
            return max(calls, key=lambda call: call.object.modified).run
        found = sorted({call.run for call in calls if call.run.startswith(wanted)})
        if len(found) != 1:
            there = ", ".join(sorted({call.run for call in calls})[:5])
            raise ValueError(f"{self._address} has {'no run' if not found else f'{len(found)} runs'} {wanted}: it has {there}")
        return found[0]

    def refresh(self) -> None:
        self._take([call for call in self._calls() if call.run == self.run])

    def maybe_refresh(self) -> None:
        if time.monotonic() - self._asked >= _AGAIN:
            super().maybe_refresh()

    def _take(self, calls: List[_Call]) -> None:
        """Of each object that is new its beginning and the names in it are read, once."""
        if all(call.object.key in self._read for call in calls):
            return
        steps: Dict[Tuple[str, int], Tuple[Placed, Dict[str, Dict[str, Row]]]] = {}
        for call in calls:
            for placed in self._found_in(call.object):
                _, rows = steps.setdefault((call.mode, call.step), (placed, {}))
                rows.setdefault(placed.name, {})[placed.worker] = Row(None, None, {})
                self._placed[call.mode, call.step, placed.name, placed.worker] = (call.object.key, placed)
                self.describe(placed.name, _ROLES.get(placed.meta >> 8 & 0xFF, "other"), shape=placed.shape)
        self._saved, self._by_step, self._steps_of = [], {}, {}
        for (mode, step), (placed, rows) in sorted(steps.items(), key=lambda one: one[1][0].global_step):
            self.add(SavedStep(mode_of(mode), step, placed.global_step, placed.time, rows))

    def _found_in(self, object_: Object) -> List[Placed]:
        if object_.key not in self._read:
            out: List[Placed] = []
            try:
                for placed in tensors_of(lambda first, count: self._bucket.read(object_.key, first, count), object_.bytes):
                    if self._range is not None and not self._range[0] <= placed.global_step < self._range[1]:
                        break
                    out.append(placed)
            except Damaged as why:
                raise ValueError(f"s3://{self._bucket.name}/{object_.key} is damaged: {why}") from None
            self._read[object_.key] = out
        return self._read[object_.key]

    def placed(self, name: str, saved: SavedStep, worker: str) -> Tuple[str, Placed]:
        """The key of its object, and where it is there."""
        return self._placed[saved.mode.name.lower(), saved.step, name, worker]

    def elements(self, name: str, saved: SavedStep, worker: str) -> Any:
        key, placed = self.placed(name, saved, worker)
        try:
            return array_of(placed.dtype, placed.shape, elements_of(self._bucket.read(key, placed.offset, placed.length)))
        except Damaged as why:
            raise NoRawTensor(f"s3://{self._bucket.name}/{key}: {why}") from None

    def tensor(self, name: str) -> StoredTensor:
        return StoredTensor(self, super().tensor(name).name)

    def series(self, *_: Any, **__: Any) -> NoReturn:
        """A store has no curves: raises ValueError."""
        _no("scalars and statistics")

    plot = live = series
