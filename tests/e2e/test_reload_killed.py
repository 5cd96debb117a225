"""A reload is an entry of the log. Whoever is killed -9 right after it judges on as if nothing had happened: what a rule
fired before, what ends with the reload, and the next alarm, on the journal and on Kafka."""
import random

import pytest

from tests.e2e.test_recovery import wait_until
from tests.support.telemetry import JournalWriter, journal_events, kafka_events, kafka_produce, scalar

pytestmark = pytest.mark.apart

# Of each: what is in effect first, what a reload makes of it, and how many steps of NaN or growth it takes.
RULES = {
    "added": ("- {use: overfit}", "- {use: overfit}\n  - {use: exploding_tensor}"),
    "changed": ("- {use: exploding_tensor, with: {min_hits: 40}}", "- {use: exploding_tensor, with: {min_hits: 2}}"),
    "all others": ("- {use: loss_spike}", "- {use: exploding_tensor}"),
    "own of rows": ("- {name: own, select: 'metric(\"loss\")', when: 'value > 1e9'}",
                    "- {name: own, select: 'metric(\"loss\")', when: 'nan > 0 or value > 5'}"),
    "own of a window": ("- {use: overfit}",
                        "- {name: own, select: 'metric(\"loss\")', window: last 3 steps, when: 'max(value) > 5'}"),
    "own of a series": ("- {name: own, select: 'metric(\"loss\")', window: last 4 steps, when: 'mean(value) > 1e9'}",
                        "- {name: own, select: 'metric(\"loss\")', window: last 4 steps, when: 'mean(value) > 5'}"),
    "own of others": ("- {name: high, select: 'metric(\"loss\")', when: 'value > 1e9'}",
                      "- {name: high, select: 'metric(\"loss\")', when: 'value > 5'}\n"
                      "  - {name: twice, sequence: [high, high], within: 20 steps}"),
}


class Journal:
    def __init__(self, folder):
        self.folder, self.writer = folder, None
        self.transport = f"transport: {{journal: {folder}}}\n"

    def append(self, records):
        self.writer = self.writer or JournalWriter(self.folder)
        self.writer.append(*records)

    def issues(self):
        return [data for _, data, headers in journal_events(self.folder, "issues") if headers.get("ce_type") == "dev.tocsin.issue.v1"]


class Cluster:
    def __init__(self, bootstrap):
        self.bootstrap, self.prefix = bootstrap, f"killed{random.randrange(10**9)}"
        self.transport = (f"transport: {{kafka: {{bootstrap.servers: '{bootstrap}'}}}}\n"
                          f"topics: {{prefix: {self.prefix}, partitions: 2}}\nengine: {{threads: 1}}\n")

    def append(self, records):
        kafka_produce(self.bootstrap, f"{self.prefix}.telemetry.v1", records)

    def issues(self):
        return [data for _, data, headers in kafka_events(self.bootstrap, f"{self.prefix}.issues.v1")
                if headers.get("ce_type") == "dev.tocsin.issue.v1"]


def loss(step):
    return 9.0 + step if step >= 12 else 1.0


def play(server, place, path, first, then, role, kill):
    """Steps under `first`, a reload, some more, perhaps a kill, and the steps that `then` fires at."""
    def text(rules):
        return f"{place.transport}http: {{listen: '127.0.0.1:0'}}\nrules:\n  {rules}\n# end\n"

    def judged(program, count):
        import re
        wait_until(lambda: int(float(re.search(r"^tocsin_rules_rows_total (\S+)$", program.get("/metrics")[1], re.M).group(1))) >= count,
                   60, f"{count} rows")

    path.write_text(text(first))
    program = server(path, role=role)
    program.wait_for("ready", timeout=90)
    run = f"run-{kill}"
    place.append([scalar(run, "loss", loss(step), step) for step in range(6)])
    judged(program, 6)
    path.write_text(text(then))
    program.wait_for("configuration_reloaded")
    wait_until(lambda: "tocsin_rules_reloads_total 0" not in program.get("/metrics")[1], 30, "the engine goes on with it")
    place.append([scalar(run, "loss", loss(step), step) for step in range(6, 9)])
    judged(program, 9)
    if kill:
        program.kill()
        program = server(path, role=role)
        program.wait_for("ready", timeout=90)
    place.append([scalar(run, "loss", "NaN" if step >= 15 else loss(step), step) for step in range(9, 20)])
    return program


@pytest.mark.parametrize("what", RULES, ids=[name.replace(" ", "_") for name in RULES])
def test_the_next_alarm_comes_after_a_reload_and_a_kill(server, tmp_path, what):
    told = {}
    for kill in (False, True):
        place = Journal(tmp_path / f"journal-{kill}")
        program = play(server, place, tmp_path / f"tocsin-{kill}.yaml", *RULES[what], "evaluate", kill)
        wait_until(place.issues, 30, f"an issue, killed: {kill}")
        wait_until(lambda: len(place.issues()) >= len(told.get(False, [0])), 15, f"all issues, killed: {kill}")
        assert program.stop() == 0
        told[kill] = sorted((one["rule"], one["status"], one["step"], one["resolution"]) for one in place.issues())
    assert told[True] == told[False]


def test_on_kafka_and_in_the_role_of_all_too(server, tmp_path, kafka):
    told = {}
    for kill in (False, True):
        place = Cluster(kafka)
        program = play(server, place, tmp_path / f"tocsin-{kill}.yaml", *RULES["changed"], "up" if kill else "evaluate", kill)
        wait_until(place.issues, 60, f"an issue, killed: {kill}")
        assert program.stop() == 0
        told[kill] = sorted((one["rule"], one["status"], one["step"]) for one in place.issues())
    assert told[True] == told[False]


def test_what_a_rule_fired_that_went_while_the_process_was_down_is_over_at_the_start(server, tmp_path):
    for resolution, after in (("rule_removed", "- {use: overfit}"),
                              ("rule_changed", "- {use: overfit}\n  - {use: exploding_tensor, with: {min_hits: 9}}")):
        place = Journal(tmp_path / resolution)
        path = tmp_path / f"{resolution}.yaml"
        text = f"{place.transport}http: {{listen: '127.0.0.1:0'}}\nrules:\n  "
        path.write_text(f"{text}- {{use: overfit}}\n  - {{use: exploding_tensor, with: {{cooldown: 1h}}}}\n")
        program = server(path, role="evaluate")
        program.wait_for("ready")
        place.append([scalar("one", "loss", "NaN" if step > 3 else 1.0, step) for step in range(6)])
        wait_until(place.issues, 30, "an issue")
        program.kill()
        path.write_text(f"{text}{after}\n")
        program = server(path, role="evaluate")
        over = wait_until(lambda: [one for one in place.issues() if one["status"] == "resolved"], 30, "it is over")
        assert [one["resolution"] for one in over] == [resolution]
        program.kill()
        program = server(path, role="evaluate")
        program.wait_for("ready")
        place.append([scalar("one", "loss", 1.0, 7)])
        assert program.stop() == 0
        assert sum(one["status"] == "resolved" for one in place.issues()) == 1
