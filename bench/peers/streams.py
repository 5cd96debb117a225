#!/usr/bin/env python3
"""Our engine beside the same rule as a Kafka Streams program, on one broker, in turns on this machine.

  bench/peers/streams.py [--steps 4000] [--single-steps 500] [--python-steps 160] [--rounds 5] [--only framed,single,python]
                                                          KAFKA_BOOTSTRAP_SERVERS, or a broker of its own

The rule: the mean magnitude of a gradient, averaged over its last ten steps, is below 1e-4. Ours is the
program `tocsin evaluate` with the settings that ship and the rule in YAML; Kafka Streams is
bench/peers/streams/WeakGradients.java, Quix Streams (PyPI, pinned in bench/peers/quix/requirements.txt, put into
the user's cache) bench/peers/quix/weak_gradients.py, which gets fewer steps. Each program gets topics of its own with the same records of eight
jobs with 200 gradients: framed (100 gradients to a record) and single (one). All must tell the same issues,
or nothing is printed. CPU is the process's, user and system, from its start until its last issue is
committed, less what the same program needs for a topic without records.

Prints rows per CPU-second, and ours as a multiple, of the readings of one round each, the median of the rounds with
the least and the most of them: `name  value unit  ratio  target  pass|miss`; exit code 1: a target was missed;
2: it did not work."""
import argparse, json, os, pathlib, signal, statistics, subprocess, sys, tempfile, time, uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(ROOT / "tools" / "lib"), str(ROOT / "python")]
import kafka_cluster, maven  # noqa: E402
from tocsin import wire  # noqa: E402

BUILD = ROOT / "build" / "release"
TICK = os.sysconf("SC_CLK_TCK")
THREADS = max(1, (os.cpu_count() or 2) - 1)  # what our engine takes by default
RULE = {"name": "weak", "select": 'tensor(".*"){role="gradient"}', "window": "last 10 steps", "when": "mean(abs_mean) < 1e-4"}
PER_RUN, RUNS, TENSORS = 3, 8, 200
STARTS = 3  # readings of a program without records: a start is a third of what our 6.4 million rows take
# Of each kind the least multiple of exactly-once Kafka Streams that we want to reach.
TARGETS = {"framed": 20, "single": 4}


def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def fail(text):
    print(f"streams: {text}", file=sys.stderr)
    sys.exit(2)


class Ours:
    def __init__(self, delivery):
        self.name, self.delivery, self.rule, self.per_run = f"tocsin, {delivery}", delivery, RULE, PER_RUN

    def command(self, broker, prefix, folder):
        path = folder / "tocsin.yaml"
        path.write_text(json.dumps({"transport": {"kafka": {"bootstrap.servers": broker}}, "topics": {"prefix": prefix, "partitions": 4},
                                    "http": {"listen": "127.0.0.1:0"}, "engine": {"delivery": self.delivery}, "rules": [self.rule]}))
        return [BUILD / "app" / "tocsin", "evaluate", "--config.file", path, "--log.format", "json"]

    @staticmethod
    def issues(kind, body):
        if "ce_type=dev.tocsin.issue.v1" not in kind.split(","):
            return
        issue = json.loads(body)
        if issue["status"] == "firing":
            yield issue["run"]["uid"], wire.name_hash(issue["labels"]["tensor"]), issue["step"]


class Floor(Ours):
    """Our process with a rule for the eight tensors that become weak last: everything but the evaluation of the others."""

    def __init__(self, delivery):
        super().__init__(delivery)
        self.name, self.per_run = f"tocsin, {delivery}, 1 tensor in 200", 1
        self.rule = {**RULE, "select": 'tensor("^gradient/layer15[0-7][.]weight$"){role="gradient"}'}


class Streams:
    per_run = PER_RUN

    def __init__(self, store, guarantee, classes):
        self.name, self.arguments, self.classes = f"Kafka Streams, {store}, {guarantee}", (store, guarantee), classes

    def command(self, broker, prefix, folder):
        return ["java", "-Xms512m", "-Xmx1g", "-cp", self.classes, "WeakGradients", broker, prefix, *self.arguments, folder / "state", str(THREADS)]

    @staticmethod
    def issues(_, body):
        issue = json.loads(body)
        yield issue["run"], int(issue["tensor"]), issue["step"]


