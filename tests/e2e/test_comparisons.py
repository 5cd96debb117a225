"""Rules over rules, and rules that compare two runs which lie in different partitions of a real Kafka: by several engine
threads, the other run before or behind, and through kill -9."""
import random
import re

import pytest

from tests.e2e.test_every_rule import produce
from tests.e2e.test_recovery import wait_until
from tests.reference import story
from tests.support.telemetry import firing_ids, kafka_events, kafka_produce, scalar
from tocsin import wire

PARTITIONS = 4


class Cluster:
    """A prefix of topics of its own, with runs in partitions of one's choice."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.prefix = f"compare{random.randrange(10**9)}"

    @staticmethod
    def run_in(partition, name):
        """A run's name whose records go to that partition."""
        return next(text for text in (f"{name}{i}" for i in range(1000))
                    if wire.partition_for(str(wire.run_uid("", text)), PARTITIONS) == partition)

    def config(self, *rules, threads=3):
        listed = "".join(f"  - {rule}\n" for rule in rules)
        return (f"transport: {{kafka: {{bootstrap.servers: '{self.bootstrap}'}}}}\n"
                f"topics: {{prefix: {self.prefix}, partitions: {PARTITIONS}}}\nengine: {{threads: {threads}}}\n"
                f"http: {{listen: '127.0.0.1:0'}}\nrules:\n{listed}")

    def send(self, run, values, first=0):
        """One loss per step, and with it the end of the step before."""
        kafka_produce(self.bootstrap, f"{self.prefix}.telemetry.v1",
                      [scalar(run, "loss", value, first + i) for i, value in enumerate(values)])

    def issues(self, rule):
        return [(data["run"]["uid"], data["step"])
                for _, data, headers in kafka_events(self.bootstrap, f"{self.prefix}.issues.v1")
                if headers.get("ce_type") == "dev.tocsin.issue.v1" and data["status"] == "firing" and data["rule"] == rule]

    def wait_for(self, rule, count=1):
        return wait_until(lambda: (lambda found: found if len(found) >= count else None)(self.issues(rule)), 60,
                          f"{count} issues of {rule}")


@pytest.fixture
def cluster(kafka):
    return Cluster(kafka)


