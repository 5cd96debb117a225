"""`tocsin evaluate --from DIR`: a recorded directory judged with the verdicts of a live engine, and left as it is."""
import hashlib
import json
import os
import subprocess
import sys
import textwrap

import pytest

from tests.e2e.test_every_rule import chosen
from tests.e2e.test_recovery import wait_until
from tests.reference import frames, tables
from tests.reference.engine import PATIENT
from tests.support import journal
from tests.support.program import BINARY, BUILD, ROOT, run_cli
from tests.support.telemetry import journal_events, scalar

SECOND = 1_000_000_000
START = 1_760_000_000 * SECOND

# Losses and gradients of a job, as a hook sends them; no framework is needed.
TRAIN = """
import math, random, sys
import numpy, tocsin
kind, chance = sys.argv[1], random.Random(7)
hook = tocsin.watch(run=kind, job="recorded", capture={"every": "1 step", "overhead": "100%"})
for step in range(60):
    loss = 2.0 / (1 + step) + chance.uniform(0, 0.01)
    gradient = 1e-2 if kind != "vanishing" or step < 20 else 1e-12
    hook.emit("gradient/fc.weight", numpy.array([gradient * chance.gauss(0, 1) for _ in range(64)], "f4"), role="gradient")
    hook.log(loss=math.nan if kind == "exploding" and 30 <= step < 34 else loss)
    hook.step()
hook.close()
"""


# A process counts the memory of the one that it was forked from: a small one.
PEAK = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")


