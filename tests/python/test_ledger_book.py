"""The ledger's pace, and what of its sums goes out; loops of one's own with arrays of NumPy."""
from types import SimpleNamespace

import numpy
import pytest

from tests.support.hook_support import Telemetry, wire

import tocsin
from tocsin.frameworks.callback import Watcher
from tocsin.ledger.book import ALLOWANCE, FIRST, Book, Pace, every
from tocsin.ledger.loop_ledger import LoopLedger, of_arrays
from tocsin.ledger.moments import Form, moments, prepared
from tocsin.ledger.operations import Operations


@pytest.mark.parametrize("cost, step, wanted", [
    (0.0, 1.0, 1), (0.002, 1.0, 1), (0.003, 1.0, 2), (0.032, 1.0, 16),  # 0.2 %
    (0.05, 1.0, 16), (0.08, 1.0, 16),                                   # up to 0.5 % at every 16th
    (0.09, 1.0, 32), (0.17, 1.0, 64), (1e9, 1.0, 4096), (1.0, 0.0, 1)])
def test_a_ledger_that_costs_more_is_taken_more_seldom(cost, step, wanted):
    assert every(cost, step) == wanted


def test_the_first_steps_are_all_measured_and_then_every_kth():
    """0.5 ms inside a step of 10 ms, seen in the difference only: 0.05 / 16 is 0.3 %."""
    pace, measured = Pace(), []
    for step in range(FIRST + 64):
        measured.append(pace.due())
        pace.took(measured[-1], 1.05e-2 if measured[-1] else 1e-2)
    assert all(measured[:FIRST]) and pace.every == 16
    assert [FIRST + 1 + at for at, one in enumerate(measured[FIRST:]) if one][-3:] == [96, 112, 128]


def test_a_short_training_of_short_steps_is_not_left_without():
    """As torch's own budget has it: every second step, until a tenth of a second is spent."""
    pace, measured = Pace(), []
    for _ in range(4000):
        measured.append(pace.due())
        pace.took(measured[-1], 1.25e-3 if measured[-1] else 1e-3)
    assert pace.every == 64 and sum(measured[FIRST:600]) == (600 - FIRST) // 2
    assert 0.25e-3 * sum(measured) < ALLOWANCE * 1.1 + (FIRST + 4000 / 64) * 0.25e-3  # the first tell nothing of what they cost


def test_steps_that_nobody_reads_leave_the_pace_as_it_is():
    pace = Pace()
    for _ in range(2 * FIRST):
        assert pace.due()
        pace.took(False, 1e-3)
    assert (pace.every, pace.measured) == (1, 0)


class Sink:
    """What a Book publishes."""

    def __init__(self):
        self.told, self.roles, self.clock = {}, {}, SimpleNamespace(mode="train", leaving=[], position=lambda: ("train", 0))

    def scalar(self, name, role):
        self.roles[name] = role
        return len(self.roles)

    def publish_scalar(self, name, value):
        self.told[name] = value

    def step(self, book):
        self.told = {}
        book.publish()
        return {name.rsplit("/", 1)[-1]: value for name, value in self.told.items()}


def measured(outputs, targets, weights=None, form=Form("squared")):
    call = prepared(Operations(), form, numpy.asarray(outputs), numpy.asarray(targets), None if weights is None else numpy.asarray(weights))
    return call.form, moments(Operations(), call)


def test_targets_of_one_class_are_no_past():
    sink = Sink()
    book = Book(sink)
    form = Form("cross_entropy")
    scores = numpy.zeros((4, 3))
    for targets, known in (([1, 1, 1, 1], False), ([1, 1, 1, 1], False), ([1, 1, 2, 2], False), ([1, 1, 1, 1], True)):
        book.add("one", *measured(scores, targets, form=form))
        assert ("trivial" in sink.step(book)) == known


def test_calls_of_a_step_are_added_up_and_the_first_step_has_no_constant():
    sink = Sink()
    book = Book(sink)
    batch = numpy.array([[1.0], [3.0]])
    for _ in range(2):
        book.add("mse", *measured(0 * batch, batch))
    first = sink.step(book)
    assert (first["samples"], first["loss"], first["calls"]) == (4, 20, 2) and "trivial" not in first
    assert set(sink.roles.values()) == {"ledger"} and all(name.startswith("ledger/mse/") for name in sink.roles)
    for _ in range(2):
        book.add("mse", *measured(0 * batch, batch + 1))
    assert sink.step(book)["trivial"] == 2 * (0 + 4), "the constant is 2, and stays it during the step"
    book.add("mse", *measured(0 * batch, batch))
    assert sink.step(book)["trivial"] == pytest.approx(0.5 ** 2 + 1.5 ** 2 - 2 * 0.5 * 1.5 + 2 * 0.5 * 1.5), "it is 2.5"


def test_an_evaluation_teaches_nothing():
    sink = Sink()
    book = Book(sink)
    book.add("mse", *measured([[0.0]], [[1.0]]))
    sink.step(book)
    for _ in range(2):
        book.add("mse", *measured([[0.0]], [[5.0]]), learns=False)
        assert sink.step(book)["trivial"] == 16


def test_what_is_not_finite_is_left_out_and_what_has_no_target_is_told():
    sink = Sink()
    book = Book(sink)
    book.add("mse", *measured([[numpy.inf], [0.0]], [[1.0], [2.0]]))
    assert sink.step(book) == {} and book.counts()["left_out"] == {"not_finite": 1}
    book.add("mse", *measured([[1.0], [0.0]], [[1.0], [2.0]], [0.0, 0.0]))
    assert sink.step(book) == {"no_targets": 1, "calls": 1}


