"""The ledger of a booster (docs/ledger.md): before its first round what the labels and columns of its data sets say of each other, and in each
round its metrics beside what the best constant costs. Sums leave the process; rows, labels and fingerprints do not."""

from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple

import numpy

from . import boosting_columns as columns_of
from .boosting_rows import MOST_ROWS, TableRows, rows_of
from .boosting_trivial import LabelSet, trivial

_CLASSES = ("binary", "multi")  # how objectives of classes begin
_RANKINGS = ("rank", "lambdarank", "xendcg")
_TRAIN = "train"
_LEAST = 30  # rows of an evaluation set that is compared


class DataSet(NamedTuple):
    """``table``: what holds the rows, if anything still does."""
    name: str
    labels: Any
    weights: Any = None
    groups: Any = None
    table: Any = None


class _Read:
    """A data set with the rows that are looked at."""

    def __init__(self, data: DataSet, classes: bool, fail: Callable[[BaseException], None]) -> None:
        self.name = data.name.replace("/", "_")
        self.set = LabelSet(data.labels, data.weights, data.groups)
        self.rows: Optional[TableRows] = None
        rows = None
        try:
            rows = None if data.table is None else rows_of(data.table)
        except Exception as error:  # noqa: BLE001 - the labels are known nevertheless
            fail(error)
        if rows is not None and rows.numbers.size and rows.numbers[-1] < self.set.labels.size:
            self.rows = rows
            self.labels = self.set.labels[rows.numbers]
            self.codes = columns_of.class_codes(self.labels) if classes else None


