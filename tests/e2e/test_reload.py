"""Another configuration for a program that runs: on a signal, on a changed file, over a real Kafka; what has not
changed goes on, also after kill -9. And rules in shadow, which judge and tell nobody."""
import os
import random
import re
import signal

import pytest

from tests.e2e.test_recovery import wait_until
from tests.support.program import run_cli
from tests.support.telemetry import firing_ids, kafka_events, kafka_produce, scalar
from tests.support.webhook_receiver import WebhookReceiver

PATIENT = "{use: exploding_tensor, name: patient, with: {min_hits: 3, cooldown: 1h}}"
NEW = "{use: exploding_tensor, name: new, with: {cooldown: 1h}}"


class Cluster:
    """A prefix of topics of its own, and what stands on them."""

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.prefix = f"reload{random.randrange(10**9)}"

    def config(self, *rules, more=""):
        listed = "".join(f"  - {rule}\n" for rule in rules)
        return (f"transport: {{kafka: {{bootstrap.servers: '{self.bootstrap}'}}}}\n"
                f"topics: {{prefix: {self.prefix}, partitions: 3}}\nengine: {{threads: 1}}\n"
                f"http: {{listen: '127.0.0.1:0'}}\n{more}rules:\n{listed}")

    def send(self, run, step, value="NaN"):
        kafka_produce(self.bootstrap, f"{self.prefix}.telemetry.v1", [scalar(run, "loss", value, step)])

    def events(self, kind, topic="issues"):
        return [data for _, data, headers in kafka_events(self.bootstrap, f"{self.prefix}.{topic}.v1")
                if headers.get("ce_type") == kind]

    def issues(self, rule=None, status="firing"):
        return [data for data in self.events("dev.tocsin.issue.v1")
                if data["status"] == status and (rule is None or data["rule"] == rule)]

    def wait_for(self, rule, status="firing", count=1):
        return wait_until(lambda: (lambda found: found if len(found) >= count else None)(self.issues(rule, status)), 60,
                          f"{count} issues of {rule} {status}")


@pytest.fixture
def cluster(kafka):
    return Cluster(kafka)


def metric(program, name):
    found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+)$", program.get("/metrics")[1], re.M)
    assert found, f"no metric {name}"
    return float(found.group(1))


