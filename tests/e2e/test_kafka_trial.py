"""A run on a real Kafka as a trial: copied once, followed while it goes on, and only this run."""
import random
import signal
import subprocess
import sys
import time
import uuid

import numpy
import pytest

import tocsin
from tests.support import journal
from tests.support.program import run_cli
from tests.support.written_run import WrittenRun
from tocsin import wire
from tocsin.analysis import copy_run, create_trial

ROWS = ("attempt", "worker", "rank", "mode", "step", "name", "value")


@pytest.fixture
def place(kafka, tmp_path):
    """(kafka://…, configuration) with topics of its own, of one partition: all runs lie in it."""
    path = tmp_path / "tocsin.yaml"
    path.write_text(f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\n"
                    f"topics: {{prefix: copy{uuid.uuid4().hex[:8]}, partitions: 1}}\n")
    assert run_cli("topics", "apply", "-c", path)[0] == 0
    return f"kafka://{kafka}", str(path)


def recorded(folder, job, steps=50):
    """Uid of a run with a loss per step in a directory."""
    hook = tocsin.watch(out=str(folder), job=job, run=uuid.uuid4().hex, capture={"every": "1 step"})
    for step in range(steps):
        hook.log(loss=float("nan") if step == 7 else 1.0 / (step + 1))
        hook.step()
    uid = str(hook.run)
    hook.close()
    return uid


def synced(folder, config):
    code, _, said = run_cli("sync", folder, "-c", config)
    assert code == 0, said


def same(one, other):
    for column in ROWS:
        left, right = one[column], other[column]
        assert list(left) == list(right) if left.dtype == object else \
            numpy.array_equal(left, right, equal_nan=left.dtype.kind == "f"), column


def test_a_run_on_kafka_is_what_its_directory_was(place, tmp_path):
    source, config = place
    uids = [recorded(tmp_path / job, job) for job in ("one", "two")]
    for job in ("one", "two"):
        synced(tmp_path / job, config)
    trial, before = create_trial(source, run=uids[0], config=config), create_trial(tmp_path / "one")
    assert trial.run.split("/")[0] == uids[0] and trial.job == "one" and trial.loaded_all_steps
    assert trial.steps(mode="train") == before.steps(mode="train") and len(trial.steps(mode="train")) == 50
    assert len(trial.series("loss")) == 50 and numpy.isnan(trial.series("loss")["value"]).sum() == 1
    same(trial.series('metric(".*")'), before.series('metric(".*")'))
    assert set(trial.series('metric(".*")')["run"]) == {uids[0]}
    # A copy that stays is a directory like any other; what others wrote to the topic is not in it.
    assert copy_run(source, str(tmp_path / "copy"), uids[1], config) == uids[1]
    same(create_trial(tmp_path / "copy").series("loss"), create_trial(tmp_path / "two").series("loss"))
    both = [len(journal.records(tmp_path / folder, "telemetry")) for folder in ("one", "copy", "two")]
    assert both[1] == both[2]
    # Once more: nothing is copied twice.
    assert copy_run(source, str(tmp_path / "copy"), uids[1], config) == uids[1]
    assert len(journal.records(tmp_path / "copy", "telemetry")) == both[1]


def test_a_run_that_goes_on_is_followed(place, tmp_path):
    source, config = place
    run = uuid.uuid4().hex
    program = ("import sys, time, tocsin\n"
               "hook = tocsin.watch(out=sys.argv[1], config=sys.argv[2], job='live', run=sys.argv[3], capture={'every': '1 step'})\n"
               "for step in range(200):\n    hook.log(loss=step * 0.5)\n    hook.step()\n    time.sleep(0.05)\n")
    training = subprocess.Popen([sys.executable, "-c", program, source, config, run])
    try:
        uid = str(wire.run_uid("live", run))
        end = time.monotonic() + 60
        while True:
            try:
                trial = create_trial(source, run=uid, config=config)
                break
            except ValueError as error:  # nothing of it is there yet
                assert uid in str(error) and time.monotonic() < end, error
        begun = len(trial.series("loss"))
        assert begun < 200
        trial.wait_for_steps([begun + 20], mode="train", timeout=60)
        rows = [row for frame in trial.live("loss") for row in frame]
        assert [row["step"] for row in rows] == list(range(200)) and rows[-1]["value"] == 99.5
        assert training.wait(60) == 0
    finally:
        training.kill()


