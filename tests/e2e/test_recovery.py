"""kill -9 at any moment, brokers that go away, records that are none: nothing lost, nothing twice, nothing crashes."""
import random
import time

import pytest

from tests.support.kafka import Kafka
from tests.support.patience import patience
from tests.support.telemetry import (JournalWriter, firing_ids, journal_events, journal_records,
                                     kafka_events, kafka_produce, scalar)

pytestmark = pytest.mark.apart

RULES = "rules: [exploding_tensor]\nhttp: {listen: '127.0.0.1:0'}\n"
RUNS = 12
STEPS = 30
BAD_STEP = 17


def batches(seed):
    """The same telemetry in every test of a seed: RUNS runs, each with one NaN loss, in interleaved batches."""
    chance = random.Random(seed)
    steps = {f"run-{seed}-{i}": 0 for i in range(RUNS)}
    while steps:
        batch = []
        for _ in range(chance.randint(1, 20)):
            if not steps:
                break
            run = chance.choice(sorted(steps))
            step = steps[run]
            value = "NaN" if step == BAD_STEP else 1.0 / (step + 1)
            batch.append(scalar(run, "loss", value, step, time=f"2026-01-01T00:{step:02d}:00Z"))
            steps[run] += 1
            if steps[run] == STEPS:
                del steps[run]
        yield batch


def wait_until(check, timeout, what):
    end = time.monotonic() + patience(timeout)
    while time.monotonic() < end:
        found = check()
        if found:
            return found
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {timeout} s")


def uninterrupted(server, folder, seed):
    """The golden list: ids of an engine that nobody disturbed."""
    server(f"transport: {{journal: {folder}}}\n{RULES}", role="evaluate").wait_for("ready")
    writer = JournalWriter(folder)
    for batch in batches(seed):
        writer.append(*batch)
    ids = wait_until(lambda: (lambda found: found if len(found) >= RUNS else None)(firing_ids(journal_events(folder, "issues"))),
                     30, "golden issues")
    assert len(set(ids)) == RUNS
    return ids


# With the interval that ships a kill falls between two snapshots nearly always; with the short one, into them.
SNAPSHOTS = pytest.mark.parametrize("engine_section", ["", "engine: {snapshot_interval: 200ms}"], ids=["shipped", "often"])


@SNAPSHOTS
def test_kill_9_of_the_engine_on_the_journal_loses_and_repeats_nothing(server, tmp_path, engine_section):
    golden = uninterrupted(server, tmp_path / "golden", seed=1)
    folder = tmp_path / "journal"
    config = f"transport: {{journal: {folder}}}\n{engine_section}\n{RULES}"
    chance = random.Random(7)
    engine = server(config, role="evaluate")
    engine.wait_for("ready")
    writer = JournalWriter(folder)
    kills = 0
    for i, batch in enumerate(batches(1)):
        writer.append(*batch)
        time.sleep(chance.random() * 0.03)
        if i % 6 == 5:
            engine.kill()  # anywhere: in a poll, a commit, a snapshot, a restore
            kills += 1
            engine = server(config, role="evaluate")
            time.sleep(chance.random() * 0.3)
    wait_until(lambda: len(firing_ids(journal_events(folder, "issues"))) >= RUNS, 60, "all issues")
    time.sleep(1)
    assert kills >= 3
    assert firing_ids(journal_events(folder, "issues")) == golden


@SNAPSHOTS
def test_kill_9_of_the_engine_on_kafka_loses_and_repeats_nothing(server, tmp_path, kafka, engine_section):
    golden = uninterrupted(server, tmp_path / "golden", seed=2)
    prefix = f"crash{random.randrange(10**9)}"
    config = (f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\n"
              f"topics: {{prefix: {prefix}}}\n{engine_section}\n{RULES}")
    engine = server(config, role="evaluate")
    engine.wait_for("ready", timeout=60)
    chance = random.Random(8)
    for i, batch in enumerate(batches(2)):
        kafka_produce(kafka, f"{prefix}.telemetry.v1", batch)
        if i in (5, 11, 17):
            time.sleep(chance.random() * 0.2)
            engine.kill()
            engine = server(config, role="evaluate")
    topic = f"{prefix}.issues.v1"
    wait_until(lambda: len(firing_ids(kafka_events(kafka, topic))) >= RUNS, 90, "all issues")
    time.sleep(2)
    assert firing_ids(kafka_events(kafka, topic)) == golden


