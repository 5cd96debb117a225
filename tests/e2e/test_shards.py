"""Runs whose tensors are spread over four shards, each on a partition of its own of a real Kafka: what is told of them is what is told
of the same runs in one shard, id by id and to their ends, by several engine threads and through kill -9."""
import json
import random
import subprocess

from tests.e2e.test_every_rule import chosen
from tests.e2e.test_every_rule_killed import Corpus
from tests.e2e.test_recovery import wait_until
from tests.reference import frames, shards, tables
from tests.reference.engine import UNIT
from tests.support.telemetry import kafka_events
from tocsin import wire

SHARDS = 4
# Of one tensor over all workers, of steps, of scalars, of nodes. What joins tensors is given none of such a run.
RULES = ("replica_divergence", "straggler", "load_balancing", "exploding_tensor", "all_zero", "tensor_variance", "step_outlier",
         "loss_not_decreasing", "data_wait")
OWN = [{"name": "ranks", "select": 'tensor(".*")', "by": ["tensor"], "when": "across(max, abs_max) >= 0"}]


class Runs:
    """Cases worked by hand that fire, each a run whose shards lie on four partitions."""

    def __init__(self):
        self.items, self.records = list(OWN), {}
        cases = chosen()
        for number, rule in enumerate(RULES):
            [item] = tables.rules(rule, cases[rule, True])
            self.items.append({**item, "name": f"rule-{number}"})
            name = next(text for text in (f"shards {number}.{i}" for i in range(10_000)) if self.apart(wire.run_uid("e2e", text)))
            self.records[str(wire.run_uid("e2e", name))] = tables.records(cases[rule, True])

    @staticmethod
    def apart(uid):
        return len({wire.partition_for(wire.route_key(uid, shard), SHARDS) for shard in range(SHARDS)}) == SHARDS

    def config(self, kafka, prefix):
        return json.dumps({
            "transport": {"kafka": {"bootstrap.servers": kafka}}, "topics": {"prefix": prefix, "partitions": SHARDS},
            "engine": {"threads": 3, "idle_after": "1000h", "lost_after": "1000h"}, "http": {"listen": "127.0.0.1:0"},
            "rules": self.items})

    def send(self, kafka, topic, folder, spread, part=0, parts=1):
        folder.mkdir()
        for number, (uid, records) in enumerate(self.records.items()):
            begin, end = (Corpus.cut(records, len(records) * (part + i) // parts) for i in (0, 1))
            # All of it is spread, so that each part goes on with the numbers of the one before.
            sent = [one for one in shards.spread(records, SHARDS) if begin <= one["nth"] < end] if spread else records[begin:end]
            files = {}
            for at, record in enumerate(sent):
                path = folder / f"{number}-{at:05}"
                path.write_bytes(frames.encode(record, uid))
                files.setdefault(wire.route_key(uid, record.get("shard", 0)), []).append(path.name)
            for key, names in files.items():
                subprocess.run(["kcat", "-b", kafka, "-P", "-t", topic, "-k", key, "-X", "partitioner=murmur2_random",
                                "-X", "message.timeout.ms=60000", *names], cwd=folder, check=True, timeout=120)

    def told(self, kafka, prefix):
        """[(rule, id)] of all issues of the runs, once nothing of them is open; None before."""
        events = [(data, headers) for _, data, headers in kafka_events(kafka, f"{prefix}.issues.v1")
                  if data["run"]["uid"] in self.records]
        issues = [(data, headers["ce_id"]) for data, headers in events if headers.get("ce_type") == "dev.tocsin.issue.v1"]
        ended = {data["run"]["uid"] for data, _ in events if data.get("phase") == "ended"}
        open_ones = {}
        for data, _ in issues:
            unit = [data["labels"].get(name) for name in (*UNIT, "kind")]
            open_ones[data["run"]["uid"], data["rule"], *unit] = data["status"] == "firing"
        if len(ended) < len(self.records) or any(open_ones.values()):
            return None
        return sorted((data["rule"], one) for data, one in issues)


def test_four_shards_tell_what_one_tells_through_kills(kafka, engine, tmp_path):
    runs = Runs()
    whole, spread = (f"{name}{random.randrange(10**9)}" for name in ("whole", "spread"))
    engine(runs.config(kafka, whole)).wait_for("ready", timeout=90)
    runs.send(kafka, f"{whole}.telemetry.v1", tmp_path / "whole", spread=False)
    expected = wait_until(lambda: runs.told(kafka, whole), 120, "the issues of runs in one shard")
    assert {f"rule-{number}" for number in range(len(RULES))} <= {rule for rule, _ in expected}

    config = runs.config(kafka, spread)
    engine(config).wait_for("ready", timeout=90)
    for part in range(3):
        runs.send(kafka, f"{spread}.telemetry.v1", tmp_path / f"spread-{part}", True, part, 3)
        engine(config).wait_for("ready", timeout=90)  # kill -9 at whatever moment that is
    assert wait_until(lambda: runs.told(kafka, spread), 120, "the issues of runs in four shards") == expected
    engine(config).wait_for("ready", timeout=90)  # what was settled is not settled again
    assert runs.told(kafka, spread) == expected
