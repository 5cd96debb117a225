"""What failed beside other tests is tried once more alone, and named; a crash or many failures are not."""
import json
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _again(folder, log, python):
    (folder / "log").write_text(log)
    fake = folder / "python"
    fake.write_text(f"#!/bin/bash\necho \"$@\" >>{folder}/ran\n{python}\n")
    fake.chmod(0o755)
    done = subprocess.run([ROOT / "tools/again", folder / "log", fake], capture_output=True, text=True)
    ran = (folder / "ran").read_text().splitlines() if (folder / "ran").exists() else []
    return done.returncode, done.stdout, ran


def test_a_test_that_passes_alone_is_named(tmp_path):
    code, said, ran = _again(tmp_path, "FAILED tests/a_test.py::test_x[a b] - assert 1 - 1\n= 1 failed, 3 passed in 2s =\n", "exit 0")
    assert (code, ran) == (0, ["-m pytest tests/a_test.py::test_x[a b]"])
    assert "FAILED ONCE, PASSED ALONE: tests/a_test.py::test_x[a b]" in said


def test_what_fails_twice_has_failed(tmp_path):
    code, said, _ = _again(tmp_path, "FAILED tests/a_test.py::test_x\nFAILED tests/b_test.py::test_y\n", "[[ $3 = *y ]]")
    assert code == 1 and "ALONE: tests/b_test.py::test_y" in said and "test_x" not in said


CTEST = """
43/48 Test #43: journal_test .....................   Passed    9.84 sec
48/48 Test #45: kafka_test .......................***Failed  165.80 sec
[  FAILED  ] Faults.Early
[  PASSED  ] 18 tests.
[  FAILED  ] 2 tests, listed below:
[  FAILED  ] Faults.Early
[  FAILED  ] Seeds/Faults.Late/3, where GetParam() = 3

 2 FAILED TESTS
44/48 Test #46: other_test .......................   Passed    1.00 sec
The following tests FAILED:
	 45 - kafka_test (Failed)
"""


def _program(folder, monkeypatch, script):
    """A ctest that knows one program, which does what ``script`` says."""
    program = folder / "kafka_test"
    program.write_text(f"#!/bin/bash\necho $GTEST_FILTER >>{folder}/cases\n{script}\n")
    ctest = folder / "ctest"
    known = json.dumps({"tests": [{"name": "kafka_test", "command": [str(program)]}]})
    ctest.write_text(f"#!/bin/bash\necho '{known}'\n")
    for one in (program, ctest):
        one.chmod(0o755)
    monkeypatch.setenv("CTEST", str(ctest))


def test_cases_of_a_cpp_program_are_tried_each_alone(tmp_path, monkeypatch):
    _program(tmp_path, monkeypatch, "echo '[  PASSED  ] 1 test.'")
    code, said, _ = _again(tmp_path, CTEST, "exit 1")
    assert code == 0 and (tmp_path / "cases").read_text().split() == ["Faults.Early", "Seeds/Faults.Late/3"]
    assert "ALONE: kafka_test Faults.Early" in said and "ALONE: kafka_test Seeds/Faults.Late/3" in said


@pytest.mark.parametrize("script", ["echo '[  PASSED  ] 0 tests.'", "echo '[  PASSED  ] 1 test.'; exit 1", "[[ $GTEST_FILTER = *Early ]] && echo '[  PASSED  ] 1 test.'"],
                         ids=["no_case", "fails", "one_fails"])
def test_a_case_that_does_not_pass_alone_has_failed(tmp_path, monkeypatch, script):
    _program(tmp_path, monkeypatch, script)
    assert _again(tmp_path, CTEST, "exit 1")[0] == 1


def test_a_fixture_that_failed_is_tried(tmp_path):
    code, _, ran = _again(tmp_path, "ERROR tests/a_test.py::test_x[kept] - ConnectionResetError: [Errno 104] reset\n", "exit 0")
    assert (code, ran) == (0, ["-m pytest tests/a_test.py::test_x[kept]"])


def test_many_failures_a_crash_or_a_file_that_does_not_load_are_not_tried(tmp_path):
    crash = "worker 'gw1' crashed while running 'tests/a_test.py::test_x'\nFAILED tests/a_test.py::test_x\n"
    many = "".join(f"FAILED tests/a_test.py::test_{number}\n" for number in range(6))
    for log in (many, "FAILED tests/a_test.py::test_x\n3/4 Test #3: rules_test ....***Exception: SegFault\n", "FAILED tests/a_test.py::t\nERROR tests/b_test.py\n", crash, ""):
        assert _again(tmp_path, log, "exit 0")[::2] == (1, [])
