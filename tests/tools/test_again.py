"""What failed beside other tests is tried once more alone, and named; a C++ test or many failures are not."""
import pathlib
import subprocess

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


def test_many_failures_a_cpp_test_a_crash_or_a_file_that_does_not_load_are_not_tried(tmp_path):
    crash = "worker 'gw1' crashed while running 'tests/a_test.py::test_x'\nFAILED tests/a_test.py::test_x\n"
    many = "".join(f"FAILED tests/a_test.py::test_{number}\n" for number in range(6))
    for log in (many, "FAILED tests/a_test.py::test_x\n\t 3 - rules_test (Failed)\n", "FAILED tests/a_test.py::t\nERROR tests/b_test.py\n", crash, ""):
        assert _again(tmp_path, log, "exit 0")[::2] == (1, [])
