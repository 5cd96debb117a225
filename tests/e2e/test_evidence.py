"""`evidence: {keep: …}`: what issues were decided by is copied before retention takes it, also through a kill, and judged again from there."""
import json
import sqlite3

from tests.e2e.test_evaluate_recorded import train
from tests.e2e.test_recovery import wait_until
from tests.support.program import run_cli
from tests.support.telemetry import journal_events, kafka_events, kafka_produce, scalar
from tocsin import wire

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
