"""`tocsin sync DIR`: a directory that a training has left goes to a real Kafka later, and once."""
import json
import os
import signal
import subprocess
import sys
import time
import uuid

import pytest

from tests.e2e.test_recovery import wait_until
from tests.support.kafka import Kafka
from tests.support.program import BINARY, run_cli
from tests.support.telemetry import kafka_events, kafka_values

import tocsin
from tocsin import wire

pytestmark = pytest.mark.apart

TELEMETRY = "tocsin.telemetry.v1"
STEPS = 400
RULES = "exploding_tensor,loss_not_decreasing"


@pytest.fixture
def finished(tmp_path):
    """A directory with one run, whose loss is NaN from step 300 on; the ids of its issues."""
    directory = str(tmp_path / "run1")
    hook = tocsin.watch(out=directory, job="offline", run=uuid.uuid4().hex, capture={"every": "1 step"})
    for step in range(STEPS):
        hook.log(loss=float("nan") if step >= 300 else 1.0 / (step + 1))
        hook.step()
        if step % 20 == 0:
            hook.flush()
    hook.close()
    code, told, said = run_cli("evaluate", "--from", directory, "--rules", RULES, "--format", "json")
    assert code == 1, said
    return directory, sorted(issue["id"] for issue in json.loads(told)["issues"])


def config(tmp_path, bootstrap, prefix):
    path = tmp_path / f"{prefix}.yaml"
    path.write_text(f"transport: {{kafka: {{bootstrap.servers: '{bootstrap}'}}}}\ntopics: {{prefix: {prefix}, partitions: 3}}\n"
                    f"rules: [{RULES}]\nengine: {{threads: 1}}\nhttp: {{listen: '127.0.0.1:0'}}\n")
    return path


def ids_on(bootstrap, prefix):
    return sorted(headers["ce_id"] for _, _, headers in kafka_events(bootstrap, f"{prefix}.issues.v1")
                  if headers.get("ce_type") == "dev.tocsin.issue.v1")


def test_a_directory_is_sent_once_and_judged_as_it_is_where_it_lies(server, tmp_path, kafka, finished):
    directory, golden = finished
    prefix = f"sync{uuid.uuid4().hex[:8]}"
    file = config(tmp_path, kafka, prefix)
    code, told, said = run_cli("sync", directory, "-c", file)
    assert code == 0 and "sent " in told, said
    assert run_cli("sync", directory, "-c", file)[:2] == (0, f"nothing new in {directory} to kafka {kafka}\n")
    engine = server(file, role="evaluate")
    engine.wait_for("job_ended", timeout=90)
    wait_until(lambda: ids_on(kafka, prefix) == golden, 30, "the same issues")
    # What is written later is sent later, and another cluster has a position of its own.
    hook = tocsin.watch(out=directory, job="later")
    hook.log(loss=1.0)
    hook.step()
    hook.close()
    code, told, _ = run_cli("sync", directory, "-c", file)
    assert code == 0 and told.startswith("sent "), told
    assert int(told.split()[1]) < 10
    code, told, _ = run_cli("sync", directory, "-c", config(tmp_path, kafka, prefix + "b"))
    assert code == 0 and int(told.split()[1]) > 10


def test_a_sync_that_is_interrupted_goes_on_and_changes_no_verdict(server, tmp_path, finished):
    directory, golden = finished
    with Kafka(f"sync-{uuid.uuid4().hex[:8]}") as cluster:
        assert not cluster.existing, "this test needs a broker of its own: unset KAFKA_BOOTSTRAP_SERVERS"
        file = config(tmp_path, cluster.bootstrap, "tocsin")
        cluster.pause()
        one = subprocess.Popen([str(BINARY), "sync", directory, "-c", str(file)], stdout=subprocess.DEVNULL)
        time.sleep(2)
        assert run_cli("sync", directory, "-c", file)[0] == 2  # one at a time
        one.send_signal(signal.SIGKILL)
        one.wait()
        cluster.resume()
        assert run_cli("sync", directory, "-c", file, timeout=120)[0] == 0
        # As after a kill between sending and remembering: all of it once more.
        os.remove(f"{directory}/synced.json")
        assert run_cli("sync", directory, "-c", file, timeout=120)[0] == 0
        engine = server(file, role="evaluate")
        engine.wait_for("job_ended", timeout=90)
        wait_until(lambda: ids_on(cluster.bootstrap, "tocsin") == golden, 30, "the same issues")
        time.sleep(2)
        assert ids_on(cluster.bootstrap, "tocsin") == golden


