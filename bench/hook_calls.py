#!/usr/bin/env python3
"""How long calls of the training hook take: at a step that captures nothing, and when what it talks to is in trouble.

Prints one line per figure and exits 1 when a target is missed:

  unsampled step    log(), before and after the update, should_stop() of a step that captures nothing, together, beside a pair of
                    empty Python callbacks timed in the same way in the same run (target <= 10 us above what timing costs)
  phase             one `with hook.phase(...)`, and what is timed unasked: forward (two hooks on the model, and the one on its output's
                    gradient laid), backward (that hook called, and the update begun); one after the other, without what PyTorch
                    itself takes to call a hook (target < 1 us); what is replaced in PyTorch for as long as the hook is open (the next
                    batch of a loader, Work.wait, torch.save), above a function that does nothing (target < 1 us); and the average
                    of gradients in a backward pass of DistributedDataParallel, by two calls out of autograd's engine (no target)
  p99 of a call     of each kind of call, in processes of their own that take turns, with a grid of ten steps: the largest ratio
                    of its 99th percentile in trouble to that of a healthy one (target <= 2):
    dead broker     nobody listens at the address of Kafka
    silent broker   somebody takes the connection and never answers
    full queue      the same as dead, with a queue of 64 KiB and no spool: records are dropped all the time
    frozen agent    the socket of the node's agent is full and nobody reads it
    stopped tocsin  the program that judges the journal stands still (SIGSTOP)

Wall time: a call that waits for somebody uses no processor. Usage: bench/hook_calls.py [--quick]
"""
import argparse
import json
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "python"), str(ROOT / "bench")]

GRID = 10
HEALTHY = "healthy"
TROUBLES = ("dead broker", "silent broker", "full queue", "frozen agent", "stopped tocsin")
CONFIG = "transport: {{journal: {journal}}}\nhttp: {{listen: '127.0.0.1:0'}}\nrules: [{{use: exploding_tensor}}, {{use: vanishing_gradient}}]\n"


# ---- in a process of its own: a loop whose hook calls are timed one by one


class Calls:
    """A hook whose calls in a tiny loop are timed, by name and whether the step is sampled."""

    def __init__(self, out, every, steps):
        import training_loops

        import tocsin

        self.loop = training_loops.perceptron(16, 8)
        self.hook = tocsin.watch(self.loop.model, self.loop.optimizer, out=out, run="bench",
                                 capture={"every": f"{every} steps", "overhead": "100%"})
        assert self.hook.enabled, self.hook.stats()
        self.data = self.hook.phase("data_wait")
        self.spent = {}
        self._every, self._step = every, 0
        adapter = next(one for one in self.hook.sink.adapters() if hasattr(one, "around_update"))
        timed = self._timed
        self.before, self.after = map(timed, ("before", "after"), adapter.around_update())
        self.passes = [next(iter(hooks.values())) for hooks in (self.loop.model._forward_pre_hooks, self.loop.model._forward_hooks)]
        training_loops.Installed(self.loop).take()  # they are called by hand, between clocks
        self.log, self.stop = timed("log", self.hook.log), timed("should_stop", self.hook.should_stop)
        self.phase = timed("phase", self._phase)
        self.empty = timed("empty", nothing)
        self.run(300)
        self.spent.clear()
        self.run(steps)

    def _phase(self):
        with self.data:
            pass

    def _timed(self, name, function):
        clock = time.perf_counter_ns

        def wrapper(*args, **kwargs):
            begin = clock()
            answer = function(*args, **kwargs)
            took = clock() - begin
            self.spent.setdefault((name, self._step % self._every == 0), []).append(took)
            return answer

        return wrapper

    def run(self, steps):
        optimizer, loss_of = self.loop.optimizer, self.loop.loss
        for _ in range(steps):
            self.phase()
            optimizer.zero_grad()
            loss = loss_of()
            loss.backward()
            self.log(loss=loss)
            self.before(None)
            optimizer.step()
            self.after()
            self.stop()
            self.empty()
            self._step += 1

    def quantile(self, name, sampled, share):
        times = sorted(self.spent[name, sampled])
        return times[int(share * (len(times) - 1))] / 1e3


def nothing():
    return None


def nothing_of(_):
    return None


