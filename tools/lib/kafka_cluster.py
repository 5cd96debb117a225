"""Starts, stops, breaks and repairs a real Apache Kafka (KRaft) on loopback, for demo and tests."""

import contextlib
import fcntl
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid

import kafka_wire
import maven
from kafka_files import KafkaError, cache, class_archive, class_path, entries, java, say, version

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOGGING = ROOT / "tools" / "kafka-log4j2.properties"

JVM = {
    # Quick to start, light to run: tests and the demo.
    "test": ["-Xms96m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
    # What a broker is usually run with, so that measured latencies mean something.
    "bench": ["-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"],
}

SETTINGS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 1000,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "log.message.timestamp.type": "CreateTime",
    # A killed node may come back as soon as its old session has run out.
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3000,
    # Retention and compaction are tested: look often.
    "log.retention.check.interval.ms": 1000,
    "log.initial.task.delay.ms": 500,
    "log.cleaner.backoff.ms": 500,
    # Small machine.
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
    "log.cleaner.dedupe.buffer.size": 8 << 20,
}


# --- what is kept between runs ---------------------------------------------------------------------


def prepare():
    """Download, format a template, record the class archive. Silent when all of it is there."""
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "prepare.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests start side by side
        if not all((folder / "jars" / f"{a}-{v}.jar").exists() for _, a, v, _ in entries()):
            say(f"Kafka {version()}: downloading 45 MB once (seconds to a few minutes)")
            maven.fetch_all(entries(), folder / "jars", _show_progress)
        if not (folder / "bootstrap.checkpoint").exists():
            _format_template(folder)
        if not class_archive().exists():
            say(f"Kafka {version()}: recording which classes it loads, to halve later starts (5 s, once)")
            _record_classes(class_archive())


def _show_progress(done, total):
    if sys.stderr.isatty():
        print(f"\r  {done}/{total} jars", end="\n" if done == total else "", file=sys.stderr, flush=True)


def _format_template(folder):
    """Kafka's own tool formats one node; what it writes there serves every later node."""
    with tempfile.TemporaryDirectory() as scratch:
        node = Node(1, *free_ports(2))
        config = pathlib.Path(scratch) / "server.properties"
        config.write_text(_properties([node], node, pathlib.Path(scratch) / "data", {}))
        command = [java(), *JVM["test"], "-cp", class_path(), "kafka.tools.StorageTool"]
        command += ["format", "-t", new_id(), "-c", str(config)]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        checkpoint = pathlib.Path(scratch) / "data" / "bootstrap.checkpoint"
        if ran.returncode or not checkpoint.exists():
            raise KafkaError(f"formatting failed:\n{ran.stdout}")
        shutil.copyfile(checkpoint, folder / "bootstrap.part")
        (folder / "bootstrap.part").rename(folder / "bootstrap.checkpoint")


def _record_classes(archive):
    with tempfile.TemporaryDirectory() as scratch:
        partial = archive.with_suffix(f".part{os.getpid()}")
        cluster = Cluster("training", pathlib.Path(scratch) / "training")
        try:
            cluster.create(1, "test", {}, [f"-XX:ArchiveClassesAtExit={partial}"])
            kafka_wire.create_topic(cluster.bootstrap(), "classes")
            _exercise(cluster.bootstrap())
            cluster.terminate(timeout=60)
            if partial.exists():
                partial.rename(archive)
            else:
                say("  not possible with this Java; starts will take a second longer")
                archive.touch()
        finally:
            cluster.stop()
            partial.unlink(missing_ok=True)


def _exercise(bootstrap):
    """A produced and a consumed record load the classes that any use needs."""
    if not shutil.which("kcat"):
        return
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": 30}
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(["kcat", "-b", bootstrap, "-P", "-t", "classes"], input=b"record\n", **quiet)
        subprocess.run(["kcat", "-b", bootstrap, "-c1", "-G", "g", "-X",
                        "auto.offset.reset=earliest", "classes"], **quiet)


