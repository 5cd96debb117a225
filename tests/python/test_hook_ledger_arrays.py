"""What loops with arrays of NumPy are given in training and in evaluation: sums against plain NumPy, and what the rules parity and leak make of them in
healthy and faulty jobs."""
import collections
import json

import numpy
import pytest

from tests.support.hook_support import Telemetry, wire
from tests.support.program import run_cli

import tocsin
from tocsin.ledger.batch import Wanted, batch, moments_of, table_of
from tocsin.ledger.book import Pace
from tocsin.ledger.operations import Operations


@pytest.fixture(autouse=True)
def each_step_is_measured(monkeypatch):
    """These loops do nothing else, so measuring would take all of their time."""
    monkeypatch.setattr(Pace, "took", lambda *_: None)


def told(out, mode):
    """{name without ledger/: [(step, value)]}"""
    telemetry, found = Telemetry(out), collections.defaultdict(list)
    for name in set(telemetry.names.values()):
        if name.startswith("ledger/"):
            found[name[7:]] = [(step, value) for where, step, value in telemetry.scalars(name) if where == mode]
    return found


def issues(out, tmp_path, rule):
    rules = tmp_path / f"{rule}.yaml"
    rules.write_text(f"rules: [{{use: {rule}}}]\n", encoding="utf-8")
    code, said, error = run_cli("evaluate", "--from", out, "--rules", rules, "--output", "json")
    assert code in (0, 1), error
    return {one["kind"]: one["labels"]["severity"] for one in json.loads(said)["issues"]}


def run(out, train, evaluated=(), loss=None, every=None):
    """``train``, ``evaluated``: batches (inputs, targets). The model answers 0. ``every``: batches between two evaluations."""
    hook = tocsin.watch(out=out)

    def evaluate():
        with hook.mode("eval"):
            for x, t in evaluated:
                hook.targets(answers(t, loss), t, loss=loss, inputs=x)
                hook.step()

    for number, (x, t) in enumerate(train, 1):
        hook.targets(answers(t, loss), t, loss=loss, inputs=x)
        hook.step()
        if every and number % every == 0:
            evaluate()
    if not every:
        evaluate()
    stats = hook.stats()
    assert stats["hook_errors_total"] == {}
    hook.close()
    return stats["ledger"].get("arrays", stats["ledger"])


def answers(targets, loss):
    return numpy.zeros((len(targets), 20)) if loss == "cross_entropy" else numpy.zeros(numpy.shape(targets))


# ---- sums


def test_moments_are_those_of_the_batches_less_the_mean_of_the_first(out):
    rng = numpy.random.default_rng(0)
    train = [(rng.standard_normal((8, 5)) + 300, 2 * rng.standard_normal((8, 1))) for _ in range(6)]
    evaluation = [(rng.standard_normal((8, 5)) + 310, rng.standard_normal((8, 1))) for _ in range(4)]
    run(out, train, evaluation)
    for which, place in (("input/0", 0), ("target/squared", 1)):
        center = train[0][place].mean()
        for name, of in (("mean", lambda x: (x - center).mean()), ("square", lambda x: ((x - center) ** 2).mean())):
            values = [value for _, value in told(out, wire.TRAIN)[f"world/{which}/{name}"]]
            assert values == pytest.approx([of(one[place]) for one in train], rel=1e-6, abs=1e-12)
            mine, fields = [of(one[place]) for one in evaluation], told(out, wire.EVAL)
            assert [value for _, value in fields[f"world/{which}/{name}"]] == pytest.approx(mine, rel=1e-6)
            assert [value for _, value in fields[f"world/{which}/{name}_squared"]] == pytest.approx([one ** 2 for one in mine], rel=1e-6)
            assert [value for _, value in fields[f"world/{which}/{name}_lagged"]] == pytest.approx([a * b for a, b in zip(mine, [mine[0], *mine])], rel=1e-6)
    assert [value for _, value in told(out, wire.EVAL)["world/input/0/rows"]] == [8] * 4


@pytest.mark.parametrize("last", [True, False])
def test_images_have_channels(out, last):
    rng = numpy.random.default_rng(0)
    images = rng.standard_normal((3, 64, 20, 20, 3)) * (1, 2, 5)
    run(out, [(one if last else one.transpose(0, 3, 1, 2), numpy.zeros(64)) for one in images])
    for channel, deviation in enumerate((1, 2, 5)):
        values = [value for _, value in told(out, wire.TRAIN)[f"world/input/0/{channel}/square"]]
        some = images[:, ::2, :, :, channel].reshape(3, -1)
        assert values == pytest.approx(((some - some[0].mean()) ** 2).mean(1), rel=1e-6) and values[0] == pytest.approx(deviation ** 2, rel=0.1)
    assert {value for _, value in told(out, wire.TRAIN)["world/input/0/rows"]} == {32}


