#!/usr/bin/env python3
"""What the training hook costs of a loop's processor time, beside the loop without it and beside how people watch today.

On a transformer, a convolutional network and a perceptron, one thread each, every row in the same process on the same model
(bench/interleaved.py: ten steps of each kind in turns, medians over rounds with their 95 % interval). What the hook's other threads do is
counted in blocks of as many tens as last 0.5 s: its sending thread looks so often, and once more at each block's end:

  tocsin, every 10th step     the default and phases: statistics of every gradient and weight, deltas of weights, the loss at
                              every step; times of forward, backward and data at every step (target <= 1 %)
  tocsin, every step          the same, tensors at every step (target <= 5 %)
  bare again                  the loop without anything once more: what this run cannot tell apart from nothing
  empty callbacks             a Python function before and one after the update that do nothing
  item(), every 10th step     ``.norm().item()`` and four more per tensor, as scripts do it by hand
  histograms, every 10th step what ``wandb.watch(log="all")`` computes: finite part, minimum, maximum, ``torch.histc`` of 64
                              bins, moved to lists (Weights & Biases' own interval is 1 000 steps; nothing is sent here)
  smdebug, every 10th step    the original library with the reductions mean, std, l2 of absolute values and plain ones, if it
                              can be imported (it needs protobuf < 3.21, numpy < 2, pandas, psutil)

Judged is the processor time of the whole process, the hook's own threads included; beside it stands that of the training
thread alone. Where the hook is off, what it has installed is taken out of model and optimizer. Exits 1 when a target is missed.

Usage: bench/hook_bench.py [--quick] [--alone] [--loops transformer,convolutional,perceptron] [--heap kept|shrinks]
                           [--out kafka://host:port] [--rounds N]
"""
import argparse
import importlib
import logging
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "python"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import training_loops  # noqa: E402  (also keeps OpenBLAS to one thread, before torch is loaded)
import torch  # noqa: E402
from interleaved import AGAIN, BARE, Shares  # noqa: E402
from training_loops import Installed  # noqa: E402

import tocsin  # noqa: E402
from tocsin.adapters.torch.ledger import adapter as ledger  # noqa: E402
from tocsin.adapters.torch.movement import movement, precision  # noqa: E402

GRID = 10
PACE = 0.5  # seconds between two looks of the sending thread, which is asked for one at the end of each block


def tens_of(loop):
    """How many tens of steps a block has."""
    bare = Bare(loop)
    bare.block(GRID)
    begin = time.perf_counter()
    bare.block(GRID)
    return max(1, round(PACE / (time.perf_counter() - begin)))


class Bare:
    """The loop as it is."""

    def __init__(self, loop):
        self.loop = loop

    def block(self, steps=GRID):
        for step in range(steps):
            self.step(step)

    def step(self, step):
        self.loop.optimizer.zero_grad()
        loss = self.loop.loss()
        loss.backward()
        self.before(loss, step)
        self.loop.optimizer.step()
        self.after()

    def before(self, loss, step):
        pass

    def after(self):
        pass

    def close(self):
        pass


class LoopTime:
    """A clock that stands still while other kinds have their turn: parts of the hook may spend a share of the loop's time."""

    def __init__(self):
        self._elsewhere, self._left = 0.0, time.perf_counter()
        for module in (ledger, movement, precision):
            module.perf_counter = self.now

    def now(self):
        return time.perf_counter() - self._elsewhere

    def enter(self):
        self._elsewhere += time.perf_counter() - self._left

    def leave(self):
        self._left = time.perf_counter()


class Tocsin(Bare):
    """Watched only while a block of its own runs."""

    def __init__(self, loop, out, every):
        super().__init__(loop)
        self.every = every
        self._time = LoopTime()
        self._time.enter()
        self.hook = tocsin.watch(loop.model, loop.optimizer, out=out, run="bench", phases=True,
                                 capture={"every": f"{every} steps", "overhead": "100%"})
        assert self.hook.enabled, self.hook.stats()
        self._data = self.hook.phase("data_wait")
        self._installed = Installed(loop)
        self._leave()

    def block(self, steps=GRID):
        self._time.enter()
        self._installed.put()
        super().block(steps)
        self._leave()

    def _leave(self):
        self._installed.take()
        self._time.leave()

    def step(self, step):
        with self._data:
            pass
        super().step(step)

    def before(self, loss, step):
        self.hook.log(loss=loss)

    def after(self):
        self.hook.should_stop()

    def close(self):
        stats = self.hook.stats()
        assert stats["effective_interval"] == self.every and stats["sampled_steps_total"] > 0, stats
        assert not sum(stats["dropped_records_total"].values()) and not stats["hook_errors_total"], stats
        self.hook.close(timeout=5)