class Quix:
    per_run = PER_RUN
    issues = staticmethod(Streams.issues)

    def __init__(self, guarantee, python):
        self.name, self.guarantee, self.python = f"Quix Streams, {guarantee}", guarantee, python

    def command(self, broker, prefix, folder):
        return [self.python, ROOT / "bench" / "peers" / "quix" / "weak_gradients.py", broker, prefix, self.guarantee, folder / "state"]


def quix_python():
    """An interpreter that has Quix Streams; None where it cannot be had here, which is said."""
    wanted = ROOT / "bench" / "peers" / "quix" / "requirements.txt"
    home = kafka_cluster.cache().parent / "quix"
    python, stamp = home / "bin" / "python", home / "installed"
    if stamp.exists() and stamp.read_text() == wanted.read_text():
        return python
    for step in (["/usr/bin/python3", "-m", "venv", str(home)],
                 [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(wanted)]):
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"python: Quix Streams is absent: `{' '.join(step)}`: {(done.stderr or done.stdout).strip().splitlines()[-1:]}", flush=True)
            return None
    stamp.write_text(wanted.read_text())
    return python


def committed(broker, prefix, program):
    """The issues that a reader of committed records sees: {(run, tensor, step)}."""
    text = subprocess.run(["kcat", "-C", "-b", broker, "-t", f"{prefix}.issues.v1", "-e", "-q", "-X", "isolation.level=read_committed",
                           "-f", "%h\t%s\n"], capture_output=True, text=True, check=True, timeout=120).stdout
    return {one for line in text.splitlines() for one in program.issues(*line.split("\t", 1))}


def run(program, broker, steps, rows, limit=600):
    """CPU seconds of the program over so many steps of every job, and what it told."""
    prefix = f"peers-{uuid.uuid4().hex[:10]}"
    fed = subprocess.run([BUILD / "bench" / "streams_feed", broker, prefix, str(steps), str(rows)], check=False, capture_output=True, text=True)
    if fed.returncode:
        fail(fed.stderr)
    expected = RUNS * program.per_run if steps else 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen([str(part) for part in program.command(broker, prefix, folder)], stdout=log, stderr=log)
        try:
            begin = time.monotonic()
            while "ready" not in (folder / "log").read_text(errors="replace") or len(told := committed(broker, prefix, program)) < expected:
                if process.poll() is not None or time.monotonic() - begin > limit:
                    fail(f"{program.name}: ended with {process.poll()}, or not done within {limit} s\n"
                         + (folder / "log").read_text(errors="replace")[-3000:])
                time.sleep(0.3)
            if not steps:
                time.sleep(1)  # what starting up still does
            return cpu(process.pid), told
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def compiled():
    """A class path with our Streams program on it."""
    kafka_cluster.prepare()
    jars = [kafka_cluster.cache() / "jars" / f"{artifact}-{version}.jar" for _, artifact, version, _ in kafka_cluster.entries()]
    jars += maven.fetch_all(maven.read_lock(ROOT / "bench" / "peers" / "streams.lock"), kafka_cluster.cache() / "streams")
    classes = BUILD / "bench" / "streams-classes"
    path = ":".join(map(str, [classes, *jars]))
    subprocess.run(["javac", "-d", str(classes), "-cp", path, str(ROOT / "bench" / "peers" / "streams" / "WeakGradients.java")], check=True)
    (classes / "log4j2.properties").write_text("rootLogger.level = error\n")
    return path


