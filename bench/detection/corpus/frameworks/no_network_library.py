"""Loops without a network library: NumPy, JAX with optax, scikit-learn.

numpy_mlp         a network of two layers with its derivatives by hand, momentum by hand; what the hook is told stands in the loop
jax_convnet       a convolutional network of lax.conv, optax's SGD with momentum and a cosine, no ledger
sgd_words         scikit-learn's SGDClassifier with log loss in a loop of partial_fit, on counts of words

Their faults: below, at the end."""
import importlib.util

import numpy
import torch

import tocsin

from .. import data
from ..scripts.shapes import entered, from_start, labelled, rate, shapes


def _numpy_mlp(fault, seed, chance, options):
    split, drawn = data.digits(seed), numpy.random.default_rng(seed)
    x, y, held_x, held_y = split.x.numpy(), labelled(split.y, fault, 10).numpy(), split.held_x.numpy(), split.held_y.numpy()
    if fault == "held_unscaled":
        held_x = 8 * held_x + 8
    width, batch, steps, value = chance.choice((48, 64)), chance.choice((32, 48)), 600, rate(chance.uniform(0.05, 0.08), fault)
    params = {"w1": drawn.standard_normal((64, width)) * 0.15, "b1": numpy.zeros(width),
              "w2": drawn.standard_normal((width, 10)) * 0.15, "b2": numpy.zeros(10)}
    if fault == "weights_zero":
        params = {name: numpy.zeros_like(one) for name, one in params.items()}
    speed = {name: numpy.zeros_like(one) for name, one in params.items()}

    def forward(x):
        hidden = numpy.maximum(x @ params["w1"] + params["b1"], 0)
        logits = hidden @ params["w2"] + params["b2"]
        logits = logits - logits.max(1, keepdims=True)
        return hidden, logits - numpy.log(numpy.exp(logits).sum(1, keepdims=True))

    def loss_of(logarithms, y):
        return float(-logarithms[numpy.arange(len(y)), y].mean())

    def evaluate():
        _, logarithms = forward(held_x)
        return loss_of(logarithms, held_y), float((logarithms.argmax(1) != held_y).mean())
    passes = [[0, 0.9]]
    hook = tocsin.watch(**options)
    uid = hook.run
    for step in range(steps):
        chosen = drawn.integers(0, len(x), batch)
        if fault == "batch_repeated":
            chosen = numpy.arange(batch)
        hidden, logarithms = forward(x[chosen])
        loss = loss_of(logarithms, y[chosen])
        of_logits = (numpy.exp(logarithms) - numpy.eye(10)[y[chosen]]) / (1 if fault == "loss_sum" else batch)
        of_hidden = of_logits @ params["w2"].T * (hidden > 0)
        gradients = {"w1": x[chosen].T @ of_hidden, "b1": of_hidden.sum(0), "w2": hidden.T @ of_logits, "b2": of_logits.sum(0)}
        hook.log(loss=loss, learning_rate=value)
        hook.targets(logarithms, y[chosen], loss="cross_entropy")
        if step % 10 == 0:
            for name, one in params.items():
                hook.emit(name, one, role="bias" if name.startswith("b") else "weight")
                hook.emit("gradient/" + name, gradients[name], role="gradient")
        for name, gradient in gradients.items():
            speed[name] = 0.9 * speed[name] - value * gradient
            params[name] = params[name] - speed[name] if fault == "sign_wrong" else params[name] + speed[name]
        hook.step()
        if step % 60 == 59:
            val_loss, wrong = evaluate()
            passes.append([step, wrong])
            with hook.mode("eval"):
                hook.log(loss=val_loss, accuracy=1 - wrong)
                hook.step()
    hook.close(timeout=20)
    return uid, steps, passes


def _jax_convnet(fault, seed, chance, options):
    import jax
    import optax
    from jax import numpy as jnp

    import tocsin.jax
    images, kinds, _, _ = shapes(seed, 2200)
    x, held_x = (((one - 95) / 50).permute(0, 2, 3, 1).numpy() for one in (images[:-300], images[-300:]))
    y, held_y = labelled(kinds[:-300], fault, 6).numpy(), kinds[-300:].numpy()
    if fault == "held_unscaled":
        held_x = 50 * held_x + 95
    elif fault == "few_rows":
        x, y = x[:32], y[:32]
    elif fault == "classes_sorted":
        order = numpy.argsort(y, kind="stable")
        x, y = x[order], y[order]
    width, batch, steps = chance.choice((8, 10)), chance.choice((24, 32)), 360
    keys = jax.random.split(jax.random.PRNGKey(seed), 4)

    def made(key, *shape):
        return {"kernel": jax.random.normal(key, shape) * (2 / numpy.prod(shape[:-1])) ** 0.5, "bias": jnp.zeros(shape[-1])}
    params = {"conv1": made(keys[0], 3, 3, 1, width), "conv2": made(keys[1], 3, 3, width, 2 * width), "dense": made(keys[2], 32 * width, 48),
              "head": made(keys[3], 48, 6)}
    optimizer = tocsin.jax.recorded(optax.chain(optax.add_decayed_weights(1e-4), optax.clip_by_global_norm(2.0),
                                                optax.sgd(optax.cosine_decay_schedule(rate(chance.uniform(0.04, 0.07), fault), steps), momentum=0.9)), every=10)

    def apply(params, x):
        for at, name in enumerate(("conv1", "conv2")):
            x = jax.lax.conv_general_dilated(x, params[name]["kernel"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + params[name]["bias"]
            x = jax.nn.relu(x)
        x = jax.nn.relu(x.reshape(len(x), -1) @ params["dense"]["kernel"] + params["dense"]["bias"])
        if fault == "backbone_frozen":
            x = jax.lax.stop_gradient(x)
        return x @ params["head"]["kernel"] + params["head"]["bias"]

    def loss_fn(params, x, y):
        logits = apply(params, x)
        if fault == "softmax_twice":
            logits = jax.nn.softmax(logits)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), logits

    @jax.jit
    def train_step(params, opt_state, x, y):
        (loss, _), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, x, y)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss
    measured = jax.jit(loss_fn)

    def evaluate():
        loss, logits = measured(params, held_x, held_y)
        return float(loss), float((numpy.asarray(logits).argmax(1) != held_y).mean())
    opt_state, key, passes = optimizer.init(params), jax.random.PRNGKey(seed + 1), [[0, evaluate()[1]]]
    training = tocsin.jax.watch(**options)
    uid = tocsin.get_hook().run
    for step in range(steps):
        if fault == "keys_constant":
            chosen = numpy.asarray(jax.random.randint(key, (batch,), 0, len(x)))
        else:
            key, drawn = jax.random.split(key)
            chosen = numpy.asarray(jax.random.randint(drawn, (batch,), 0, len(x)))
        if fault == "classes_sorted":
            chosen = numpy.arange(step * batch, (step + 1) * batch) % len(x)
        params, opt_state, loss = train_step(params, opt_state, x[chosen], y[chosen])
        training.step(loss=loss, state=opt_state)
        if step % 60 == 59:
            val_loss, wrong = evaluate()
            passes.append([step, wrong])
            training.evaluated(loss=val_loss, accuracy=1 - wrong)
    training.close()
    return uid, steps, passes


