"""Ranks that are children of a process of Python: each ends as it ended, with its last step, however it was started."""
import os
import re
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.support.hook_support import Telemetry
from tests.support.program import BUILD, ROOT

CONFIG = """
transport: {{journal: {journal}}}
rule_groups: [default]
http: {{listen: '127.0.0.1:0'}}
"""

STEPS = 40
TRAIN = f"""
import multiprocessing, os, sys, threading, time
import tocsin

def train(steps={STEPS}, rank=0, job="children", **given):
    hook = tocsin.watch(run="r", job=job, **given)
    for step in range(steps):
        hook.log(loss=1.0 / (step + 1))
        hook.step()
    return hook

def task():
    train()

def end(way, rank=0):
    os.environ.update(RANK=str(rank), WORLD_SIZE=os.environ.get("RANKS", "1"), MASTER_ADDR="127.0.0.1", MASTER_PORT="29999")
    hook = train(rank=rank)
    if way == "raises":
        raise ValueError("no such layer")
    if way == "exit3":
        sys.exit(3)
    if way == "exit0":
        sys.exit(0)
    if way == "text":
        sys.exit("out of data")
    if way == "_exit0":
        os._exit(0)
    if way == "_exit5":
        os._exit(5)
    if way == "close":
        hook.close()
    if way == "killed":
        hook.flush(5)
        os.kill(os.getpid(), 9)
    if way == "grandchild":
        os._exit(0)
"""

# What the parent does with the function above; `way` and `method` are texts.
PARENTS = {
    "process": """
child = multiprocessing.get_context(method).Process(target=end, args=(way,))
child.start()
child.join()
print(child.exitcode)
""",
    "daemon": """
child = multiprocessing.get_context(method).Process(target=end, args=(way,), daemon=True)
child.start()
child.join()
print(child.exitcode)
""",
    "pool": """
with multiprocessing.get_context(method).Pool(1) as pool:
    pool.apply(task)
    pool.close()
    pool.join()
""",
    "executor": """
from concurrent.futures import ProcessPoolExecutor
with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
    pool.submit(task).result()
""",
    "by_hand": """
pid = os.fork()
if pid == 0:
    end(way)
    os._exit(0)
os.waitpid(pid, 0)
""",
    "grandchild": """
def between(way):
    child = multiprocessing.get_context(method).Process(target=end, args=(way,))
    child.start()
    child.join()
child = multiprocessing.get_context("fork").Process(target=between, args=(way,))
child.start()
child.join()
""",
    "watched_before": """
first = train(5, job="parent")
first.close()
child = multiprocessing.get_context(method).Process(target=end, args=(way,))
child.start()
child.join()
""",
}


def environment(journal, **more):
    return {**{key: value for key, value in os.environ.items() if not key.startswith(("TOCSIN_", "RANK", "WORLD"))},
            "TOCSIN_OUT": str(journal), "PYTHONPATH": str(ROOT / "python"), "TOCSIN_QUIET": "1",
            "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0")), **more}


def run(tmp_path, parent, way="ends", method="fork", **more):
    """The script's exit status, and the telemetry that it left."""
    path = tmp_path / "ranks.py"
    path.write_text(f"{TRAIN}\nif __name__ == '__main__':\n    way, method = {way!r}, {method!r}\n"
                    + textwrap.indent(PARENTS.get(parent, parent), "    "))
    done = subprocess.run([sys.executable, str(path)], env=environment(tmp_path / "journal", **more), text=True, capture_output=True,
                          check=False, timeout=90)
    return done, Telemetry(tmp_path / "journal")


def ended(telemetry):
    (end,) = telemetry.lifecycles("end")
    assert telemetry.steps() == list(range(STEPS)), "the last steps are missing"
    return end


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_a_child_that_returns_is_completed(tmp_path, method):
    done, telemetry = run(tmp_path, "process", method=method)
    assert done.stdout.strip() == "0", done.stderr
    end = ended(telemetry)
    assert (end["outcome"], end["exit_code"]) == ("completed", 0)


@pytest.mark.parametrize("parent", ["daemon", "by_hand", "pool", "executor", "grandchild", "watched_before"])
def test_whatever_kind_of_child_it_is(tmp_path, parent):
    done, telemetry = run(tmp_path, parent)
    assert done.returncode == 0, done.stderr
    ends = telemetry.lifecycles("end")
    assert ends[-1]["outcome"] == "completed", ends
    assert telemetry.steps()[-STEPS:] == list(range(STEPS))
    assert len(ends) == (2 if parent == "watched_before" else 1)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("way, outcome, code, word", [
    ("raises", "failed", 1, "ValueError: no such layer"), ("exit3", "failed", 3, ""), ("exit0", "completed", 0, ""),
    ("text", "failed", 1, ""), ("_exit0", "completed", 0, ""), ("_exit5", "failed", 5, ""), ("close", "completed", None, "")])