def train(folder, kind):
    path = folder.parent / "train.py"
    path.write_text(textwrap.dedent(TRAIN))
    environment = {**os.environ, "TOCSIN_OUT": str(folder), "PYTHONPATH": str(ROOT / "python"), "TOCSIN_QUIET": "1",
                   "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
    subprocess.run([sys.executable, path, kind], env=environment, cwd=folder.parent, check=True, timeout=60)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder that only hooks have written: three runs, one of them healthy."""
    folder = tmp_path_factory.mktemp("recorded") / "run1"
    for kind in ("healthy", "exploding", "vanishing"):
        train(folder, kind)
    return folder


def judged(folder, *arguments, expect):
    code, out, err = run_cli("evaluate", "--from", folder, "--format", "json", *arguments)
    assert code == expect, out + err
    return json.loads(out)


def rule_of(answer, run_name, rule):
    [run] = [one for one in answer["runs"] if one["run"] == str(uid_of(run_name))]
    [found] = [one for one in run["rules"] if one["rule"] == rule]
    return found


def uid_of(run_name, job="recorded"):
    from tocsin import wire
    return wire.run_uid(job, run_name)


def write(folder, records):
    """(time, key, value) records of topic telemetry, at times of the test's choosing."""
    database = journal.connect(folder, "telemetry")
    database.execute("BEGIN")
    database.executemany("INSERT INTO telemetry VALUES(?, ?, ?, ?, NULL)",
                         ((number, timestamp, key.encode(), value) for number, (timestamp, key, value) in enumerate(records)))
    database.execute("UPDATE topic SET next = ? WHERE name = 'telemetry'", (len(records),))
    database.execute("COMMIT")
    database.close()


def at(seconds, record):
    _, key, value = record
    return START + int(seconds * SECOND), key, value


def test_faults_are_found_and_the_healthy_run_is_not_alarmed(recorded):
    answer = judged(recorded, expect=1)
    assert rule_of(answer, "exploding", "exploding_tensor")["status"] == "IssuesFound"
    assert rule_of(answer, "exploding", "exploding_tensor")["first_step"] == 30
    assert rule_of(answer, "vanishing", "vanishing_gradient")["status"] == "IssuesFound"
    healthy = [one for one in answer["issues"] if one["run"]["uid"] == str(uid_of("healthy"))]
    assert healthy == []
    nothing = rule_of(answer, "healthy", "replica_divergence")
    assert nothing["status"] == "NoData" and nothing["reason"]


def test_the_verdicts_are_those_of_a_live_engine(server, tmp_path):
    folder, config = tmp_path / "run1", tmp_path / "tocsin-0.yaml"
    engine = server(f"transport: {{journal: {folder}}}\nrule_groups: [default]\nlabels: {{team: vision}}\n"
                    "http: {listen: '127.0.0.1:0'}\n", role="evaluate")
    engine.wait_for("ready", timeout=60)
    for kind in ("healthy", "exploding", "vanishing"):
        train(folder, kind)
    wait_until(lambda: sum(data.get("phase") == "ended" for _, data, _ in journal_events(folder, "issues")) == 3, 60, "three ends")
    engine.kill()
    live = {headers["ce_id"]: data for _, data, headers in journal_events(folder, "issues")
            if headers["ce_type"] == "dev.tocsin.issue.v1"}
    assert any(data["status"] == "resolved" for data in live.values()) and len(live) > 2
    statuses = {(data["run"]["uid"], data["rule"]): data["status"] for _, data, headers in journal_events(folder, "issues")
                if headers["ce_type"] == "dev.tocsin.rule.v1"}
    answer = judged(folder, "-c", config, expect=1)
    again = {one["id"]: one for one in answer["issues"]}
    assert sorted(again) == sorted(live)
    for event, data in live.items():
        for same in ("status", "rule", "kind", "labels", "summary", "step", "severity", "starts_at", "resolution", "params_hash"):
            assert again[event].get(same) == data.get(same), (event, same)
    assert {(run["run"], rule["rule"]): rule["status"] for run in answer["runs"] for rule in run["rules"]} == statuses


def test_every_rule_judges_a_recording_as_it_did_live(server, tmp_path):
    """Cases worked by hand of every rule, one that fires and one that is quiet, each a run of its own that every rule judges."""
    folder, cases, items, ends = tmp_path / "cases", chosen(), [], set()
    for number, ((rule, _), case) in enumerate(cases.items()):
        [item] = tables.rules(rule, case)
        items.append({**item, "name": f"rule-{number}"})
    engine = server(json.dumps({"transport": {"journal": str(folder)}, "engine": PATIENT, "http": {"listen": "127.0.0.1:0"},
                                "rules": items}), role="evaluate")
    engine.wait_for("ready", timeout=60)
    for number, case in enumerate(cases.values()):
        uid = str(uid_of(f"case {number}", "every"))
        ends.add(uid)
        journal.append(folder, *[("telemetry", uid, frames.encode(record, uid)) for record in tables.records(case)])
    wait_until(lambda: ends <= {data["run"]["uid"] for _, data, _ in journal_events(folder, "issues") if data.get("phase") == "ended"},
               120, "all ends")
    engine.kill()
    events = list(journal_events(folder, "issues"))
    live = sorted((headers["ce_id"], data["status"]) for _, data, headers in events if headers["ce_type"] == "dev.tocsin.issue.v1")
    statuses = {(data["run"]["uid"], data["rule"]): data["status"] for _, data, headers in events
                if headers["ce_type"] == "dev.tocsin.rule.v1"}
    answer = judged(folder, "-c", tmp_path / "tocsin-0.yaml", expect=1)
    assert len(live) > len(cases)
    assert sorted((one["id"], one["status"]) for one in answer["issues"]) == live
    # A case may have a second run, which only begins: a live engine waits for more of it, a recording is over.
    assert {(run["run"], rule["rule"]): rule["status"]
            for run in answer["runs"] if run["run"] in ends for rule in run["rules"]} == \
        {one: status for one, status in statuses.items() if one[0] in ends}


def test_nothing_in_the_folder_changes(recorded):
    def content():
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in recorded.iterdir() if path.suffix != ".db-shm"}
    before, names = content(), {path.name for path in recorded.iterdir()}
    judged(recorded, expect=1)
    assert content() == before
    assert {path.name for path in recorded.iterdir()} == names


def test_a_folder_without_a_log_is_read_without_making_one(recorded, tmp_path):
    """As a slice is kept: one file, perhaps where nobody may write."""
    import sqlite3
    slice_folder = tmp_path / "slice"
    slice_folder.mkdir()
    source = sqlite3.connect(f"file:{recorded}/telemetry.db?mode=ro", uri=True)
    source.execute("VACUUM INTO ?", (str(slice_folder / "telemetry.db"),))
    source.close()
    whole = judged(recorded, expect=1)
    answer = judged(slice_folder, expect=1)
    assert [one["id"] for one in answer["issues"]] == [one["id"] for one in whole["issues"]]
    assert [path.name for path in slice_folder.iterdir()] == ["telemetry.db"]


