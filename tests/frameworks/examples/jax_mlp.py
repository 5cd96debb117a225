"""After optax, "MLP on MNIST", on numbers that are made here."""
import argparse
import sys

import jax
import jax.numpy as jnp
import optax

import tocsin.jax  # tocsin 1

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()


def apply(params, x):
    return jax.nn.relu(x @ params["hidden"]["kernel"]) @ params["head"]["kernel"]


def loss_fn(params, x, y):
    return jnp.mean((apply(params, x) - y) ** 2)


keys = jax.random.split(jax.random.PRNGKey(0), 3)
params = {"hidden": {"kernel": 0.3 * jax.random.normal(keys[0], (12, 16))}, "head": {"kernel": 0.3 * jax.random.normal(keys[1], (16, 2))}}
optimizer = tocsin.jax.recorded(optax.sgd(args.lr), every=10)  # tocsin 2
opt_state = optimizer.init(params)
x = jax.random.normal(keys[2], (256, 12))
training = tocsin.jax.watch()  # tocsin 3


@jax.jit
def train_step(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


for epoch in range(args.epochs):
    for batch in jnp.split(x, 16):
        params, opt_state, loss = train_step(params, opt_state, batch, batch[:, :2])
        training.step(loss=loss, state=opt_state)  # tocsin 4
        if training.should_stop():  # tocsin 5
            training.close()  # tocsin 6
            sys.exit(tocsin.EXIT_STOPPED)  # tocsin 7
training.close()  # tocsin 8