def test_what_cannot_be_synced_is_said(tmp_path, finished):
    directory, _ = finished
    environment = {"TOCSIN_BROKERS": "", "TOCSIN_CONFIG": ""}
    assert "no broker given" in run_cli("sync", directory, "--to", str(tmp_path), env=environment)[2]
    code, _, said = run_cli("sync", str(tmp_path / "nowhere"), "--to", "kafka://127.0.0.1:1", env=environment)
    assert code == 4 and "nowhere" in said


TRAIN = """
import sys, time, tocsin
hook = tocsin.watch(out="kafka://{bootstrap}", job="cut", run="cut", capture={{"every": "1 step"}}, config="{config}")
for step in range(400):
    hook.log(loss=float("nan") if step >= 300 else 1.0 / (step + 1))
    hook.step()
    if step == 100:
        assert hook.flush(30)
        print("half", flush=True); sys.stdin.readline()
    if step % 20 == 0:
        time.sleep(0.02)
hook.close(timeout=1.0)
print(hook.stats()["spooled_records"], hook.stats()["loss"])
"""


@pytest.mark.parametrize("fault", ["kill", "pause"])
def test_what_a_broker_that_went_away_did_not_get_waits_on_the_disk(server, tmp_path, fault):
    with Kafka(f"spool-{uuid.uuid4().hex[:8]}") as cluster:
        assert not cluster.existing, "this test needs a broker of its own: unset KAFKA_BOOTSTRAP_SERVERS"
        file = config(tmp_path, cluster.bootstrap, "tocsin")
        code, _, said = run_cli("topics", "apply", "-c", file)
        assert code == 0, said
        script = tmp_path / "train.py"
        script.write_text(TRAIN.format(bootstrap=cluster.bootstrap, config=file))
        training = subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                    env={**os.environ, "TOCSIN_SPOOL": str(tmp_path / "spool")})
        assert training.stdout.readline() == "half\n"
        getattr(cluster, fault)()
        said, _ = training.communicate("\n", timeout=60)
        assert training.returncode == 0 and int(said.split()[0]) > 0 and "tocsin sync" in said, said
        left, = (tmp_path / "spool").iterdir()
        cluster.restart() if fault == "kill" else cluster.resume()
        for _ in range(2):
            code, told, why = run_cli("sync", left, "-c", file, timeout=120)
            assert code == 0, why
        assert told.startswith("nothing new")
        engine = server(file, role="evaluate")
        ended = engine.wait_for("job_ended", timeout=90)
        assert ended["step"] == STEPS - 1
        fired = {(event["rule"], event["step"]) for event in engine.all("issue_fired")}
        assert ("exploding_tensor", 300) in fired
        missing = [line for line in engine.get("/metrics")[1].splitlines() if line.startswith("tocsin_rules_missing_frames_total")]
        assert missing and all(line.endswith(" 0") for line in missing), missing


