"""Steps of a run that were saved, and the tensors in them."""

import logging
import math
import re
from enum import Enum
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

from tocsin.exceptions import (ElementsUnavailableForStep, InvalidWorker, NoMoreData, ShapeUnavailableForStep,
                          StepNotYetAvailable, StepUnavailable, TensorUnavailable, TensorUnavailableForStep)
from tocsin.library.vocabulary import COLLECTIONS_OF
from tocsin.modes import ModeKeys
from tocsin.reading.raw import HOW, NoRawTensor, RawTensors

try:
    import numpy
except ImportError:  # the numbers are then plain ones
    numpy = None  # type: ignore[assignment]

REDUCTIONS = ("min", "max", "mean", "std", "variance", "sum", "prod", "median", "l1", "l2")
_log = logging.getLogger("tocsin.trials")
_MODES = {"train": ModeKeys.TRAIN, "eval": ModeKeys.EVAL, "predict": ModeKeys.PREDICT, "global": ModeKeys.GLOBAL}


class StepState(Enum):
    UNAVAILABLE = 0
    AVAILABLE = 1
    NOT_YET_AVAILABLE = 2


class Row(NamedTuple):
    """One tensor of one worker at one step."""

    value: Optional[float]  # of a scalar
    columns: Optional[Tuple[float, ...]]  # of a tensor: count sum sumsq m2 abs_sum min max nan +inf -inf zero negative
    extras: Dict[str, float]  # statistics that were asked for


class SavedStep(NamedTuple):
    mode: ModeKeys
    step: int
    global_step: int
    time: int  # of measurement, UTC ns
    rows: Dict[str, Dict[str, Row]]  # by tensor and worker


class Collection:
    def __init__(self, name: str, names: Iterable[str]) -> None:
        self.name = name
        self.tensor_names = set(names)


def mode_of(mode: Union[ModeKeys, str]) -> ModeKeys:
    return mode if isinstance(mode, ModeKeys) else _MODES[str(mode).lower()]


def _number(value: float) -> Any:
    return value if numpy is None else numpy.float64(value)


def _plain(row: Row, name: str) -> Optional[float]:
    count, total, sumsq, m2, abs_sum, least, most = row.columns[:7]  # type: ignore[index]
    if name in ("prod", "median"):
        return row.extras.get(name)
    if name == "sum":
        return total
    if name == "l1":
        return abs_sum
    if name == "l2":
        return math.sqrt(sumsq) if sumsq >= 0 else math.nan
    if count == 0:
        return None
    return {"min": least, "max": most, "mean": total / count, "variance": m2 / count,
            "std": math.sqrt(m2 / count) if m2 >= 0 else math.nan}[name]


def _absolute(row: Row, name: str) -> Optional[float]:
    count, _, sumsq, _, abs_sum, least, most = row.columns[:7]  # type: ignore[index]
    if name in ("l1", "l2"):
        return _plain(row, name)
    if name == "min":
        return row.extras.get("abs_min", 0.0 if row.columns[10] else least if least >= 0 else  # type: ignore[index]
                              -most if most <= 0 else None)
    if name in ("prod", "median"):
        return row.extras.get("abs_" + name)
    if name == "sum":
        return abs_sum
    if count == 0:
        return None
    if name == "max":
        return math.nan if math.isnan(least) or math.isnan(most) else max(abs(least), abs(most))
    mean = abs_sum / count
    variance = max(sumsq / count - mean * mean, 0.0)
    return {"mean": mean, "variance": variance, "std": math.sqrt(variance)}[name]


def reduction_of(row: Row, name: str, absolute: bool) -> Optional[float]:
    """None where it was not sent."""
    if name not in REDUCTIONS:
        raise ValueError(f"{name} is no reduction: expected one of {', '.join(REDUCTIONS)}")
    if row.columns is None:
        value = row.value if row.value is not None else math.nan
        if name in ("std", "variance"):
            return 0.0
        return abs(value) if absolute or name in ("l1", "l2") else value
    return _absolute(row, name) if absolute else _plain(row, name)