def swap(path, text):
    """As editors and tools do: never half a file."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, path)


def judged(program, evaluations):
    """So many values have been judged by a rule since it started, replayed ones among them."""
    wait_until(lambda: metric(program, "tocsin_rules_evaluations_total") >= evaluations, 60, f"{evaluations} evaluations")


def judged_by(program, reloads):
    """All three partitions go on with what was read."""
    wait_until(lambda: metric(program, "tocsin_rules_reloads_total") >= 3 * reloads, 30, "the engine goes on with it")


def test_a_signal_brings_new_rules_and_what_has_not_changed_goes_on(server, cluster, tmp_path):
    path = tmp_path / "tocsin.yaml"
    path.write_text(cluster.config(PATIENT))
    program = server(path)
    program.wait_for("ready", timeout=90)
    assert metric(program, "tocsin_config_last_reload_successful") == 1
    for step in (0, 1):
        cluster.send("one", step)
    judged(program, 2)
    path.write_text(cluster.config(NEW, PATIENT))
    program.process.send_signal(signal.SIGHUP)
    event = program.wait_for("configuration_reloaded")
    assert event["added"] == "new" and event["rules"] == 2
    judged_by(program, 1)
    cluster.send("one", 2)
    assert cluster.wait_for("patient")[0]["step"] == 2  # the third in a row: two of them before
    assert cluster.wait_for("new")[0]["step"] == 2  # it has seen nothing of before
    assert not program.all("insights_failed") + program.all("curves_failed")  # its topics were made while it started
    # kill -9: what was told is not told again, and what a rule remembers is there.
    cluster.send("two", 0)
    cluster.send("two", 1)
    judged(program, 2 + 3 * 2)
    cluster.wait_for("new", count=2)
    program.kill()
    program = server(path)
    program.wait_for("ready", timeout=90)
    cluster.send("two", 2)
    cluster.wait_for("patient", count=2)
    ids = firing_ids(kafka_events(cluster.bootstrap, f"{cluster.prefix}.issues.v1"))
    assert {issue["rule"] for issue in cluster.issues()} == {"new", "patient"}
    assert len(ids) == len(set(ids)) == 4
    # A removed rule ends what it had fired, once.
    path.write_text(cluster.config(PATIENT))
    program.process.send_signal(signal.SIGHUP)
    ended = cluster.wait_for("new", "resolved", count=2)
    assert {issue["resolution"] for issue in ended} == {"rule_removed"}
    assert not cluster.issues("patient", "resolved")
    program.kill()
    program = server(path)
    program.wait_for("ready", timeout=90)
    before = metric(program, "tocsin_rules_evaluations_total")
    cluster.send("three", 0)
    judged(program, before + 1)
    assert len(cluster.issues("new", "resolved")) == 2 and len(cluster.issues("new")) == 2
    assert program.stop() == 0


def test_a_wrong_file_changes_nothing_and_is_seen(server, cluster, tmp_path):
    path = tmp_path / "tocsin.yaml"
    path.write_text(cluster.config(NEW))
    program = server(path)
    program.wait_for("ready", timeout=90)
    before = metric(program, "tocsin_config_last_reload_success_timestamp_seconds")
    rules = metric(program, "tocsin_config_rules_hash")
    swap(path, cluster.config("{use: explodingtensr}"))
    error = program.wait_for("configuration_error")
    line = 1 + next(i for i, text in enumerate(path.read_text().splitlines()) if "explodingtensr" in text)
    assert re.fullmatch(rf"{re.escape(str(path))}:{line}:\d+", error["at"])
    assert "exploding_tensor" in error["problem"]
    program.wait_for("configuration_not_reloaded")
    assert metric(program, "tocsin_config_last_reload_successful") == 0
    assert metric(program, "tocsin_config_last_reload_success_timestamp_seconds") == before
    cluster.send("one", 0)
    cluster.wait_for("new")  # the one before judges on
    # What only a restart brings into effect is said, and what a reload does is done.
    swap(path, cluster.config(NEW, PATIENT, more="labels: {site: b}\n"))
    assert program.wait_for("configuration_needs_restart")["sections"] == "labels"
    assert metric(program, "tocsin_config_last_reload_successful") == 1
    assert metric(program, "tocsin_config_restart_needed") == 1
    assert metric(program, "tocsin_config_rules_hash") != rules
    swap(path, cluster.config(NEW, PATIENT))
    wait_until(lambda: metric(program, "tocsin_config_restart_needed") == 0, 15, "as it was started")
    assert program.stop() == 0


def test_a_config_map_is_swapped_by_a_link(server, cluster, tmp_path):
    """Kubernetes: tocsin.yaml → ..data/tocsin.yaml, ..data → a folder; an update replaces ..data."""
    def version(number, text):
        folder = tmp_path / f"..v{number}"
        folder.mkdir()
        (folder / "tocsin.yaml").write_text(text)
        link = tmp_path / "..tmp"
        link.symlink_to(folder.name)
        os.replace(link, tmp_path / "..data")

    version(1, cluster.config(PATIENT))
    path = tmp_path / "tocsin.yaml"
    path.symlink_to("..data/tocsin.yaml")
    program = server(path, role="evaluate")
    program.wait_for("ready", timeout=90)
    version(2, cluster.config(PATIENT, NEW))
    assert program.wait_for("configuration_reloaded")["added"] == "new"
    judged_by(program, 1)
    cluster.send("one", 0)
    cluster.wait_for("new")
    assert len(program.all("configuration_reloaded")) == 1  # nothing is read again that has not changed
    assert program.stop() == 0


def test_a_rule_in_shadow_is_seen_and_tells_and_stops_nobody(server, cluster, tmp_path):
    with WebhookReceiver() as people:
        more = ("route: {receiver: people, group_wait: 0s, group_by: [run_uid]}\n"
                "receivers:\n"
                f"  people: {{webhook: {{format: alertmanager_v4, url: '{people.url}', allow_private: [127.0.0.0/8]}}}}\n"
                "  stop: {stop_training: {armed: true}}\n")
        shadow = "{use: exploding_tensor, name: trial, shadow: true, actions: [people, stop]}"
        loud = "{use: exploding_tensor, name: loud}"
        path = tmp_path / "tocsin.yaml"
        path.write_text(cluster.config(shadow, loud, more=more))
        program = server(path)
        program.wait_for("ready", timeout=90)
        cluster.send("one", 0)
        assert cluster.wait_for("trial")[0]["shadow"] is True
        cluster.wait_for("loud")
        told = wait_until(people.accepted, 60, "a message about the other rule")
        assert metric(program, "tocsin_rules_shadow_issues_total") >= 1
        assert program.wait_for("issue_fired", rule="trial")["shadow"] == "shadow"
        listed = run_cli("issues", "list", "--config.file", path)[1]
        assert "trial (shadow)" in listed and "loud (shadow)" not in listed
        # Long enough for a message and a stop that should not be.
        cluster.send("two", 0)
        wait_until(lambda: len(people.accepted()) >= 2, 60, "a message about the second run")
        alerts = [alert["labels"]["rule"] for request in people.accepted() for alert in request["json"]["alerts"]]
        assert set(alerts) == {"loud"} and told
        stops = [data for data in cluster.events("dev.tocsin.command.v1", "commands") if data["action"] == "stop"]
        assert not stops
        # Out of its shadow, without a restart: from now on people hear of it.
        path.write_text(path.read_text().replace("shadow: true, ", ""))
        program.process.send_signal(signal.SIGHUP)
        program.wait_for("configuration_reloaded", changed="trial")
        judged_by(program, 1)
        cluster.wait_for("trial", "resolved", count=2)
        cluster.send("three", 0)
        wait_until(lambda: any(alert["labels"]["rule"] == "trial" for request in people.accepted()
                               for alert in request["json"]["alerts"]), 60, "a message about the rule")
        assert program.stop() == 0
