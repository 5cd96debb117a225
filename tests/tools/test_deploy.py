"""What lies under deploy/: units that systemd accepts, libraries that are really found."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_accepts_the_unit(unit, tmp_path):
    # The program need not be installed here; everything else is checked as it stands.
    copy = tmp_path / unit.name
    copy.write_text(unit.read_text().replace("/usr/bin/tocsin", "/bin/true"))
    ran = subprocess.run(["systemd-analyze", "verify", "--man=no", str(copy)], text=True, capture_output=True,
                         timeout=60, check=False)
    complaints = [line for line in ran.stderr.splitlines() if unit.name in line or str(copy) in line]
    assert ran.returncode == 0 and complaints == [], ran.stderr


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_check_can_fail(tmp_path):
    broken = tmp_path / "broken.service"
    broken.write_text(UNITS[0].read_text().replace("/usr/bin/tocsin", "/bin/true") + "\n[Service]\nNoSuchKey=1\n")
    ran = subprocess.run(["systemd-analyze", "verify", "--man=no", str(broken)], text=True, capture_output=True,
                         timeout=60, check=False)
    assert "NoSuchKey" in ran.stderr


def test_runtime_packages_are_those_of_the_libraries():
    program = shutil.which("kcat")
    ran = subprocess.run([ROOT / "tools" / "runtime-packages", program], text=True, capture_output=True, check=True)
    packages = ran.stdout.split()
    assert "librdkafka1" in packages and "libc6" not in packages and packages == sorted(set(packages))


def test_runtime_packages_needs_a_program():
    ran = subprocess.run([ROOT / "tools" / "runtime-packages"], text=True, capture_output=True, check=False)
    assert ran.returncode == 2 and "usage" in ran.stderr


def test_every_python_program_names_the_interpreter_that_has_torch():
    wrong = []
    for folder in ("tools", "deploy", "tests/support"):
        for path in (ROOT / folder).rglob("*"):
            first = path.read_bytes().split(b"\n")[0].decode(errors="replace") if path.is_file() else ""
            if re.match(r"#!.*python", first) and first != "#!/usr/bin/python3":
                wrong.append(str(path))
    assert wrong == [], sys.executable
