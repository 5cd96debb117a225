"""After xgboost, demo/guide-python/basic_walkthrough.py. With --leak one column is the answer."""
import argparse

import numpy
import xgboost

from tocsin.xgboost import TocsinCallback  # tocsin 1

parser = argparse.ArgumentParser()
parser.add_argument("--leak", action="store_true")
parser.add_argument("--epochs", type=int, default=12)
args = parser.parse_args()
random = numpy.random.default_rng(0)
x = random.normal(size=(400, 6))
y = x.sum(axis=1) + 0.1 * random.normal(size=400)
if args.leak:
    x[:, 0] = y
train, test = xgboost.DMatrix(x[:300], y[:300]), xgboost.DMatrix(x[300:], y[300:])
xgboost.train({"max_depth": 3, "eta": 0.1, "nthread": 1}, train, args.epochs, evals=[(test, "eval"), (train, "train")], verbose_eval=False,
              callbacks=[TocsinCallback(importance=("gain", "weight"))])  # tocsin 2
