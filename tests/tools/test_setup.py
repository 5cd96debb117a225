"""tools/setup: silent when nothing is missing, otherwise exact about what is."""

import os
import pathlib
import stat
import subprocess
import tempfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETUP = ROOT / "tools" / "setup"


def setup(*arguments, environment=None, user=None):
    as_user = ["setpriv", f"--reuid={user}", "--clear-groups"] if user else []
    return subprocess.run([*as_user, "bash", str(SETUP), *arguments], text=True, capture_output=True, timeout=120,
                          env={**os.environ, **(environment or {})}, check=False)


@pytest.fixture
def commands():
    """A folder in which to put stand-ins for system commands, readable by every user."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)

        def put(name, script):
            path = pathlib.Path(folder) / name
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(path.stat().st_mode | stat.S_IEXEC | stat.S_IXGRP | stat.S_IXOTH | stat.S_IROTH)

        put.path = {"PATH": f"{folder}:{os.environ['PATH']}"}
        yield put


def installed(packages):
    return "\n".join(f"echo 'installed {package}'" for package in packages)


def listed(group):
    return setup("--list", group).stdout.split()


def test_silent_when_everything_is_there(commands):
    commands("dpkg-query", installed(package.split("|")[0] for package in listed("test")))
    commands("apt-get", "echo called >&2; exit 9")
    ran = setup("build", "test", environment=commands.path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_either_of_two_alternatives_will_do(commands):
    packages = listed("kafka")
    assert "default-jre-headless|openjdk-17-jre-headless" in packages
    commands("dpkg-query", installed(package.split("|")[-1] for package in packages))
    assert setup("kafka", environment=commands.path).returncode == 0


def test_without_rights_it_prints_the_exact_command(commands):
    commands("dpkg-query", installed(p for p in listed("build") if p not in ("ccache", "libre2-dev")))
    commands("sudo", "exit 1")
    commands("apt-get", "echo called >&2; exit 9")
    ran = setup("build", environment=commands.path, user=65534 if os.geteuid() == 0 else None)
    assert ran.returncode == 1
    assert 'sudo sh -c "apt-get update && apt-get install -y --no-install-recommends ccache libre2-dev"' in ran.stderr
    assert "called" not in ran.stderr


def test_with_passwordless_sudo_it_installs_what_is_missing(commands):
    commands("dpkg-query", installed(p for p in listed("build") if p != "ccache"))
    commands("sudo", "shift; exec \"$@\"")
    commands("apt-get", 'case "$*" in *update*|*--assume-no*) ;; *) echo "$*" > "$APT_ASKED" ;; esac')
    with tempfile.NamedTemporaryFile() as asked:
        ran = setup("build", environment={**commands.path, "APT_ASKED": asked.name})
        assert ran.returncode == 0, ran.stderr
        assert "install -y --no-install-recommends ccache" in pathlib.Path(asked.name).read_text()
    assert "Installing 1 Debian packages" in ran.stderr


def test_failed_installation_says_where_to_look(commands):
    commands("dpkg-query", "true")
    commands("sudo", "shift; exec \"$@\"")
    commands("apt-get", "echo 'E: Unable to locate package'; exit 100")
    ran = setup("kafka", environment=commands.path)
    assert ran.returncode == 1 and "Unable to locate" in ran.stderr and "build/setup.log" in ran.stderr


def test_unknown_group_is_named():
    ran = setup("nosuch")
    assert ran.returncode == 1 and "no group 'nosuch'" in ran.stderr


def test_can_be_switched_off(commands):
    commands("dpkg-query", "true")
    assert setup("test", environment={**commands.path, "TOCSIN_SKIP_SETUP": "1"}).returncode == 0
