#!/usr/bin/env python3
"""Our engine beside the same rule as a Kafka Streams program, on one broker, in turns on this machine.

  bench/peers/streams.py [--steps 4000] [--single-steps 500] [--rounds 3]     KAFKA_BOOTSTRAP_SERVERS, or a broker of its own

The rule: the mean magnitude of a gradient, averaged over its last ten steps, is below 1e-4. Ours is the
program `tocsin evaluate` with the settings that ship and the rule in YAML; Kafka Streams is
bench/peers/streams/WeakGradients.java. Each program gets topics of its own with the same records of eight
jobs with 200 gradients: framed (100 gradients to a record) and single (one). All must tell the same issues,
or nothing is printed. CPU is the process's, user and system, from its start until its last issue is
committed, less what the same program needs for a topic without records.

Prints rows per CPU-second, and ours as a multiple: `name  value unit  ratio  target  pass|miss`; exit code
1: a target was missed; 2: it did not work."""
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
        self.name, self.delivery = f"tocsin, {delivery}", delivery

    def command(self, broker, prefix, folder):
        path = folder / "tocsin.yaml"
        path.write_text(json.dumps({"transport": {"kafka": {"bootstrap.servers": broker}}, "topics": {"prefix": prefix, "partitions": 4},
                                    "http": {"listen": "127.0.0.1:0"}, "engine": {"delivery": self.delivery}, "rules": [RULE]}))
        return [BUILD / "app" / "tocsin", "evaluate", "--config.file", path, "--log.format", "json"]

    @staticmethod
    def issues(kind, body):
        if "ce_type=dev.tocsin.issue.v1" not in kind.split(","):
            return
        issue = json.loads(body)
        if issue["status"] == "firing":
            yield issue["run"]["uid"], wire.name_hash(issue["labels"]["tensor"]), issue["step"]


class Streams:
    def __init__(self, store, guarantee, classes):
        self.name, self.arguments, self.classes = f"Kafka Streams, {store}, {guarantee}", (store, guarantee), classes

    def command(self, broker, prefix, folder):
        return ["java", "-Xms512m", "-Xmx1g", "-cp", self.classes, "WeakGradients", broker, prefix, *self.arguments, folder / "state", str(THREADS)]

    @staticmethod
    def issues(_, body):
        issue = json.loads(body)
        yield issue["run"], int(issue["tensor"]), issue["step"]


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
    expected = RUNS * PER_RUN if steps else 0
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


def compare(kind, programs, broker, steps, rows, rounds):
    """Prints the table of one kind of records; whether its target is met."""
    idle = {program.name: run(program, broker, 0, rows)[0] for program in programs}
    costs, seen = {program.name: [] for program in programs}, {}
    for _ in range(rounds):  # in turns, so that a drifting machine hits all alike
        for program in programs:
            used, told = run(program, broker, steps, rows)
            costs[program.name].append(used - idle[program.name])
            seen[program.name] = told
    first = seen[programs[0].name]
    for name, told in seen.items():
        if told != first:
            fail(f"{kind}: {name} told {sorted(told - first)} that {programs[0].name} did not, and lacks {sorted(first - told)}")
    rates = {name: steps * RUNS * TENSORS / statistics.median(used) for name, used in costs.items()}
    ours = rates[programs[0].name]
    met = True
    print(f"{kind}: {steps * RUNS * TENSORS} rows, {rows} to a record; {len(first)} issues, the same of all")
    for name, rate in rates.items():
        line = f"{kind}: {name:<42} {rate / 1e6:9.3f} M rows/CPU-s  start {idle[name]:5.1f} s"
        if name.startswith("Kafka Streams"):
            line += f"  ours {ours / rate:6.1f} times"
            if "exactly_once" in name and "rocksdb" in name:
                met = ours / rate >= TARGETS[kind]
                line += f"  target >= {TARGETS[kind]}  {'pass' if met else 'miss'}"
        print(line, flush=True)
    return met


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--single-steps", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    classes = compiled()
    programs = [Ours("exactly_once"), Ours("at_least_once"), Streams("rocksdb", "exactly_once_v2", classes),
                Streams("memory", "exactly_once_v2", classes), Streams("rocksdb", "at_least_once", classes), Streams("bare", "at_least_once", classes)]
    cluster, broker = None, os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if not broker:
        cluster = kafka_cluster.Cluster(f"peers-{os.getpid()}")
        cluster.create(1, "bench", {})
        broker = cluster.bootstrap()
    try:
        met = [compare("framed", programs, broker, args.steps, 100, args.rounds),
               compare("single", programs, broker, args.single_steps, 1, args.rounds)]
    finally:
        if cluster:
            cluster.stop()
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
