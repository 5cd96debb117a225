#!/usr/bin/env python3
"""The router with very many open issues, and with many new ones while many are open.

  bench/peers/scale.py [--issues 1000000] [--open 10000] [--rate 1000] [--seconds 30] [--only open|rate]

open: ISSUES issues in groups of 100 are told. Memory of the whole process, beside 2 GiB; then it is
ended and started, and the time until it knows of all of them again, beside 30 s.

rate: while OPEN groups are open, RATE further issues a second come, ten to a group, in portions of a
tenth of a second. Counted is the time from the event's own clock, read before it is appended, until
the request is at the receiver, less group_wait (1 s); its 99th percentile, beside 250 ms. The
receiver is this program, and runs on the same processors.

The router is the program itself on the journal, as in run.py, without the store of the page. Prints
`name  value unit  ratio to the target  target  pass|miss`; exit code 1: a target was missed; 2: it
did not work."""
import argparse, datetime, os, pathlib, shutil, subprocess, sys, tempfile, time

import run as peers

MEMBERS = 100  # of a group


class Scaled(peers.Tocsin):
    """Tells when each issue arrived that it was the first to be told of."""

    name = "tocsin"

    def __init__(self, args, folder):
        super().__init__(args, folder)
        self.late = []
        self.watched = False
        self.receiver = peers.Receiver(self.note)

    def note(self, body):
        now = time.time()
        if self.watched:
            for one in body["data"]["issues"]:
                began = datetime.datetime.fromisoformat(one["starts_at"][:26].rstrip("Z") + "+00:00")
                self.late.append(now - began.timestamp() - self.args.wait)
        return self.firing_in(body)

    def publish(self, members, first, last):
        subprocess.run([peers.ROOT / "build/release/bench/peers_feed", self.folder / "journal", str(members), "0",
                        str(first), str(last)], check=True)

    def read(self, first, last, members):
        """In portions of at most 50 000, each once the one before is read."""
        for begin in range(first, last, 50_000):
            end = min(begin + 50_000, last)
            self.publish(members, begin, end)
            self.until("reading", lambda: self.known() >= end, 600)


def line(name, value, unit, goal, text):
    print(f"{name}  {text} {unit}  {value / goal:.2f}  <= {goal:g}  {'pass' if value <= goal else 'miss'}", flush=True)
    return value > goal


def many_open(peer, args):
    peer.start()
    peer.until("the start", peer.ready)
    peer.settled()
    before, used = peers.memory(peer.process.pid), peers.cpu(peer.process.pid)
    peer.read(0, args.issues, MEMBERS)
    peer.until("telling", lambda: peer.receiver.told >= args.issues, 600)
    peer.settled()
    memory = peers.memory(peer.process.pid)
    print(f"open: CPU until all are told  {peers.cpu(peer.process.pid) - used:.4g} CPU-s")
    print(f"open: memory per issue  {(memory - before) / args.issues / 1e3:.3g} KB")
    missed = line("open: memory of the process", memory / 2**30, "GiB", 2, f"{memory / 2**30:.3g}")
    peer.stop()
    begin = time.monotonic()
    peer.start()
    peer.until("being whole", lambda: peer.known() == args.issues, 600)
    took = time.monotonic() - begin
    used = peers.cpu(peer.process.pid)
    print(f"open: CPU of the start  {used:.4g} CPU-s, {used / args.issues * 1e6:.3g} us an issue; "
          f"memory {peers.memory(peer.process.pid) / args.issues / 1e3:.3g} KB an issue")
    return line("open: whole after a restart", took, "s", 30, f"{took:.3g}") or missed


def many_new(peer, args):
    peer.start()
    peer.until("the start", peer.ready)
    peer.read(0, args.open, 1)
    peer.until("telling", lambda: peer.receiver.told >= args.open, 600)
    peer.settled()
    # Groups of ten behind those that are open: their numbers go on.
    first = 10 * args.open
    portion, peer.watched = args.rate // 10, True
    begin, used = time.monotonic(), peers.cpu(peer.process.pid)
    for turn in range(10 * args.seconds):
        time.sleep(max(0.0, begin + turn / 10 - time.monotonic()))
        peer.publish(10, first + turn * portion, first + (turn + 1) * portion)
    took = time.monotonic() - begin
    count = 10 * args.seconds * portion
    peer.until("telling", lambda: peer.receiver.told >= args.open + count, 600)
    late = sorted(peer.late)
    print(f"rate: issues a second  {count / took:.4g}")
    print(f"rate: CPU per issue  {(peers.cpu(peer.process.pid) - used) / count * 1e6:.4g} us")
    print(f"rate: median beyond group_wait  {late[len(late) // 2] * 1e3:.4g} ms")
    p99 = late[len(late) * 99 // 100] * 1e3
    return line("rate: p99 beyond group_wait", p99, "ms", 250, f"{p99:.4g}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--issues", type=int, default=1_000_000)
    parser.add_argument("--open", type=int, default=10_000)
    parser.add_argument("--rate", type=int, default=1_000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--only", choices=["open", "rate"])
    args = parser.parse_args()
    print("load of the machine before  " + "  ".join(f"{one:.1f}" for one in os.getloadavg()))
    missed = False
    for name, wait, measure in (("rate", 1, many_new), ("open", 30, many_open)):
        if args.only not in (None, name):
            continue
        args.wait = wait
        folder = pathlib.Path(tempfile.mkdtemp(prefix="scale-"))
        peer = Scaled(args, folder)
        try:
            missed = measure(peer, args) or missed
        finally:
            if peer.process is not None and peer.process.poll() is None:
                peer.process.kill()
                peer.process.wait()
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
