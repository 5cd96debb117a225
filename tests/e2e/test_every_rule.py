"""Every built-in rule over a real Kafka, in the program as it is deployed: of the cases worked by hand one fires, with the kinds
that the table says, and one stays quiet. Each case is a run of its own, each has a rule of its own parameters, and every rule
judges every run."""
import functools
import json
import os
import random
import subprocess
import time

import pytest

from tests.reference import frames, judging, known, tables
from tests.reference.engine import PATIENT, holds
from tests.support.program import run_cli
from tests.support.telemetry import kafka_events
from tocsin import wire


def builtin_rules():
    """Their names; `rules list` also has what users declare themselves."""
    code, out, err = run_cli("rules", "list", "--output", "json")
    assert code == 0, err
    return [one["name"] for one in json.loads(out) if one["name"] != "declared"]


# Judged by ticks of the real clock alone; tests/e2e/test_shipped.py waits for a silence.
BY_THE_CLOCK = judging.judged_by_the_clock()
SUM_UP = tables.summing_up()


@functools.cache
def chosen():
    """{(rule, fires): case}: the shortest of each."""
    built, faults, out = set(builtin_rules()), known.faults(), {}
    for name, (rule, case) in tables.load().items():
        if rule not in built or rule in BY_THE_CLOCK or name in faults or "refused" in case or case.get("open"):
            continue
        if rule in SUM_UP and "tells" not in case:
            continue
        key = (rule, bool(case.get("expect")))
        if key not in out or len(tables.records(case)) < len(tables.records(out[key])):
            out[key] = case
    return out


def produce(bootstrap, topic, uid, folder, records):
    """Each frame is one message, in order: kcat takes the bytes of a message from a file."""
    folder.mkdir()
    files = []
    for number, record in enumerate(records):
        path = folder / f"{number:05}"
        path.write_bytes(frames.encode(record, uid))
        files.append(path.name)
    for start in range(0, len(files), 1000):
        subprocess.run(["kcat", "-b", bootstrap, "-P", "-t", topic, "-k", uid, "-X", "partitioner=murmur2_random",
                        "-X", "message.timeout.ms=60000", *files[start:start + 1000]], cwd=folder, check=True, timeout=120)


@pytest.fixture(scope="module")
def verdicts(kafka, tmp_path_factory):
    """{(rule, fires): {kind}} that the deployed engine told of the case's run by the case's rule."""
    from tests.support.program import Server
    folder, cases = tmp_path_factory.mktemp("rules"), chosen()
    prefix = f"every{random.randrange(10**9)}"
    items, runs = [], {}
    for number, ((rule, fires), case) in enumerate(cases.items()):
        [item] = tables.rules(rule, case)
        items.append({**item, "name": f"rule-{number}"})
        runs[str(wire.run_uid("every", f"case {number}"))] = (number, (rule, fires), case)
    config = folder / "tocsin.yaml"
    config.write_text(frames.json.dumps({
        "transport": {"kafka": {"bootstrap.servers": kafka}}, "topics": {"prefix": prefix, "partitions": 3},
        "engine": PATIENT, "http": {"listen": "127.0.0.1:0"}, "rules": items}))
    server = Server(config, role="evaluate")
    try:
        server.wait_for("ready", timeout=60)
        for uid, (number, _, case) in runs.items():
            produce(kafka, f"{prefix}.telemetry.v1", uid, folder / str(number), tables.records(case))
        end = time.monotonic() + 60 + 120 * (os.cpu_count() == 1)
        while True:
            events = list(kafka_events(kafka, f"{prefix}.issues.v1"))
            over = {data["run"]["uid"] for _, data, _ in events if data.get("phase") == "ended"}
            if over >= set(runs):
                break
            assert time.monotonic() < end, f"{len(over)} of {len(runs)} runs ended"
            time.sleep(1)
    finally:
        server.kill()
    told = {key: set() for _, key, _ in runs.values()}
    for _, data, _ in events:
        if data["run"]["uid"] not in runs:
            continue
        number, key, _ = runs[data["run"]["uid"]]
        if data.get("summary") and data["rule"] == f"rule-{number}":
            told["tells", key[0]] = data["summary"]
        if data.get("status") != "firing":
            continue
        if data["rule"] == f"rule-{number}":
            told[key].add(data["kind"] or "")
    return told


@pytest.mark.parametrize("rule", [name for name in builtin_rules() if name not in BY_THE_CLOCK | SUM_UP])
def test_it_fires_and_stays_quiet(verdicts, rule):
    cases = chosen()
    assert {fires for name, fires in cases if name == rule} == {True, False}, "its table needs a case of either kind that ends"
    assert verdicts[rule, True] == {one.get("kind", "") for one in cases[rule, True]["expect"]}
    assert verdicts[rule, False] == set()


@pytest.mark.parametrize("rule", sorted(SUM_UP))
def test_it_tells_at_the_end(verdicts, rule):
    assert verdicts[rule, False] == set()
    assert holds(chosen()[rule, False]["tells"], verdicts["tells", rule])