class Empty(Bare):
    def before(self, loss, step):
        nothing()

    def after(self):
        nothing()


def nothing():
    return None


class Tensors(Bare):
    """Looks at every gradient and weight at every tenth step."""

    def before(self, loss, step):
        if step % GRID == 0:
            self.found = [self.look(tensor.detach()) for parameter in self.loop.model.parameters()
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


class Smdebug(Bare):
    """On a model of its own: it cannot be taken out again."""

    def __init__(self, loop, folder):
        super().__init__(loop)
        import smdebug.pytorch as smd
        reductions = smd.ReductionConfig(reductions=["mean", "std"], abs_reductions=["mean", "max"], norms=["l2"])
        self.hook = smd.Hook(out_dir=folder, save_config=smd.SaveConfig(save_interval=GRID),
                             reduction_config=reductions, include_collections=["weights", "gradients", "biases"])
        self.hook.register_module(loop.model)

    def before(self, loss, step):
        self.hook.record_tensor_value("loss", loss.detach())

    def close(self):
        self.hook.close()


def has_smdebug():
    try:
        logging.disable(logging.INFO)  # it says every parameter's name
        importlib.import_module("smdebug.pytorch")
        return True
    except Exception as error:  # noqa: BLE001 - whatever it lacks here
        print(f"smdebug: absent ({type(error).__name__}: {error})")
        return False


def measure(name, make, out, rounds, peers):
    """True when a target is missed."""
    loop = make()
    tens = tens_of(loop)
    missed = False
    for every, others in ((GRID, peers), (1, False)):
        kinds = {"tocsin": Tocsin(loop, os.path.join(out, f"{name}{every}") if "://" not in out else out, every)}
        if others:
            kinds.update({"empty callbacks": Empty(loop), "item(), every 10th step": Items(loop),
                          "histograms, every 10th step": Histograms(loop)})
            if peers == "smdebug":
                other = make()
                kinds["smdebug, every 10th step"] = Smdebug(other, os.path.join(out, name + "-smdebug"))
        shares = Shares({BARE: Bare(loop).block, **{kind: one.block for kind, one in kinds.items()}}, tens,
                        settle={"tocsin": kinds["tocsin"].hook.flush})
        shares.run(rounds)
        for one in kinds.values():
            one.close()
        for kind in [*kinds, AGAIN]:
            missed = say(name, kind, shares, every) or missed
    return missed


def say(loop, kind, shares, every):
    title, target = kind, None
    if kind == "tocsin":
        title = "tocsin, every step" if every == 1 else f"tocsin, every {every}th step"
        target = 0.05 if every == 1 else 0.01
    (process, low, high), (thread, _, _) = shares.process(kind), shares.thread(kind)
    missed = target is not None and process > target
    verdict = "" if target is None else f"  target <= {target:.0%}  {'miss' if missed else 'pass'}"
    print(f"{loop} {1e3 * shares.bare() / GRID:.2f} ms  {title:<28} {process:8.2%} [{low:.2%} … {high:.2%}]"
          f"  training thread {thread:7.2%}{verdict}", flush=True)
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds; for a first look")
    parser.add_argument("--loops", default="transformer,convolutional,perceptron")
    parser.add_argument("--alone", action="store_true", help="without the peers")
    parser.add_argument("--out", help="kafka://host:port; default: a temporary journal")
    parser.add_argument("--heap", choices=("kept", "shrinks"), default="kept", help="see training_loops.keep_the_heap()")
    parser.add_argument("--rounds", type=int, default=150, help="of ten steps of each kind")
    arguments = parser.parse_args()
    if arguments.heap == "kept":
        training_loops.keep_the_heap()
    missed = False
    peers = "" if arguments.alone else "smdebug" if has_smdebug() else "others"
    with tempfile.TemporaryDirectory() as directory:
        for name in arguments.loops.split(","):
            missed = measure(name, getattr(training_loops, name), arguments.out or directory,
                             30 if arguments.quick else arguments.rounds, peers) or missed
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