def child(scenario, out, steps):
    """Prints the 99th percentiles as JSON, in microseconds, and what shows that the trouble was there."""
    if scenario == "full queue":
        from tocsin.hook import hook as module

        options_of = module.client_options

        def small(*args, **kwargs):
            options = options_of(*args, **kwargs)
            options.queue_bytes = 64 * 1024
            return options

        module.client_options = small
    calls = Calls(out, GRID, steps)
    stats = calls.hook.stats()
    print(json.dumps({"p99": {f"{name} {'sampled' if sampled else 'unsampled'}": calls.quantile(name, sampled, 0.99)
                              for name, sampled in calls.spent if name != "empty"},
                      "sent": stats["sent_records_total"], "dropped": sum(stats["dropped_records_total"].values())}))
    os._exit(0)  # nothing here is to be delivered


# ---- the troubles, around such a process


class Agent:
    """A node's agent that does not read what it is told: its socket is full."""

    def __init__(self):
        self._sockets = []
        for number in range(8):
            address = f"\0tocsin-agent/{number}"
            one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                one.bind(address)
            except OSError:
                one.close()  # a real one listens
                continue
            other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            other.setblocking(False)
            try:
                while True:
                    other.sendto(b"x", address)
            except BlockingIOError:
                self._sockets += [one, other]

    def close(self):
        for one in self._sockets:
            one.close()


class SilentBroker:
    def __init__(self):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._taken = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        try:
            while True:
                self._taken.append(self._listener.accept()[0])
        except OSError:
            pass

    def close(self):
        self._listener.close()
        for one in self._taken:
            one.close()


class Stopped:
    """`tocsin up` on the journal, which is stopped as soon as it is ready."""

    def __init__(self, folder, journal):
        from tests.support.program import Server

        config = folder / "tocsin.yaml"
        config.write_text(CONFIG.format(journal=journal))
        self._server = Server(config)
        self._server.wait_for("ready")

    def stop(self):
        self._server.process.send_signal(signal.SIGSTOP)

    def close(self):
        self._server.process.send_signal(signal.SIGCONT)
        self._server.stop()


def unused_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def run(scenario, steps):
    """{call: p99 in microseconds} of one process."""
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        out, held = str(folder / "journal"), []
        environment = {**os.environ, "TOCSIN_QUIET": "1", "TOCSIN_SPOOL": "off" if scenario == "full queue" else str(folder / "spool")}
        if scenario in ("dead broker", "full queue"):
            out = f"kafka://127.0.0.1:{unused_port()}"
        elif scenario == "silent broker":
            held.append(SilentBroker())
            out = f"kafka://127.0.0.1:{held[0].port}"
        elif scenario == "frozen agent":
            held.append(Agent())
        else:
            held.append(Stopped(folder, out))
            if scenario == "stopped tocsin":
                held[0].stop()
        try:
            done = subprocess.run([sys.executable, __file__, "--child", scenario, out, str(steps)], env=environment, check=True,
                                  stdout=subprocess.PIPE, timeout=120)
        finally:
            for one in held:
                one.close()
        found = json.loads(done.stdout)
        there = {"dead broker": found["sent"] == 0, "silent broker": found["sent"] == 0, "full queue": found["dropped"] > 0}
        assert there.get(scenario, found["sent"] > 0), (scenario, found)
        return found["p99"]


def in_trouble(rounds, steps):
    """True when a target is missed."""
    figures = {scenario: [] for scenario in (HEALTHY, *TROUBLES)}
    for _ in range(rounds):
        for scenario, found in figures.items():
            found.append(run(scenario, steps))
    middle = {scenario: {call: statistics.median(one[call] for one in found) for call in found[0]}
              for scenario, found in figures.items()}
    healthy = middle.pop(HEALTHY)
    print("p99 of a call, healthy: " + ", ".join(f"{call} {value:.1f} us" for call, value in sorted(healthy.items())))
    missed = False
    for scenario, calls in middle.items():
        ratio, call = max((value / healthy[call], call) for call, value in calls.items())
        missed = missed or ratio > 2
        print(f"p99 of a call, {scenario:<15} ratio {ratio:5.2f}  of {call}, {calls[call]:.1f} us  target <= 2  "
              f"{'miss' if ratio > 2 else 'pass'}", flush=True)
    return missed


