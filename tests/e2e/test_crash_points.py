"""kill -9 of the router at a point, on a real Kafka: what was decided is sent, what may have arrived comes once more with the
same id and the same bytes, and waits and breakers outlive the process. tests/crash-points.md lists all points."""
import datetime
import json
import os
import random
import subprocess
import time

import pytest

from tests.support.kafka import Kafka
from tests.support.on_call import history, issue_event
from tests.support.program import run_cli
from tests.support.receiver import wait_for
from tests.support.webhook_receiver import WebhookReceiver


@pytest.fixture(scope="module")
def cluster():
    """Its own: it is frozen at a point."""
    with Kafka(f"crash-{random.randrange(10**6)}") as own:
        yield own


class Site:
    """A router on the cluster with one webhook, killed and started again at will."""

    def __init__(self, server, folder, cluster, hook, group_wait="0s", kafka=None, **more):
        self.server, self.cluster, self.hook = server, cluster, hook
        self.prefix = f"crash{random.randrange(10**9)}"
        self.config = folder / "tocsin.yaml"
        webhook = {"id": "hook", "url": hook.url, "allow_private": ["127.0.0.0/8"], "format": "native", **more}
        self.config.write_text(json.dumps({
            "transport": {"kafka": {"bootstrap.servers": cluster.bootstrap, **(kafka or {})}}, "topics": {"prefix": self.prefix, "partitions": 1},
            "http": {"listen": "127.0.0.1:0"}, "receivers": {"r": {"webhook": webhook}, "none": {}},
            "route": {"receiver": "r", "group_by": ["alertname"], "group_wait": group_wait, "group_interval": "1h",
                      "routes": [{"matchers": ['rule=~"delivery_.*"'], "receiver": "none"}]}}))
        self.start()

    def start(self):
        self.program = self.server(self.config, role="route")
        self.program.wait_for("ready", timeout=90)
        wait_for(lambda: "\ntocsin_router_lease_held 1\n" in self.program.get("/metrics")[1], 90, "the lease")

    def kill(self):
        self.program.kill()

    def issue(self, name):
        heads, data = issue_event(name)
        headers = [word for key, one in heads.items() for word in ("-H", f"{key}={one}")]
        subprocess.run(["kcat", "-b", self.cluster.bootstrap, "-P", "-t", f"{self.prefix}.issues.v1", *headers],
                       input=json.dumps(data), text=True, check=True, timeout=60)

    def came(self):
        return list(self.hook.records)

    def wait(self, count, timeout=60):
        return wait_for(lambda: len(self.came()) >= count and self.came(), timeout, f"{count} requests (has {len(self.came())})")

    def story(self, name):
        return next((one for one in history(self.config) if name in json.dumps(one)), None)

    def ends(self, state, count=1):
        wait_for(lambda: len(history(self.config, "--all", "--state", state)) >= count, 60, f"{count} {state}")


def at(record):
    return datetime.datetime.fromisoformat(record["at"]).timestamp()


def same(records):
    """All of them are one message: one id, the same bytes."""
    return len({(record["headers"]["webhook-id"], record["body"]) for record in records}) == 1


@pytest.fixture
def hook():
    with WebhookReceiver() as receiver:
        yield receiver


def test_k1_k2_killed_at_any_instant_each_event_is_decided_once(server, tmp_path, cluster, hook):
    site = Site(server, tmp_path, cluster, hook)
    kills = int(os.environ.get("TOCSIN_KILLS", 4))  # `make soak`: 500
    names = [f"k1-{i}-" for i in range(3 * kills)]
    for i, name in enumerate(names):
        site.issue(name)
        if i % 3 == 2:
            time.sleep(random.uniform(0, 0.3))
            site.kill()
            site.start()
        if i % 300 == 299:
            print(f"{(i + 1) // 3} kills", flush=True)
    wait_for(lambda: len({one["headers"]["webhook-id"] for one in site.came()}) == len(names), 90, "all told")
    site.ends("delivered", len(names))
    told = history(site.config, "--all")
    assert len(told) == len(names) and all(sum(name in json.dumps(one) for one in told) == 1 for name in names[-2:])
    for identity in {one["headers"]["webhook-id"] for one in site.came()}:
        assert same([one for one in site.came() if one["headers"]["webhook-id"] == identity])


def test_k3_killed_inside_group_wait_the_flush_comes_at_its_original_time(server, tmp_path, cluster, hook):
    site = Site(server, tmp_path, cluster, hook, group_wait="30s")
    began = time.time()
    site.issue("k3")
    wait_for(lambda: "k3" in run_cli("issues", "list", "-c", site.config)[1], 30, "the issue")
    time.sleep(3)
    site.kill()
    site.start()
    [came] = site.wait(1, 60)
    assert 29 <= at(came) - began < 40, at(came) - began  # from the restart on it would be 30 s more


