"""tools/kafka on a real Apache Kafka: it is up when it says so, keeps data over faults, leaves nothing."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.support.kafka import TOOL, Kafka
from tests.support.receiver import wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(bool(os.environ.get("KAFKA_BOOTSTRAP_SERVERS")),
                                reason="an existing cluster is not ours to break")


def kcat(bootstrap, *arguments, **options):
    return subprocess.run(["kcat", "-q", "-b", bootstrap, *arguments], text=True, capture_output=True,
                          timeout=30, check=True, **options).stdout


def produce(bootstrap, topic, *values):
    kcat(bootstrap, "-P", "-t", topic, "-X", "acks=all", input="".join(f"{value}\n" for value in values))


def consume(bootstrap, topic):
    return sorted(kcat(bootstrap, "-C", "-t", topic, "-o", "beginning", "-e").split())


def brokers_of(folder):
    """Pids of living JVMs whose command line names this folder."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


@pytest.fixture(scope="module")
def kafka():
    with Kafka() as cluster:
        yield cluster


def test_ready_when_start_returns(kafka):
    began = time.monotonic()
    kafka.topic("ready")
    produce(kafka.bootstrap, "ready", "a", "b")
    assert consume(kafka.bootstrap, "ready") == ["a", "b"]
    assert time.monotonic() - began < 10


def test_topics_are_not_created_by_use(kafka):
    with pytest.raises(subprocess.CalledProcessError):
        kcat(kafka.bootstrap, "-C", "-t", "never-made", "-e")


def test_topic_takes_partitions_and_configuration(kafka):
    kafka.topic("compacted", partitions=3, cleanup_policy="compact")
    kafka.topic("compacted", partitions=3)  # again: left as it is
    assert '"compacted" with 3 partitions' in kcat(kafka.bootstrap, "-L", "-t", "compacted")


def test_group_consumer(kafka):
    kafka.topic("grouped", partitions=3)
    produce(kafka.bootstrap, "grouped", *range(30))
    out = kcat(kafka.bootstrap, "-G", "g1", "-c", "30", "-X", "auto.offset.reset=earliest", "grouped")
    assert sorted(map(int, out.split())) == list(range(30))


def test_acknowledged_data_survives_kill_9_on_the_same_port(kafka):
    kafka.topic("kept")
    produce(kafka.bootstrap, "kept", "before")
    kafka.kill()
    assert " down " in subprocess.run([TOOL, "status", "--name", kafka.name], text=True,
                                      capture_output=True, check=False).stdout
    kafka.restart()
    produce(kafka.bootstrap, "kept", "after")
    assert consume(kafka.bootstrap, "kept") == ["after", "before"]


def test_paused_broker_is_silent_and_comes_back(kafka):
    kafka.topic("frozen")
    kafka.pause()
    assert " paused " in kafka.tool("status")
    with pytest.raises(subprocess.CalledProcessError):
        kcat(kafka.bootstrap, "-L", "-t", "frozen", "-m", "1")
    kafka.resume()
    produce(kafka.bootstrap, "frozen", "x")
    assert consume(kafka.bootstrap, "frozen") == ["x"]


def test_start_on_a_running_cluster_changes_nothing(kafka):
    pids = brokers_of(ROOT / "build" / "kafka" / kafka.name)
    assert kafka.tool("start").strip() == f"KAFKA_BOOTSTRAP_SERVERS={kafka.bootstrap}"
    assert brokers_of(ROOT / "build" / "kafka" / kafka.name) == pids


def test_two_clusters_side_by_side_and_stop_leaves_nothing(kafka):
    with Kafka() as other:
        assert other.bootstrap != kafka.bootstrap
        folder = ROOT / "build" / "kafka" / other.name
        assert len(brokers_of(folder)) == 1
    assert brokers_of(folder) == [] and not folder.exists()
    assert kafka.bootstrap in kafka.tool("env")


def test_cluster_ends_with_its_owner():
    owner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    name = f"owned-{owner.pid}"
    folder = ROOT / "build" / "kafka" / name
    try:
        subprocess.run([TOOL, "start", "--name", name, "--until-pid", str(owner.pid)], check=True,
                       stdout=subprocess.DEVNULL, timeout=120)
        assert brokers_of(folder)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        wait_for(lambda: not brokers_of(folder) and not folder.exists(), 15, "end of the cluster")
    finally:
        owner.kill()
        subprocess.run([TOOL, "stop", "--name", name], check=True, timeout=60)


def test_three_nodes_survive_the_loss_of_one():
    with Kafka(nodes=3) as cluster:
        cluster.topic("replicated", partitions=3)
        produce(cluster.bootstrap, "replicated", "a", "b", "c")
        cluster.kill(node=2)
        produce(cluster.bootstrap, "replicated", "d")
        assert consume(cluster.bootstrap, "replicated") == ["a", "b", "c", "d"]
        cluster.restart(node=2)
        assert "3 brokers" in kcat(cluster.bootstrap, "-L", "-t", "replicated")


def test_existing_cluster_is_used_and_never_broken():
    environment = {**os.environ, "KAFKA_BOOTSTRAP_SERVERS": "broker.example:9092"}

    def tool(*arguments):
        return subprocess.run([TOOL, *arguments], env=environment, text=True, capture_output=True,
                              timeout=30, check=False)

    assert tool("start", "--name", "unused").stdout == "KAFKA_BOOTSTRAP_SERVERS=broker.example:9092\n"
    assert not (ROOT / "build" / "kafka" / "unused").exists()
    assert "not ours to break" in tool("kill", "--name", "unused").stderr


def test_unknown_cluster_is_named():
    ran = subprocess.run([TOOL, "kill", "--name", "nosuch"], text=True, capture_output=True, check=False)
    assert ran.returncode == 1 and "no cluster 'nosuch'" in ran.stderr
