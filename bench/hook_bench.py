#!/usr/bin/env python3
"""What the training hook costs: interleaved blocks with and without it, in one run, on one thread.

Prints one line per figure, `name value unit ratio baseline target pass|miss`, and exits 1 when one is missed:

  hook_transformer_share  extra time per step with the hook, over the step without it (target < 1 %)
  hook_mlp_share          the same for a multi-layer perceptron
  hook_tiny_step          microseconds that the hook adds to a step of a tiny model (no target: a share means
                          nothing below 5 ms steps)
  hook_call_p99           99th percentile of the time inside hook calls on a step that captures nothing (< 20 us)

Each is measured twice: by the wall clock, and, with `_cpu` in its name, by the processor time of the training thread, which
other load of the machine does not change. On a machine that is busy with other things only the second one says something
about the hook.

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
# torch.set_num_threads() says nothing to OpenBLAS (Debian's torch), whose threads spin while they wait for each other: one
# that another thread delays for a moment stops all, and the waiting counts as processor time.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

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


def perceptron(width=512, batch=1024):
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(),
                                torch.nn.Linear(width, 10))
    x, y = torch.randn(batch, 64), torch.randint(0, 10, (batch,))

    def loss():
        return torch.nn.functional.cross_entropy(model(x), y)

    return model, torch.optim.SGD(model.parameters(), lr=1e-3), loss


def clocks():
    return time.perf_counter(), time.thread_time()


def block(optimizer, loss, steps, hook):
    """(wall, processor) seconds per step of a block; with a hook the loop calls what a user's loop calls."""
    begin = clocks()
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        if hook is not None:
            hook.log(loss=value)
        optimizer.step()
        if hook is not None and hook.should_stop():
            break
    return tuple((after - before) / steps for after, before in zip(clocks(), begin))


def pairs(make, steps, repeats, out):
    """((wall without, extra with the hook), (processor …)), medians over pairs of blocks that are neighbours in time."""
    torch.manual_seed(0)
    plain, hooked = make(), make()  # same work on two models; only one of them is watched
    for _, optimizer, loss in (plain, hooked):
        block(optimizer, loss, steps, None)
    hook = tocsin.watch(hooked[0], hooked[1], out=out, run="bench", capture={"overhead": "100%"})
    assert hook.enabled, hook.stats()
    block(hooked[1], hooked[2], steps, hook)
    measured = []
    for i in range(repeats):
        if i % 2 == 0:
            off = block(plain[1], plain[2], steps, None)
            on = block(hooked[1], hooked[2], steps, hook)
        else:
            on = block(hooked[1], hooked[2], steps, hook)
            off = block(plain[1], plain[2], steps, None)
        measured.append((off, on))
    stats = hook.stats()
    assert stats["effective_interval"] == 10 and stats["sampled_steps_total"] > 0, stats
    assert sum(stats["dropped_records_total"].values()) == 0, stats
    hook.close(timeout=5)
    return [(statistics.median(off[clock] for off, _ in measured), statistics.median(on[clock] - off[clock] for off, on in measured))
            for clock in (0, 1)]


def share(name, make, steps, repeats, out):
    for suffix, (base, extra) in zip(("", "_cpu"), pairs(make, steps, repeats, out)):
        ratio = extra / base
        report(name + suffix, 1e3 * base, "ms", ratio, "loop_without_hook", "<0.01", ratio < 0.01)
        if base < 0.005:
            print(f"# {name}{suffix}: a step takes less than 5 ms here; the share is no measure", file=sys.stderr)


def tiny(out, repeats):
    for suffix, (base, extra) in zip(("", "_cpu"), pairs(lambda: perceptron(16, 8), 200, repeats, out)):
        report("hook_tiny_step" + suffix, 1e6 * extra, "us", extra / base, "loop_without_hook")


def calls(out, steps):
    """99th percentile of the time inside hook calls on steps that capture nothing."""
    model, optimizer, loss = perceptron(16, 8)
    hook = tocsin.watch(model, optimizer, out=out, run="bench", capture={"every": "1000000 steps"})
    adapter = hook.sink.adapters()[0]
    spent = {"": [], "_cpu": []}
    clock, processor = time.perf_counter_ns, time.thread_time_ns
    inside = {"": 0, "_cpu": 0}

    def timed(function, cpu):
        # One clock at a time: reading the thread's clock is a system call, which the other must not see.
        key, now = ("_cpu", processor) if cpu else ("", clock)

        def wrapper(*args, **kwargs):
            begin = now()
            answer = function(*args, **kwargs)
            inside[key] += now() - begin
            return answer
        return wrapper

    before, after = adapter.before_update, adapter.after_update
    for cpu in (False, True):
        key = "_cpu" if cpu else ""
        adapter.before_update, adapter.after_update = timed(before, cpu), timed(after, cpu)
        log, should_stop = timed(hook.log, cpu), timed(hook.should_stop, cpu)
        for step in range(steps):
            optimizer.zero_grad()
            value = loss()
            value.backward()
            inside[key] = 0
            log(loss=value)
            optimizer.step()
            should_stop()
            if step >= 100:
                spent[key].append(inside[key])
    hook.close(timeout=5)
    for key, times in spent.items():
        times.sort()
        report("hook_call_median" + key, times[len(times) // 2] / 1e3, "us")
        p99 = times[int(len(times) * 0.99)] / 1e3
        report("hook_call_p99" + key, p99, "us", None, "-", "<20us", p99 < 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer blocks; for a first look")
    parser.add_argument("--out", help="kafka://host:port or a directory; default: a temporary journal")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # the losses become tiny in a long run; that must not make steps slow
    repeats = 10 if arguments.quick else 40
    with tempfile.TemporaryDirectory() as directory:
        out = arguments.out or os.path.join(directory, "journal")
        share("hook_transformer_share", transformer, 20, repeats, out)
        share("hook_mlp_share", perceptron, 20, repeats, out)
        tiny(out, repeats)
        calls(out, 2000 if arguments.quick else 20000)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