def test_shares_of_classes(out):
    labels = numpy.array([0, 0, 1, 2, 17])
    run(out, [(numpy.zeros((5, 2)), labels)] * 3, loss="cross_entropy")
    fields = told(out, wire.TRAIN)
    assert [fields[f"world/class/cross_entropy/{k}/mean"][0][1] for k in range(4)] == pytest.approx([0.4, 0.4, 0.2, 0]), "17 is 1 of 16 buckets"


def test_batches_are_looked_at_less_often_and_count_as_often_as_they_stand_for(out):
    rng = numpy.random.default_rng(0)
    run(out, [(rng.standard_normal((4, 3)), rng.standard_normal(4)) for _ in range(256)],
        [(rng.standard_normal((4, 3)), rng.standard_normal(4)) for _ in range(128)])
    steps = [step for step, _ in told(out, wire.TRAIN)["world/input/0/batches"]]
    assert steps[:64] == list(range(64)) and 64 < len(steps) <= 128
    fields = told(out, wire.EVAL)
    counts = [value for _, value in fields["world/input/0/batches"]]
    assert len(counts) < 100 and 64 <= sum(counts) <= 128
    assert [value for _, value in fields["world/input/0/weights"]] == [one ** 2 for one in counts]


def test_what_is_not_finite_is_left_out(out):
    good, bad = numpy.ones((8, 4)) * numpy.arange(4), numpy.full((8, 4), numpy.nan)
    run(out, [(one, numpy.zeros(8)) for one in (good, bad, good)])
    assert [step for step, _ in told(out, wire.TRAIN)["world/input/0/mean"]] == [0, 2]


def test_samples_are_counted_as_sets_of_rows(out):
    rng = numpy.random.default_rng(1)
    x, t = rng.standard_normal((600, 6)), rng.standard_normal(600)
    train = [(x[at:at + 50], t[at:at + 50]) for at in range(0, 400, 50)] * 2
    held = numpy.r_[380:480]  # 20 of them were trained on
    run(out, train, [(x[held[:64]], t[held[:64]]), (x[held[64:]], t[held[64:]])])
    fields = {name[16:]: values[0][1] for name, values in told(out, wire.TRAIN).items() if name.startswith("data/evaluation/")}
    fields.update({name[16:]: values[0][1] for name, values in told(out, wire.EVAL).items() if name.startswith("data/evaluation/") and values})
    assert (fields["compared"], fields["seen"], fields["train_compared"], fields["train_distinct"]) == (100, 20, 800, 400)
    assert (fields["train_repeats"], fields["early"], fields["early_seen"], fields["look"]) == (800, 100, 0, 1)


def test_fingerprints_tell_of_the_target_too_and_of_no_padding():
    rng, ops = numpy.random.default_rng(2), Operations()

    def prints(x, t):
        return batch(ops, "squared", "a", numpy.zeros((len(t), 1)), t, [x], Wanted()).prints

    words, t = rng.integers(1, 9, (50, 12)), rng.standard_normal((50, 1))
    padded = numpy.concatenate([words, numpy.zeros((50, 300), int)], 1)
    assert (prints(words, t) == prints(padded, t)).all() and (prints(words, t) != prints(words, t + 1)).any(1).all()
    for kind in ("float32", "float64", "float16", "int8", "int64", "bool"):
        x = (8 * rng.standard_normal((4000, 7))).astype(kind)
        x = numpy.concatenate([x, x[:100]])
        mine = prints(x, numpy.zeros((4100, 1)))
        different = len({tuple(row) for row in mine.tolist()})
        assert different == len({row.tobytes() for row in x + x.dtype.type(0)}), kind
    assert (prints(numpy.zeros((3, 4)), t[:3]) == prints(-numpy.zeros((3, 4)), t[:3])).all(), "one for both zeros"


def test_a_table_is_read_whatever_the_batch_and_a_reconstruction_is_none():
    rng, ops = numpy.random.default_rng(3), Operations()
    x, t = rng.standard_normal((9, 4)), rng.standard_normal((9, 1))
    found = batch(ops, "squared", "a", t, t, [numpy.arange(9), x], Wanted())
    values, targets = table_of(found.form, found.numbers)
    assert (values == x).all() and (targets == t).all() and [one.name for one in moments_of(found.form, found.numbers)] == ["target/a", "input/1"]
    assert batch(ops, "squared", "a", x, x, [x], Wanted()).form.table is None
    assert batch(ops, "squared", "a", t, t, [rng.standard_normal((9, 600))], Wanted()).form.table is None
    assert batch(ops, "squared", "a", t, t, [x], Wanted(table=False)).form.table is None, "an evaluation"
    shares = batch(ops, "cross_entropy", "a", numpy.zeros((9, 3)), numpy.eye(3)[[0, 1, 2] * 3], [x], Wanted())
    assert table_of(shares.form, shares.numbers)[1].ravel().tolist() == [0, 1, 2] * 3


