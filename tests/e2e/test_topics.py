"""Topics of a real Kafka that are there and are not what they should be: `tocsin topics` shows what that costs and sets what is
safe to set; a program says it when it starts, and says when one is deleted."""
import random
import sys

import pytest

from tests.e2e.test_recovery import wait_until
from tests.support.program import ROOT, run_cli
from tests.support.telemetry import kafka_events, kafka_produce, scalar

sys.path.insert(0, str(ROOT / "tools" / "lib"))
import kafka_wire  # noqa: E402


class Cluster:
    def __init__(self, bootstrap, folder):
        self.bootstrap, self.prefix = bootstrap, f"topics{random.randrange(10**9)}"
        self.file = folder / "tocsin.yaml"
        self.file.write_text(f"transport: {{kafka: {{bootstrap.servers: '{bootstrap}'}}}}\n"
                             f"topics: {{prefix: {self.prefix}, partitions: 2}}\nengine: {{threads: 1}}\n"
                             f"http: {{listen: '127.0.0.1:0'}}\nrules:\n  - use: exploding_tensor\n")

    def name(self, topic):
        return f"{self.prefix}.{topic}.v1"

    def create(self, topic, partitions=2, **config):
        kafka_wire.create_topic(self.bootstrap.split(",")[0], self.name(topic), partitions, 1,
                                {key.replace("_", "."): value for key, value in config.items()})

    def topics(self, verb):
        return run_cli("topics", verb, "-c", self.file)

    def lines_of(self, out, topic):
        """What `topics` says of one topic: its line, and the indented ones below it."""
        lines = out.splitlines()
        at = next(i for i, line in enumerate(lines) if self.name(topic) in line)
        end = next((i for i in range(at + 1, len(lines)) if not lines[i].startswith(" ")), len(lines))
        return "\n".join(lines[at:end])

    def issues(self, rule):
        return [data for _, data, headers in kafka_events(self.bootstrap, self.name("issues"))
                if headers.get("ce_type") == "dev.tocsin.issue.v1" and data["rule"] == rule]


@pytest.fixture
def cluster(kafka, tmp_path):
    return Cluster(kafka, tmp_path)


def test_plan_says_what_each_difference_costs_and_apply_sets_what_is_safe(cluster):
    cluster.create("rules-state", cleanup_policy="delete", retention_ms=60000)
    cluster.create("telemetry", retention_ms=3 * 3600 * 1000, retention_bytes=1 << 20, flush_messages=1000)
    cluster.create("issues", max_message_bytes=1000, retention_ms=-1)
    cluster.create("router-outbox", partitions=1, cleanup_policy="compact")
    cluster.create("acks", min_insync_replicas=2)
    code, out, _ = cluster.topics("plan")
    assert code == 1
    state = cluster.lines_of(out, "rules-state")
    assert state.startswith("differs") and "DANGER: cleanup.policy is delete, wanted compact" in state
    assert "1m" in state and "after a restart it is not there" in state
    telemetry = cluster.lines_of(out, "telemetry")
    assert "warning: retention.ms is 10800000" in telemetry and "warning: retention.bytes is 1048576" in telemetry
    issues = cluster.lines_of(out, "issues")
    assert "warning: max.message.bytes is 1000" in issues and "note: retention.ms is -1" in issues
    assert "DANGER: cleanup.policy is compact, wanted delete" in cluster.lines_of(out, "router-outbox")
    assert "DANGER: min.insync.replicas is 2" in cluster.lines_of(out, "acks")
    assert cluster.lines_of(out, "registry").startswith("missing")

    code, out, _ = cluster.topics("apply")
    assert code == 1  # what it does not set is still so
    for topic in ("rules-state", "telemetry", "issues"):
        lines = cluster.lines_of(out, topic)
        assert lines.startswith("ok"), lines
    assert "note: retention.ms is -1" in cluster.lines_of(out, "issues")  # lowering it would delete at once
    assert "DANGER: min.insync.replicas is 2" in cluster.lines_of(out, "acks")
    assert cluster.lines_of(out, "registry") and "missing" not in out
    assert "Tocsin does not change it" in cluster.lines_of(out, "acks")


def test_topics_that_were_made_by_us_are_ok(cluster):
    assert cluster.topics("apply")[0] == 0
    code, out, _ = cluster.topics("plan")
    assert code == 0 and all(line.startswith("ok") for line in out.splitlines()), out


def test_a_program_says_at_its_start_that_a_topic_loses_state(server, cluster):
    cluster.create("rules-state", cleanup_policy="delete", retention_ms=60000)
    program = server(cluster.file, role="evaluate")
    program.wait_for("ready", timeout=90)
    event = program.wait_for("topic_differs", setting="cleanup.policy")
    assert event["level"] == "error" and event["topic"] == cluster.name("rules-state")
    told = wait_until(lambda: cluster.issues("topic_unsafe"), 30, "an issue says it")
    assert told[0]["labels"]["topic"] == cluster.name("rules-state")
    assert "topic_unsafe" in run_cli("status", "-c", cluster.file)[1]
    assert cluster.topics("apply")[0] == 0
    wait_until(lambda: any(one["status"] == "resolved" for one in cluster.issues("topic_unsafe")), 40, "it is over")
    assert program.stop() == 0


def test_a_topic_that_is_deleted_is_told_everywhere_and_others_go_on(server, cluster):
    program = server(cluster.file)
    program.wait_for("ready", timeout=90)
    kafka_produce(cluster.bootstrap, cluster.name("telemetry"), [scalar("one", "loss", "NaN", 0)])
    wait_until(lambda: cluster.issues("exploding_tensor"), 60, "an issue of a rule")
    kafka_wire.delete_topic(cluster.bootstrap.split(",")[0], cluster.name("telemetry"))
    wait_until(lambda: cluster.name("telemetry") in program.get("/-/ready")[1], 40, "it says why it is not ready")
    assert program.get("/-/ready")[0] == 503
    told = wait_until(lambda: cluster.issues("topic_missing"), 30, "an issue says it")
    assert told[0]["labels"]["topic"] == cluster.name("telemetry") and told[0]["status"] == "firing"
    assert "topic_missing" in run_cli("status", "-c", cluster.file)[1].split("unhealthy")[1]
    assert cluster.topics("apply")[0] == 0
    wait_until(lambda: program.get("/-/ready")[0] == 200, 60, "it is ready again")
    wait_until(lambda: any(one["status"] == "resolved" for one in cluster.issues("topic_missing")), 30, "it is over")
    kafka_produce(cluster.bootstrap, cluster.name("telemetry"), [scalar("two", "loss", "NaN", 0)])
    wait_until(lambda: len(cluster.issues("exploding_tensor")) >= 2, 60, "the next run is judged")
    assert program.stop() == 0
