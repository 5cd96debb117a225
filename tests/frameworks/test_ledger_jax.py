"""The ledger inside steps that JAX compiles: the same numbers as NumPy's, and read without waiting."""
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import functools  # noqa: E402
import json  # noqa: E402

import jax  # noqa: E402
import numpy  # noqa: E402
import optax  # noqa: E402
import pytest  # noqa: E402
from jax import numpy as jnp  # noqa: E402

import tocsin.frameworks.jax_ledger  # noqa: E402
import tocsin.jax  # noqa: E402
from tests.support.hook_support import Telemetry, wire  # noqa: E402
from tests.support.program import run_cli  # noqa: E402
from tocsin.ledger.batch import Wanted, batch, moments_of, table_of  # noqa: E402
from tocsin.ledger.moments import HEAD, Form, moments, prepared  # noqa: E402
from tocsin.ledger.operations import Operations  # noqa: E402


def told(out, call, mode=wire.TRAIN):
    """{field: {step: value}}"""
    telemetry, start = Telemetry(out), f"ledger/{call}/"
    return {name[len(start):]: {step: value for where, step, value in telemetry.scalars(name) if where == mode}
            for name in set(telemetry.names.values()) if name.startswith(start)}


RNG = numpy.random.default_rng(0)
Z, T, IDS = RNG.standard_normal((33, 4)), RNG.standard_normal((33, 4)), RNG.integers(0, 4, 33)
SWITCHES, COUNTS, HOT = RNG.integers(0, 2, (33, 4)).astype(float), RNG.poisson(2.0, (33, 4)).astype(float), numpy.eye(4)[IDS]
CASES = {"ids": (IDS, "cross_entropy", {}, Form("cross_entropy")), "smoothed": (IDS, "cross_entropy", {"label_smoothing": 0.1}, Form("cross_entropy", smoothing=0.1)),
         "hot": (HOT, optax.softmax_cross_entropy, {}, Form("cross_entropy")),
         "integer": (IDS, optax.softmax_cross_entropy_with_integer_labels, {}, Form("cross_entropy")),
         "binary": (SWITCHES, optax.sigmoid_binary_cross_entropy, {}, Form("binary")), "squared": (T, optax.squared_error, {}, Form("squared")),
         "half": (T, optax.l2_loss, {}, Form("squared", scale=0.5)), "absolute": (T, "absolute", {}, Form("absolute")),
         "huber": (T, functools.partial(optax.huber_loss, delta=0.5), {}, Form("huber", delta=0.5)), "poisson": (COUNTS, "poisson", {}, Form("poisson"))}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_moments_are_those_of_numpy(case, weighted):
    targets, loss, options, form = CASES[case]
    weights = RNG.choice([0.0, 1.0, 2.0], 33) if weighted else None
    got = jax.jit(lambda z, t, w: tocsin.jax.ledger(z, t, loss, weights=w, **options))(Z, targets, weights)
    call = prepared(Operations(), form, Z, targets, weights)
    assert got.about.form == call.form
    assert dict(zip(HEAD, got.array[:len(HEAD)].tolist())) == pytest.approx(dict(zip(HEAD, moments(Operations(), call))), rel=1e-4, abs=1e-4)
    assert numpy.asarray(got.array) == pytest.approx(moments(Operations(), call), rel=1e-4, abs=1e-4)
    own = {"half": optax.l2_loss, "huber": functools.partial(optax.huber_loss, delta=0.5)}.get(case)
    if own is not None and not weighted:
        assert got.array[HEAD.index("loss")] == pytest.approx(float(own(Z, targets).mean(-1).sum()), rel=1e-5)


def trained(out, labels, steps=60, every=lambda training: True, **options):
    """Losses of a linear classifier that is watched."""
    x = jnp.asarray(numpy.random.default_rng(1).standard_normal((steps, 32, 6)), "float32")

    def loss_fn(params, x, y, when):
        logits = x @ params
        told = tocsin.jax.ledger(logits, y, optax.softmax_cross_entropy_with_integer_labels, when=when)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), told

    @jax.jit
    def step(params, x, y, when):
        (loss, told), gradients = jax.value_and_grad(loss_fn, has_aux=True)(params, x, y, when)
        return params - 0.5 * gradients, loss, told

    params, losses = jnp.zeros((6, 4)), []
    training = tocsin.jax.watch(out=out, **options)
    for at in range(steps):
        params, loss, moments_ = step(params, x[at], labels(x[at]), every(training))
        losses.append(float(loss))
        training.step(loss=loss, ledger=moments_)
    training.evaluated(loss=loss, ledger=moments_)
    stats = training._watcher.hook.stats()
    training.close()
    return losses, stats


