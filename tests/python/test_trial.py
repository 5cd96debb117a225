"""create_trial over a directory that a run is writing: completeness by worker, waiting, frozen views (tocsin.analysis)."""
import os
import pathlib
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from tests.support.hook_support import wait_for
from tests.support.written_run import WrittenRun
from tocsin import wire
from tocsin.analysis import create_trial, no_refresh, refresh
from tocsin.exceptions import (IndexReaderException, MissingCollectionFiles, NoMoreData, StepNotYetAvailable, StepUnavailable,
                               TensorUnavailable)
from tocsin.modes import ModeKeys
from tocsin.rules import Rule, StepState
from tocsin.rules.changes import Changes

ROOT = pathlib.Path(__file__).resolve().parents[2]
@pytest.fixture
def writer(tmp_path):
    return WrittenRun(tmp_path / "journal", world=2)


def test_a_step_is_complete_when_every_worker_has_ended_it(writer):
    for rank in (0, 1):
        writer.event(rank, "start", launch="k", job="digits")
    writer.loss(0, 0, 1.0)
    writer.step_end(0, 0)
    trial = create_trial(writer.folder)
    assert trial.steps() == [] and trial.steps(show_incomplete_steps=True) == [0] and trial.last_complete_step == -1
    assert trial.missing_workers(0) == ["worker_1"]
    assert trial.has_passed_step(0) is StepState.NOT_YET_AVAILABLE
    assert trial.tensor("loss").value(0) == 1.0  # what is there can be read
    assert trial.tensor("loss").steps() == [] and trial.tensor("loss").steps(show_incomplete_steps=True) == [0]
    writer.loss(1, 0, 2.0)
    assert trial.steps() == [0]  # it sends no ends of steps: its value counts
    writer.step_end(1, 0)
    assert trial.steps() == [0] and trial.missing_workers(0) == []
    writer.loss(1, 1, 2.5)
    assert trial.steps() == [0] and trial.missing_workers(1) == ["worker_0", "worker_1"]  # it does send them: now only they count
    writer.step_end(0, 1)  # rank 0 passed step 1 and saved nothing of it
    writer.step_end(1, 1)
    assert trial.steps() == [0, 1] and trial.tensor("loss").workers(1) == ["worker_1"]


def test_a_rank_that_was_never_heard_holds_its_steps_back(writer):
    writer.event(0, "start", launch="k", job="digits")
    for step in range(1500):  # the original would count the first ones as complete now
        writer.loss(0, step, 1.0) if step % 500 == 0 else None
    writer.step_end(0, 1500)
    trial = create_trial(writer.folder)
    assert trial.steps() == [] and trial.missing_workers(500) == ["rank 1"] and not trial.loaded_all_steps


def test_what_a_worker_left_does_not_wait_for_it(writer):
    for rank in (0, 1):
        writer.event(rank, "start", launch="k", job="digits")
    writer.loss(0, 4, 1.0)
    writer.step_end(0, 4)
    trial = create_trial(writer.folder)
    assert trial.steps() == []
    writer.event(1, "leave", reason="end")
    assert trial.steps() == [4] and not trial.loaded_all_steps
    writer.event(0, "end", outcome="completed")
    assert trial.has_passed_step(5) is StepState.UNAVAILABLE and trial.loaded_all_steps


@pytest.mark.alone
def test_waiting_ends_with_the_write_and_not_at_the_next_look(writer):
    for rank in (0, 1):
        writer.event(rank, "start", launch="k", job="digits")
    trial = create_trial(writer.folder)
    written = []

    def later():
        time.sleep(2.4)  # by now it looks once a second by itself, next 0.9 s later
        writer.loss(0, 3, 1.0)
        writer.loss(1, 3, 1.0)
        written.append(time.monotonic())
    thread = threading.Thread(target=later)
    thread.start()
    began = time.process_time()
    trial.wait_for_steps([3], timeout=20)
    late = time.monotonic() - (written[0] if written else time.monotonic())
    spent = time.process_time() - began
    thread.join()
    assert trial.tensor("loss").value(3) == 1.0 and late < 0.4, late
    assert spent < 0.8  # it sleeps


def test_linux_tells_of_a_write(tmp_path):
    with Changes(str(tmp_path)) as changes:
        assert changes.told and not changes.wait(0.01)
        (tmp_path / "x").write_text("x")
        assert changes.wait(5)
    with Changes(str(tmp_path / "nothing")) as changes:
        assert not changes.told and changes.wait(0.01)  # looks often


