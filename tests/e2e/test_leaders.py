"""Two routers of one cluster: one leads, the other stands by; who loses the lease sends nothing more."""
import json
import random
import signal
import time

import pytest

from tests.support.telemetry import kafka_produce, scalar
from tests.support.webhook_receiver import WebhookReceiver

SESSION = 10  # seconds, core::Lease::kSession


@pytest.fixture
def people():
    with WebhookReceiver() as receiver:
        yield receiver


def configs(kafka, url):
    prefix = f"lead{random.randrange(10**9)}"
    transport = f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\ntopics: {{prefix: {prefix}, partitions: 3}}\n"
    route = (transport + "route: {receiver: people, group_by: [run_uid], group_wait: 0s}\n"
             f"receivers: {{people: {{webhook: {{format: alertmanager_v4, url: '{url}', allow_private: [127.0.0.0/8]}}}}}}\n"
             "http: {listen: '127.0.0.1:0'}\n")
    evaluate = transport + "rules: [exploding_tensor]\nengine: {threads: 1}\nhttp: {listen: '127.0.0.1:0'}\n"
    return prefix, route, evaluate


def told(people):
    """The run of each message, as often as it came."""
    return [alert["labels"]["run_uid"] for request in people.accepted()
            for alert in request["json"]["alerts"] if alert["status"] == "firing"]


def wait_for_count(people, count, timeout):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if len(set(told(people))) >= count:
            return time.monotonic()
        time.sleep(0.05)
    raise AssertionError(f"{len(set(told(people)))} of {count} runs told within {timeout} s")


def nan(kafka, prefix, run):
    kafka_produce(kafka, f"{prefix}.telemetry.v1", [scalar(run, "loss", 1.0, 0), scalar(run, "loss", "NaN", 1)])


def test_one_leads_and_the_other_takes_over(server, kafka, people):
    prefix, route, evaluate = configs(kafka, people.url)
    first = server(route, role="route")
    first.wait_for("lease_won", timeout=60)
    second = server(route, role="route")
    second.wait_for("ready", timeout=60)  # standing by is ready
    server(evaluate, role="evaluate").wait_for("ready", timeout=60)
    nan(kafka, prefix, "one")
    wait_for_count(people, 1, 30)
    time.sleep(5)
    assert not second.all("lease_won")
    assert not first.all("stage_started_over") and not second.all("stage_started_over")

    first.wait_for("delivery_finished")
    first.kill()
    died = time.monotonic()
    nan(kafka, prefix, "two")
    took = wait_for_count(people, 2, 60) - died
    print(f"\nfailover after kill -9: {took:.1f} s (session {SESSION} s)")
    assert second.all("lease_won")
    assert took < 3 * SESSION
    time.sleep(2)
    assert len(told(people)) == 2, "an issue was told twice"


def test_an_orderly_end_hands_over_at_once(server, kafka, people):
    prefix, route, evaluate = configs(kafka, people.url)
    first = server(route, role="route")
    first.wait_for("lease_won", timeout=60)
    second = server(route, role="route")
    second.wait_for("ready", timeout=60)
    server(evaluate, role="evaluate").wait_for("ready", timeout=60)
    assert first.stop() == 0
    ended = time.monotonic()
    second.wait_for("lease_won", timeout=SESSION)
    nan(kafka, prefix, "one")
    print(f"\nhand-over after an orderly end: {wait_for_count(people, 1, 30) - ended:.1f} s until the next issue is told")


def test_a_frozen_leader_that_thaws_sends_nothing(server, kafka, people):
    prefix, route, evaluate = configs(kafka, people.url)
    first = server(route, role="route")
    first.wait_for("lease_won", timeout=60)
    second = server(route, role="route")
    second.wait_for("ready", timeout=60)
    server(evaluate, role="evaluate").wait_for("ready", timeout=60)
    nan(kafka, prefix, "one")
    wait_for_count(people, 1, 30)
    first.wait_for("delivery_finished")  # durable: what is in flight may be repeated, with the same id
    first.process.send_signal(signal.SIGSTOP)
    nan(kafka, prefix, "two")
    wait_for_count(people, 2, 60)
    first.process.send_signal(signal.SIGCONT)
    nan(kafka, prefix, "three")
    wait_for_count(people, 3, 30)
    time.sleep(5)
    assert sorted(told(people)) == sorted(set(told(people))), "an issue was told twice"
    assert len(first.all("lease_won")) == 1
    ids = [request["headers"].get("webhook-id") for request in people.accepted()]
    assert len(ids) == len(set(ids)), json.dumps(ids)