def metric(program, name):
    """Summed over its labels."""
    return sum(float(found) for found in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", program.get("/metrics")[1], re.M))


def comparing(other):
    uid = wire.run_uid("", other)
    return (f"{{use: similar_across_runs, with: {{other_trials: {uid}, tensor_regex: [loss], cooldown: 1h}}}}",
            f"{{name: worse, select: 'metric(\"loss\")', when: 'value > 2 * other(\"{uid}\", value)'}}")


def test_runs_in_different_partitions_are_compared(server, cluster):
    other, behind, ahead = (cluster.run_in(*one) for one in ((0, "other"), (1, "behind"), (2, "ahead")))
    uids = {run: str(wire.run_uid("", run)) for run in (other, behind, ahead)}
    config = cluster.config(*comparing(other))
    program = server(config)
    program.wait_for("ready", timeout=90)
    cluster.send(ahead, [1, 1, 5, 1])  # before anything is known of the other one
    wait_until(lambda: metric(program, "tocsin_rules_evaluations_total") >= 0 and
               metric(program, "tocsin_rules_frames_total") >= 4, 60, "the run is read")
    cluster.send(other, [1, 1, 1, 1])
    assert cluster.wait_for("worse") == [(uids[ahead], 2)]
    assert cluster.wait_for("similar_across_runs") == [(uids[ahead], 2)]
    # kill -9: what was learned is not lost, and nothing is told twice.
    program.kill()
    program = server(config)
    program.wait_for("ready", timeout=90)
    cluster.send(behind, [1, 9, 1, 1])
    both = {(uids[ahead], 2), (uids[behind], 1)}
    assert set(cluster.wait_for("worse", 2)) == set(cluster.wait_for("similar_across_runs", 2)) == both
    assert metric(program, "tocsin_rules_comparisons_learned_total") > 0
    ids = firing_ids(kafka_events(cluster.bootstrap, f"{cluster.prefix}.issues.v1"))
    assert len(ids) == len(set(ids)) == 4
    assert program.stop() == 0


def test_a_run_is_judged_by_the_earlier_runs_of_its_family_wherever_these_lie(server, cluster, tmp_path):
    uids = []

    def run(name, hour, loss):
        """A whole run of twelve steps, of the job `reference`."""
        worker = story.Worker(start=story.START + hour * 3600 * story.SECOND, tick=story.SECOND)
        worker.start()
        for step in range(12):
            worker.enter("train", step)
            worker.scalars(("loss", loss, "loss"))
            worker.step_end()
        worker.end()
        uids.append(str(wire.run_uid("", name)))
        produce(cluster.bootstrap, f"{cluster.prefix}.telemetry.v1", uids[-1], tmp_path / name, worker.records)

    def ended():
        return {data["run"]["uid"] for _, data, _ in kafka_events(cluster.bootstrap, f"{cluster.prefix}.issues.v1")
                if data.get("phase") == "ended"} >= set(uids)

    config = cluster.config("{use: family_baseline, with: {family: [job]}}")
    program = server(config)
    program.wait_for("ready", timeout=90)
    for hour in range(9):  # in all four partitions
        run(cluster.run_in(hour % PARTITIONS, f"night{hour}-"), hour, 1 + hour % 3 / 1000)
    wait_until(ended, 60, "the end of nine runs")
    assert cluster.issues("family_baseline") == []
    program.kill()  # -9: what was learned and told is not lost
    program = server(config)
    program.wait_for("ready", timeout=90)
    odd, like = cluster.run_in(1, "odd"), cluster.run_in(2, "like")
    run(like, 20, 1.001)
    # A run learns from the other partitions once it is there: it begins, and goes on a little later.
    worker = story.Worker(start=story.START + 21 * 3600 * story.SECOND, tick=story.SECOND)
    uid = str(wire.run_uid("", odd))
    worker.start()
    for step in range(12):
        worker.enter("train", step)
        worker.scalars(("loss", 3.0, "loss"))
        worker.step_end()
    begins = worker.records[:3]
    produce(cluster.bootstrap, f"{cluster.prefix}.telemetry.v1", uid, tmp_path / "odd-begins", begins)
    learned = []  # until nothing more comes; what was learned before the kill is there already

    def all_learned():
        learned.append(metric(program, "tocsin_rules_comparisons_learned_total"))
        return learned[-1] > 0 and len(learned) > 30 and len(set(learned[-30:])) == 1
    wait_until(all_learned, 60, "what others had")
    produce(cluster.bootstrap, f"{cluster.prefix}.telemetry.v1", uid, tmp_path / "odd-goes-on", worker.records[3:])
    assert {run for run, _ in cluster.wait_for("family_baseline")} == {uid}
    assert program.stop() == 0


def test_a_sequence_over_a_real_kafka(server, cluster):
    run = cluster.run_in(3, "hot")
    high = "{name: high, select: 'metric(\"loss\")', when: 'value > 5', clear_after: 1}"
    broken = "{name: broken, select: 'metric(\"loss\")', when: 'nan > 0', clear_after: 1}"
    then = "{name: then, sequence: [high, broken], within: 3 steps}"
    lately = "{name: lately, select: 'metric(\"loss\")', when: 'value < 1 and fired(\"high\", 4 steps)'}"
    program = server(cluster.config(then, lately, high, broken))
    program.wait_for("ready", timeout=90)
    cluster.send(run, [1, 9, 1])
    cluster.wait_for("high")
    program.kill()  # in the middle of the sequence
    program = server(cluster.config(then, lately, high, broken))
    program.wait_for("ready", timeout=90)
    cluster.send(run, ["NaN", 0.5, 1], first=3)
    uid = str(wire.run_uid("", run))
    assert cluster.wait_for("then") == [(uid, 3)]
    assert cluster.wait_for("lately") == [(uid, 4)]
    assert program.stop() == 0