def test_a_loop_tells_what_its_outputs_are_compared_with(out):
    """Learns the mean: a constant answer, so no pair is won and the loss comes near the trivial one."""
    watcher = Watcher({"out": out})
    watcher.open(None, [])
    ledger, rng, mean = LoopLedger(watcher), numpy.random.default_rng(0), 0.0
    for _ in range(101):
        t = rng.standard_normal(32) + 5
        ledger.tell(lambda training: of_arrays(numpy.full(32, mean), t))  # noqa: B023
        watcher.hook.step()
        mean += 0.1 * (t.mean() - mean)
    stats = watcher.hook.stats()["ledger"]
    watcher.end()
    telemetry = Telemetry(out)
    values = {field: [(step, value) for mode, step, value in telemetry.scalars(f"ledger/squared/{field}") if mode == wire.TRAIN]
              for field in ("samples", "loss", "trivial", "pairs", "output_spread")}
    assert [step for step, _ in values["samples"]][:FIRST] == list(range(FIRST)) and stats["measured"] == len(values["samples"])
    assert {value for _, value in values["pairs"]} == {0} and {value for _, value in values["output_spread"]} == {0}
    late = [(dict(values["loss"])[step], trivial) for step, trivial in values["trivial"] if step > 50]
    assert 0.9 < sum(loss for loss, _ in late) / sum(trivial for _, trivial in late) < 1.1
    roles = {entry["name"]: entry["role"] for entry in telemetry.entries.values()}
    assert roles["ledger/squared/loss"] == 17


def test_arrays_say_which_loss_is_meant():
    rng = numpy.random.default_rng(1)
    p = rng.dirichlet(numpy.ones(3), 8)
    for outputs, targets, options, name, logits in (
            (p, rng.integers(0, 3, 8), {}, "cross_entropy", False), (numpy.log(p), rng.integers(0, 3, 8), {}, "cross_entropy", True),
            (p, numpy.array(list("abcabcab")), {"classes": numpy.array(list("abc"))}, "cross_entropy", False),
            (rng.standard_normal(8), numpy.array(list("abababab")), {"classes": numpy.array(list("ab"))}, "binary", True),
            (rng.standard_normal(8), rng.standard_normal(8), {}, "squared", False)):
        (told,) = of_arrays(outputs, targets, **options)
        assert (told[0], told[1].from_logits) == (name, logits)
    assert of_arrays(p, numpy.array(list("abcabcad")), classes=numpy.array(list("abc"))) == []
    assert of_arrays(p, rng.standard_normal((8, 2))) == []
    with pytest.raises(ValueError, match="expected a function, or one of cross_entropy"):
        of_arrays(p, p, "crossentropy")


def test_a_function_with_a_number_for_each_sample_has_pairs_but_no_constant():
    rng = numpy.random.default_rng(2)
    t = rng.standard_normal(40)

    def cubic(z, t):
        return numpy.abs(z - t) ** 3

    ((name, form, vector, _),) = of_arrays(t + 0.1 * rng.standard_normal(40), t, cubic)
    sink = Sink()
    book = Book(sink)
    for _ in range(2):
        book.add(name, form, vector)
        told = sink.step(book)
    assert name == "cubic" and told["pairs"] == told["wins"] == 20 and "trivial" not in told


def ledger_of(out, call, mode=wire.TRAIN):
    telemetry, start = Telemetry(out), f"ledger/{call}/"
    return {name[len(start):]: [(step, value) for where, step, value in telemetry.scalars(name) if where == mode]
            for name in set(telemetry.names.values()) if name.startswith(start)}


def test_a_script_says_what_its_arrays_are_compared_with(out):
    """Two micro-batches in each of three steps: the constant stays until the step ends. An evaluation has it, too."""
    hook = tocsin.watch(out=out)
    for _ in range(3):
        for value in (1.0, 3.0):
            hook.targets(numpy.zeros(2), numpy.full(2, value), loss="mse_loss")
        hook.step()
    with hook.mode("eval"):
        hook.targets(numpy.zeros(1), numpy.full(1, 5.0))
        hook.step()
    stats = hook.stats()
    hook.close()
    told = stats["ledger"].get("arrays", stats["ledger"])  # apart where PyTorch is loaded and has a ledger, too
    assert stats["hook_errors_total"] == {} and (told["measured"], told["calls"]) == (2, 3)
    fields = ledger_of(out, "squared")
    assert fields["loss"] == [(0, 2.0), (0, 18.0), (1, 2.0), (1, 18.0), (2, 2.0), (2, 18.0)]
    assert fields["trivial"] == [(1, 2.0), (1, 2.0), (2, 2.0), (2, 2.0)], "the mean was 2"
    assert ledger_of(out, "squared", wire.EVAL)["trivial"] == [(0, 9.0)]


def test_a_ledger_that_is_switched_off_is_not_sent(out):
    hook = tocsin.watch(out=out, capture={"ledger": False})
    hook.targets(numpy.zeros(2), numpy.ones(2))
    watcher = Watcher({})
    watcher.hook = hook
    LoopLedger(watcher).tell(lambda training: pytest.fail("nobody asked"))
    hook.step()
    hook.close()
    assert ledger_of(out, "squared") == {}


def test_a_hook_that_is_off_costs_nothing(monkeypatch):
    monkeypatch.setenv("TOCSIN_DISABLED", "1")
    watcher = Watcher({})
    watcher.open(None, [])
    LoopLedger(watcher).tell(lambda training: pytest.fail("nobody asked"))
    assert tocsin is not None
