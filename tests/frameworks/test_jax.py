"""JAX and optax: statistics from inside the compiled step, a training that a rule ends."""
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy
import optax
import pytest
from jax import numpy as jnp

from tests.support.hook_support import CommandWriter, Telemetry, acks, wait_for, wire

import tocsin
import tocsin.jax


@pytest.mark.parametrize("dtype, values", [
    (dtype, values) for dtype in ("float32", "float16", "bfloat16", "int32", "bool")
    for values in ([1, -2, 0, 3], [float("nan"), 1, 2], [float("inf"), -float("inf"), 0], [])
    if dtype not in ("int32", "bool") or numpy.isfinite(values).all()])  # integers are finite
def test_statistics_are_those_of_numpy(dtype, values):
    array = jnp.asarray(values, dtype)
    told = dict(zip(tocsin.jax.COLUMNS, jax.jit(tocsin.jax.statistics)(array).tolist()))
    wide = numpy.asarray(array).astype("float64")
    assert told["count"] == len(values)
    if not values:
        return
    wanted = {"sum": wide.sum(), "sumsq": numpy.square(wide).sum(), "abs_sum": numpy.abs(wide).sum(), "min": wide.min(), "max": wide.max(),
              "m2": numpy.square(wide - wide.mean()).sum(), "nan": numpy.isnan(wide).sum(), "posinf": numpy.isposinf(wide).sum(),
              "neginf": numpy.isneginf(wide).sum(), "zero": (wide == 0).sum(), "negative": (wide < 0).sum()}
    assert {name: told[name] for name in wanted} == pytest.approx(wanted, rel=1e-5, nan_ok=True)


def loss_fn(params, batch):
    return jnp.square(batch @ params["dense"]["kernel"] + params["dense"]["bias"]).mean()


def start():
    return {"dense": {"kernel": jnp.ones((4, 2)), "bias": jnp.zeros(2)}}


def test_what_the_step_returns_is_published_when_it_is_due(out):
    optimizer = optax.sgd(0.01)

    @jax.jit
    def step(params, state, batch):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        updates, state = optimizer.update(gradients, state, params)
        told = {"gradients": tocsin.jax.statistics(gradients), "weights": tocsin.jax.statistics(params)}
        return optax.apply_updates(params, updates), state, loss, told

    params = start()
    state = optimizer.init(params)
    training, sums = tocsin.jax.watch(out=out, capture={"every": "2 steps", "overhead": "100%"}), []
    for number in range(4):
        sums.append(float(params["dense"]["kernel"].sum()))
        params, state, loss, told = step(params, state, jnp.ones((3, 4)) * number)
        training.step(loss=loss, **told)
    training.close()
    telemetry = Telemetry(out)
    assert telemetry.steps() == [0, 1, 2, 3] and len(telemetry.scalars("loss")) == 4
    rows = telemetry.summaries(step=2)
    assert set(rows) == {"dense/kernel", "dense/bias", "gradient/dense/kernel", "gradient/dense/bias"}
    assert rows["dense/kernel"]["sum"] == pytest.approx(sums[2]) and rows["dense/kernel"]["count"] == 8
    assert telemetry.summaries(step=1) == {}
    roles = {entry["name"]: entry["role"] for entry in telemetry.entries.values()}
    assert (roles["dense/bias"], roles["gradient/dense/bias"]) == (wire.ROLES["bias"], wire.ROLES["gradient"])


def test_an_optimizer_that_records_its_gradients(out):
    inner = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-2))
    optimizer = optax.chain(tocsin.jax.recorded(inner, every=3))
    plain = inner

    def train(optimizer, told):
        params = start()
        state = optimizer.init(params)

        @jax.jit
        def step(params, state, batch):
            loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
            updates, state = optimizer.update(gradients, state, params)
            return optax.apply_updates(params, updates), state, loss, gradients

        for number in range(7):
            params, state, loss, gradients = step(params, state, jnp.ones((3, 4)) * number)
            told(loss, state, gradients)
        return params

    training, sums = tocsin.jax.watch(out=out), []

    def told(loss, state, gradients):
        sums.append(float(gradients["dense"]["kernel"].sum()))
        training.step(loss=loss, state=state)

    recorded = train(optimizer, told)
    training.close()
    telemetry = Telemetry(out)
    frames = sorted({frame.header["step"] for frame in telemetry.of_kind(wire.SUMMARY)})
    assert frames == [0, 3, 6]
    for step in frames:
        assert telemetry.summaries(step)["gradient/dense/kernel"]["sum"] == pytest.approx(sums[step], rel=1e-5)
    assert jnp.array_equal(recorded["dense"]["kernel"], train(plain, lambda *_: None)["dense"]["kernel"])


def test_a_gradient_that_becomes_infinite_is_found_and_the_loop_is_asked_to_stop(out, judged):
    fired = judged("[{use: exploding_tensor}]")
    training = tocsin.jax.watch(out=out, run="j", capture={"every": "1 step", "overhead": "100%"})
    gradients = jax.jit(lambda batch: tocsin.jax.statistics(jax.grad(loss_fn)(start(), batch)))
    hook = tocsin.get_hook()
    for number in range(100):
        training.step(loss=1.0, gradients=gradients(jnp.full((3, 4), float("inf") if number == 5 else 1.0)))
        if number == 8:
            CommandWriter(out).stop(hook.run, hook.attempt)
            assert wait_for(lambda: hook.stats()["commands_received_total"] == 1)
        if training.should_stop():
            break
    training.close()
    assert number == 8 and training.stopped.rule == "exploding_tensor"
    assert set(fired()) == {"exploding_tensor"}
    assert [ack["phase"] for ack in acks(out)][-1] == "stopped"
