"""Tests run side by side: those of a file stay together, long ones begin first, and a crash is one test's failure."""
import os
import pathlib
import subprocess
import sys

import pytest

from tests.support import side_by_side

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def run(tmp_path):
    """run({file: text}, argument...): the output of pytest with the plugin over these files, and the lines that they wrote."""
    def start(files, *arguments):
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        environment = {**os.environ, "SEEN": str(tmp_path / "seen"), "TOCSIN_TEST_SECONDS": str(tmp_path / "seconds")}
        done = subprocess.run([sys.executable, "-m", "pytest", "-p", "tests.support.side_by_side", "-c", os.devnull, f"--rootdir={tmp_path}",
                               *arguments, *(tmp_path / name for name in files)],
                              cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
        seen = (tmp_path / "seen").read_text().splitlines() if (tmp_path / "seen").exists() else []
        return done.stdout, seen
    return start


SAYS = """
import os, pytest, time
def say(what):
    with open(os.environ["SEEN"], "a") as out:
        out.write(f"{what} {os.environ.get('PYTEST_XDIST_WORKER')}\\n")
"""


def test_a_file_stays_together_and_one_whose_tests_stand_apart_is_spread(run):
    together = SAYS + '@pytest.fixture(scope="module")\ndef one(): say("fixture")\n' + "".join(
        f"def test_{n}(one): say('together')\n" for n in range(6))
    apart = SAYS + "pytestmark = pytest.mark.apart\n@pytest.mark.parametrize('n', range(6))\ndef test_x(n):\n    time.sleep(0.3)\n    say('apart')\n"
    out, seen = run({"test_a.py": together, "test_b.py": apart}, "-n", "3")
    assert "12 passed" in out, out
    assert len({line for line in seen if line.startswith("together")}) == 1 and sum(line.startswith("fixture") for line in seen) == 1
    assert len({line for line in seen if line.startswith("apart")}) > 1


def test_a_test_at_which_a_worker_crashes_has_failed_and_the_others_run(run):
    text = SAYS + "import signal\npytestmark = pytest.mark.apart\ndef test_a(): say('a')\ndef test_b(): os.kill(os.getpid(), signal.SIGKILL)\n" + "".join(
        f"def test_{name}(): say('{name}')\n" for name in "cdef")
    out, seen = run({"test_a.py": text}, "-n", "2")
    assert "1 failed, 5 passed" in out and "crashed while running 'test_a.py::test_b'" in out, out
    assert sorted(line[0] for line in seen) == ["a", "c", "d", "e", "f"]


def test_seconds_are_those_of_a_test_with_its_fixtures(run, tmp_path):
    run({"test_a.py": SAYS + "@pytest.fixture\ndef slow(): time.sleep(0.3)\ndef test_a(slow): time.sleep(0.3)\n"})
    [line] = (tmp_path / "seconds").read_text().splitlines()
    seconds, test = line.split()
    assert test == "test_a.py::test_a" and 0.6 <= float(seconds) < 3


def test_long_ones_begin_first():
    long = side_by_side.long_units("# of a machine\n30 tests/e2e/test_sync.py\n\n12.5 tests/e2e/test_poison.py::test_no\n")
    assert long == {"tests/e2e/test_sync.py": 30, "tests/e2e/test_poison.py::test_no": 12.5}
    tests = ["tests/e2e/test_cli.py::a", "tests/e2e/test_poison.py::test_no[1]", "tests/e2e/test_cli.py::b", "tests/e2e/test_sync.py::c"]
    assert side_by_side.longest_first(tests, long) == [tests[3], tests[1], tests[0], tests[2]]


def test_what_is_called_long_exists():
    long = side_by_side.long_units(side_by_side.LONG.read_text(encoding="utf-8"))
    for beginning in long:
        path, _, test = beginning.partition("::")
        assert f"def {test.partition('[')[0]}" in (ROOT / path).read_text(encoding="utf-8"), beginning