def test_a_broker_that_is_down_at_start_and_for_a_minute_in_the_middle(server, tmp_path):
    golden = uninterrupted(server, tmp_path / "golden", seed=3)
    with Kafka(f"outage-{random.randrange(10**9)}") as cluster:
        assert not cluster.existing, "this test needs a broker of its own: unset KAFKA_BOOTSTRAP_SERVERS"
        cluster.kill()
        config = (f"transport: {{kafka: {{bootstrap.servers: '{cluster.bootstrap}', session.timeout.ms: 6000}}}}\n"
                  f"topics: {{partitions: 3}}\nengine: {{threads: 1}}\n{RULES}")
        engine = server(config, role="evaluate")
        engine.wait_for("transport_unreachable", timeout=30)
        assert engine.get("/-/healthy")[0] == 200 if engine.all("started") else True
        cluster.restart()
        engine.wait_for("ready", timeout=90)
        parts = list(batches(3))
        for batch in parts[:len(parts) // 2]:
            kafka_produce(cluster.bootstrap, "tocsin.telemetry.v1", batch)
        cluster.kill()
        time.sleep(60)
        assert engine.process.poll() is None
        cluster.restart()
        for batch in parts[len(parts) // 2:]:
            kafka_produce(cluster.bootstrap, "tocsin.telemetry.v1", batch)
        wait_until(lambda: len(firing_ids(kafka_events(cluster.bootstrap, "tocsin.issues.v1"))) >= RUNS, 90, "all issues")
        assert firing_ids(kafka_events(cluster.bootstrap, "tocsin.issues.v1")) == golden
        assert engine.stop() == 0


def test_records_that_are_none_go_to_the_dead_letters_with_their_reason(server, tmp_path):
    folder = tmp_path / "journal"
    engine = server(f"transport: {{journal: {folder}}}\n{RULES}", role="evaluate")
    engine.wait_for("ready")
    writer = JournalWriter(folder)
    newer = b"TCSN\x02" + bytes(107)
    writer.append(("telemetry", "k", b"no frame"), ("telemetry", "k", newer), ("telemetry", "k", b"TCSN\x01\x00"),
                  ("telemetry", "k", b'{"run": 5}'), ("telemetry", "k", b"{"), ("telemetry", "k", b""),
                  scalar("negative", "loss", 1.0, -3), scalar("fine", "loss", "NaN", 3))
    wait_until(lambda: firing_ids(journal_events(folder, "issues")), 20, "the good record behind the bad ones")
    letters = list(journal_records(folder, "dlq"))
    codes = [dict(r["headers"])["error-code"].decode() for r in letters]
    assert codes == ["not_a_frame", "unknown_major", "truncated", "bad_json", "bad_json", "not_a_frame", "bad_json"]
    assert letters[0]["value"] == b"no frame"
    status, metrics = engine.get("/metrics")
    assert status == 200 and 'tocsin_rules_events_rejected_total{reason="bad_json",stage="evaluate"} 3' in metrics
    assert engine.stop() == 0


def test_serving_is_healthy_ready_and_ends_cleanly(server, tmp_path):
    engine = server(f"transport: {{journal: {tmp_path / 'j'}}}\n{RULES}")
    engine.wait_for("ready")
    assert engine.get("/-/healthy") == (200, "healthy\n")
    assert engine.get("/-/ready") == (200, "ready\n")
    assert engine.get("/nowhere")[0] == 404
    began = time.monotonic()
    assert engine.stop() == 0
    assert time.monotonic() - began < 10
    assert engine.all("stopped")[-1]["in_time"] is True
