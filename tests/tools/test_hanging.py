"""A test that hangs fails and says where it stood; those after it run."""
import os
import pathlib
import subprocess
import sys
import time

import pytest

from tests.support.hanging import TookTooLong, limited

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_a_test_that_hangs_fails_and_the_next_one_runs(tmp_path):
    # As a forked child did that waited for a lock for ever, and with it its parent.
    (tmp_path / "test_hangs.py").write_text("import os, time\n"
                                            "def test_hangs():\n"
                                            "    child = os.fork()\n"
                                            "    if not child: time.sleep(20); os._exit(0)\n"
                                            "    os.waitpid(child, 0)\n"
                                            "def test_after_it(): pass\n")
    started = time.monotonic()
    run = subprocess.run([sys.executable, "-m", "pytest", "-p", "tests.support.hanging", "-c", os.devnull, f"--rootdir={tmp_path}", tmp_path],
                         cwd=ROOT, env={**os.environ, "TOCSIN_TEST_LIMIT": "0.5"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, timeout=60)
    assert time.monotonic() - started < 15
    assert "1 failed, 1 passed" in run.stdout and "TookTooLong: more than 0.5 s" in run.stdout
    assert "TOO LONG: test_hangs.py::test_hangs" in run.stdout and 'test_hangs.py", line 5 in test_hangs' in run.stdout


def test_a_block_in_time_is_left_alone():
    with limited("a block", 0.05):
        pass
    time.sleep(0.1)
    with pytest.raises(TookTooLong), limited("a block", 0.05):
        time.sleep(5)
