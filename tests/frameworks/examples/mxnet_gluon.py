"""After MXNet's crash course, "Train a neural network": its loop in Gluon, on numbers that are made here."""
import argparse
import sys

from mxnet import autograd, gluon, nd, random

import tocsin  # tocsin 1

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.1)
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()
random.seed(0)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(16, activation="relu"), gluon.nn.Dense(2))
net.initialize()
net.hybridize()
loss_fn = gluon.loss.L2Loss()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": args.lr})
x = nd.random.normal(shape=(256, 12))
loader = gluon.data.DataLoader(gluon.data.ArrayDataset(x, x[:, :2]), batch_size=16)
hook = tocsin.watch()  # tocsin 2
for epoch in range(args.epochs):
    for data, label in loader:
        with autograd.record():
            loss = loss_fn(net(data), label)
        loss.backward()
        hook.log(loss=loss.mean().asscalar())  # tocsin 3
        if hook.should_save_step():  # tocsin 4
            for name, parameter in net.collect_params().items():  # tocsin 5
                hook.emit(name, parameter.data().asnumpy(), role="bias" if name.endswith("bias") else "weight")  # tocsin 6
                hook.emit("gradient/" + name, parameter.grad().asnumpy(), role="gradient")  # tocsin 7
        trainer.step(16)
        hook.step()  # tocsin 8
        if hook.should_stop():  # tocsin 9
            hook.acknowledge_stop()  # tocsin 10
            sys.exit(tocsin.EXIT_STOPPED)  # tocsin 11