def rule(x):
    return (x @ jnp.asarray(numpy.random.default_rng(2).standard_normal((6, 4)), "float32")).argmax(1)


def test_a_loop_that_learns_wins_its_pairs_and_one_with_shuffled_labels_does_not(tmp_path):
    shares = {}
    for name, labels in (("right", rule), ("shuffled", lambda x: jnp.asarray(numpy.random.default_rng(int(abs(x.sum()) * 1e3)).permutation(rule(x))))):
        losses, stats = trained(str(tmp_path / name), labels)
        fields = told(str(tmp_path / name), "softmax_cross_entropy_with_integer_labels")
        assert stats["hook_errors_total"] == {} and list(fields["samples"].values()) == [32] * 60
        assert fields["loss"] == pytest.approx({step: 32 * loss for step, loss in enumerate(losses)}, rel=1e-4)
        shares[name] = sum(fields["wins"].values()) / sum(fields["pairs"].values())
        assert list(fields["trivial"]) == list(range(1, 60))
    assert shares["right"] > 0.8 and 0.42 < shares["shuffled"] < 0.58, "about 700 pairs: 0.02 at one deviation"


def test_a_flag_computes_it_where_it_is_wanted_only_and_nothing_else_changes(tmp_path):
    losses, stats = trained(str(tmp_path / "a"), rule, steps=200, every=lambda training: training.wants_ledger())
    without, _ = trained(str(tmp_path / "b"), rule, steps=200, every=lambda training: False)
    steps = list(told(str(tmp_path / "a"), "softmax_cross_entropy_with_integer_labels")["samples"])
    assert losses == without and stats["hook_errors_total"] == {}
    assert steps[:64] == list(range(64)) and len(steps) == stats["ledger"]["measured"] + (1 if stats["ledger"]["measured"] < len(steps) else 0)
    assert told(str(tmp_path / "b"), "softmax_cross_entropy_with_integer_labels") == {}


def test_an_evaluation_is_told_in_its_own_mode(out):
    trained(out, rule, steps=3)
    fields = told(out, "softmax_cross_entropy_with_integer_labels", wire.EVAL)
    assert fields["samples"] == {0: 32} and fields["trivial"][0] > 0


def test_micro_batches_of_a_scan_are_calls_of_one_step(out):
    def one(carry, batch):
        z, t = batch
        return carry, tocsin.jax.ledger(z, t, "squared", name="mine")

    training = tocsin.jax.watch(out=out)
    batches = (jnp.asarray(RNG.standard_normal((3, 8, 2))), jnp.asarray(RNG.standard_normal((3, 8, 2))))
    for _ in range(2):
        training.step(loss=1.0, ledger={"any": [jax.jit(lambda b: jax.lax.scan(one, 0, b))(batches)[1]]})
    training.close()
    fields = told(out, "mine")
    assert fields["samples"] == {0: 24, 1: 24} and fields["calls"] == {0: 3, 1: 3} and list(fields["trivial"]) == [1]


def test_what_does_not_fit_is_counted_and_the_step_goes_on(out):
    training = tocsin.jax.watch(out=out)
    shapes = jax.jit(lambda: tocsin.jax.ledger(jnp.zeros((4, 3)), jnp.zeros((4, 2, 2)), "squared"))()
    raised = jax.jit(lambda: tocsin.jax.ledger(jnp.zeros((4, 3)), jnp.zeros((4, 3)), "sqared"))()
    training.step(loss=1.0, ledger=[shapes, raised])
    stats = training._watcher.hook.stats()
    training.close()
    assert stats["ledger"]["left_out"] == {"shape": 1, "loss": 1} and stats["hook_errors_total"] == {}
    assert "expected a function, or one of" in raised.about.problem


# ---- inputs

INPUTS = {"table": RNG.standard_normal((33, 5)).astype("float32") + 300, "image": RNG.standard_normal((33, 12, 12, 3)).astype("float32"),
          "words": RNG.integers(0, 9, (33, 300)), "bytes": RNG.integers(0, 9, (33, 400)).astype("uint8"), "half": RNG.standard_normal((33, 4)).astype("float16")}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("when", [True, "traced"])