def test_rules_are_chosen_by_name_group_preset_and_file(recorded, tmp_path):
    def names(*arguments, expect):
        return [one["rule"] for one in judged(recorded, *arguments, expect=expect)["runs"][0]["rules"]]
    assert names("--rules", "overfit,exploding_tensor", expect=1) == ["overfit", "exploding_tensor"]
    assert "dead_relu" in names("--rules", "all_pytorch", expect=1)
    assert names("--rules", "overfit", "--preset", "original", expect=0) == ["overfit"]
    path = tmp_path / "mine.yaml"
    path.write_text("rules: [{name: nan, use: exploding_tensor, actions: [oncall]}]\n")
    assert names("--rules", path, expect=1) == ["nan"]
    code, _, err = run_cli("evaluate", "--from", recorded, "--rules", "exploding_tensr")
    assert code == 2 and 'did you mean "exploding_tensor"?' in err
    path.write_text("rules: [{use: exploding_tensor, with: {min_hit: 2}}]\n")
    code, _, err = run_cli("evaluate", "--from", recorded, "--rules", path)
    assert code == 3 and "min_hits" in err


def test_one_run_is_judged_by_uid_or_name(recorded):
    uid = str(uid_of("exploding"))
    for named in (["--run", uid], ["--run", uid[:8]], ["--run", "exploding", "--job", "recorded"]):
        answer = judged(recorded, *named, expect=1)
        assert [run["run"] for run in answer["runs"]] == [uid]
    judged(recorded, "--run", "healthy", "--job", "recorded", expect=0)
    code, _, err = run_cli("evaluate", "--from", recorded, "--run", "helthy", "--job", "recorded")
    assert code == 2 and "helthy" in err


def test_text_says_what_fired_what_was_quiet_and_what_had_no_input(recorded):
    code, out, err = run_cli("evaluate", "--from", recorded)
    assert code == 1, err
    assert "group default" in out and "3 runs" in out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert any(line.startswith("30 error exploding_tensor") for line in lines), out
    assert any(line.startswith("exploding_tensor fired 1 issue, first at step 30") for line in lines), out
    assert any(line.startswith("exploding_tensor ok") for line in lines), out
    assert any(line.startswith("host_memory_growth NoData no data arrived") for line in lines), out


def test_what_cannot_be_read_is_said(recorded, tmp_path):
    code, _, err = run_cli("evaluate", "--from", tmp_path / "nowhere")
    assert code == 4 and "there is no journal" in err
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "telemetry.db").write_bytes(b"no database at all" * 1000)
    code, _, err = run_cli("evaluate", "--from", tmp_path / "broken")
    assert code == 4 and "telemetry.db" in err
    code, _, err = run_cli("evaluate", "--rules", "overfit")
    assert code == 2 and "--from" in err


def empty_journal(recorded, folder):
    """A journal as a hook makes it, without its records."""
    import shutil
    shutil.copytree(recorded, folder)
    database = journal.connect(folder, "telemetry")
    database.execute("DELETE FROM telemetry")
    database.close()
    return folder


def test_silence_between_records_is_judged_in_their_time(recorded, tmp_path):
    folder = empty_journal(recorded, tmp_path / "silent")
    code, _, err = run_cli("evaluate", "--from", folder)
    assert code == 4 and "no telemetry" in err
    steps = [at(step, scalar("quiet", "loss", 1.0 / (step + 1), step)) for step in range(5)]
    write(folder, steps + [at(3600, scalar("quiet", "loss", 0.1, 5))])
    answer = judged(folder, "--rules", "stalled_training_rule", expect=1)
    firing, resolved = answer["issues"]
    assert (firing["status"], resolved["status"], resolved["resolution"]) == ("firing", "resolved", "recovered")
    assert answer["runs"][0]["outcome"] is None  # a producer of JSON says no goodbye


def test_records_that_are_none_are_counted_and_the_rest_is_judged(recorded, tmp_path):
    folder = empty_journal(recorded, tmp_path / "mixed")
    write(folder, [at(0, ("", "k", b"\\xffnothing")), at(1, scalar("r", "loss", "NaN", 0))])
    answer = judged(folder, "--rules", "exploding_tensor", expect=1)
    assert answer["refused"]["records"] == 1 and answer["records"] == 2
    assert len(answer["issues"]) == 1


def test_a_long_recording_takes_no_more_memory_than_a_short_one(recorded, tmp_path):
    peaks = []
    for name, steps in (("short", 2_000), ("long", 60_000)):
        folder = empty_journal(recorded, tmp_path / name)
        write(folder, [at(step, scalar("r", "loss", 1.0, step)) for step in range(steps)])
        done = subprocess.run([sys.executable, "-c", PEAK, str(BINARY), "evaluate", "--from", str(folder), "--rules",
                               "exploding_tensor"], capture_output=True, text=True, check=True, timeout=60)
        peaks.append(int(done.stdout.splitlines()[-1]))
    assert peaks[1] < peaks[0] + 4 * 1024, peaks  # KiB