OUTAGE = """
import os, sys, time, tocsin
hook = tocsin.watch(out="kafka://{bootstrap}", job="outage", run="outage", capture={{"every": "1 step"}}, config="{config}")
goes_on, step = {{}}, 0
def train(until):
    global step
    end = time.monotonic() + 240
    while not until():
        assert time.monotonic() < end, hook.stats()
        hook.log(loss=float("nan") if step >= 300 else 1.0 / (step + 1))
        hook.step()
        step += 1
        time.sleep(0.02)
def said(word):
    return lambda: os.path.exists("{place}/" + word)
train(lambda: hook.stats()["confirmed_records_total"] > 10)
print("going", step, flush=True)
train(said("away"))
print("before", step, flush=True)
train(lambda: step > 320 and hook.stats()["spooled_records"] > 50)
print("spooled", step, flush=True)
train(lambda: said("back")() and hook.stats()["spooled_records"] == 0)
print("followed", step, flush=True)
end = step + 20
train(lambda: step >= end)
assert hook.flush(30)
stats = hook.stats()
hook.close(timeout=30.0)
print("closed", step, stats["spooled_records_total"], stats["unconfirmed_records"], sum(stats["dropped_records_total"].values()), repr(hook.stats()["loss"]), flush=True)
"""


@pytest.mark.parametrize("fault", ["kill", "pause"])
def test_a_broker_that_goes_away_in_the_middle_gets_everything_when_it_is_back(server, tmp_path, fault):
    """With default settings; what the run could not send in time follows in its order, nothing is lost, nothing is judged twice."""
    with Kafka(f"outage-{uuid.uuid4().hex[:8]}") as cluster:
        assert not cluster.existing, "this test needs a broker of its own: unset KAFKA_BOOTSTRAP_SERVERS"
        file = config(tmp_path, cluster.bootstrap, "tocsin")
        assert run_cli("topics", "apply", "-c", file)[0] == 0
        script = tmp_path / "train.py"
        script.write_text(OUTAGE.format(bootstrap=cluster.bootstrap, config=file, place=tmp_path))
        training = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True,
                                    env={**os.environ, "TOCSIN_SPOOL": str(tmp_path / "spool")})
        assert training.stdout.readline().startswith("going")
        getattr(cluster, fault)()
        (tmp_path / "away").write_text("")
        assert training.stdout.readline().startswith("before")
        assert training.stdout.readline().startswith("spooled")
        assert [path.name.startswith("hook-") for path in (tmp_path / "spool").iterdir()] == [True]
        cluster.restart() if fault == "kill" else cluster.resume()
        (tmp_path / "back").write_text("")
        assert training.stdout.readline().startswith("followed")
        _, steps, spooled, unconfirmed, dropped, loss = training.stdout.readline().split(maxsplit=5)
        assert training.wait(60) == 0
        assert int(spooled) > 50 and (unconfirmed, dropped, loss.strip()) == ("0", "0", "''")
        assert not (tmp_path / "spool").exists()
        headers = [wire.decode_frame(value).header for value in kafka_values(cluster.bootstrap, TELEMETRY)]
        sequences = [header["sequence"] for header in headers]
        assert set(sequences) == set(range(1, max(sequences) + 1))  # none is missing
        assert 50 <= sum(header["flags"] & 2 != 0 for header in headers) < len(headers)
        engine = server(file, role="evaluate")
        ended = engine.wait_for("job_ended", timeout=90)
        assert ended["step"] == int(steps) - 1
        assert {(event["rule"], event["step"]) for event in engine.all("issue_fired")} >= {("exploding_tensor", 300)}
        missing = [line for line in engine.get("/metrics")[1].splitlines() if line.startswith("tocsin_rules_missing_frames_total")]
        assert missing and all(line.endswith(" 0") for line in missing), missing


def test_without_a_spool_what_is_left_is_lost_and_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("TOCSIN_SPOOL", "off")
    hook = tocsin.watch(out="kafka://127.0.0.1:1", job="off")
    hook.log(loss=1.0)
    hook.step()
    hook.close(timeout=0.5)
    assert "did not reach" in hook.stats()["loss"] and hook.stats()["spooled_records"] == 0


def test_a_spool_that_cannot_be_written_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TOCSIN_SPOOL", str(tmp_path / "file"))
    hook = tocsin.watch(out="kafka://127.0.0.1:1", job="no")
    hook.log(loss=1.0)
    hook.step()
    hook.close(timeout=0.5)
    assert hook.stats()["spooled_records"] == 0 and "spool" in hook.stats()["loss"]