def in_turns(kind, programs, broker, steps, rows, rounds):
    """Rows per CPU-second of each program, round by round, and its CPU seconds without records; the issues are the same of all."""
    starts = [[run(program, broker, 0, rows)[0] for program in programs] for _ in range(STARTS)]
    idle = {program.name: statistics.median(one) for program, one in zip(programs, zip(*starts))}
    costs, seen = {program.name: [] for program in programs}, {}
    for _ in range(rounds):  # in turns, so that a drifting machine hits all alike
        for program in programs:
            used, told = run(program, broker, steps, rows)
            costs[program.name].append(used - idle[program.name])
            seen[program.name] = told
    first = seen[programs[0].name]
    for program in programs:
        name, told = program.name, seen[program.name]
        if told != first and not (program.per_run < PER_RUN and told < first):
            fail(f"{kind}: {name} told {sorted(told - first)} that {programs[0].name} did not, and lacks {sorted(first - told)}")
    rates = {name: [steps * RUNS * TENSORS / max(one, 1 / TICK) for one in used] for name, used in costs.items()}
    print(f"{kind}: {steps * RUNS * TENSORS} rows, {rows} to a record; {len(first)} issues, the same of all")
    return rates, idle


def multiples(ours, peer):
    """Of the readings of one round each: the machine may have been slow in all of a round."""
    return sorted(mine / its for mine, its in zip(ours, peer))


def show(kind, name, rates, start, ours=None, target=None):
    """One line; whether its target is met, if it has one. `ours`: our rates in the same rounds."""
    line = f"{kind}: {name:<42} {statistics.median(rates) / 1e6:9.3f} M rows/CPU-s  start {start:5.1f} s"
    met = True
    if ours is not None:
        times = multiples(ours, rates)
        met = target is None or statistics.median(times) >= target
        line += f"  ours {statistics.median(times):6.1f} times ({times[0]:.1f} to {times[-1]:.1f})"
    if target is not None:
        line += f"  target >= {target}  {'pass' if met else 'miss'}"
    print(line, flush=True)
    return met


def compare(kind, programs, broker, steps, rows, rounds):
    """Prints the table of one kind of records: our rate, and whether its target is met."""
    rates, idle = in_turns(kind, programs, broker, steps, rows, rounds)
    ours, met = rates[programs[0].name], True
    for name, rate in rates.items():
        peer = name.startswith("Kafka Streams")
        judged = "exactly_once" in name and "rocksdb" in name
        met &= show(kind, name, rate, idle[name], ours if peer else None, TARGETS[kind] if peer and judged else None)
        if peer and judged:
            most = statistics.median(multiples(rates[programs[2].name], rate))
            print(f"{kind}: {'at most, were evaluation free':<42} {most:9.1f} times Kafka Streams")
    return ours, met


def compare_few(ours, programs, broker, steps, rows, rounds):
    """The same for programs that would take an hour over all records. Our own rate is that of the many."""
    rates, idle = in_turns("python", programs, broker, steps, rows, rounds)
    for program in programs[1:]:
        show("python", program.name, rates[program.name], idle[program.name], [statistics.median(ours)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--single-steps", type=int, default=500)
    parser.add_argument("--python-steps", type=int, default=160)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="framed,single,python")
    args = parser.parse_args()
    kinds = args.only.split(",")
    classes = compiled()
    programs = [Ours("exactly_once"), Ours("at_least_once"), Floor("exactly_once"), Streams("rocksdb", "exactly_once_v2", classes),
                Streams("memory", "exactly_once_v2", classes), Streams("rocksdb", "at_least_once", classes), Streams("bare", "at_least_once", classes)]
    cluster, broker = None, os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if not broker:
        cluster = kafka_cluster.Cluster(f"peers-{os.getpid()}")
        cluster.create(1, "bench", {})
        broker = cluster.bootstrap()
    try:
        met = True
        if "framed" in kinds or "python" in kinds:
            ours, met = compare("framed", programs if "framed" in kinds else programs[:3], broker, args.steps, 100, args.rounds)
        python = quix_python() if "python" in kinds else None
        if python:
            few = [programs[0], Quix("exactly-once", python), Quix("at-least-once", python)]
            compare_few(ours, few, broker, args.python_steps, 100, 1)
        if "single" in kinds:
            met &= compare("single", programs, broker, args.single_steps, 1, args.rounds)[1]
    finally:
        if cluster:
            cluster.stop()
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
