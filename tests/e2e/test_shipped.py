"""The program as it ships: default intervals, 24 partitions, 1024 file descriptors, a year of past runs."""
import json
import random
import resource
import subprocess
import threading
import time

from tests.e2e.test_recovery import wait_until
from tests.support.telemetry import JournalWriter, firing_ids, journal_events, kafka_events, kafka_produce, scalar

PAST_RUNS = 1200


def as_shipped():
    """A login shell's limit of open files."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))


def test_past_runs_by_the_thousand_blind_nobody(server, tmp_path):
    folder = tmp_path / "journal"
    config = f"transport: {{journal: {folder}}}\nrules: [exploding_tensor]\nhttp: {{listen: '127.0.0.1:0'}}\n"
    first = server(config, role="evaluate")  # makes the journal
    first.wait_for("ready", timeout=60)
    assert first.stop() == 0
    writer = JournalWriter(folder)
    for number in range(0, PAST_RUNS, 100):
        writer.append(*[scalar(f"past-{run}", "loss", 1.0, step) for run in range(number, number + 100) for step in range(3)])
    engine = server(config, role="evaluate", preexec=as_shipped)
    engine.wait_for("ready", timeout=60)
    writer.append(scalar("now", "loss", "NaN", 3))
    told = wait_until(lambda: firing_ids(journal_events(folder, "issues")), 60, "the issue of the run that goes on")
    engine.kill()
    engine = server(config, role="evaluate", preexec=as_shipped)
    engine.wait_for("ready", timeout=60)
    writer.append(scalar("later", "loss", "NaN", 3))
    wait_until(lambda: len(firing_ids(journal_events(folder, "issues"))) == 2, 30, "the issue after the restart")
    assert set(told) <= set(firing_ids(journal_events(folder, "issues")))
    assert not engine.all("state_incomplete")


def test_a_silent_run_is_noticed_under_load(server, kafka):
    """2 500 records a second over 24 partitions: never is everything at its end at once."""
    prefix = f"load{random.randrange(10**9)}"
    config = (f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\ntopics: {{prefix: {prefix}}}\n"
              "rules: [{use: stalled_training_rule, with: {threshold: 5}}]\nhttp: {listen: '127.0.0.1:0'}\n")
    engine = server(config, role="evaluate")
    engine.wait_for("ready", timeout=90)
    topic = f"{prefix}.telemetry.v1"
    kafka_produce(kafka, topic, [scalar("quiet", "loss", 1.0, step) for step in range(5)])
    ended = threading.Event()

    def load():
        out = subprocess.Popen(["kcat", "-b", kafka, "-P", "-t", topic, "-K", "\t", "-X", "partitioner=murmur2_random",
                                "-X", "linger.ms=5"], stdin=subprocess.PIPE, text=True)
        step = 0
        while not ended.is_set():
            began = time.monotonic()
            for run in range(125):
                _, key, value = scalar(f"busy-{run}", "loss", 1.0, step)
                out.stdin.write(f"{key}\t{value.decode()}\n")
            out.stdin.flush()
            step += 1
            time.sleep(max(0.0, 0.05 - (time.monotonic() - began)))
        out.stdin.close()
        out.wait(30)

    loader = threading.Thread(target=load)
    loader.start()
    try:
        def noticed():
            return [data for _, data, headers in kafka_events(kafka, f"{prefix}.issues.v1")
                    if headers.get("ce_type") == "dev.tocsin.issue.v1" and data["status"] == "firing"]
        found = wait_until(noticed, 60, "the stalled run under load")
    finally:
        ended.set()
        loader.join()
    assert all(data["rule"] == "stalled_training_rule" for data in found), json.dumps(found)[:2000]
