"""trial.live over a directory: every row once, while a job writes it and until it ends (tocsin.analysis)."""
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types

import pytest

from tests.support.hook_support import library, wait_for
from tests.support.written_run import WrittenRun
from tocsin import wire
from tocsin.analysis import NotInstalled, create_trial

ROOT = pathlib.Path(__file__).resolve().parents[2]
JOB = """
import sys, time, tocsin
hook = tocsin.watch(run="live", job="live", out="journal")
for step in range(int(sys.argv[1])):
    hook.log(loss=float("nan") if step == 30 else 1.0 / (step + 1), lr=0.1)
    hook.step()
    time.sleep(float(sys.argv[2]))
hook.close()
"""


def job(folder, steps, pause):
    (folder / "job.py").write_text(textwrap.dedent(JOB))
    return subprocess.Popen([sys.executable, "job.py", str(steps), str(pause)], cwd=folder,
                            env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "TOCSIN_LIBRARY": str(library())})


@pytest.fixture
def writer(tmp_path):
    out = WrittenRun(tmp_path / "journal", world=2)
    for rank in (0, 1):
        out.event(rank, "start", launch="k", job="digits")
    return out


@pytest.mark.skipif(library() is None, reason="no library is built")
def test_a_job_that_runs_gives_every_row_once_and_its_end_ends_it(tmp_path):
    running = job(tmp_path, 250, 0.02)
    try:
        assert wait_for(lambda: (tmp_path / "journal" / "telemetry.db").exists(), 20)
        trial = create_trial(tmp_path / "journal")
        steps, frames, alive = [], 0, 0
        for frame in trial.live('metric("loss"){mode="train"}', timeout=30):
            assert {row["name"] for row in frame} == {"loss"} and frame.columns == trial.series("loss").columns
            steps += list(map(int, frame["step"]))
            frames += 1
            alive += running.poll() is None
        assert steps == list(range(250)) and frames >= alive > 1, (frames, alive)  # while it ran, and not in one at its end
        assert running.wait(10) == 0 and trial.series("loss")["value"].shape == (250,)
    finally:
        running.kill()


@pytest.mark.skipif(library() is None, reason="no library is built")
def test_a_job_that_was_killed_is_not_waited_for_without_end(tmp_path):
    running = job(tmp_path, 10_000, 0.01)
    assert wait_for(lambda: (tmp_path / "journal" / "telemetry.db").exists(), 20)
    frames = create_trial(tmp_path / "journal").live("loss", timeout=7.0)
    assert len(next(frames))
    os.kill(running.pid, signal.SIGKILL)
    running.wait(10)
    began = time.monotonic()
    with pytest.raises(TimeoutError, match="nothing was heard of .* for 7 s"):
        for _ in frames:
            pass
    assert time.monotonic() - began < 12


def test_history_may_be_left_out_and_ranks_that_come_late_are_whole(writer):
    for step in range(3):
        writer.loss(0, step, float(step))
    live = create_trial(writer.folder).live("loss", history=False, timeout=20)
    got = []
    reading = threading.Thread(target=lambda: got.extend(row for frame in live for row in frame))
    reading.start()
    time.sleep(0.3)
    writer.loss(0, 3, 3.0)
    assert wait_for(lambda: [row["step"] for row in got] == [3], 5)
    writer.loss(1, 1, 11.0)  # lies below what the other has
    writer.loss(0, 4, 4.0)
    assert wait_for(lambda: [(row["worker"], row["step"]) for row in got] == [("worker_0", 3), ("worker_1", 1), ("worker_0", 4)], 5), got
    writer.event(0, "end", outcome="completed")
    writer.event(1, "end", outcome="completed")
    reading.join(10)
    assert not reading.is_alive() and len(got) == 3


def test_steps_and_a_launch_that_begins_meanwhile(writer):
    writer.loss(0, 0, 1.0)
    writer.step_end(0, 0)
    live = create_trial(writer.folder).live("step()", timeout=20)
    assert list(next(live)["step"]) == [0]
    for rank in (0, 1):
        writer.put(wire.encode_lifecycle(writer.head(rank, attempt=2, incarnation=9), {"event": "start", "launch": "another", "job": "digits"}))
    writer.put(wire.encode_frame(writer.head(0, attempt=2, incarnation=9, mode=wire.TRAIN), wire.STEP_END, [
        {"step": 0, "global_step": 0, "start": 1, "end": 2, "micro_steps": 1}]))
    (row,) = next(live)
    assert (row["attempt"], row["step"]) == (2, 0)
    live.close()


def test_what_is_asked_wrongly_is_said_at_once(writer):
    writer.loss(0, 0, 1.0)
    for query, more in (("loss(", {}), ('metric("a"){nod="x"}', {}), ("loss", {"stat": "l2"}), ("loss", {"mode": "trian"})):
        with pytest.raises(ValueError):
            create_trial(writer.folder).live(query if query != "loss(" else 'lossy("x")', **more)
    with pytest.raises(ValueError, match="past moment"):
        create_trial(writer.folder, at=time.time()).live("loss")


def test_a_chart_is_drawn_again_until_the_run_has_ended(writer, monkeypatch):
    shown = []
    display = types.SimpleNamespace(display=lambda chart, display_id: shown.append(chart) or types.SimpleNamespace(update=shown.append))
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    writer.loss(0, 0, 5.0)
    chart = create_trial(writer.folder).plot("loss")
    drawing = threading.Thread(target=chart.live)
    drawing.start()
    assert wait_for(lambda: len(shown) >= 2, 5)
    writer.loss(0, 1, 3.0)
    assert wait_for(lambda: "steps 0 to 1: from 5 to 3" in str(shown[-1]), 5), list(map(str, shown))
    for rank in (0, 1):
        writer.event(rank, "end", outcome="completed")
    drawing.join(10)
    assert not drawing.is_alive()
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(NotInstalled, match="pip install ipython"):
        chart.live()
