"""After tensorflow.org, "Writing a training loop from scratch"."""
import argparse
import sys

import numpy as np
import tensorflow as tf
from tensorflow import keras

import tocsin.keras  # tocsin 1

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
keras.utils.set_random_seed(0)
x = np.random.default_rng(0).standard_normal((256, 12)).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, x[:, :2])).batch(16)
model = keras.Sequential([keras.Input((12,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(2)])
optimizer = keras.optimizers.SGD(args.lr)
loss_fn = keras.losses.MeanSquaredError()
training = tocsin.keras.watch(model)  # tocsin 2


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss_value = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss_value, model.trainable_weights)
    optimizer.apply_gradients(zip(grads, model.trainable_weights))
    return loss_value, tocsin.keras.statistics(grads)  # tocsin 3


for epoch in range(args.epochs):
    for x_batch, y_batch in dataset:
        loss, told = train_step(x_batch, y_batch)
        training.step(loss=loss, gradients=told)  # tocsin 4
        if training.should_stop():  # tocsin 5
            training.close()  # tocsin 6
            sys.exit(tocsin.EXIT_STOPPED)  # tocsin 7
training.close()  # tocsin 8