def unsampled(steps):
    """True when a target is missed."""
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        calls = Calls(os.path.join(folder, "journal"), 10**9, steps)
        empty = calls.quantile("empty", False, 0.5)
        parts = {name: calls.quantile(name, False, 0.5) - empty for name in ("log", "before", "after", "should_stop", "phase")}
        step = sum(value for name, value in parts.items() if name != "phase")
        missed = step > 10
        print(f"unsampled step {step:.2f} us ({', '.join(f'{name} {value:.2f}' for name, value in parts.items() if name != 'phase')})"
              f"  empty callback {empty:.2f} us, taken off each  target <= 10 us  {'miss' if missed else 'pass'}", flush=True)
        phase = calls.data
        begin = time.perf_counter_ns()
        for _ in range(20000):
            with phase:
                pass
        each = (time.perf_counter_ns() - begin) / 20000 / 1e3
        missed = missed or each >= 1
        print(f"phase {each:.2f} us one after the other, {parts['phase']:.2f} us in the loop  target < 1 us  "
              f"{'miss' if each >= 1 else 'pass'}", flush=True)
        for name, each in passes(calls):
            missed = missed or each >= 1
            print(f"phase {name} {each:.2f} us one after the other  target < 1 us  {'miss' if each >= 1 else 'pass'}", flush=True)
        for name, each in waits(calls):
            missed = missed or each >= 1
            print(f"phase {name} {each:.2f} us one after the other  target < 1 us  {'miss' if each >= 1 else 'pass'}", flush=True)
        print(f"phase communication of a backward pass that averages gradients {reduces(calls):.2f} us", flush=True)
        calls.hook.close(timeout=5)
    return missed


def passes(calls):
    """(phase, microseconds) of those that the hooks on the model take: the median of batches."""
    import torch

    model, tell_held = calls.loop.model, calls.hook._client.tell_held
    begin, end = calls.passes
    timed = begin._passes
    begun, ended = next(iter(timed._hooks.values())), timed.begin_update
    start, clock = torch.ones(2, requires_grad=True), time.perf_counter_ns
    forward, backward = [], []
    for _ in range(400):
        outputs = [start * 1 for _ in range(10)]
        at = clock()
        for output in outputs:
            begin(model, ())
            end(model, (), output)
        forward.append(clock() - at)
        tell_held()
        at = clock()
        for _ in outputs:
            begun(None)
            ended()
        backward.append(clock() - at)
        tell_held()
    return [(name, statistics.median(all_of) / 10 / 1e3) for name, all_of in (("forward", forward), ("backward", backward))]


def waits(calls):
    """(phase, microseconds) of what is replaced in PyTorch, above a function that does nothing: the median of batches."""
    from tocsin.adapters.torch.surroundings.waits import PLACES, Waits, _Timed

    (waits_of,) = (one for one in calls.hook.sink.adapters() if isinstance(one, Waits))
    found, clock = [], time.perf_counter_ns
    for phase in PLACES:
        timed, took = _Timed(waits_of, calls.hook.sink.phases.of(phase)).around(nothing_of), {True: [], False: []}
        for number in range(800):
            function = timed if number % 2 else nothing_of
            at = clock()
            for _ in range(10):
                function(None)
            took[number % 2 == 1].append(clock() - at)
            calls.hook._client.tell_held()
        found.append((phase, (statistics.median(took[True]) - statistics.median(took[False])) / 10 / 1e3))
    return found


def reduces(calls):
    """Microseconds in a backward pass, above one whose hook does nothing: the median."""
    import torch

    from tocsin.adapters.torch.models.reduces import Reduces

    class Averaging:
        require_backward_grad_sync = True

    model = Averaging()
    ours, start, clock, took = Reduces(calls.hook.sink, model), torch.ones(2, requires_grad=True), time.perf_counter_ns, {True: [], False: []}
    for number in range(4000):
        loss = (start * 1).sum()
        loss.register_hook((lambda _: ours.begin()) if number % 2 else nothing_of)
        at = clock()
        loss.backward()
        took[number % 2 == 1].append(clock() - at)
        if number % 16 == 15:
            calls.hook._client.tell_held()
    return (statistics.median(took[True]) - statistics.median(took[False])) / 1e3


def main():
    if sys.argv[1:2] == ["--child"]:
        return child(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds; for a first look")
    arguments = parser.parse_args()
    missed = unsampled(4000 if arguments.quick else 20000)
    missed = in_trouble(1 if arguments.quick else 5, 2000 if arguments.quick else 3000) or missed
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