def appended(folder, frames, keys):
    """A journal that holds these frames, too."""
    recorded(folder, "other", steps=1)
    journal.append(folder, *(("telemetry", key, frame) for frame, key in zip(frames, keys)))


def test_a_copy_that_is_killed_goes_on_without_loss_and_without_doubles(place, tmp_path):
    source, config = place
    written = WrittenRun(tmp_path / "frames", run=uuid.uuid4())
    written.held = []
    for step in range(20_000):
        written.scalars(0, [("loss", step, float(step))])
    appended(tmp_path / "long", written.held, [str(written.run)] * len(written.held))
    synced(tmp_path / "long", config)
    program = ("import sys\nfrom tocsin.analysis import copy_run\ncopy_run(*sys.argv[1:5])\n")
    kills = 0
    for _ in range(30):
        one = subprocess.Popen([sys.executable, "-c", program, source, str(tmp_path / "copy"), str(written.run), config])
        try:
            assert one.wait(random.uniform(0.3, 1.5)) == 0
            break
        except subprocess.TimeoutExpired:
            one.send_signal(signal.SIGKILL)
            one.wait()
            kills += 1
    copy_run(source, str(tmp_path / "copy"), str(written.run), config)
    copied = [record["value"] for record in journal.records(tmp_path / "copy", "telemetry")]
    assert kills > 0 and copied == written.held


def test_every_shard_of_a_run_is_copied(kafka, tmp_path):
    path = tmp_path / "tocsin.yaml"
    path.write_text(f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\n"
                    f"topics: {{prefix: shards{uuid.uuid4().hex[:8]}, partitions: 5}}\n")
    assert run_cli("topics", "apply", "-c", path)[0] == 0
    run = uuid.uuid4()
    written = WrittenRun(tmp_path / "frames", run=run)
    written.held = []
    for step in range(40):
        written.scalars(0, [("loss", step, float(step))], shard=step % 4, shard_count=4)
    keys = [str(run) if step % 4 == 0 else f"{run}/{step % 4}" for step in range(40)]
    appended(tmp_path / "sharded", written.held, keys)
    synced(tmp_path / "sharded", path)
    assert copy_run(f"kafka://{kafka}", str(tmp_path / "copy"), str(run), str(path)) == str(run)
    copied = {record["value"] for record in journal.records(tmp_path / "copy", "telemetry")}
    assert copied == set(written.held) and len(copied) == 40


def test_what_cannot_be_copied_is_said(place, tmp_path, server):
    source, config = place
    uid = recorded(tmp_path / "one", "one")
    synced(tmp_path / "one", config)
    with pytest.raises(ValueError, match="registry names no run"):  # no engine has read it
        create_trial(source, config=config)
    with pytest.raises(ValueError, match="4 digits or more"):
        create_trial(source, run="4e", config=config)
    nobody = str(uuid.uuid4())
    with pytest.raises(ValueError, match=f"no telemetry of run {nobody}"):
        create_trial(source, run=nobody, config=config)
    with pytest.raises(ValueError, match="other telemetry than a copy of run"):
        copy_run(source, str(tmp_path / "one"), uid, config)
    with pytest.raises(ValueError, match="expected kafka://"):
        copy_run(str(tmp_path / "one"), str(tmp_path / "copy"), uid)
    with pytest.raises(ValueError, match="there is no topic"):
        create_trial(source, run=uid)  # without the configuration: another prefix
    with pytest.raises(ConnectionError):
        create_trial("kafka://127.0.0.1:1", run=uid)
    # An engine names the run: the beginning of its uid is enough, and the newest needs no name.
    engine = server("http: {listen: '127.0.0.1:0'}\n" + open(config).read(), role="evaluate")
    engine.wait_for("job_ended", timeout=90)
    for run in (uid[:8], None):
        assert create_trial(source, run=run, config=config).run.split("/")[0] == uid
    assert create_trial(source, config=config).tensor_names() == ["loss"]
