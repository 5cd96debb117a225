#!/usr/bin/env python3
"""What the training hook costs: interleaved blocks with and without it, in one run, on one thread.

Prints one line per figure, `name value unit ratio baseline target pass|miss`, and exits 1 when one is missed:

  hook_transformer_share  extra time per step with the hook, over the step without it (target < 1 %)
  hook_mlp_share          the same for a multi-layer perceptron
  hook_tiny_step          microseconds that the hook adds to a step of a tiny model (no target: a share means
                          nothing below 5 ms steps)
  hook_call_p99           99th percentile of the time inside hook calls on a step that captures nothing (< 20 us)

Both loops capture every gradient and every weight (with `delta`) at every 10th step, and the loss at every step.
Blocks are short and alternate, the order is swapped every time, and the median over pairs is reported: load of the
machine that changes more slowly than a pair does not count for either side.

Usage: bench/hook_bench.py [--quick] [--out kafka://host:port]
"""
import argparse
import os
import statistics
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "python"))

import torch  # noqa: E402

import tocsin  # noqa: E402

missed = False


def report(name, value, unit, ratio=None, baseline="-", target="-", passed=None):
    global missed
    missed = missed or passed is False
    verdict = "-" if passed is None else "pass" if passed else "miss"
    print(f"{name} {value:.4g} {unit} {'-' if ratio is None else f'{ratio:.5f}'} {baseline} {target} {verdict}", flush=True)


class Transformer(torch.nn.Module):
    """Two encoder layers over an embedding: 28 tensors, about half a million parameters."""

    def __init__(self, width=128, heads=4, vocabulary=512):
        super().__init__()
        self.embed = torch.nn.Embedding(vocabulary, width)
        layer = torch.nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)
        self.head = torch.nn.Linear(width, vocabulary)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)))


def transformer():
    model = Transformer()
    tokens = torch.randint(0, 512, (8, 32))

    def loss():
        return torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())

    return model, torch.optim.Adam(model.parameters(), lr=1e-4), loss


def perceptron(width=512, batch=256):
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(),
                                torch.nn.Linear(width, 10))
    x, y = torch.randn(batch, 64), torch.randint(0, 10, (batch,))

    def loss():
        return torch.nn.functional.cross_entropy(model(x), y)

    return model, torch.optim.SGD(model.parameters(), lr=1e-3), loss


def block(optimizer, loss, steps, hook):
    """Seconds per step of a block; with a hook the loop calls what a user's loop calls."""
    begin = time.perf_counter()
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        if hook is not None:
            hook.log(loss=value)
        optimizer.step()
        if hook is not None and hook.should_stop():
            break
    return (time.perf_counter() - begin) / steps


def pairs(make, steps, repeats, out):
    """(median step without, median extra time with the hook): each pair is neighbours in time."""
    torch.manual_seed(0)
    plain, hooked = make(), make()  # same work on two models; only one of them is watched
    for _, optimizer, loss in (plain, hooked):
        block(optimizer, loss, steps, None)
    hook = tocsin.watch(hooked[0], hooked[1], out=out, run="bench", capture={"overhead": "100%"})
    assert hook.enabled, hook.stats()
    block(hooked[1], hooked[2], steps, hook)
    without, extra = [], []
    for i in range(repeats):
        if i % 2 == 0:
            off = block(plain[1], plain[2], steps, None)
            on = block(hooked[1], hooked[2], steps, hook)
        else:
            on = block(hooked[1], hooked[2], steps, hook)
            off = block(plain[1], plain[2], steps, None)
        without.append(off)
        extra.append(on - off)
    stats = hook.stats()
    assert stats["effective_interval"] == 10 and stats["sampled_steps_total"] > 0, stats
    assert sum(stats["dropped_records_total"].values()) == 0, stats
    hook.close(timeout=5)
    return statistics.median(without), statistics.median(extra), stats


def share(name, make, steps, repeats, out):
    base, extra, _ = pairs(make, steps, repeats, out)
    ratio = extra / base
    report(name, 1e3 * base, "ms", ratio, "loop_without_hook", "<0.01", ratio < 0.01)
    if base < 0.005:
        print(f"# {name}: a step takes less than 5 ms here; the share is no measure on this machine", file=sys.stderr)


def calls(out, steps):
    """99th percentile of the time inside hook calls on steps that capture nothing."""
    model, optimizer, loss = perceptron(16, 8)
    hook = tocsin.watch(model, optimizer, out=out, run="bench", capture={"every": "1000000 steps"})
    adapter = hook._adapters[0]
    spent = []
    clock = time.perf_counter_ns
    inside = [0]

    def timed(function):
        def wrapper(*args, **kwargs):
            begin = clock()
            answer = function(*args, **kwargs)
            inside[0] += clock() - begin
            return answer
        return wrapper

    adapter._before, adapter._after = timed(adapter._before), timed(adapter._after)
    log, should_stop = timed(hook.log), timed(hook.should_stop)
    for step in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        inside[0] = 0
        log(loss=value)
        optimizer.step()
        should_stop()
        if step >= 100:
            spent.append(inside[0])
    hook.close(timeout=5)
    spent.sort()
    report("hook_call_median", spent[len(spent) // 2] / 1e3, "us")
    p99 = spent[int(len(spent) * 0.99)] / 1e3
    report("hook_call_p99", p99, "us", None, "-", "<20us", p99 < 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer blocks; for a first look")
    parser.add_argument("--out", help="kafka://host:port or a directory; default: a temporary journal")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    repeats = 10 if arguments.quick else 40
    with tempfile.TemporaryDirectory() as directory:
        out = arguments.out or os.path.join(directory, "journal")
        share("hook_transformer_share", transformer, 20, repeats, out)
        share("hook_mlp_share", perceptron, 20, repeats, out)
        base, extra, _ = pairs(lambda: perceptron(16, 8), 200, repeats, out)
        report("hook_tiny_step", 1e6 * extra, "us", extra / base, "loop_without_hook")
        calls(out, 2000 if arguments.quick else 20000)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