def test_what_a_batch_holds_is_that_of_numpy(name, when):
    x, t = INPUTS[name], T[:, :1].astype("float32")
    flag = (True,) if when == "traced" else ()
    got = jax.jit(lambda z, t, x, *flag: tocsin.jax.ledger(z, t, "squared", inputs=[x], **({"when": flag[0]} if flag else {})))(t, t, x, *flag)
    ((_, _, _, held),) = tocsin.frameworks.jax_ledger.vectors(got, lambda reason: pytest.fail(reason))
    wanted = batch(Operations(), "squared", "squared", t, t, [x], Wanted(256))
    assert (held.prints[:, 0] == wanted.prints[:, 0]).all() and (held.prints[:, 1] == wanted.prints[:, 1]).all()
    mine, others = moments_of(held.form, held.numbers), moments_of(wanted.form, wanted.numbers)
    assert [one.name for one in mine] == [one.name for one in others] == (["target/squared", "input/0"] if x.dtype.kind == "f" else ["target/squared"])
    for one, other in zip(mine, others):
        assert one.rows == other.rows == 33
        for field in ("pivots", "means", "variances"):
            assert getattr(one, field) == pytest.approx(getattr(other, field), rel=1e-6, abs=1e-6)
    if x.dtype.kind == "f" and x[0].size <= 512:
        assert all((a == b).all() for a, b in zip(table_of(held.form, held.numbers), table_of(wanted.form, wanted.numbers)))


def looped(out, change=lambda x: x, leak=False, repeats=0, steps=160, noise=0.0):
    """A loop of drawn rows that is evaluated at every 40th step, as docs/frameworks/jax.md has it."""
    rng = numpy.random.default_rng(3)
    x = rng.standard_normal((1900, 6)).astype("float32")
    y = (x @ rng.standard_normal((6, 4)) + rng.standard_normal((1900, 4))).argmax(1)
    if leak:
        x[:, 5] = y
    x, y, held, wanted = x[:1500], y[:1500], x[1500:], y[1500:]
    x, y, held = numpy.r_[x, held[:repeats]], numpy.r_[y, wanted[:repeats]], change(held)

    def loss_fn(params, x, y, when):
        logits = x @ params
        told = tocsin.jax.ledger(logits, y, "cross_entropy", inputs=x, when=when)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), told

    def step(params, x, y, when):
        (loss, told), gradients = jax.value_and_grad(loss_fn, has_aux=True)(params, x, y, when)
        return params - 0.1 * gradients, loss, told

    step, evaluate = jax.jit(step), jax.jit(loss_fn)
    params, training = jnp.zeros((6, 4)), tocsin.jax.watch(out=out)
    for at in range(steps):
        some = rng.integers(0, len(x), 48)
        params, loss, told_ = step(params, x[some] + noise * rng.standard_normal((48, 6)).astype("float32"), y[some], training.wants_ledger())
        training.step(loss=loss, ledger=told_)
        if at % 40 == 39:
            loss, told_ = evaluate(params, held, wanted, True)
            training.evaluated(loss=loss, ledger=told_)
    stats = training._watcher.hook.stats()
    training.close()
    assert stats["hook_errors_total"] == {} and stats["ledger"]["inputs"]["samples"] >= 48 * 64


def issues(out, tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: [{use: parity}, {use: leak}]\n", encoding="utf-8")
    code, said, error = run_cli("evaluate", "--from", out, "--rules", rules, "--output", "json")
    assert code in (0, 1), error
    return {f"{one['rule']} {one['kind']}" for one in json.loads(said)["issues"]}


@pytest.mark.parametrize("fault, wanted", [({}, set()), ({"noise": 0.5}, set()), ({"change": lambda x: 8 * x + 8}, {"parity inputs"}),
                                           ({"leak": True}, {"leak target_in_input"}), ({"repeats": 300}, {"leak overlap"})],
                         ids=["healthy", "noise on the inputs", "not scaled", "leak", "overlap"])
def test_loops_that_say_their_inputs_are_judged_by_them(out, tmp_path, fault, wanted):
    looped(out, **fault)
    assert issues(out, tmp_path) == wanted
