"""`evidence: {keep: …}`: what issues were decided by is copied before retention takes it, also through a kill, and judged again from there."""
import json
import sqlite3
import time

import pytest

from tests.e2e.test_evaluate_recorded import train
from tests.e2e.test_recovery import wait_until
from tests.support import journal
from tests.support.program import run_cli
from tests.support.telemetry import journal_events, kafka_events, kafka_produce, scalar
from tocsin import wire

pytestmark = pytest.mark.apart

RULES = ("rules: [exploding_tensor, {use: vanishing_gradient, with: {threshold: 1.0e-6}}]\n"
         "http: {listen: '127.0.0.1:0'}\n")


def firing(events):
    return {headers["ce_id"]: data for _, data, headers in events if data.get("status") == "firing" and "evidence" in data and data["rule"] in RULES}


def copies(folder):
    """Of each issue that is kept: its directory."""
    return sorted(path.parent for path in folder.glob("*/*/issue.json"))


def test_it_outlives_the_telemetry_and_is_judged_again(server, tmp_path):
    folder, kept, config = tmp_path / "data", tmp_path / "kept", tmp_path / "tocsin.yaml"
    config.write_text(f"transport: {{journal: {folder}}}\nevidence: {{keep: all, dir: {kept}}}\n{RULES}")
    program = server(config, role="evaluate")
    program.wait_for("ready", timeout=60)
    for kind in ("exploding", "vanishing"):
        train(folder, kind)
    wait_until(lambda: len(copies(kept)) == 2, 60, "two copies")
    assert 'tocsin_evidence_total{result="kept"} 2' in program.get("/metrics")[1]
    assert program.stop() == 0
    issues = firing(journal_events(folder, "issues"))
    with sqlite3.connect(folder / "telemetry.db") as database:
        database.execute("delete from telemetry")
    for name, told in issues.items():
        code, out, err = run_cli("issues", "reproduce", name, "-c", config, "-o", "json")
        answer = json.loads(out)
        assert code == 0 and answer["reproduced"] and str(kept) in answer["source"], out + err
        [event] = [json.loads((path / "issue.json").read_text()) for path in copies(kept) if path.name.startswith(told["rule"])]
        assert (event["rule"], event["step"]) == (told["rule"], told["step"])
    code, out, _ = run_cli("evaluate", "--from", copies(kept)[0], "--rules", "exploding_tensor")
    assert code == 1, out


def test_on_kafka_through_kills_each_issue_has_one_whole_copy(server, kafka, tmp_path):
    kept, config = tmp_path / "kept", tmp_path / "tocsin.yaml"
    config.write_text(f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\ntopics: {{prefix: evidence, partitions: 4}}\n"
                      f"evidence: {{keep: first_signs, dir: {kept}}}\n{RULES}")
    runs = [f"run-{number}" for number in range(12)]
    one = server(config, role="evaluate")
    one.wait_for("ready", timeout=60)
    kafka_produce(kafka, "evidence.telemetry.v1", [scalar(run, "loss", "NaN" if step == 9 else 0.1, step) for step in range(20) for run in runs])
    one.wait_for("evidence_kept", timeout=60)
    one.kill()
    half = kept / f"{wire.run_uid('', runs[0])}-1" / ".of-a-process-that-died.part"
    half.mkdir(parents=True, exist_ok=True)
    two = server(config, role="evaluate")
    wait_until(lambda: len(copies(kept)) == len(runs), 90, "a copy of each run's issue")
    assert two.stop() == 0
    issues = firing(kafka_events(kafka, "evidence.issues.v1"))
    assert len(issues) == len(runs)
    for path in copies(kept):
        code, out, err = run_cli("evaluate", "--from", path, "--rules", "exploding_tensor", "--format", "json")
        answer = json.loads(out)
        assert code == 1 and {issue["id"] for issue in answer["issues"] if issue["status"] == "firing"} <= set(issues), out + err
        assert answer["records"] == 10 and path.parent.name.startswith(answer["runs"][0]["run"])


