"""`tocsin run -- CMD`: the command's own exit code comes back, and how it ended is told for whoever could not."""
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.support.hook_support import CommandWriter, Telemetry, wait_for
from tests.support.program import BINARY, BUILD, ROOT

OPEN = """
import os, sys, time
import tocsin
hook = tocsin.watch(run="r", job="below")
hook.log(loss=1.0); hook.step(); assert hook.flush()
"""


def start(tmp_path, body, *before, **options):
    path = tmp_path / "train.py"
    path.write_text(OPEN + textwrap.dedent(body))
    environment = {**os.environ, "TOCSIN_OUT": str(tmp_path / "data"), "PYTHONPATH": str(ROOT / "python"),
                   "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
    environment.pop("TOCSIN_LAUNCH", None)
    return subprocess.Popen([str(BINARY), "run", "--", *(before or (sys.executable,)), str(path)], env=environment, cwd=tmp_path,
                            stderr=subprocess.PIPE, text=True, **options)


def ended(process, timeout=30):
    return process.communicate(timeout=timeout)[1], process.returncode


def deaths(tmp_path):
    return [(frame.header["rank"], frame.lifecycle) for frame in Telemetry(tmp_path / "data").of_kind(4)
            if frame.lifecycle["event"] == "died"]


@pytest.mark.parametrize("last_words, status", [("hook.close()", 0), ("sys.exit(3)", 3), ("raise ValueError('bad')", 1)])
def test_a_hook_that_speaks_for_itself_is_enough(tmp_path, last_words, status):
    said, code = ended(start(tmp_path, last_words))
    assert code == status, said
    assert deaths(tmp_path) == []
    assert len(Telemetry(tmp_path / "data").lifecycles("end")) == 1


@pytest.mark.parametrize("status, outcome", [(3, "failed"), (0, "completed")])
def test_who_calls_os_exit_is_told_once_with_the_code_by_the_hook(tmp_path, status, outcome):
    said, code = ended(start(tmp_path, f"os._exit({status})"))
    assert code == status, said
    (end,) = Telemetry(tmp_path / "data").lifecycles("end")
    assert (end["outcome"], end["exit_code"]) == (outcome, status)
    assert deaths(tmp_path) == []


def test_who_leaves_past_os_exit_is_told_with_the_code_of_the_process(tmp_path):
    said, code = ended(start(tmp_path, "import ctypes; ctypes.CDLL(None)._exit(3)"))
    assert code == 3, said
    assert Telemetry(tmp_path / "data").lifecycles("end") == []
    (_, died), = deaths(tmp_path)
    assert (died["worker"], died["exit_code"], died["signal"]) == ("worker_0", 3, None)


@pytest.mark.parametrize("last_words, status, exit_code, number", [
    ("os.kill(os.getpid(), 9)", 137, None, 9), ("os.kill(os.getpid(), 11)", 139, None, 11)])
def test_a_process_that_ends_without_a_word_is_told_with_its_code(tmp_path, last_words, status, exit_code, number):
    said, code = ended(start(tmp_path, last_words))
    assert code == status, said
    telemetry = Telemetry(tmp_path / "data")
    assert telemetry.lifecycles("end") == []
    (rank, died), = deaths(tmp_path)
    assert rank == 0xFFFFFFFF  # under the identity of the node, not of the worker
    assert (died["worker"], died["exit_code"], died["signal"]) == ("worker_0", exit_code, number)
    assert died["pid"] == telemetry.lifecycles("start")[0]["pid"]
    start_frame = next(frame for frame in telemetry.of_kind(4) if frame.lifecycle["event"] == "start")
    assert died["incarnation"] == start_frame.header["incarnation"]


def test_of_a_process_that_is_not_our_child_the_code_is_not_known(tmp_path):
    said, code = ended(start(tmp_path, "os.kill(os.getpid(), 9)", "/bin/sh", "-c", f"{sys.executable} $0; exit 5"))
    assert code == 5, said
    (_, died), = deaths(tmp_path)
    assert (died["exit_code"], died["signal"]) == (None, None)


def test_the_launch_is_one_for_all_below_and_another_each_time(tmp_path):
    for _ in range(2):
        assert ended(start(tmp_path, "hook.close()"))[1] == 0
    launches = [one["launch"] for one in Telemetry(tmp_path / "data").lifecycles("start")]
    assert len(set(launches)) == 2 and all(launch.startswith("launch:") for launch in launches)


@pytest.mark.parametrize("last_words, status", [("sys.exit(0)", 77), ("sys.exit(tocsin.EXIT_STOPPED)", 77), ("sys.exit(1)", 1)])
def test_an_acknowledged_stop_is_77(tmp_path, last_words, status):
    process = start(tmp_path, f"""
        while not hook.should_stop():
            time.sleep(0.01)
        hook.acknowledge_stop()
        hook.close()
        {last_words}
    """)
    data = tmp_path / "data"
    assert wait_for(lambda: data.exists() and Telemetry(data).lifecycles("start"), 20)
    CommandWriter(data).stop(Telemetry(data).run())
    said, code = ended(process)
    assert code == status, said


def test_a_launcher_that_makes_1_of_it_is_77_too(tmp_path):
    process = start(tmp_path, """
        while not hook.should_stop():
            time.sleep(0.01)
        hook.acknowledge_stop()
        sys.exit(tocsin.EXIT_STOPPED)
    """, "/bin/sh", "-c", f"{sys.executable} $0 || exit 1")
    data = tmp_path / "data"
    assert wait_for(lambda: data.exists() and Telemetry(data).lifecycles("start"), 20)
    CommandWriter(data).stop(Telemetry(data).run())
    assert ended(process)[1] == 77


def test_signals_reach_the_command(tmp_path):
    process = start(tmp_path, "open('up', 'w').close(); time.sleep(60)")
    assert wait_for((tmp_path / "up").exists, 20)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[1] == 128 + signal.SIGTERM
    assert deaths(tmp_path)[0][1]["signal"] == signal.SIGTERM


def test_commands_that_do_not_exist_are_said_as_a_shell_says_it(tmp_path):
    def run(*arguments):
        return subprocess.run([str(BINARY), "run", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert run("--", "no-such-command-here").returncode == 127
    assert run("--", "/etc").returncode == 126
    assert run("--").returncode == 2 and run().returncode == 2
    unusable = run("--out", "redis://localhost", "--", "true")
    assert unusable.returncode == 3 and "kafka://host:9092" in unusable.stderr
    assert run("--", "true").returncode == 0 and run("--", "sh", "-c", "exit 9").returncode == 9
    assert list(tmp_path.iterdir()) == []  # nothing to tell: nothing is opened


def test_the_report_is_gone_afterwards(tmp_path):
    (tmp_path / "scratch").mkdir()
    before = time.time()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "scratch")}
    done = subprocess.run([str(BINARY), "run", "--", "sh", "-c", "test -f $TOCSIN_REPORT && test -n $TOCSIN_LAUNCH"], env=environment,
                          timeout=20, cwd=tmp_path, check=False)
    assert done.returncode == 0 and time.time() - before < 10
    assert list((tmp_path / "scratch").iterdir()) == []
