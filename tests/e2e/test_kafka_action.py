"""A topic of the user's gets each change of an incident once, whatever is killed, and one that is not there holds up nobody else."""
import collections
import json
import pathlib
import random
import sys
import time

from tests.support.program import ROOT, run_cli
from tests.support.telemetry import kafka_events, kafka_produce, scalar
from tests.support.webhook_receiver import WebhookReceiver
from tests.support.patience import patience
from tocsin import wire

sys.path.insert(0, str(ROOT / "tools" / "lib"))
import kafka_wire  # noqa: E402

CONFIG = """
transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}
topics: {{prefix: {prefix}, partitions: 2}}
rules: [{{name: high, select: 'metric("v")', when: 'value > 1', clear_after: 1}}]
route: {{receiver: both, group_by: [run_uid], group_wait: 0s, group_interval: 1s}}
receivers:
  both:
    kafka: {{id: topic, topic: {topic}, key: '{{{{run}}}}', format: {format}}}
    webhook: {{id: hook, url: '{url}', format: native, allow_private: [127.0.0.0/8]}}
http: {{listen: '127.0.0.1:0'}}
"""


def config_of(tmp_path, kafka, topic, url, prefix, format="structured"):
    path = tmp_path / "tocsin.yaml"
    path.write_text(CONFIG.format(kafka=kafka, prefix=prefix, topic=topic, url=url, format=format))
    return path


def names():
    number = random.randrange(10**9)
    return f"own{number}", f"alarms-{number}"


def data_of(event):
    return event[1].get("data", event[1])


def tell(kafka, prefix, runs, value, step):
    kafka_produce(kafka, f"{prefix}.telemetry.v1", [scalar(run, "v", value, step) for run in runs])


def wait_until(found, timeout=90):
    end = time.monotonic() + patience(timeout)
    while time.monotonic() < end:
        if result := found():
            return result
        time.sleep(0.5)
    raise AssertionError("it did not come")


def committed(kafka, topic):
    return list(kafka_events(kafka, topic))


def opened(kafka, topic):
    return {data_of(event)["issues"][0]["labels"]["run_uid"] for event in committed(kafka, topic) if data_of(event)["status"] == "firing"}


def closed(kafka, topic):
    return {data_of(event)["issues"][0]["labels"]["run_uid"] for event in committed(kafka, topic) if data_of(event)["status"] == "resolved"}


def test_each_change_is_there_once_across_kill_9(server, kafka, tmp_path):
    prefix, topic = names()
    kafka_wire.create_topic(kafka, topic, partitions=3)
    with WebhookReceiver() as people:
        config = config_of(tmp_path, kafka, topic, people.url, prefix)
        one = server(config)
        one.wait_for("ready", timeout=90)
        runs = [f"run{number}" for number in range(12)]
        for batch in range(4):
            tell(kafka, prefix, runs[batch * 3:batch * 3 + 3], 9, 1)
            time.sleep(random.uniform(0.1, 2.0))
            one.kill()
            one = server(config)
            one.wait_for("ready", timeout=90)
        wait_until(lambda: len(opened(kafka, topic)) == len(runs))
        for step in range(2, 6):
            tell(kafka, prefix, runs, 0, step)
        time.sleep(random.uniform(0.5, 2.0))
        one.kill()
        one = server(config)
        one.wait_for("ready", timeout=90)
        wait_until(lambda: len(closed(kafka, topic)) == len(runs))
        events = committed(kafka, topic)
        seen = collections.Counter(event[1]["id"] for event in events)
        assert set(seen.values()) == {1}, seen.most_common(3)
        kinds = collections.Counter((event[0], data_of(event)["status"]) for event in events)
        assert len(seen) == 2 * len(runs) and set(kinds.values()) == {1}, kinds
        assert all(event[1]["specversion"] == "1.0" and event[1]["type"] == "dev.tocsin.notification.v1" for event in events)
        code, out, err = run_cli("history", "-c", config, "--audit")
        assert code == 0, out + err


def test_binary_mode_has_attributes_as_headers(server, kafka, tmp_path):
    prefix, topic = names()
    kafka_wire.create_topic(kafka, topic)
    with WebhookReceiver() as people:
        server(config_of(tmp_path, kafka, topic, people.url, prefix, "binary")).wait_for("ready", timeout=90)
        tell(kafka, prefix, ["bert"], 9, 1)
        [(key, data, headers)] = wait_until(lambda: committed(kafka, topic))
        assert key == str(wire.run_uid("", "bert")) and data["status"] == "firing"
        assert headers["ce_type"] == "dev.tocsin.notification.v1" and headers["ce_id"].startswith("ntf_")
        assert headers["content-type"] == "application/json"


def test_a_topic_that_is_not_there_holds_up_nobody_else(server, kafka, tmp_path):
    prefix, topic = names()
    with WebhookReceiver() as people:
        one = server(config_of(tmp_path, kafka, topic, people.url, prefix))
        one.wait_for("ready", timeout=90)
        tell(kafka, prefix, ["a", "b"], 9, 1)
        told = lambda: {run for run in "abc" if any(str(wire.run_uid("", run)) in str(message) for message in people.accepted())}  # noqa: E731
        wait_until(lambda: told() == {"a", "b"})
        tell(kafka, prefix, ["c"], 9, 1)
        wait_until(lambda: told() == {"a", "b", "c"})
        code, out, _ = run_cli("history", "-c", tmp_path / "tocsin.yaml", "-o", "json")
        assert code == 0 and f"topic {topic} does not exist" in out, out


def test_send_test_writes_a_record_and_a_dry_run_none(kafka, tmp_path):
    prefix, topic = names()
    kafka_wire.create_topic(kafka, topic)
    config = config_of(tmp_path, kafka, topic, "http://127.0.0.1:9", prefix)
    code, out, err = run_cli("send-test", "topic", "-c", config, "--dry-run")
    assert code == 0 and f"publish {topic}" in out and committed(kafka, topic) == [], out + err
    code, out, err = run_cli("send-test", "topic", "-c", config)
    assert code == 0 and f"topic {topic}, " in out, out + err
    [(_, event, _)] = committed(kafka, topic)
    assert "TEST" in json.dumps(event)


def test_check_refuses_topics_of_the_journal_and_of_tocsin(tmp_path):
    path = pathlib.Path(tmp_path / "tocsin.yaml")
    path.write_text(CONFIG.format(kafka="127.0.0.1:1", prefix="own", topic="own.issues.v1", url="http://127.0.0.1:9", format="binary"))
    code, out, err = run_cli("check", path)
    assert code == 3 and "topic own.issues.v1 is one of Tocsin's own" in out + err, out + err
    path.write_text(path.read_text().replace("kafka: {bootstrap.servers: '127.0.0.1:1'}", "journal: ./j").replace("own.issues.v1", "alarms"))
    code, out, err = run_cli("check", path)
    assert code == 3 and "needs transport.kafka" in out + err, out + err