def test_a_folder_that_cannot_be_written_is_seen_by_a_person(server, tmp_path):
    (tmp_path / "taken").write_text("")
    folder, config = tmp_path / "data", tmp_path / "tocsin.yaml"
    config.write_text(f"transport: {{journal: {folder}}}\nevidence: {{keep: all, dir: {tmp_path / 'taken'}}}\n{RULES}")
    program = server(config, role="evaluate")
    program.wait_for("ready", timeout=60)
    train(folder, "exploding")
    assert "taken" in program.wait_for("evidence_failed", timeout=60)["error"]
    told = wait_until(lambda: [data for _, data, _ in journal_events(folder, "issues") if data.get("rule") == "evidence"], 30, "the status")
    assert told[-1]["status"] == "Error" and "are not kept" in told[-1]["reason"]


def busy(runs, steps, names=100):
    """Records of many runs in turn, each of a hundred numbers; one run breaks at its last step but ten."""
    for step in range(steps):
        for run in range(runs):
            rest = ",".join(f'{{"run":"run-{run}","name":"m{name}","value":0.5,"step":{step}}}' for name in range(1, names))
            value = '"NaN"' if run == 7 and step == steps - 10 else "0.1"
            yield ("telemetry", str(wire.run_uid("", f"run-{run}")), f'[{{"run":"run-{run}","name":"loss","value":{value},"step":{step}}},{rest}]'.encode())


@pytest.mark.parametrize("over", ["journal", "kafka"])
def test_a_copy_from_a_busy_partition_ends_with_the_process_and_goes_on_with_the_next(server, tmp_path, over, request):
    """As shipped but for one partition: 30 000 records of three million numbers, 200 MB, of which a tenth is the run's. Half of the processes are
    asked to end, half are killed."""
    runs, steps = 10, 3_000
    kafka = request.getfixturevalue("kafka") if over == "kafka" else None
    folder, kept, config = tmp_path / "data", tmp_path / "kept", tmp_path / "tocsin.yaml"
    transport = f"{{kafka: {{bootstrap.servers: '{kafka}'}}}}" if kafka else f"{{journal: {folder}}}"
    prefix = f"busy{time.monotonic_ns()}"
    base = (f"transport: {transport}\ntopics: {{prefix: {prefix}, partitions: 1}}\nrules: [exploding_tensor]\nhttp: {{listen: '127.0.0.1:0'}}\n")
    config.write_text(base)
    engine = server(config, role="evaluate")
    engine.wait_for("ready", timeout=90)
    records = list(busy(runs, steps))
    for at in range(0, len(records), 5_000):
        if kafka:
            kafka_produce(kafka, f"{prefix}.telemetry.v1", records[at:at + 5_000])
        else:
            journal.append(folder, *records[at:at + 5_000])

    def issues():
        return firing(kafka_events(kafka, f"{prefix}.issues.v1") if kafka else journal_events(folder, "issues"))
    wait_until(issues, 120, "the issue")
    assert engine.stop() == 0
    config.write_text(base + f"evidence: {{keep: first_signs, dir: {kept}}}\n")
    left = 0
    for turn in range(16):
        one = server(config, role="evaluate")
        wait_until(lambda: list(kept.glob("*/.*.part")) or copies(kept), 90, "a copy that is begun")
        if turn % 2:  # a quick broker has given it all by then
            one.wait_for("ready", timeout=90)
        if turn == 15:  # a slow machine needs longer than any of the others was given
            wait_until(lambda: copies(kept), 120, "a copy that is done")
        time.sleep(0.02 * turn)
        began = time.monotonic()
        if turn % 2 == 0:
            one.kill()
        else:
            assert one.stop() == 0, "a copy holds nobody up"
            assert time.monotonic() - began < 10
        left += not copies(kept)
        if copies(kept):
            break
    assert left > 0, "no copy was left in between: there is nothing to see here"
    [copy] = copies(kept)
    assert not list(kept.glob("*/.*.part"))
    with sqlite3.connect(copy / "telemetry.db") as database:
        found = [json.loads(value)[0]["step"] for (value,) in database.execute("select value from telemetry order by id")]
    assert found == list(range(steps - 9)), (len(found), found[:3], found[-3:])
    code, out, err = run_cli("evaluate", "--from", copy, "--rules", "exploding_tensor", "--format", "json")
    assert code == 1 and {one["id"] for one in json.loads(out)["issues"] if one["status"] == "firing"} == set(issues()), out + err
