"""After scikit-learn, "Out-of-core classification": partial_fit over batches, here of a regression."""
import argparse
import sys

import numpy
from sklearn.linear_model import SGDRegressor
from sklearn.metrics import mean_squared_error

import tocsin.sklearn  # tocsin 1

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
random = numpy.random.default_rng(0)
x = random.normal(size=(256, 6))
y = x.sum(axis=1)
model = SGDRegressor(learning_rate="constant", eta0=args.lr, random_state=0)
training = tocsin.sklearn.watch(model)  # tocsin 2
for epoch in range(args.epochs):
    for start in range(0, 256, 16):
        batch = slice(start, start + 16)
        try:
            model.partial_fit(x[batch], y[batch])
            loss = mean_squared_error(y[batch], model.predict(x[batch]))
        except ValueError:  # "Floating-point under-/overflow occurred"
            loss = float("inf")
        training.step(loss=loss)  # tocsin 3
        if training.should_stop():  # tocsin 4
            training.close()  # tocsin 5
            sys.exit(tocsin.EXIT_STOPPED)  # tocsin 6
training.close()  # tocsin 7
