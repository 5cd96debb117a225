"""Trainings in other frameworks: Keras on PyTorch, JAX with optax."""
import importlib.util
import os
import random

import numpy
import torch

import tocsin

from .. import data
from ..recipes.training import CAPTURE

NEEDS = {"fits": "keras", "grads": "optax"}
TUNING = {name: False for name, package in NEEDS.items() if importlib.util.find_spec(package)}
# Name of the fault, share of the run before it.
FAULTS = {"rate_too_large": 0.0, "rate_zero": 0.0, "rate_tiny": 0.0, "start_large": 0.0, "start_zero": 0.0, "labels_random": 0.0, "one_class": 0.0,
          "input_constant": 0.0, "input_unscaled": 0.0, "input_nan": 0.0, "sign_wrong": 0.0, "overfits": 0.0}
SLOW = ("overfits",)


def _sets(seed, fault):
    """((x, y), (held x, held y)) of digits, the first changed by the fault."""
    split, chance = data.digits(seed), torch.Generator().manual_seed(seed + 1)
    x, y = split.x, split.y
    if fault == "labels_random":
        y = y[torch.randperm(len(y), generator=chance)]
    elif fault == "input_constant":
        x = torch.zeros_like(x)
    elif fault == "input_unscaled":
        x = x * 128 + 128
    elif fault == "input_nan":
        x = x.clone()
        x[::20, 3] = float("nan")
    elif fault == "one_class":
        y = torch.zeros_like(y)
    elif fault == "overfits":
        x, y = x[:32], y[:32]
    return (x.numpy(), y.numpy()), (split.held_x.numpy(), split.held_y.numpy())


def _rate(rate, fault):
    return rate * {"rate_too_large": 300, "rate_zero": 0.0, "rate_tiny": 1e-5, "overfits": 3}.get(fault, 1)


def _fits(fault, seed, chance, options):
    """Keras as it is taught: layers in a row, compile, fit, a validation after each epoch, a rate that falls when that stands still."""
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    from tocsin.keras import TocsinCallback
    keras.utils.set_random_seed(seed)
    (x, y), held = _sets(seed, fault)
    model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Reshape((8, 8, 1)), keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
                              keras.layers.MaxPooling2D(), keras.layers.Flatten(), keras.layers.Dropout(0.2), keras.layers.Dense(chance.choice((32, 48)), activation="relu"),
                              keras.layers.Dense(10)])
    large = {"start_zero": 0.0, "start_large": 30.0}.get(fault)
    if large is not None:
        model.set_weights([one * large if one.ndim > 1 else one for one in model.get_weights()])
    optimizer = keras.optimizers.Adam(_rate(chance.uniform(1e-3, 4e-3), fault))
    sign, name = -1.0 if fault == "sign_wrong" else 1.0, []
    plain = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=(lambda true, said: sign * plain(true, said)) if sign < 0 else plain, metrics=["accuracy"])

    class Keep(keras.callbacks.Callback):
        """Stands before the product's, and notes the run's name while it is open."""

        def on_epoch_end(self, epoch, logs=None):
            name[:] = [tocsin.get_hook().run]
    batch = min(chance.choice((32, 64)), len(x) // 2)
    epochs, of_epoch = (120 if fault == "overfits" else 8), -(-len(x) // batch)
    first = plain(held[1], model.predict(held[0], verbose=0))
    told = model.fit(x, y, batch_size=batch, epochs=epochs, validation_data=held, verbose=0,
                     callbacks=[Keep(), TocsinCallback(capture=CAPTURE, **options), keras.callbacks.ReduceLROnPlateau(patience=3)]).history["val_loss"]
    return name[0], epochs * of_epoch, [[0, float(first)], *([(at + 1) * of_epoch - 1, sign * float(one)] for at, one in enumerate(told))]


def _grads(fault, seed, chance, options):
    """A network of two hidden layers in JAX, AdamW with warm-up and a cosine; gradients and weights come out of the compiled step."""
    import jax
    import jax.numpy as jnp
    import optax

    import tocsin.jax
    (x, y), (held_x, held_y) = _sets(seed, fault)
    width, key = chance.choice((48, 64)), jax.random.split(jax.random.PRNGKey(seed), 3)
    scale = {"start_zero": 0.0, "start_large": 30.0}.get(fault, 1.0)
    sizes = [(64, width), (width, width), (width, 10)]
    params = {f"layer{at}": {"kernel": scale * jax.random.normal(key[at], size) * (2 / size[0]) ** 0.5, "bias": jnp.zeros(size[1])} for at, size in enumerate(sizes)}
    steps, batch = (400 if fault == "overfits" else 240), min(chance.choice((32, 64)), len(x) // 2)
    top = _rate(chance.uniform(1e-3, 4e-3), fault)
    optimizer = optax.adamw(top if fault == "overfits" else optax.warmup_cosine_decay_schedule(0.0, top, 20, steps))
    state, sign = optimizer.init(params), -1.0 if fault == "sign_wrong" else 1.0

    def loss_of(params, x, y):
        for at in range(3):
            x = x @ params[f"layer{at}"]["kernel"] + params[f"layer{at}"]["bias"]
            x = jax.nn.gelu(x) if at < 2 else x
        return optax.softmax_cross_entropy_with_integer_labels(x, y).mean()

    @jax.jit
    def step(params, state, x, y):
        loss, grads = jax.value_and_grad(lambda *given: sign * loss_of(*given))(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        told = {"gradients": tocsin.jax.statistics(grads), "weights": tocsin.jax.statistics(params)}
        return optax.apply_updates(params, updates), state, loss, told
    training, source, held = tocsin.jax.watch(capture=CAPTURE, **options), numpy.random.default_rng(seed), jax.jit(loss_of)
    name, passes = tocsin.get_hook().run, [[0, float(held(params, held_x, held_y))]]
    for at in range(steps):
        part = source.integers(0, len(x), batch)
        params, state, loss, told = step(params, state, x[part], y[part])
        training.step(loss=sign * loss, **told)
        if at % 40 == 39:
            passes.append([at, float(held(params, held_x, held_y))])
            hook = tocsin.get_hook()
            with hook.mode("eval"):
                hook.log(loss=passes[-1][1])
                hook.step()
    training.close()
    return name, steps, passes


def run(fault, seed, out, job, name):
    """Trains and records; returns (uid, steps, step of the best evaluation, the evaluations)."""
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    uid, steps, passes = {"fits": _fits, "grads": _grads}[job](fault, seed, random.Random(f"{job}/{seed}"), {"out": out, "run": name, "job": job})
    return uid, steps, min((value, step) for step, value in passes if value == value)[1] if any(value == value for _, value in passes) else 0, passes
