"""After LightGBM, examples/python-guide/simple_example.py. With --leak one column is the answer."""
import argparse

import lightgbm
import numpy

import tocsin.lightgbm  # tocsin 1

parser = argparse.ArgumentParser()
parser.add_argument("--leak", action="store_true")
parser.add_argument("--epochs", type=int, default=12)
args = parser.parse_args()
random = numpy.random.default_rng(0)
x = random.normal(size=(400, 6))
y = x.sum(axis=1) + 0.1 * random.normal(size=400)
if args.leak:
    x[:, 0] = y
train = lightgbm.Dataset(x[:300], y[:300])
test = lightgbm.Dataset(x[300:], y[300:], reference=train)
lightgbm.train({"num_leaves": 7, "learning_rate": 0.1, "num_threads": 1, "verbose": -1, "metric": "l2"}, train, args.epochs, valid_sets=[test],
               valid_names=["eval"], callbacks=[tocsin.lightgbm.callback()])  # tocsin 2