class BoosterLedger:
    """Of one training. ``objective``: its name; ``settings``: parameters that metrics depend on (``alpha``, ``tweedie_variance_power``);
    ``fail``: is told of what goes wrong with one data set, so that the others are read nevertheless."""

    def __init__(self, train: DataSet, evals: Iterable[DataSet], watched: Iterable[str], names: Iterable[str], objective: str = "",
                 settings: Optional[Mapping[str, Any]] = None, fail: Callable[[BaseException], None] = lambda error: None) -> None:
        """``evals``: the evaluation sets but for the training set itself; ``watched``: what that is called where it is judged as well.
        ``names``: of the columns."""
        self._settings, self._classes = dict(settings or {}), objective.startswith(_CLASSES)
        self._ranks = objective.startswith(_RANKINGS)
        self._sets: Dict[str, LabelSet] = {}
        self._trivial: Dict[str, Optional[Tuple[float, float, Callable[[float], float]]]] = {}
        self.facts: Dict[str, float] = {}
        self._names = [str(name) for name in names]
        self._fail = fail
        self._train = _Read(train, self._classes, fail)
        self._sets.update(dict.fromkeys(watched, self._train.set))
        self._fingerprints: Any = None
        self._columns()
        for data in evals:
            try:
                self._judged(data)
            except Exception as error:  # noqa: BLE001
                fail(error)
        self._labels = self._train.set
        del self._train, self._fingerprints, self._fail  # copies of rows

    # ---- before the first round

    def _tell(self, data: str, **fields: float) -> None:
        self.facts.update({f"ledger/data/{data}/{field}": float(value) for field, value in fields.items()})

    def _column(self, number: int) -> str:
        return self._names[number] if number < len(self._names) else f"f{number}"

    def _columns(self) -> None:
        train, rows = self._train, self._train.rows
        self._tell(_TRAIN, rows=train.set.labels.size)
        if self._classes:
            self._tell(_TRAIN, classes=numpy.unique(_even(train.set.labels)).size)
        if rows is None or (self._classes and train.codes is None):
            return
        self._tell(_TRAIN, columns=rows.values.shape[1], read=rows.numbers.size)
        for at, fit, shifted, equal in columns_of.best_columns(rows.values, train.labels, train.codes, rows.exact):
            self.facts.update({f"ledger/data/{_TRAIN}/{field}/{self._column(at)}": value for field, value in
                               (("column_fit", fit), ("shifted_fit", shifted), ("column_equal", equal))})

    def _judged(self, data: DataSet) -> None:
        judged = _Read(data, self._classes, self._fail)
        if judged.set.labels.size < 1:
            return
        self._sets[data.name] = judged.set
        if judged.name == _TRAIN:  # a copy of it, as its name says
            return
        self._tell(judged.name, rows=judged.set.labels.size)
        train = self._train
        if judged.set.labels.size < _LEAST or train.set.labels.size < _LEAST:
            return
        if not self._ranks:
            self._tell(judged.name, **self._targets(judged.set.labels))
        if train.rows is None or judged.rows is None or judged.rows.values.shape[1] != train.rows.values.shape[1]:
            return
        if train.rows.exact and judged.rows.exact:
            self._tell(judged.name, **self._overlap(judged))
        if not self._ranks:
            self._alike(judged)

    def _targets(self, labels: Any) -> Dict[str, float]:
        """Of the labels of training against these."""
        train, labels = _even(self._train.set.labels), _even(labels)
        steps = numpy.diff(train)
        sorted_ = bool((steps >= 0).all() or (steps <= 0).all())  # no time makes that
        if self._classes:
            classes = numpy.unique(numpy.concatenate([train, labels])).size
            return {"target_distance": columns_of.class_distance(train, labels), "target_classes": classes,
                    "target_drift": 0.0 if sorted_ else columns_of.class_drift(train), "target_read": labels.size, "target_train": train.size}
        return {"target_distance": float(columns_of.distances(train[:, None], labels[:, None])[0]), "target_classes": 0,
                "target_drift": 0.0 if sorted_ else float(columns_of.drifts(train[:, None])[0]),
                "target_read": columns_of.compared(labels.size), "target_train": columns_of.compared(train.size)}

    def _overlap(self, judged: _Read) -> Dict[str, float]:
        train = self._train
        if self._fingerprints is None:
            salted = columns_of.Fingerprints(train.rows.values.shape[1])
            self._fingerprints = salted, salted.of(train.rows.values, train.labels)
        salted, known = self._fingerprints
        theirs = salted.of(judged.rows.values, judged.labels)
        seen, repeats = columns_of.overlap(known, theirs)
        return {"compared": theirs.size, "seen": seen, "train_compared": known.size, "train_repeats": repeats,
                "same": known.size == theirs.size and bool((known == theirs).all())}

    def _alike(self, judged: _Read) -> None:
        """The column whose values differ most from those of training, beyond what order in time makes."""
        train, theirs = self._train.rows.values, judged.rows.values
        found = columns_of.distances(train, theirs)
        suspects = [int(at) for at in numpy.argsort(-found, kind="stable")[:8]]
        drift = columns_of.drifts(numpy.ascontiguousarray(train[:, suspects]))
        worst = int(numpy.argmax(found[suspects] - 2 * drift))
        at = suspects[worst]
        one, two = (int((~numpy.isnan(columns_of.few(values[:, at]))).sum()) for values in (train, theirs))
        self._tell(judged.name, columns=train.shape[1], column_read=two, column_train=one)
        self.facts[f"ledger/data/{judged.name}/column_distance/{self._column(at)}"] = float(found[at])
        self.facts[f"ledger/data/{judged.name}/column_drift/{self._column(at)}"] = float(drift[worst])

    # ---- each round

    def judge(self, metric_values: Mapping[Tuple[str, str], float]) -> Dict[str, float]:
        """Of the metrics of a round, by data set and metric: ``ledger/<data>-<metric>/{samples,loss,trivial}``."""
        out: Dict[str, float] = {}
        for (data, metric), value in metric_values.items():
            name = f"{data}-{metric}"
            if name not in self._trivial:
                judged = self._sets.get(data)
                found = None if judged is None else trivial(metric, self._labels, judged, self._settings)
                self._trivial[name] = None if found is None or judged is None else (float(judged.labels.size), *found)
            known = self._trivial[name]
            if known is not None and numpy.isfinite(value):
                samples, constant, turn = known
                out.update({f"ledger/{name}/samples": samples, f"ledger/{name}/loss": turn(float(value)) * samples,
                            f"ledger/{name}/trivial": constant * samples})
        if metric_values:
            self._sets, self._labels = {}, LabelSet([])  # every round has the same metrics: the labels are let go
        return out


def _even(labels: Any) -> Any:
    """At most 65 536 of them, spread evenly."""
    count = min(labels.size, MOST_ROWS)
    return labels if count == labels.size else labels[numpy.arange(count, dtype=numpy.int64) * labels.size // count]


def tables(fitted: Optional[Mapping[str, Any]], evals: int) -> Tuple[Any, List[Any]]:
    """What an estimator's ``fit(X, y, eval_set=…)`` was given: the training table and those of its evaluation sets, as many as ``evals``."""
    if not fitted:
        return None, [None] * evals
    sets = [one[0] if isinstance(one, tuple) and one else None for one in fitted.get("eval_set") or ()]
    return fitted.get("X"), sets if len(sets) == evals else [None] * evals
