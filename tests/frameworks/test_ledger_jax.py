"""The ledger inside steps that JAX compiles: the same numbers as NumPy's, and read without waiting."""
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import functools  # noqa: E402

import jax  # noqa: E402
import numpy  # noqa: E402
import optax  # noqa: E402
import pytest  # noqa: E402
from jax import numpy as jnp  # noqa: E402

import tocsin.jax  # noqa: E402
from tests.support.hook_support import Telemetry, wire  # noqa: E402
from tocsin._ledger import HEAD, Form, Operations, moments, prepared  # noqa: E402


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
