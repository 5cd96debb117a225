#!/usr/bin/env python3
"""What is deployed, `tocsin evaluate` with its group, commits, state and output, beside the bare loop of the same rule.

  bench/deployed.py [--only framed,single] [--steps 16000] [--single-steps 1600] [--rounds 3]
                                                          KAFKA_BOOTSTRAP_SERVERS, or a broker of its own

The records and the rule are those of bench/peers/streams.py. The process reads half of them, writes a snapshot of what it
then holds, and reads the other half; while those are written to the broker it is stopped (SIGSTOP), so that it finds them all.
CPU is the process's, user and system, from its start (or its continuation) until the last issue is committed, less what it
needs for a topic without records. Once with each guarantee, commits every 100 ms, in turns with the loop:
`pipeline_kafka --read`, our source, decoder and engine without anything around them.

Prints `name  value unit  target  pass|miss`; exit code 1: a target was missed; 2: it did not work."""
import argparse, json, os, pathlib, signal, statistics, subprocess, sys, tempfile, time, uuid

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
import streams  # noqa: E402

LOOP = streams.BUILD / "bench" / "pipeline_kafka"
SNAPSHOT = 4  # seconds between snapshots
COMMIT = "100ms"
LOOP_TARGET, GUARANTEE_TARGET = 0.9, 0.95
DELIVERIES = ("exactly_once", "at_least_once")


class Deployed(streams.Ours):
    """As it ships but for how often it commits and writes snapshots."""

    def command(self, broker, prefix, folder):
        command = super().command(broker, prefix, folder)
        path = folder / "tocsin.yaml"
        settings = json.loads(path.read_text())
        settings["engine"] |= {"commit_interval": COMMIT, "snapshot_interval": f"{SNAPSHOT}s"}
        path.write_text(json.dumps(settings))
        return command


def feed(broker, prefix, steps, rows, start, end):
    done = subprocess.run([streams.BUILD / "bench" / "streams_feed", broker, prefix, str(steps), str(rows), str(start), str(end)],
                          check=False, capture_output=True, text=True)
    if done.returncode:
        streams.fail(done.stderr)


def until(process, folder, broker, prefix, program, issues, limit=120):
    begin = time.monotonic()
    while "ready" not in (folder / "log").read_text(errors="replace") or len(streams.committed(broker, prefix, program)) < issues:
        if process.poll() is not None or time.monotonic() - begin > limit:
            streams.fail(f"{program.name}: ended with {process.poll()}, or not done within {limit} s\n"
                         + (folder / "log").read_text(errors="replace")[-3000:])
        time.sleep(0.2)


def halves(program, broker, prefix, steps, rows):
    """CPU seconds of the process until it is through the first half, and for the second; the first is fed already."""
    middle = steps // 2 + 20  # two issues of each job stand before it
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen([str(part) for part in program.command(broker, prefix, folder)], stdout=log, stderr=log)
        try:
            until(process, folder, broker, prefix, program, 2 * streams.RUNS if steps else 0)
            if not steps:
                time.sleep(1)  # what starting up still does
            first = streams.cpu(process.pid)
            if not steps:
                return first, 0.0
            time.sleep(SNAPSHOT + 1)
            process.send_signal(signal.SIGSTOP)
            feed(broker, prefix, steps, rows, middle, steps)
            before = streams.cpu(process.pid)
            process.send_signal(signal.SIGCONT)
            until(process, folder, broker, prefix, program, 3 * streams.RUNS)
            return first, streams.cpu(process.pid) - before
        finally:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def loop(broker, prefix, steps, rows):
    """Rows per CPU-second of the bare loop over so many steps."""
    count = steps * streams.RUNS * streams.TENSORS
    records = count // rows + steps * streams.RUNS + streams.RUNS  # ends of steps, a dictionary of each job
    done = subprocess.run([LOOP, "--read", "declared", prefix, str(records), str(count), broker], check=True, capture_output=True, text=True)
    return count / float(done.stdout)


def shown(name, value, unit, target=None):
    met = target is None or value >= target
    print(f"{name:<64} {value:10.4g} {unit:<14}" + ("" if target is None else f" target >= {target:<6} {'pass' if met else 'miss'}"), flush=True)
    return met


def compare(kind, broker, steps, rows, rounds):
    programs = [Deployed(delivery) for delivery in DELIVERIES]
    middle = steps // 2 + 20
    rates = {"loop": []} | {(delivery, half): [] for delivery in DELIVERIES for half in (0, 1)}

    def fresh(count):
        prefix = f"deployed-{uuid.uuid4().hex[:10]}"
        feed(broker, prefix, steps if count else 0, rows, 0, count)
        return prefix

    idle = {program.delivery: halves(program, broker, fresh(0), 0, rows)[0] for program in programs}
    for _ in range(rounds):
        for program in programs:
            prefix = fresh(middle)
            rates["loop"].append(loop(broker, prefix, middle, rows))
            first, second = halves(program, broker, prefix, steps, rows)
            counts = (middle, steps - middle)
            for half, used in enumerate((first - idle[program.delivery], second)):
                rates[program.delivery, half].append(counts[half] * streams.RUNS * streams.TENSORS / used)
    rate = {key: statistics.median(values) for key, values in rates.items()}
    met = True
    shown(f"{kind}: the loop", rate["loop"] / 1e6, "M rows/CPU-s")
    for delivery in DELIVERIES:
        for half, words in enumerate(("before a snapshot", "behind it")):
            shown(f"{kind}: tocsin evaluate, {delivery}, {words}", rate[delivery, half] / 1e6, "M rows/CPU-s")
            met &= shown("  of the loop", rate[delivery, half] / rate["loop"], "ratio", LOOP_TARGET)
    exact, least = (sum(1 / rate[delivery, half] for half in (0, 1)) for delivery in DELIVERIES)
    met &= shown(f"{kind}: exactly once / at least once, commits every {COMMIT}", least / exact, "ratio", GUARANTEE_TARGET)
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="framed,single")
    parser.add_argument("--steps", type=int, default=16000)
    parser.add_argument("--single-steps", type=int, default=1600)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    cluster, broker = None, os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if not broker:
        cluster = streams.kafka_cluster.Cluster(f"deployed-{os.getpid()}")
        cluster.create(1, "bench", {})
        broker = cluster.bootstrap()
    try:
        met = True
        for kind in args.only.split(","):
            steps, rows = (args.steps, 100) if kind == "framed" else (args.single_steps, 1)
            met &= compare(kind, broker, steps, rows, args.rounds)
    finally:
        if cluster:
            cluster.stop()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