def test_a_child_ends_as_it_ended(tmp_path, method, way, outcome, code, word):
    if method != "fork" and way in ("exit0", "text", "close"):
        way, outcome, code, word = "exit3", "failed", 3, ""  # the rest is fork's own
    done, telemetry = run(tmp_path, "process", way, method)
    end = ended(telemetry)
    assert (end["outcome"], end.get("exit_code")) == (outcome, code), (end, done.stderr)
    assert word in end.get("error", "")


def test_what_a_rank_raised_is_told_where_its_starter_exits_for_it(tmp_path):
    """As torch.multiprocessing.start_processes does."""
    _, telemetry = run(tmp_path, """
def wrapped():
    try:
        end("raises")
    except Exception:
        sys.exit(1)
child = multiprocessing.get_context("fork").Process(target=wrapped)
child.start()
child.join()
""")
    assert re.fullmatch(r"ValueError: no such layer \(\w+\.py:\d+ in end\)", ended(telemetry)["error"].splitlines()[0])


def test_children_of_a_watched_process_neither_end_its_run_nor_write_into_it(tmp_path):
    """Workers of a loader: they inherit the hook, and the run is their parent's."""
    done, telemetry = run(tmp_path, """
hook = tocsin.watch(run="r", job="children")
def load(way):
    inherited = hook
    inherited.log(loss=9.0)
    inherited.step()
    if way == "raises":
        raise ValueError("a bad record")
    if way == "exits":
        os._exit(0)
    if way == "closes":
        inherited.close()
for step in range(40):
    hook.log(loss=1.0)
    hook.step()
    if step in (5, 10, 15, 20):
        child = multiprocessing.get_context("fork").Process(target=load, args=(("ends", "raises", "exits", "closes")[step // 5 - 1],))
        child.start()
        child.join()
print("closed" if not hook.enabled else "open")
""")
    assert done.stdout.strip() == "open", done.stderr
    assert ended(telemetry)["outcome"] == "completed"
    assert {value for _, _, value in telemetry.scalars("loss")} == {1.0}
    assert {frame.header["incarnation"] for frame in telemetry.frames} == {telemetry.frames[0].header["incarnation"]}


def test_a_thread_that_exits_for_a_loop_that_hangs_does_not_wait_for_it(tmp_path):
    done, telemetry = run(tmp_path, """
hook = train()
hook.flush(5)
threading.Timer(0.2, lambda: os._exit(4)).start()
time.sleep(60)
""")
    assert done.returncode == 4
    assert telemetry.lifecycles("end") == []


def test_a_process_that_exits_at_once_is_closed(tmp_path):
    done, telemetry = run(tmp_path, "end('_exit0')")
    assert done.returncode == 0
    assert ended(telemetry)["outcome"] == "completed"


@pytest.mark.parametrize("way, outcome, told", [("ends", "completed", set()), ("_exit0", "completed", set()), ("exit3", "failed", {"job_failed"}),
                                                ("killed", "lost", {"job_lost"})])
def test_people_hear_of_two_forked_ranks_what_became_of_them(server, tmp_path, way, outcome, told):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    _, telemetry = run(tmp_path, """
ranks = [multiprocessing.get_context("fork").Process(target=end, args=(way, rank)) for rank in range(2)]
for rank in ranks: rank.start()
for rank in ranks: rank.join()
""", way, RANKS="2")
    one.wait_for("job_ended", outcome=outcome)
    for rule in told:  # what a lost job is told of may follow its end
        one.wait_for("issue_fired", rule=rule)
    assert {event["rule"] for event in one.all("issue_fired")} == told
    if way != "killed":
        assert sorted(telemetry.steps()) == sorted(2 * list(range(STEPS)))


def test_the_agent_knows_how_a_child_ended_that_said_nothing(server, tmp_path):
    """Its own end was taken from it; its parent does not wait for it yet."""
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    path = tmp_path / "ranks.py"
    path.write_text(TRAIN + """
import ctypes
pid = os.fork()
if pid == 0:
    train().flush(5)
    ctypes.CDLL(None)._exit(0)
time.sleep(60)
""")
    parent = subprocess.Popen([sys.executable, str(path)], env=environment(tmp_path / "journal"))
    try:
        one.wait_for("job_ended", outcome="completed")
        assert one.all("issue_fired") == []
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