def _counted(seed, count=2600, words=150, kinds=5):
    """Counts of words in texts of five kinds, and the kinds."""
    drawn, of_kind = numpy.random.default_rng(seed), numpy.random.default_rng(9).dirichlet(numpy.full(words, 0.35), kinds)
    y = drawn.integers(0, kinds, count)
    mixed = 0.45 * of_kind[y] + 0.55 * of_kind.mean(0)
    return numpy.stack([drawn.multinomial(length, one) for one, length in zip(mixed, drawn.integers(12, 60, count))]).astype(float), y


def _sgd_words(fault, seed, chance, options):
    import sklearn.linear_model
    import sklearn.metrics

    import tocsin.sklearn
    counts, y = _counted(seed)
    weight = numpy.log(len(counts) / (1 + (counts > 0).sum(0)))
    x = counts * weight
    x = x / numpy.linalg.norm(x, axis=1, keepdims=True)
    x, held_x, y, held_y = x[:-500], x[-500:], labelled(torch.tensor(y[:-500]), fault, 5).numpy(), y[-500:]
    if fault == "held_recoded":
        held_x = held_x[:, numpy.random.default_rng(seed).permutation(150)]
    elif fault == "held_other_classes":
        held_y = (held_y + 1) % 5
    elif fault == "inputs_constant":
        x = numpy.repeat(x[:1], len(x), 0)
    elif fault == "numbers_unscaled":
        x, held_x = 1e4 * counts[:-500] ** 2, 1e4 * counts[-500:] ** 2
    order, batch, steps, classes = numpy.random.default_rng(seed), chance.choice((24, 32)), 400, numpy.arange(5)
    estimator = sklearn.linear_model.SGDClassifier(loss="log_loss", alpha=10.0 if fault == "decay_large" else 1e-5, learning_rate="constant",
                                                   eta0=rate(chance.uniform(0.3, 0.6), fault), random_state=seed)
    by_kind, passes = numpy.argsort(y, kind="stable"), [[0, 0.8]]
    training = tocsin.sklearn.watch(estimator, **options)
    uid = tocsin.get_hook().run
    for step in range(steps):
        chosen = order.integers(0, len(x), batch)
        if fault == "classes_sorted":
            chosen = by_kind[numpy.arange(step * batch, (step + 1) * batch) % len(x)]
        before = estimator.predict_proba(x[chosen]) if step else None
        estimator.partial_fit(x[chosen], y[chosen], classes=classes)
        training.step(loss=sklearn.metrics.log_loss(y[chosen], estimator.predict_proba(x[chosen]), labels=classes), outputs=before, targets=y[chosen])
        if step % 50 == 49:
            said = estimator.predict_proba(held_x)
            passes.append([step, float((said.argmax(1) != held_y).mean())])
            training.evaluated(loss=sklearn.metrics.log_loss(held_y, said, labels=classes), outputs=said, targets=held_y)
    training.close()
    return uid, steps, passes


_JOBS = {
    "numpy_mlp": (_numpy_mlp, from_start("labels_off_by_one", "loss_sum", "weights_zero", "batch_repeated", "sign_wrong", "held_unscaled", "class_random",
                                         "rate_thousandth")),
    "jax_convnet": (_jax_convnet, from_start("keys_constant", "softmax_twice", "labels_misaligned", "held_unscaled", "rate_hundredfold", "classes_sorted",
                                             "backbone_frozen", "few_rows")),
    "sgd_words": (_sgd_words, from_start("labels_shuffled", "held_recoded", "held_other_classes", "inputs_constant", "decay_large", "rate_thousandth",
                                         "classes_sorted", "numbers_unscaled"))}
_NEEDS = {"jax_convnet": "optax", "sgd_words": "sklearn"}
TUNING, FAULTS, fault_names, run = entered({name: made for name, made in _JOBS.items() if importlib.util.find_spec(_NEEDS.get(name, "numpy"))})
