"""Every built-in rule, and some of the user's own, with the settings that ship, over a real Kafka: the engine is killed in the middle
of the windows of all of them, behind a snapshot and long after one, beside a thousand past runs. What it tells is what an engine
told that nobody disturbed, id by id."""
import os
import random
import time

from tests.e2e.test_every_rule import chosen, produce
from tests.e2e.test_recovery import wait_until
from tests.reference import frames, tables
from tests.support.telemetry import kafka_events, kafka_produce, scalar
from tocsin import wire

PAST_RUNS = 1200
PARTS = 4
OWN = [{"name": "own-nan", "select": 'tensor(".*")', "when": "nan + posinf + neginf > 0", "severity": "critical"},
       {"name": "own-slope", "select": 'metric("loss")', "window": "last 5 steps", "when": "slope(value) > 0", "for": 2},
       {"name": "own-best", "select": 'metric("loss")', "window": "since start", "when": "value > 2 * min(value)"}]


class Corpus:
    """Cases worked by hand, each a run, and the rules that judge all of them."""

    def __init__(self):
        self.items, self.runs = list(OWN), {}
        for number, ((rule, _), case) in enumerate(chosen().items()):
            [item] = tables.rules(rule, case)
            self.items.append({**item, "name": f"rule-{number}"})
            self.runs[str(wire.run_uid("killed", f"case {number}"))] = tables.records(case)

    def config(self, kafka, prefix):
        return frames.json.dumps({
            "transport": {"kafka": {"bootstrap.servers": kafka}}, "topics": {"prefix": prefix, "partitions": 3},
            "http": {"listen": "127.0.0.1:0"}, "rules": self.items})

    @staticmethod
    def cut(records, at):
        """Not within a step of several ranks: whoever is a pause late with it is judged without, by the clock, kill or no kill."""
        def step(record):
            return record["mode"], record["step"]
        several = len({record["rank"] for record in records}) > 1
        names = [record["kind"] == "dictionary" for record in records]  # stand in the step of what they name
        while several and 0 < at < len(records):
            before = next((one for one, name in zip(reversed(records[:at]), reversed(names[:at])) if not name), None)
            if not names[at] and before is not None and step(records[at]) != step(before):
                break
            at += 1
        return at

    def produce(self, kafka, topic, folder, part):
        """One of PARTS of every run, so that a kill between two of them is in the middle of each."""
        for number, (uid, records) in enumerate(self.runs.items()):
            begin, end = (self.cut(records, len(records) * (part + i) // PARTS) for i in (0, 1))
            if begin < end:
                produce(kafka, topic, uid, folder / f"{part}-{number}", records[begin:end])


def told(kafka, topic, corpus):
    """[(rule, id)] of every issue of the corpus, resolves included, once all of its runs have ended."""
    events = [(data, headers) for _, data, headers in kafka_events(kafka, topic) if data["run"]["uid"] in corpus.runs]
    if len({data["run"]["uid"] for data, _ in events if data.get("phase") == "ended"}) < len(corpus.runs):
        return None
    return sorted((data["rule"], headers["ce_id"]) for data, headers in events if headers.get("ce_type") == "dev.tocsin.issue.v1")


def test_kills_in_the_middle_of_every_rule_lose_and_repeat_nothing(kafka, engine, tmp_path):
    corpus = Corpus()
    golden, prefix = (f"{name}{random.randrange(10**9)}" for name in ("golden", "killed"))
    limit = 120 if (os.cpu_count() or 1) > 1 else 300

    engine(corpus.config(kafka, golden)).wait_for("ready", timeout=60)
    (tmp_path / "golden").mkdir()
    for part in range(PARTS):
        corpus.produce(kafka, f"{golden}.telemetry.v1", tmp_path / "golden", part)
    expected = wait_until(lambda: told(kafka, f"{golden}.issues.v1", corpus), limit, "the issues without a kill")
    assert {one["name"] for one in OWN} < {rule for rule, _ in expected} and len(expected) > len(corpus.runs) / 2

    config, topic = corpus.config(kafka, prefix), f"{prefix}.telemetry.v1"
    engine(config).wait_for("ready", timeout=60)
    (tmp_path / "killed").mkdir()
    for start in range(0, PAST_RUNS, 100):
        kafka_produce(kafka, topic, [scalar(f"past-{run}", "loss", 1.0, step) for run in range(start, start + 100) for step in range(3)])
    corpus.produce(kafka, topic, tmp_path / "killed", 0)
    time.sleep(32)  # engine.snapshot_interval is 30 s: the next kill finds a snapshot with every window half full
    corpus.produce(kafka, topic, tmp_path / "killed", 1)
    again = engine(config)
    again.wait_for("ready", timeout=60)
    corpus.produce(kafka, topic, tmp_path / "killed", 2)
    engine(config)  # at whatever moment that is
    corpus.produce(kafka, topic, tmp_path / "killed", 3)
    found = wait_until(lambda: told(kafka, f"{prefix}.issues.v1", corpus), limit, "the issues with kills")
    assert found == expected