def test_k12_a_silence_that_was_confirmed_is_in_force_after_a_restart(server, tmp_path, cluster, hook):
    site = Site(server, tmp_path, cluster, hook)
    assert run_cli("silence", "add", "alertname=k12", "--for", "1h", "--comment", "test", "-c", site.config)[0] == 0
    site.kill()
    site.start()
    site.issue("k12")
    wait_for(lambda: 'tocsin_router_suppressed_total{reason="silence"} 1' in site.program.get("/metrics")[1], 30, "a suppressed member")
    site.issue("heard")
    assert "heard" in site.wait(1)[0]["body"] and len(site.came()) == 1


def test_k5_decided_and_never_tried_is_delivered(server, tmp_path, cluster, hook):
    site = Site(server, tmp_path, cluster, hook)
    assert run_cli("endpoint", "disable", "hook", "--comment", "test", "-c", site.config)[0] == 0
    wait_for(lambda: '"endpoint_ordered"' in json.dumps(site.program.events), 30, "the order")
    site.issue("k5")
    wait_for(lambda: site.story("k5"), 60, "a decision in the outbox")
    site.kill()
    assert site.came() == []
    site.start()
    assert run_cli("endpoint", "enable", "hook", "-c", site.config)[0] == 0
    site.wait(1)
    site.ends("delivered")
    assert len(site.came()) == 1


def test_k6_killed_between_request_and_answer_the_same_bytes_come_once_more(server, tmp_path, cluster, hook):
    site = Site(server, tmp_path, cluster, hook)
    hook.hang()
    site.issue("k6")
    site.wait(1)
    site.kill()
    site.start()
    site.wait(2)
    site.ends("delivered")
    time.sleep(3)
    assert len(site.came()) == 2 and same(site.came())


def test_k7_killed_between_answer_and_record_it_comes_twice_and_not_thrice(server, tmp_path, cluster, hook):
    site = Site(server, tmp_path, cluster, hook)
    # The cluster freezes while the request is held: the answer arrives, its record cannot be committed.
    hook._on_record = lambda record: cluster.pause() if len(hook.records) == 1 else None
    site.issue("k7")
    site.wait(1)
    time.sleep(1.5)
    site.kill()
    hook._on_record = None
    cluster.resume()
    site.start()
    site.wait(2)
    site.ends("delivered")
    site.kill()
    site.start()  # a third start repeats nothing
    time.sleep(5)
    assert len(site.came()) == 2 and same(site.came()) and all(one["accepted"] for one in site.came())


def test_k8_a_wait_that_was_asked_for_outlives_the_process(server, tmp_path, cluster, hook):
    site = Site(server, tmp_path, cluster, hook)
    wait = 25
    hook.answer(429, 1, retry_after=wait)
    site.issue("k8")
    site.wait(1)
    wait_for(lambda: "429" in json.dumps(site.story("k8")), 30, "the attempt's record")
    site.kill()
    site.start()
    first, second = site.wait(2, wait + 60)[:2]
    assert wait <= at(second) - at(first) and same([first, second])
    site.ends("delivered")
    assert len(site.came()) == 2


def test_k9_a_breaker_that_is_open_lets_single_probes_through_after_a_restart(server, tmp_path, cluster, hook):
    site = Site(server, tmp_path, cluster, hook, concurrency=4, retry={"initial": "100ms", "max": "200ms"},
                breaker={"failures": 3, "open": "60s", "max_open": "60s"})
    hook.answer(500, 1000)
    names = [f"k9-{i}" for i in range(8)]
    for name in names:
        site.issue(name)
    wait_for(lambda: 'tocsin_router_breaker_state{integration="hook"} 2' in site.program.get("/metrics")[1], 60, "an open breaker")
    wait_for(lambda: len([one for one in history(site.config) if "500" in json.dumps(one)]) >= 3, 30, "records of attempts")
    site.kill()
    before = len(site.came())
    site.start()
    site.wait(before + 1)
    time.sleep(5)
    # Messages that were never tried probe 1 s, 2 s, 4 s … apart; four lanes of a closed breaker would send four at once.
    probes = [at(record) for record in site.came()[before:]]
    assert len(probes) <= 3 and all(later - earlier >= 1 for earlier, later in zip(probes, probes[1:])), probes
    hook.script.clear()
    site.ends("delivered", len(names))
    assert len({one["headers"]["webhook-id"] for one in hook.accepted()}) == len(names) == len(hook.accepted())


def test_k17_an_endpoint_slower_than_the_poll_interval_costs_no_lease(server, tmp_path, cluster, hook):
    site = Site(server, tmp_path, cluster, hook, timeout="25s", concurrency=1,
                kafka={"max.poll.interval.ms": 10000, "session.timeout.ms": 6000})
    before = [line for line in site.program.get("/metrics")[1].splitlines() if line.startswith("tocsin_router_lease_changes_total ")]
    hook.hang()
    site.issue("slow")
    site.wait(1)
    time.sleep(14)
    text = site.program.get("/metrics")[1]
    assert before and before[0] in text.splitlines() and "\ntocsin_router_lease_held 1\n" in text
    assert all(line.endswith(" 0") for line in text.splitlines() if line.startswith("tocsin_router_restarts_total{"))
