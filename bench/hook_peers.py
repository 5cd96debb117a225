#!/usr/bin/env python3
"""What the hook costs beside the ways people watch gradients and weights today, on the same loops, in turns, on one thread.

Rows, for a transformer and a convolutional network on a CPU; each watches every gradient and every weight:

  tocsin, every 10th step     the default: statistics, deltas of weights, the loss at every step (target <= 1 %)
  tocsin, every step          the same at every step (target <= 5 %)
  empty callbacks             a Python function before and one after the update that do nothing: what any hook costs
  item(), every 10th step     ``.norm().item()`` and four more per tensor, as scripts do it by hand
  histograms, every 10th step what ``wandb.watch(log="all")`` computes: finite part, minimum, maximum, ``torch.histc`` of 64
                              bins, moved to lists (Weights & Biases' own interval is 1 000 steps; nothing is sent here)
  smdebug, every 10th step    the original library with the reductions mean, std, l2 of absolute values and plain ones, if it
                              can be imported (it needs protobuf < 3.21, numpy < 2, pandas, psutil)

and after them what an unsampled step costs in hook calls, beside the empty callbacks in the same run.

The figure is the extra processor time of the training thread per step, over the step of the loop without a hook. Blocks of
a row and of that loop alternate; the median over pairs is printed. Exits 1 when a target is missed.

Usage: bench/hook_peers.py [--quick]
"""
import argparse
import importlib
import logging
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "python"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import hook_bench  # noqa: E402  (also keeps OpenBLAS to one thread, before torch is loaded)
import torch  # noqa: E402

import tocsin  # noqa: E402

GRID = 10


class Convolutional(torch.nn.Module):
    """Six convolutions with batch normalisation, as a small image classifier has."""

    def __init__(self, width=32):
        super().__init__()
        layers, channels = [], 3
        for i in range(6):
            layers += [torch.nn.Conv2d(channels, width, 3, padding=1, stride=1 + i % 2), torch.nn.BatchNorm2d(width), torch.nn.ReLU()]
            channels = width
        self.body = torch.nn.Sequential(*layers)
        self.head = torch.nn.Linear(width, 10)

    def forward(self, images):
        return self.head(self.body(images).mean((2, 3)))


def convolutional():
    model = Convolutional()
    images, labels = torch.randn(16, 3, 24, 24), torch.randint(0, 10, (16,))
    return model, torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9), \
        lambda: torch.nn.functional.cross_entropy(model(images), labels)


class Nothing:
    """The loop as it is."""

    def __init__(self, model, optimizer, folder):
        self.model, self.optimizer = model, optimizer

    def before(self, loss, step):
        pass

    def after(self):
        pass

    def close(self):
        pass


class Tocsin(Nothing):
    every = GRID

    def __init__(self, model, optimizer, folder):
        super().__init__(model, optimizer, folder)
        self.hook = tocsin.watch(model, optimizer, out=os.path.join(folder, f"journal{self.every}"), run="bench",
                                 capture={"every": f"{self.every} steps", "overhead": "100%"})
        assert self.hook.enabled, self.hook.stats()

    def before(self, loss, step):
        self.hook.log(loss=loss)

    def after(self):
        self.hook.should_stop()

    def close(self):
        stats = self.hook.stats()
        assert stats["effective_interval"] == self.every and not sum(stats["dropped_records_total"].values()), stats
        self.hook.close(timeout=5)


class TocsinEveryStep(Tocsin):
    every = 1


class Empty(Nothing):
    def before(self, loss, step):
        nothing()

    def after(self):
        nothing()


def nothing():
    return None


class Tensors(Nothing):
    """Looks at every gradient and weight at every tenth step."""

    def before(self, loss, step):
        if step % GRID:
            return
        self.found = [self.look(tensor.detach()) for parameter in self.model.parameters()
                      for tensor in (parameter, parameter.grad) if tensor is not None]

    def look(self, tensor):
        raise NotImplementedError


class Items(Tensors):
    def look(self, tensor):
        return (tensor.norm().item(), tensor.mean().item(), tensor.abs().max().item(), torch.isnan(tensor).sum().item(),
                torch.isinf(tensor).sum().item())


class Histograms(Tensors):
    def look(self, tensor):
        flat = tensor.reshape(-1)
        flat = flat[torch.isfinite(flat)]
        low, high = flat.min().item(), flat.max().item()
        return torch.linspace(low, high, steps=65).tolist(), torch.histc(flat, bins=64, min=low, max=high).tolist()