def test_no_element_travels(out):
    rng = numpy.random.default_rng(4)
    x, t = rng.uniform(1000, 2000, (400, 3)), rng.uniform(1000, 2000, 400)
    run(out, [(x[at:at + 40], t[at:at + 40]) for at in range(0, 400, 40)], [(x[:40], t[:40])])
    values = {value for mode in (wire.TRAIN, wire.EVAL) for name, rows in told(out, mode).items() if "world" in name or "data/" in name for _, value in rows}
    assert len(values) > 50 and not values & {*x.ravel().tolist(), *t.tolist()}


# ---- jobs

ROWS = 1600


def table(seed=5):
    rng = numpy.random.default_rng(seed)
    x = rng.standard_normal((ROWS, 8))
    return x, x[:, 0] + 0.7 * x[:, 1] + rng.standard_normal(ROWS), rng


def job(out, x, t, held, wanted, *, epochs=3, batch=32, view=lambda x, rng: x, draws=False, loss=None):
    """Batches of shuffled rows, or of drawn ones; an evaluation after each epoch."""
    rng, train = numpy.random.default_rng(7), []
    for _ in range(epochs):
        order = rng.integers(0, len(x), len(x)) if draws else rng.permutation(len(x))
        train += [(view(x[some], rng), t[some]) for some in numpy.array_split(order, len(x) // batch)]
    evaluation = [(held[at:at + 64], wanted[at:at + 64]) for at in range(0, len(held), 64)]
    run(out, train, evaluation, loss, every=len(train) // epochs)


def halves(change=lambda x, t, rng: (x, t)):
    x, t, rng = table()
    held, wanted = x[1200:].copy(), t[1200:].copy()
    held, wanted = change(held, wanted, rng)
    return x[:1200], t[:1200], held, wanted


HEALTHY = {
    "plain": (halves, {}), "drawn with replacement": (halves, {"draws": True}),
    "noise on the inputs": (halves, {"view": lambda x, rng: x + rng.standard_normal(x.shape)}),
    "one batch of evaluation": (lambda: halves(lambda x, t, rng: (x[:60], t[:60])), {}),
    "sorted evaluation": (lambda: halves(lambda x, t, rng: (x[t.argsort()], numpy.sort(t))), {}),
    "the training's own rows alone": (lambda: (*halves()[:2], *halves()[:2]), {}),
    "whole batches": (halves, {"batch": 1200, "epochs": 90})}
FAULTS = {
    "not scaled": (lambda: halves(lambda x, t, rng: (8 * x + 8, t)), {}, "parity", "inputs"),
    "not scaled, whole batches": (lambda: halves(lambda x, t, rng: (8 * x + 8, t)), {"batch": 1200, "epochs": 90}, "parity", "inputs"),
    "targets in another unit": (lambda: halves(lambda x, t, rng: (x, 3 * t + 5)), {}, "parity", "targets"),
    "rows of the training": (lambda: (lambda x, t, held, wanted: (numpy.r_[x, held[:100]], numpy.r_[t, wanted[:100]], held, wanted))(*halves()),
                             {}, "leak", "overlap")}


def as_column(x, t, held, wanted, of):
    return numpy.c_[x, of(t)], t, numpy.c_[held, of(wanted)], wanted


FAULTS["the target as a column"] = (lambda: as_column(*halves(), lambda t: t), {}, "leak", "target_in_input")
FAULTS["the target with some noise"] = (lambda: as_column(*halves(), lambda t: 3 * t + 0.05 * numpy.random.default_rng(1).standard_normal(len(t))),
                                        {}, "leak", "target_in_input")


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_jobs_are_silent(out, tmp_path, name):
    make, how = HEALTHY[name]
    job(out, *make(), **how)
    assert issues(out, tmp_path, "parity") == {} and issues(out, tmp_path, "leak") == {}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_told(out, tmp_path, name):
    make, how, rule, kind = FAULTS[name]
    job(out, *make(), **how)
    assert kind in issues(out, tmp_path, rule)
    assert issues(out, tmp_path, "leak" if rule == "parity" else "parity") == {}
