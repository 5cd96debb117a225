"""Sums per class of PyTorch's cross-entropies, for the ledger (docs/ledger.md, "Classes"). They are collected where the call was, on a device without a
wait, and read when they are told.

A pair of samples, exactly one of which has the class c as its target, says whether c is more probable for that sample than for the other one. Where c's
labels know nothing of the outputs that is so in half of the pairs, whatever is known of other classes.
"""

import sys
from typing import Any, Callable, Dict, List, Optional

from tocsin.ledger.by_class import FIELDS, MOST, MOST_LOSS, Looks, Passes, rows_of
from tocsin.ledger.moments import LEAST_CHANGE as TIE
from tocsin.tensors.torch_staging import Arrival

TRAINING, EVALUATION = "classes", "classes in evaluation"  # keys of a call's state
_LABELS, _ANSWERS, _RIGHT, _LOSS, _PAIRS, _WINS = range(len(FIELDS))


def table_of(torch: Any, state: Dict[str, Any], learns: bool, classes: int, device: Any) -> Any:
    """The sums so far, a row for each of ``FIELDS``; None: there are too many classes."""
    if classes > MOST:
        return None
    key = TRAINING if learns else EVALUATION
    if key not in state or state[key].shape[1] != classes:
        state[key] = torch.zeros((len(FIELDS), classes), dtype=torch.float64, device=device)
    return state[key]


def add_on_host(np: Any, table: Any, target: Any, half: int, own: Any, exchanged: Any, answer: Any, labels: Any, answers: Any) -> None:
    """Arrays of NumPy. ``own``: of each row the logarithm of its target's probability; ``exchanged``: of each row of the pairs that of its partner's
    target; ``labels``, ``answers``: how often each class is one."""
    classes = table.shape[1]
    table[_LABELS] += labels
    table[_ANSWERS] += answers
    table[_RIGHT] += np.bincount(target[answer == target], minlength=classes)
    table[_LOSS] += np.bincount(target, np.where(own > -MOST_LOSS, -own, MOST_LOSS), classes)
    mine, other = own[:2 * half], np.concatenate((exchanged[half:], exchanged[:half]))
    differ = target[:half] != target[half:2 * half]
    known = np.concatenate((differ, differ)) & (np.abs(mine - other) > TIE * np.maximum(np.abs(mine), np.abs(other)))
    pairs = target[:2 * half][known]
    table[_PAIRS] += np.bincount(pairs, minlength=classes)
    table[_WINS] += np.bincount(pairs[mine[known] > other[known]], minlength=classes)


def add_on_device(torch: Any, table: Any, logs: Any, label: Any, counts: Any, answer: Any, first: Any, second: Any, paired: Any) -> None:
    """Tensors. ``counts``: truths, which rows count; None: all. ``paired``: which of the pairs are some; None: all."""

    def add(field: int, labels: Any, values: Any) -> None:
        table[field].scatter_add_(0, labels, values.double())

    there = torch.ones_like(label, dtype=torch.bool) if counts is None else counts
    own = logs.gather(1, label[:, None])[:, 0].double()
    add(_LABELS, label, there)
    add(_ANSWERS, answer, there)
    add(_RIGHT, label, there & (answer == label))
    add(_LOSS, label, torch.where(there & (own > -MOST_LOSS), -own, there * MOST_LOSS))
    one, two = label[first], label[second]
    differ = (one != two) & there[first] & there[second]
    differ = differ if paired is None else differ & paired
    for labels, mine, other in ((one, own[first], logs[second]), (two, own[second], logs[first])):
        found = other.gather(1, labels[:, None])[:, 0].double()
        known = differ & ((mine - found).abs() > TIE * mine.abs().maximum(found.abs()))
        add(_PAIRS, labels, known)
        add(_WINS, labels, known & (mine > found))


def add_pair(state: Dict[str, Any], learns: bool, apart: Dict[str, Any]) -> None:
    """Of a pair that two calls of one sample make: its samples are counted in their own calls."""
    key = TRAINING if learns else EVALUATION
    if EVALUATION in apart and key in state and state[key].shape == apart[EVALUATION].shape:
        state[key][_PAIRS:] += apart[EVALUATION][_PAIRS:]


class Classes:
    """Of one ledger: tells what its calls have collected."""

    def __init__(self, sink: Any, calls: Callable[[], List[Any]], guard: Callable[[], Any]) -> None:
        """``calls``: with ``name``, ``state`` and ``ids`` each."""
        self._sink, self._calls, self._guard = sink, calls, guard
        self._looks: Dict[str, Looks] = {}
        self._passes = Passes(sink.clock, self._pass_ended)

    def before(self, learns: bool) -> None:
        """A call is about to be measured."""
        if learns:
            self._passes.trains()
        elif self._passes.begins():
            for call in self._calls():
                call.state.pop(EVALUATION, None)

    def after(self, call: Any, step: Any) -> None:
        """It was. ``step``: of training; None: an evaluation."""
        if step is not None and TRAINING in call.state and self._looks.setdefault(call.name, Looks()).due(step[1]):
            self._tell(call, call.state.pop(TRAINING), None)

    def end(self) -> None:
        self._passes.end()

    def _pass_ended(self) -> None:
        with self._guard():
            for call in self._calls():
                table = call.state.pop(EVALUATION, None)
                if table is not None:
                    self._tell(call, table, call.state.get("counts"))

    def _tell(self, call: Any, table: Any, trained: Optional[Any]) -> None:
        torch, evaluation, event = sys.modules["torch"], table.shape[0], None
        if trained is not None and trained.shape[0] == table.shape[1]:
            table = torch.cat((table, trained[None]))
        if table.is_cuda:
            kept = torch.empty(table.shape, dtype=table.dtype, pin_memory=True)
            kept.copy_(table, non_blocking=True)
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(table.device))
            table, event = kept, Arrival(event)
        if event is None and not self._sink.queue.waiting:
            self._publish(call, table, evaluation)
        else:
            self._sink.queue.put(self._publish, call, table, evaluation, after=event)

    def _publish(self, call: Any, table: Any, fields: int) -> None:
        found = table.tolist()
        for name, value in rows_of(found[:fields], found[fields] if len(found) > fields else None):
            identity = call.ids.get(name)
            if identity is None:
                identity = call.ids[name] = self._sink.scalar(f"ledger/{call.name}/{name}", "ledger")
            self._sink.publish_known(identity, value, False)