def test_what_waiting_says_when_the_step_does_not_come(writer):
    for rank in (0, 1):
        writer.event(rank, "start", launch="k", job="digits")
        writer.loss(rank, 2, 1.0)
    trial = create_trial(writer.folder)
    with pytest.raises(StepUnavailable):
        trial.wait_for_steps([1], timeout=5)
    began = time.monotonic()
    with pytest.raises(StepNotYetAvailable):
        trial.wait_for_steps([2, 3], timeout=0.3)
    assert 0.25 < time.monotonic() - began < 3
    for rank in (0, 1):
        writer.event(rank, "end", outcome="completed")
    with pytest.raises(NoMoreData):
        trial.wait_for_steps([3], timeout=5)


def test_a_lost_run_is_not_waited_for(tmp_path):
    old = WrittenRun(tmp_path / "old", now=lambda: 1_700_000_000_000_000_000)
    old.loss(0, 0, 1.0)
    trial = create_trial(tmp_path / "old")
    began = time.monotonic()
    with pytest.raises(StepNotYetAvailable):
        trial.wait_for_steps([9])  # no timeout: silence since 2023 ends it
    assert time.monotonic() - began < 2


def test_frozen_and_thawed(writer):
    for rank in (0, 1):
        writer.loss(rank, 0, 1.0)
    trial = create_trial(writer.folder)
    with no_refresh(trial):
        for rank in (0, 1):
            writer.loss(rank, 1, 1.0)
        assert trial.steps() == [0]
        with refresh([trial]):
            assert trial.steps() == [0, 1]
    for rank in (0, 1):
        writer.loss(rank, 2, 1.0)
    assert trial.steps() == [0, 1, 2]

    class Looks(Rule):
        def invoke_at_step(self, step):
            for rank in (0, 1):
                writer.loss(rank, 3, 1.0)
            self.seen = self.base_trial.steps()
            return False
    rule = Looks(trial)
    rule.evaluate(2)
    assert rule.seen == [0, 1, 2] and trial.steps() == [0, 1, 2, 3]


def test_modes_steps_and_names(writer, caplog):
    for rank in (0, 1):
        writer.loss(rank, 0, 1.0)
        writer.loss(rank, 0, 0.5, wire.EVAL)
    trial = create_trial(writer.folder)
    assert trial.modes() == [ModeKeys.TRAIN, ModeKeys.EVAL] and trial.workers() == ["worker_0", "worker_1"] and trial.num_workers == 2
    assert trial.tensor("loss").value(0, mode=ModeKeys.EVAL, worker="worker_1") == 0.5
    assert trial.tensor("scalar/loss").name == "loss" and trial.has_tensor("loss") and not trial.has_tensor("lost")
    with pytest.raises(TensorUnavailable):
        trial.tensor("lost")
    assert trial.tensor_names(regex=["l.*", "x"]) == ["loss"] and not caplog.records
    assert trial.tensor_names(regex="no.*") == [] and "regex no.*" in caplog.text
    with pytest.raises(ValueError, match="not both"):
        trial.tensor_names(regex="x", collection="losses")


def test_a_place_without_a_recording_and_a_damaged_one(tmp_path, writer):
    with pytest.raises(MissingCollectionFiles):
        create_trial(tmp_path)
    with pytest.raises(FileNotFoundError):  # as before
        create_trial(tmp_path)
    (tmp_path / "telemetry.db").write_bytes(b"no database" * 500)
    with pytest.raises(IndexReaderException):
        create_trial(tmp_path)
    assert create_trial(os.path.join(writer.folder, "telemetry.db")).name == "journal"


RANK = """
import sys, time, tocsin
hook = tocsin.watch(run="two", job="two-ranks", out=sys.argv[1])
for step in range(5):
    hook.log(loss=float(step))
    hook.step()
hook.close()
"""


def test_two_real_ranks_that_open_a_second_apart_are_one_trial(tmp_path):
    script = tmp_path / "rank.py"
    script.write_text(textwrap.dedent(RANK))
    ranks = []
    for rank in (0, 1):
        ranks.append(subprocess.Popen([sys.executable, script, tmp_path / "journal"], env={
            **os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29999",
            "PYTHONPATH": str(ROOT / "python")}))
        time.sleep(1.1 if rank == 0 else 0)
    assert [rank.wait(60) for rank in ranks] == [0, 0]
    trial = create_trial(tmp_path / "journal")
    assert wait_for(lambda: trial.maybe_refresh() or trial.loaded_all_steps, 10)
    assert trial.workers() == ["worker_0", "worker_1"] and trial.steps(mode=ModeKeys.TRAIN) == [0, 1, 2, 3, 4]
    assert trial.tensor("loss").values(worker="worker_1", mode=ModeKeys.TRAIN) == {step: float(step) for step in range(5)}
