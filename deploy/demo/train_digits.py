#!/usr/bin/python3
"""A small, real PyTorch training job on the UCI digits (1797 images of 8 x 8), watched by Tocsin.

  healthy     a convolutional network with sane settings
  exploding   the same network; its warm-up forgot to end, and doubles the learning rate again and again
  vanishing   sixteen sigmoid layers: the first ones get no gradient worth the name

What makes it a watched job are the lines that mention `tocsin` and `hook`. Exit status: 0 finished,
77 (tocsin.EXIT_STOPPED) stopped by a rule, anything else a crash.
"""

import argparse
import copy
import json
import math
import pathlib
import sys
import time

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional

import tocsin

SCENARIOS = ("exploding", "healthy", "vanishing")
LEARNING_RATE, WARM_UP, DOUBLING = 0.05, 5, 40  # rate after the warm-up; its steps; steps per doubling


def convolutional():
    model = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 64, 3, padding=1), nn.LeakyReLU(),
        nn.Conv2d(64, 96, 3, padding=1), nn.LeakyReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(96 * 16, 64), nn.LeakyReLU(), nn.Dropout(0.3),
        nn.Linear(64, 10))
    for layer in model:
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="leaky_relu")
    return model


def deep_sigmoid(depth=16, width=96):
    layers = [nn.Linear(64, width), nn.Sigmoid()]
    for _ in range(depth - 1):
        layers += [nn.Linear(width, width), nn.Sigmoid()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


def data(seed):
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16.0, labels, test_size=0.2, random_state=seed, stratify=labels)
    train_x, test_x, train_y, test_y = split
    return ((torch.tensor(train_x, dtype=torch.float32), torch.tensor(train_y)),
            (torch.tensor(test_x, dtype=torch.float32), torch.tensor(test_y)))


def learning_rate(scenario, step, steps):
    """A short linear warm-up, then a cosine down to a twentieth. Exploding: the warm-up never ends."""
    if scenario == "exploding":
        return LEARNING_RATE * 2 ** (step / DOUBLING)
    if step < WARM_UP:
        return LEARNING_RATE * (step + 1) / WARM_UP
    return LEARNING_RATE * (0.525 + 0.475 * math.cos(math.pi * (step - WARM_UP) / (steps - WARM_UP)))


def loss_of(scores, labels):
    return functional.cross_entropy(scores, labels, label_smoothing=0.1)


def evaluate(model, images, labels):
    model.eval()
    with torch.no_grad():
        scores = model(images)
    model.train()
    return loss_of(scores, labels).item(), (scores.argmax(1) == labels).float().mean().item()


class Progress:
    """One line per step for whoever watches: JSON for a program, text for a person."""

    def __init__(self, as_json, every):
        self.as_json, self.every, self.began = as_json, every, time.monotonic()

    def step(self, step, **values):
        if self.as_json:
            # JSON has no NaN: a loss that is none travels as its name.
            values = {k: v if not isinstance(v, float) or math.isfinite(v) else str(v) for k, v in values.items()}
            self._print({"event": "step", "step": step, **values})
        elif step % self.every == 0:
            rate = step / max(1e-9, time.monotonic() - self.began)
            print(f"step {step:4d}  loss {values['loss']:<10.4g} {rate:5.0f} steps/s", flush=True)

    def event(self, name, **values):
        self._print({"event": name, **values}) if self.as_json else print(name, values, flush=True)

    @staticmethod
    def _print(values):
        print(json.dumps(values), flush=True)


def train(options, progress):
    torch.manual_seed(options.seed)
    (train_x, train_y), (test_x, test_y) = data(options.seed)
    model = deep_sigmoid() if options.scenario == "vanishing" else convolutional()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9, weight_decay=1e-3)
    batches_per_epoch = len(train_x) // options.batch
    best = {"loss": math.inf, "model": None}

    hook = tocsin.watch(model, optimizer, run=options.run, job="digits",
                        labels={"scenario": options.scenario})
    progress.event("start", run=str(hook.run), steps=options.steps, parameters=sum(p.numel() for p in model.parameters()),
                   samples=len(train_x), torch=torch.__version__)
    with hook:
        for step in range(1, options.steps + 1):
            if (step - 1) % batches_per_epoch == 0:
                order = torch.randperm(len(train_x))
            first = (step - 1) % batches_per_epoch * options.batch
            batch = order[first:first + options.batch]

            rate = learning_rate(options.scenario, step - 1, options.steps)
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad(set_to_none=True)
            scores = model(train_x[batch])
            loss = loss_of(scores, train_y[batch])
            loss.backward()
            optimizer.step()

            accuracy = (scores.argmax(1) == train_y[batch]).float().mean().item()
            hook.log(loss=loss.item(), accuracy=accuracy)
            progress.step(step, loss=loss.item(), accuracy=accuracy, learning_rate=rate)

            request = hook.should_stop()
            if request:
                checkpoint = save(hook, options, model, optimizer, best, step)
                hook.acknowledge_stop(checkpoint=checkpoint)
                progress.event("stopped", step=step, rule=request.rule, checkpoint=str(checkpoint))
                return tocsin.EXIT_STOPPED

            if step % batches_per_epoch == 0:
                with hook.mode("eval"):
                    test_loss, test_accuracy = evaluate(model, test_x, test_y)
                    hook.log(loss=test_loss, accuracy=test_accuracy)
                progress.event("eval", step=step, loss=str(test_loss), accuracy=test_accuracy)
                if test_loss < best["loss"]:
                    best = {"loss": test_loss, "step": step, "model": copy.deepcopy(model.state_dict())}
        save(hook, options, model, optimizer, best, options.steps)
        progress.event("finished", step=options.steps, accuracy=test_accuracy)
    return 0


def save(hook, options, model, optimizer, best, step):
    """The state as it is, and beside it the best one so far: after a blow-up that is the one to go on from."""
    path = pathlib.Path(options.checkpoint)
    with hook.checkpointing():
        torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict(),
                    "hook": hook.state_dict(), "best": best}, path)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", choices=SCENARIOS, default="healthy")
    parser.add_argument("--steps", type=int, default=440)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", help="name of the run, for Tocsin")
    parser.add_argument("--checkpoint", default="checkpoint.pt", help="where to save")
    parser.add_argument("--progress", choices=("text", "json"), default="text")
    options = parser.parse_args()
    sys.exit(train(options, Progress(options.progress == "json", every=20)))


if __name__ == "__main__":
    main()
