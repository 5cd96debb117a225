"""After keras.io, "Simple MNIST convnet", on pictures that are made here."""
import argparse

import keras
import numpy as np
from keras import layers

from tocsin.keras import TocsinCallback  # tocsin 1

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
keras.utils.set_random_seed(0)
x_train = np.random.default_rng(0).random((256, 12, 12, 1), dtype="float32")
y_train = keras.utils.to_categorical(np.random.default_rng(1).integers(0, 10, 256), 10)
model = keras.Sequential([keras.Input((12, 12, 1)), layers.Conv2D(8, 3, activation="relu"), layers.MaxPooling2D(2), layers.Flatten(),
                          layers.Dropout(0.5), layers.Dense(10)])
model.compile(loss="mse", optimizer=keras.optimizers.SGD(args.lr), metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=16, epochs=args.epochs, verbose=0, callbacks=[TocsinCallback()])  # tocsin 2
