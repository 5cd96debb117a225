"""The plugin that ends a run of tests in time says what it left out, and each day begins with another file."""
import os
import pathlib
import subprocess
import sys

from tests.support import in_time

ROOT = pathlib.Path(__file__).resolve().parents[2]


class _Item:
    def __init__(self, path, name):
        self.path, self.name = path, name


def test_each_day_begins_with_another_file():
    items = [_Item(path, name) for path in "abc" for name in (1, 2)]
    orders = ["".join(item.path for item in in_time._from_another_file_each_day(items, day)) for day in range(4)]
    assert orders == ["aabbcc", "bbccaa", "ccaabb", "aabbcc"]
    assert in_time._from_another_file_each_day([], 5) == []


def test_what_begins_too_late_is_left_out_and_said(tmp_path):
    # While the first test runs, its clock passes the end of any time given.
    (tmp_path / "test_slow.py").write_text("from tests.support import in_time\ndef test_a(): in_time.clock = lambda: float('inf')\n"
                                           "def test_b(): pass\n")

    def run(minutes):
        return subprocess.run([sys.executable, "-m", "pytest", "-p", "tests.support.in_time", "-c", os.devnull, f"--rootdir={tmp_path}", tmp_path],
                              cwd=ROOT, env={**os.environ, "TOCSIN_TESTS_MINUTES": minutes}, capture_output=True, text=True).stdout

    cut, whole = run("5"), run("")
    assert "1 passed, 1 skipped" in cut and "NOT WHOLE within 5 minutes: 1 tests left out" in cut
    assert "2 passed" in whole and "NOT WHOLE" not in whole