# --- small things ---------------------------------------------------------------------------------


def new_id():
    """A Kafka uuid: 16 bytes in URL-safe base64 without padding; none may begin with a dash."""
    import base64

    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def free_ports(count):
    """Below the ephemeral range, so that no outgoing connection takes one while a node is down."""
    held, ports = [], []
    try:
        while len(ports) < count:
            probe = socket.socket()
            held.append(probe)
            with contextlib.suppress(OSError):
                port = random.SystemRandom().randrange(20000, 32000)
                probe.bind(("127.0.0.1", port))
                ports.append(port)
    finally:
        for probe in held:
            probe.close()
    return ports


def started_at(pid):
    """Start time of a living process in clock ticks; None when it is gone or a zombie."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


class Node:
    """One broker and controller in one process."""

    def __init__(self, number, port, controller_port, pid=None, started=None):
        self.number, self.port, self.controller_port = number, port, controller_port
        self.pid, self.started = pid, started

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def alive(self):
        # The start time tells our process from a stranger that got its number later.
        return self.pid is not None and started_at(self.pid) == self.started

    def signal(self, number):
        if self.alive():
            os.kill(self.pid, number)

    def paused(self):
        with contextlib.suppress(OSError):
            return pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
        return False

    def wait_gone(self, timeout):
        deadline = time.monotonic() + timeout
        while self.alive():
            if time.monotonic() > deadline:
                return False
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
            time.sleep(0.01)
        return True


def _properties(nodes, node, data, settings):
    replicas = min(3, len(nodes))
    voters = ",".join(f"{n.number}@127.0.0.1:{n.controller_port}" for n in nodes)
    values = {
        "process.roles": "broker,controller",
        "node.id": node.number,
        "controller.quorum.voters": voters,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{node.port},CONTROLLER://127.0.0.1:{node.controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{node.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": data,
        "default.replication.factor": replicas,
        "min.insync.replicas": max(1, replicas - 1),
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": max(1, replicas - 1),
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": max(1, replicas - 1),
        **SETTINGS,
        **settings,
    }
    return "".join(f"{key}={value}\n" for key, value in values.items())


# --- the cluster ----------------------------------------------------------------------------------


class Cluster:
    """A named cluster under `build/kafka/<name>`; its state file outlives the program that made it."""

    def __init__(self, name, folder=None):
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
            raise KafkaError(f"bad name {name!r}: letters, digits, dot, dash and underscore")
        self.name = name
        self.folder = folder or ROOT / "build" / "kafka" / name
        self.nodes, self.profile, self.settings, self.id = [], "test", {}, None
        if self._state_file.exists():
            self._load()

    @property
    def _state_file(self):
        return self.folder / "state.json"

    def _load(self):
        state = json.loads(self._state_file.read_text())
        self.nodes = [Node(**node) for node in state["nodes"]]
        self.profile, self.settings, self.id = state["profile"], state["settings"], state["id"]

    def _save(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        state = {"id": self.id, "profile": self.profile, "settings": self.settings,
                 "nodes": [vars(node) for node in self.nodes]}
        partial = self._state_file.with_suffix(".part")
        partial.write_text(json.dumps(state, indent=1))
        partial.rename(self._state_file)

    def exists(self):
        return bool(self.nodes)

    def bootstrap(self):
        return ",".join(node.address for node in self.nodes)

    def log_file(self, node):
        return self.folder / f"node-{node.number}" / "broker.log"

    def create(self, count, profile, settings, extra_jvm=()):
        """Make a new cluster and wait until it answers. Another try when a port was taken meanwhile."""
        for attempt in range(3):
            ports = free_ports(2 * count)
            self.nodes = [Node(i + 1, ports[2 * i], ports[2 * i + 1]) for i in range(count)]
            self.profile, self.settings, self.id = profile, settings, new_id()
            for node in self.nodes:
                self._format(node)
            try:
                return self.launch(self.nodes, extra_jvm)
            except KafkaError as error:
                self.stop()
                if "Address already in use" not in str(error) or attempt == 2:
                    raise
        return None

    def _format(self, node):
        data = self.folder / f"node-{node.number}" / "data"
        data.mkdir(parents=True)
        meta = {"version": 1, "cluster.id": self.id, "node.id": node.number, "directory.id": new_id()}
        (data / "meta.properties").write_text("".join(f"{k}={v}\n" for k, v in meta.items()))
        shutil.copyfile(cache() / "bootstrap.checkpoint", data / "bootstrap.checkpoint")
        config = data.parent / "server.properties"
        config.write_text(_properties(self.nodes, node, data, self.settings))

    def launch(self, nodes, extra_jvm=()):
        """Start these nodes, on their old ports and data, and wait until all of them answer."""
        for node in nodes:
            if not node.alive():
                self._spawn(node, extra_jvm)
        self._save()
        self.wait_ready(nodes)

    def _spawn(self, node, extra_jvm):
        archive = class_archive()
        sharing = extra_jvm or (
            [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable", "-Xlog:all=error:stderr"]
            if archive.exists() and archive.stat().st_size else [])
        command = [java(), *JVM[self.profile], *sharing, "-XX:-UsePerfData", "-Djava.awt.headless=true",
                   f"-Dlog4j2.configurationFile={LOGGING}", "-cp", class_path(), "kafka.Kafka",
                   str(self.folder / f"node-{node.number}" / "server.properties")]
        with open(self.log_file(node), "ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        process.returncode = 0  # it outlives this program on purpose
        node.pid, node.started = process.pid, started_at(process.pid)

    def wait_ready(self, nodes, timeout=60.0):
        deadline = time.monotonic() + timeout
        expected = sum(node.alive() for node in self.nodes)
        for node in nodes:
            while not self._answers(node, expected):
                if not node.alive():
                    raise KafkaError(f"node {node.number} ended while starting\n{self._last_lines(node)}")
                if time.monotonic() > deadline:
                    raise KafkaError(f"node {node.number} is not ready after {timeout:.0f} s\n"
                                     f"{self._last_lines(node)}")
                time.sleep(0.02)

    @staticmethod
    def _answers(node, expected):
        try:
            return len(kafka_wire.metadata(node.address, timeout=2.0)["brokers"]) >= expected
        except kafka_wire.WireError:
            return False

    def _last_lines(self, node, count=15):
        try:
            lines = self.log_file(node).read_text(errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(f"  | {line}" for line in lines[-count:])

    def terminate(self, nodes=None, timeout=15.0):
        """End cleanly; the data stays."""
        for node in self.nodes if nodes is None else nodes:
            node.signal(signal.SIGCONT)
            node.signal(signal.SIGTERM)
        for node in self.nodes if nodes is None else nodes:
            if not node.wait_gone(timeout):
                node.signal(signal.SIGKILL)
                node.wait_gone(5)

    def kill(self, nodes=None):
        """End as a power cut would (kill -9); the data stays."""
        for node in self.nodes if nodes is None else nodes:
            node.signal(signal.SIGKILL)
        for node in self.nodes if nodes is None else nodes:
            if not node.wait_gone(10):
                raise KafkaError(f"process {node.pid} did not end")

    def stop(self):
        """End and remove everything. Nobody reads the data again, so there is nothing to flush."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.nodes = []


def guard(cluster, owner):
    """Stop the cluster when process `owner` ends, however it ends. Runs in a process of its own."""
    try:
        handle = os.pidfd_open(owner)
    except OSError as error:
        raise KafkaError(f"no process {owner}: {error}") from error
    if os.fork():
        os.close(handle)
        return
    os.setsid()
    for stream in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    import select

    identity = cluster.id
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    while not poll.poll(1000):
        if not cluster._state_file.exists():
            os._exit(0)
    with contextlib.suppress(Exception):
        current = Cluster(cluster.name, cluster.folder)
        if current.id == identity:
            current.stop()
    os._exit(0)