class Trial:
    """Steps in the order in which they were completed. ``mode=GLOBAL`` counts over all modes."""

    def __init__(self, name: str = "", run: str = "") -> None:
        self.name = name
        self.run = run  # uid and attempt
        self.job = name
        self.world_size = 0
        self.loaded_all_steps = False
        self._saved: List[SavedStep] = []
        self._by_step: Dict[Tuple[ModeKeys, int], SavedStep] = {}
        self._steps_of: Dict[str, int] = {}  # in how many saved steps a name is
        self._shapes: Dict[str, Tuple[int, ...]] = {}
        self._collections: Dict[str, Dict[str, None]] = {}
        self._tensors: Optional[RawTensors] = None
        self._wait = 0.0
        self.frozen = 0  # above 0: reads nothing new (refreshing.py)

    # How it is filled

    def add(self, saved: SavedStep) -> None:
        self._saved.append(saved)
        self._by_step[saved.mode, saved.step] = saved
        self._by_step[ModeKeys.GLOBAL, saved.global_step] = saved
        for name in saved.rows:
            self._steps_of[name] = self._steps_of.get(name, 0) + 1

    def keep(self, steps: int) -> None:
        """Forgets all but the newest so many."""
        gone, self._saved = self._saved[:max(0, len(self._saved) - steps)], self._saved[max(0, len(self._saved) - steps):]
        for saved in gone:
            for key in ((saved.mode, saved.step), (ModeKeys.GLOBAL, saved.global_step)):
                if self._by_step.get(key) is saved:
                    del self._by_step[key]
            for name in saved.rows:
                self._steps_of[name] -= 1
                if not self._steps_of[name]:
                    del self._steps_of[name]

    def describe(self, name: str, role: str, collections: Iterable[str] = (), shape: Iterable[int] = ()) -> None:
        """What is known of a tensor beside its values."""
        for collection in list(collections) or COLLECTIONS_OF.get(role, ("default",)):
            self._collections.setdefault(collection, {})[name] = None
        if tuple(shape):
            self._shapes[name] = tuple(shape)

    def refresh(self) -> None:
        """Reads what is new; here it comes by itself."""

    def maybe_refresh(self) -> None:
        if not self.frozen:
            self.refresh()

    def complete(self, saved: SavedStep) -> bool:
        """Every worker has passed this step; here only such steps are given."""
        return True

    def read_elements_with(self, tensors: Optional[RawTensors], wait: float = 0.0) -> None:
        """Where the elements of this run's tensors are read; each is waited for so many seconds at most."""
        self._tensors, self._wait = tensors, wait

    def elements(self, name: str, saved: SavedStep, worker: str) -> Any:
        """As :meth:`tocsin.raw.RawTensors.value`. Raises NoRawTensor."""
        if self._tensors is None:
            raise NoRawTensor(f"it is not known where this run sends elements to; {HOW}")
        return self._tensors.value(name, saved.step, saved.mode.name.lower(), worker, self._wait)

    # What is there

    def _find(self, step: int, mode: ModeKeys) -> SavedStep:
        saved = self._by_step.get((mode_of(mode), step))
        if saved is not None:
            return saved
        if self.has_passed_step(step, mode) is StepState.NOT_YET_AVAILABLE:
            raise StepNotYetAvailable(step, mode_of(mode))
        raise StepUnavailable(step, mode_of(mode))

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> List[int]:
        self.maybe_refresh()
        return sorted(step for (of, step), saved in self._by_step.items()
                      if of is mode_of(mode) and (show_incomplete_steps or self.complete(saved)))

    def modes(self) -> List[ModeKeys]:
        self.maybe_refresh()
        return [mode for mode in ModeKeys if any(saved.mode is mode for saved in self._saved)]

    def mode(self, global_step: int) -> ModeKeys:
        return self._find(global_step, ModeKeys.GLOBAL).mode

    def mode_step(self, global_step: int) -> int:
        return self._find(global_step, ModeKeys.GLOBAL).step

    def mode_modestep(self, global_step: int) -> Tuple[ModeKeys, int]:
        saved = self._find(global_step, ModeKeys.GLOBAL)
        return saved.mode, saved.step

    def global_step(self, mode: ModeKeys, mode_step: int) -> int:
        return self._find(mode_step, mode).global_step

    def tensor_names(self, show_prefixed_tensors: bool = False, *, step: Optional[int] = None,
                     mode: ModeKeys = ModeKeys.GLOBAL, regex: Union[None, str, List[str]] = None,
                     collection: Union[None, str, Collection] = None) -> List[str]:
        if regex is not None and collection is not None:
            raise ValueError("give regex or collection, not both")
        self.maybe_refresh()
        saved = self._saved if step is None else [self._find(step, mode)]
        if mode_of(mode) is not ModeKeys.GLOBAL:
            saved = [one for one in saved if one.mode is mode_of(mode)]
        names = {name for one in saved for name in one.rows}
        if collection is not None:
            wanted = getattr(collection, "name", collection)
            names &= set(self._collections.get(wanted, ()))
        if regex is not None:
            patterns = [re.compile(one) for one in ([regex] if isinstance(regex, str) else regex)]
            names = {name for name in names if any(pattern.match(name) for pattern in patterns)}
        if not names and (regex is not None or collection is not None):
            _log.warning("no tensor of %s matches %s", self.name or "the trial",
                         f"regex {regex}" if regex is not None else f"collection {getattr(collection, 'name', collection)}")
        return sorted(names)

    def resolve(self, name: str) -> Optional[str]:
        """The name as it was saved; also of ``scalar/loss``, ``gradient/Net_conv1.weight``, ``Net_conv1.weight``."""
        here = self._steps_of
        if name in here:
            return name
        if name.startswith("scalar/") and name[7:] in here:
            return name[7:]
        head, bare = ("gradient/", name[9:]) if name.startswith("gradient/") else ("", name)
        at = bare.find("_")
        while at >= 0:  # the class that the original puts in front may have underscores of its own
            if head + bare[at + 1:] in here:
                return head + bare[at + 1:]
            at = bare.find("_", at + 1)
        return None

    def has_tensor(self, name: str) -> bool:
        self.maybe_refresh()
        return self.resolve(name) is not None

    def tensor(self, name: str) -> "Tensor":
        self.maybe_refresh()
        known = self.resolve(name)
        if known is None:
            raise TensorUnavailable(name)
        return Tensor(self, known)

    def tensors(self) -> List["Tensor"]:
        return [self.tensor(name) for name in self.tensor_names()]

    def workers(self) -> List[str]:
        self.maybe_refresh()
        return sorted({worker for saved in self._saved for of in saved.rows.values() for worker in of})

    @property
    def num_workers(self) -> int:
        return len(self.workers())

    def collections(self) -> Dict[str, Collection]:
        return {name: Collection(name, names) for name, names in self._collections.items()}

    def collection(self, name: str) -> Optional[Collection]:
        return self.collections().get(name)

    def inputs(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> List[str]:
        return self.tensor_names(step=step, mode=mode, collection="inputs")

    def labels(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> List[str]:
        return self.tensor_names(step=step, mode=mode, collection="labels")

    def predictions(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> List[str]:
        return self.tensor_names(step=step, mode=mode, collection="predictions")

    @property
    def last_complete_step(self) -> int:
        return max(self.steps(), default=-1)

    def has_passed_step(self, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> StepState:
        later = any(known > step for known in self.steps(mode))
        saved = self._by_step.get((mode_of(mode), step))
        if saved is not None:
            return StepState.AVAILABLE if self.loaded_all_steps or self.complete(saved) else StepState.NOT_YET_AVAILABLE
        if self.loaded_all_steps or later:
            return StepState.UNAVAILABLE
        return StepState.NOT_YET_AVAILABLE

    def wait_for_steps(self, required_steps: List[int], mode: ModeKeys = ModeKeys.GLOBAL,
                       timeout: Optional[float] = None) -> None:
        """Never waits: a step that has not come yet is one that the rule is asked for later."""
        for step in required_steps:
            state = self.has_passed_step(step, mode)
            if state is StepState.AVAILABLE:
                continue
            if state is StepState.NOT_YET_AVAILABLE:
                raise StepNotYetAvailable(step, mode_of(mode))
            last = max(self.steps(mode), default=-1)
            if self.loaded_all_steps and step > last:
                raise NoMoreData(step, mode_of(mode), last)
            raise StepUnavailable(step, mode_of(mode))


class Tensor:
    """One name through all steps. ``worker=None``: the first of those that saved it."""

    def __init__(self, trial: Trial, name: str) -> None:
        self._trial = trial
        self.name = name
        self.original_name = name

    def _all(self, mode: ModeKeys) -> List[Tuple[int, SavedStep]]:
        mode = mode_of(mode)
        counted = mode is ModeKeys.GLOBAL
        return sorted(((saved.global_step if counted else saved.step, saved) for saved in self._trial._saved
                       if (counted or saved.mode is mode) and self.name in saved.rows), key=lambda item: item[0])

    def _row(self, step: int, mode: ModeKeys, worker: Optional[str]) -> Row:
        mode = mode_of(mode)
        saved = self._trial._by_step.get((mode, step))
        rows = saved.rows.get(self.name) if saved is not None else None
        if not rows:
            if self._trial.has_passed_step(step, mode) is StepState.NOT_YET_AVAILABLE:
                raise StepNotYetAvailable(step, mode)
            raise TensorUnavailableForStep(self.name, step, mode)
        if worker is None:
            return rows[min(rows)]
        if worker not in rows:
            if worker not in self._trial.workers():
                raise InvalidWorker(worker)
            raise TensorUnavailableForStep(self.name, step, mode)
        return rows[worker]

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> List[int]:
        return [step for step, saved in self._all(mode) if show_incomplete_steps or self._trial.complete(saved)]

    def workers(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL) -> List[str]:
        saved = self._trial._find(step_num, mode)
        return sorted(saved.rows.get(self.name, ()))

    def value(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: Optional[str] = None) -> Any:
        """Of a scalar; the elements of a tensor, as an array, where they were sent (docs/raw-tensors.md): raises
        ElementsUnavailableForStep, which says how that is switched on."""
        row = self._row(step_num, mode, worker)
        if row.value is not None:
            return _number(row.value)
        saved = self._trial._find(step_num, mode)
        by = worker if worker is not None else min(saved.rows[self.name])
        try:
            return self._trial.elements(self.name, saved, by)
        except NoRawTensor as why:
            raise ElementsUnavailableForStep(self.name, step_num, mode_of(mode), str(why)) from None

    def values(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: Optional[str] = None) -> Dict[int, Any]:
        return {step: self.value(step, mode, worker) for step in self.steps(mode)}

    def reduction_value(self, step_num: int, reduction_name: str, mode: ModeKeys = ModeKeys.GLOBAL,
                        worker: Optional[str] = None, abs: bool = False) -> Any:
        found = reduction_of(self._row(step_num, mode, worker), reduction_name, abs)
        if found is None:
            raise TensorUnavailableForStep(self.name, step_num, mode_of(mode), what=f"reduction {reduction_name}")
        return _number(found)

    def reduction_values(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL,
                         worker: Optional[str] = None) -> Dict[Tuple[str, bool], Any]:
        row = self._row(step_num, mode, worker)
        found = {(name, absolute): reduction_of(row, name, absolute) for name in REDUCTIONS for absolute in (False, True)}
        return {key: _number(value) for key, value in found.items() if value is not None}

    def statistic(self, step_num: int, name: str, mode: ModeKeys = ModeKeys.GLOBAL, worker: Optional[str] = None) -> Any:
        """A count, or what capture asked for beside the columns: ``nan``, ``zero``, ``p95``, ``delta_l2``, …"""
        row = self._row(step_num, mode, worker)
        counts = {"count": 0, "nan": 7, "posinf": 8, "neginf": 9, "zero": 10, "negative": 11}
        if row.columns is not None and name in counts:
            return row.columns[counts[name]]
        if name not in row.extras:
            raise TensorUnavailableForStep(self.name, step_num, mode_of(mode), what=f"statistic {name}")
        return _number(row.extras[name])

    def shape(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: Optional[str] = None) -> Tuple[int, ...]:
        row = self._row(step_num, mode, worker)
        if row.value is not None:
            return (1,)
        if self.name not in self._trial._shapes:
            raise ShapeUnavailableForStep(self.name, step_num, mode_of(mode))
        return self._trial._shapes[self.name]

    def shapes(self, mode: ModeKeys = ModeKeys.GLOBAL, worker: Optional[str] = None) -> Dict[int, Tuple[int, ...]]:
        return {step: self.shape(step, mode, worker) for step in self.steps(mode)}

    def prev_steps(self, step: int, n: Optional[int] = None, mode: ModeKeys = ModeKeys.GLOBAL) -> List[int]:
        """Up to n newest steps that are not later than ``step``, oldest first."""
        before = [known for known in self.steps(mode) if known <= step]
        return before if n is None else before[len(before) - min(n, len(before)):]
