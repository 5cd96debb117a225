"""trial.live from a server: every value once, by its stream, until the run has ended; two workers, of which one is behind."""
import os
import signal
import threading

import numpy

from tests.e2e.test_curves import CONFIG, run_with, train, truth
from tests.support.hook_support import wait_for
from tests.support.telemetry import JournalWriter, scalar
from tocsin.analysis import create_trial, runs


def address(server):
    return f"http://{server.wait_for('started')['http']}"


def test_a_job_that_runs_gives_every_value_once_and_its_end_ends_it(server, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    job = train(tmp_path, tmp_path / "journal", 300, 0.02)
    try:
        assert run_with(one, 5)
        trial = create_trial(address(one))
        rows, frames, alive = {"loss": [], "lr": []}, 0, 0
        for frame in trial.live('metric("loss|lr")', timeout=30):
            assert frame.columns == trial.series("loss").columns
            for row in frame:
                rows[row["name"]].append((row["step"], row["value"]))
            frames += 1
            alive += job.poll() is None
        assert frames > 4 and alive > 4, (frames, alive)
    finally:
        job.wait(60)
    for name, got in rows.items():
        steps, values = truth(tmp_path / "journal", name)
        assert [step for step, _ in got] == list(steps) and len(steps) == 300
        assert numpy.array_equal([value for _, value in got], values, equal_nan=True)
    again = [len(frame) for frame in create_trial(address(one)).live("step()", timeout=30)]
    assert again == [300], "of a run that has ended all comes at once"


def test_a_worker_that_is_behind_comes_whole_and_silence_is_told(server, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    writer = JournalWriter(tmp_path / "journal")
    writer.append(*[scalar("w", "loss", 1.0, step, job="two", worker="worker_0", rank=0) for step in range(50)])
    assert wait_for(lambda: runs(address(one)), 20)
    trial = create_trial(address(one))
    got, ends = [], []

    def follow():
        try:
            for frame in trial.live("loss", timeout=8, history=False):
                got.extend((row["worker"], row["step"]) for row in frame)
        except TimeoutError as error:
            ends.append(str(error))
    reading = threading.Thread(target=follow)
    assert wait_for(lambda: trial.series("loss")["step"].size == 50, 10)  # what the server takes in later would be no history
    reading.start()
    try:
        threading.Event().wait(1.0)
        writer.append(scalar("w", "loss", 1.0, 50, job="two", worker="worker_0", rank=0))
        assert wait_for(lambda: got == [("worker_0", 50)], 10), got
        writer.append(*[scalar("w", "loss", 2.0, step, job="two", worker="worker_1", rank=1) for step in range(5)])
        assert wait_for(lambda: len(got) == 6, 10) and got[1:] == [("worker_1", step) for step in range(5)], got
    finally:
        reading.join(30)
    assert len(ends) == 1 and "nothing was heard" in ends[0] and "for 8 s" in ends[0]


def test_the_death_of_a_job_is_its_end(server, tmp_path):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    job = train(tmp_path, tmp_path / "journal", 10_000, 0.01)
    assert run_with(one, 5)
    frames = create_trial(address(one)).live("loss", timeout=25)
    steps = list(next(frames)["step"])
    os.kill(job.pid, signal.SIGKILL)
    job.wait(10)
    for frame in frames:  # the agent of this machine sees it die
        steps += list(frame["step"])
    assert steps == list(truth(tmp_path / "journal", "loss")[0]) and runs(address(one))[0].state == "ended"