class Smdebug(Nothing):
    def __init__(self, model, optimizer, folder):
        super().__init__(model, optimizer, folder)
        import smdebug.pytorch as smd
        reductions = smd.ReductionConfig(reductions=["mean", "std"], abs_reductions=["mean", "max"], norms=["l2"])
        self.hook = smd.Hook(out_dir=os.path.join(folder, "smdebug"), save_config=smd.SaveConfig(save_interval=GRID),
                             reduction_config=reductions, include_collections=["weights", "gradients", "biases"])
        self.hook.register_module(model)

    def before(self, loss, step):
        self.hook.record_tensor_value("loss", loss.detach())

    def close(self):
        self.hook.close()


def block(watcher, loss, steps, first):
    begin = time.thread_time()
    for step in range(first, first + steps):
        watcher.optimizer.zero_grad()
        value = loss()
        value.backward()
        watcher.before(value, step)
        watcher.optimizer.step()
        watcher.after()
    return (time.thread_time() - begin) / steps


def compare(loop, make, kind, folder, repeats):
    """One kind beside the loop without it, in turns: there is one hook of ours in a process at a time."""
    watched = []
    for each in (Nothing, kind):
        torch.manual_seed(0)
        model, optimizer, loss = make()
        watched.append((each(model, optimizer, folder), loss))
    pairs = []
    for i in range(repeats + 1):
        order = (0, 1) if i % 2 else (1, 0)
        spent = {k: block(*watched[k], 2 * GRID, 2 * GRID * i) for k in order}
        if i:  # the first round makes names, pages and threads
            pairs.append((spent[0], spent[1]))
    watched[1][0].close()
    step = statistics.median(plain for plain, _ in pairs)
    extra = statistics.median(one - plain for plain, one in pairs)
    target = TARGETS.get(kind)
    verdict = "" if target is None else f"  target <= {target:.0%}  {'pass' if extra / step <= target else 'miss'}"
    print(f"{loop}, {1e3 * step:.2f} ms: {NAMES[kind]:<28} {1e6 * extra:8.1f} us per step  {extra / step:8.2%}{verdict}", flush=True)
    return "miss" in verdict


def unsampled(folder, steps=4000):
    """Microseconds that hook calls take at a step that captures nothing, and an empty pair in its place."""
    model, optimizer, loss = hook_bench.perceptron(16, 8)
    hook = tocsin.watch(model, optimizer, out=os.path.join(folder, "unsampled"), run="bench", capture={"every": "1000000 steps"})
    adapter, clock = hook.sink.adapters()[0], time.perf_counter_ns
    ours, empty = [], []
    for step in range(steps):
        optimizer.zero_grad()
        loss().backward()
        begin = clock()
        adapter.before_update(None)
        adapter.after_update()
        middle = clock()
        nothing()
        nothing()
        end = clock()
        if step >= 100:
            ours.append(middle - begin)
            empty.append(end - middle)
    hook.close(timeout=5)
    pair, nobody = (statistics.median(values) / 1e3 for values in (ours, empty))
    verdict = "pass" if pair <= 10 else "miss"
    print(f"unsampled step: before and after the update {pair:.2f} us  empty callbacks {nobody:.2f} us  target <= 10 us  {verdict}")
    return verdict == "miss"


NAMES = {Tocsin: "tocsin, every 10th step", TocsinEveryStep: "tocsin, every step", Empty: "empty callbacks",
         Items: "item(), every 10th step", Histograms: "histograms, every 10th step", Smdebug: "smdebug, every 10th step"}
TARGETS = {Tocsin: 0.01, TocsinEveryStep: 0.05}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer blocks; for a first look")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    kinds = [Tocsin, TocsinEveryStep, Empty, Items, Histograms]
    try:
        logging.disable(logging.INFO)  # it says every parameter's name
        importlib.import_module("smdebug.pytorch")
        kinds.append(Smdebug)
    except Exception as error:  # noqa: BLE001 - whatever it lacks here
        print(f"smdebug: absent ({type(error).__name__}: {error})")
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        for loop, make in (("transformer", hook_bench.transformer), ("convolutional", convolutional)):
            for kind in kinds:
                missed = compare(loop, make, kind, os.path.join(folder, loop), 8 if arguments.quick else 30) or missed
        missed = unsampled(folder) or missed
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
