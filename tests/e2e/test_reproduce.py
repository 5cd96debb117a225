"""`tocsin issues reproduce`: the verdict of an issue again, from the rule and the records that it names, and kept in a directory."""
import json
import sqlite3

import pytest

from tests.e2e.test_evaluate_recorded import train
from tests.e2e.test_recovery import wait_until
from tests.support.program import ROOT, run_cli
from tests.support.telemetry import journal_events, kafka_events, kafka_produce, scalar

RULES = """
rules:
  - exploding_tensor
  - {name: strict, use: exploding_tensor, preset: original, with: {tensor_regex: 'gradient/.*|loss', min_hits: 2}}
  - {use: vanishing_gradient, with: {threshold: 1.0e-6}}
  - {name: early, select: 'metric("loss")', window: last 3 steps, when: 'mean(value) > 0.5', severity: info}
http: {listen: '127.0.0.1:0'}
"""


def firing(events):
    return {headers["ce_id"]: data for _, data, headers in events if data.get("status") == "firing" and data["rule"] in
            ("exploding_tensor", "strict", "vanishing_gradient", "early")}


def reproduced(*arguments, expect):
    code, out, err = run_cli("issues", "reproduce", *arguments, "-o", "json")
    assert code == expect, out + err
    return json.loads(out)


@pytest.fixture
def judged(server, tmp_path):
    """Two runs of a hook, judged live: the configuration, and the issues by id."""
    folder, config = tmp_path / "data", tmp_path / "tocsin.yaml"
    config.write_text(f"transport: {{journal: {folder}}}\n{RULES}")
    engine = server(config, role="evaluate")
    engine.wait_for("ready", timeout=60)
    for kind in ("exploding", "vanishing"):
        train(folder, kind)
    rules = {"exploding_tensor", "strict", "vanishing_gradient", "early"}
    wait_until(lambda: {one["rule"] for one in firing(journal_events(folder, "issues")).values()} == rules, 30, "an issue of each rule")
    assert engine.stop() == 0
    return config, firing(journal_events(folder, "issues"))


def test_every_report_is_found_again_by_its_id(judged, tmp_path):
    config, issues = judged
    for name, told in issues.items():
        answer = reproduced(name, "-c", config, expect=0)
        assert answer["reproduced"] and answer["id"] == name, answer
        now = answer["now"]
        assert (now["step"], now["evidence"]["observed"], now["params_hash"]) == (told["step"], told["evidence"]["observed"], told["params_hash"])
        assert now["annotations"]["summary"] == told["annotations"]["summary"]
    code, out, err = run_cli("issues", "reproduce", name[:12], "-c", config)
    assert code == 0 and out.startswith("reproduced, from ") and out.count(name) == 2, out + err


def test_what_it_was_decided_by_is_kept_beyond_the_topic(judged, tmp_path):
    config, issues = judged
    name = next(key for key, one in issues.items() if one["rule"] == "vanishing_gradient")
    kept = tmp_path / "kept"
    answer = reproduced(name, "-c", config, "--save", kept, expect=0)
    assert answer["saved"] == str(kept)
    code, _, err = run_cli("issues", "reproduce", name, "-c", config, "--save", kept)
    assert code == 2 and "is not empty" in err
    # Retention takes the telemetry.
    with sqlite3.connect(tmp_path / "data" / "telemetry.db") as database:
        database.execute("delete from telemetry")
    answer = reproduced(name, "-c", config, expect=1)
    assert not answer["reproduced"] and answer["now"] is None and "no telemetry of the run is there any more" in answer["reason"]
    assert reproduced(name, "-c", config, "--from", kept, expect=0)["reproduced"]
    # The directory is a recording like any other, of this run alone.
    code, out, err = run_cli("evaluate", "--from", kept, "--rules", "vanishing_gradient", "--format", "json")
    told = json.loads(out)
    assert code == 1 and {one["run"] for one in told["runs"]} == {issues[name]["run"]["uid"]}, out + err


def test_the_commands_of_the_page_work(judged, tmp_path, monkeypatch):
    _, issues = judged
    monkeypatch.chdir(tmp_path)  # where tocsin.yaml is
    lines = [line.split("#")[0].split() for line in (ROOT / "docs" / "replay.md").read_text().splitlines() if line.startswith("tocsin issues reproduce")]
    assert len(lines) == 3
    for _, *words in lines:
        words[words.index("reproduce") + 1] = next(iter(issues))
        code, out, err = run_cli(*words)
        assert code == 0 and out.startswith("reproduced"), (words, out, err)


def test_what_cannot_be_judged_again_is_said(judged, tmp_path):
    config, issues = judged
    code, out, err = run_cli("issues", "reproduce", "nothing", "-c", config)
    assert (code, out) == (1, "") and "no issue with ID nothing" in err
    code, out, err = run_cli("issues", "reproduce", "iss_", "-c", config)
    assert code == 1 and "issues with ID iss_" in err
    name = next(iter(issues))
    with sqlite3.connect(tmp_path / "data" / "control.db") as database:
        database.execute("update issues set value = replace(value, '\"rule_version\":\"' , '\"rule_version\":\"9')")
    code, out, err = run_cli("issues", "reproduce", name, "-c", config)
    assert code == 1 and "the issue is of version 9" in err, err
    code, _, err = run_cli("issues", "reproduce", name, "--out", tmp_path / "nowhere")
    assert code == 4 and "nowhere" in err


def test_on_kafka_the_records_of_its_partition_are_judged_and_kept(server, kafka, tmp_path):
    config = tmp_path / "tocsin.yaml"
    config.write_text(f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\ntopics: {{prefix: reproduce}}\n{RULES}")
    engine = server(config, role="evaluate")
    engine.wait_for("ready", timeout=60)
    kafka_produce(kafka, "reproduce.telemetry.v1", [scalar(run, "loss", "NaN" if run == "one" and step == 7 else 0.1, step)
                                                    for step in range(20) for run in ("one", "other", "third")])

    def issues():
        return firing(kafka_events(kafka, "reproduce.issues.v1"))
    wait_until(issues, 30, "the issue")
    assert engine.stop() == 0
    [(name, told)] = issues().items()
    kept = tmp_path / "kept"
    answer = reproduced(name, "-c", config, "--save", kept, expect=0)
    assert answer["now"]["evidence"]["data_refs"] == told["evidence"]["data_refs"]
    code, out, err = run_cli("evaluate", "--from", kept, "--rules", "exploding_tensor", "--format", "json")
    assert code == 1 and json.loads(out)["records"] == 20, out + err
    assert [one["id"] for one in json.loads(out)["issues"] if one["status"] == "firing"] == [name]
