"""The Debian packages, unpacked and used, and `make install`."""
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lib"))

import package_version  # noqa: E402

HOOK = """
import tocsin
hook = tocsin.watch(out="data", job="deb", rules="exploding_tensor")
hook.log(loss=1.0)
hook.step()
hook.log(loss=float("inf"))
hook.step()
hook.close()
print(sorted({issue["labels"]["rule"] for issue in hook.issues()}))
from tocsin.library.abi import library
print(library().path)
print([row["value"] for row in tocsin.reading.Tensors("data").get("loss")])
"""
TRAINER = """
#include <tocsin_client.h>
#include <tocsin_rule.h>
int main(void) { return tocsin_abi_version() == TOCSIN_ABI_VERSION ? 0 : 1; }
"""
BASH = """source {script}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _tocsin; echo "${{COMPREPLY[@]}}" """


def run(*command, **options):
    return subprocess.run([str(part) for part in command], text=True, capture_output=True, check=False, timeout=120, **options)


def fields(package):
    out = run("dpkg-deb", "--field", package).stdout
    return dict(line.split(": ", 1) for line in out.splitlines() if ": " in line and not line.startswith(" "))


@pytest.fixture(scope="session")
def packages():
    found = {fields(file)["Package"]: file for file in (ROOT / "dist").glob("*.deb")}
    assert set(found) == {"tocsin", "python3-tocsin", "libtocsin-client-dev"}, "run `make deb`"
    return found


@pytest.fixture(scope="session", params=["deb", "install"])
def prefix(request, packages, tmp_path_factory):
    """Where a package, or `make install`, has put everything: a folder like /usr."""
    root = tmp_path_factory.mktemp(request.param)
    if request.param == "install":
        done = run("make", "install", f"DESTDIR={root}", "PREFIX=/opt/tocsin", cwd=ROOT)
        assert done.returncode == 0, done.stdout + done.stderr
        return root / "opt/tocsin"
    for file in packages.values():
        assert run("dpkg-deb", "--extract", file, root).returncode == 0
    return root / "usr"


def test_lintian_finds_no_error(packages):
    done = run("lintian", "--fail-on", "error", *packages.values())
    assert done.returncode == 0, done.stdout


def test_they_depend_on_the_libraries_of_the_distribution(packages):
    needed = fields(packages["tocsin"])["Depends"]
    for library in ("librdkafka1", "libmosquitto1", "libcurl4", "libsqlite3-0"):
        assert library in needed
    assert "librdkafka1" in fields(packages["python3-tocsin"])["Depends"]
    assert fields(packages["libtocsin-client-dev"])["Depends"] == f"python3-tocsin (= {package_version.read(ROOT)})"


def test_the_program_runs(prefix, tmp_path):
    config = tmp_path / "tocsin.yaml"
    assert run(prefix / "bin/tocsin", "init", config).returncode == 0
    assert run(prefix / "bin/tocsin", "check", config).returncode == 0
    with open(prefix / "bin/tocsin", "rb") as file:
        assert b".symtab" not in file.read(), "it is stripped"


def test_the_hook_finds_the_library_of_its_own_installation(prefix, tmp_path):
    environment = {"PYTHONPATH": str(prefix / "lib/python3/dist-packages"), "PATH": os.environ["PATH"], "TOCSIN_QUIET": "1"}
    done = run("/usr/bin/python3", "-c", HOOK.replace("import tocsin\n", "import tocsin, tocsin.reading\n", 1), cwd=tmp_path, env=environment)
    assert done.stdout.split("\n") == ["['exploding_tensor']", str(prefix / "lib/libtocsin_client.so.0"), "[1.0, inf]", ""], done.stderr


def test_a_trainer_in_c_builds_and_links(prefix, tmp_path):
    source = tmp_path / "trainer.c"
    source.write_text(TRAINER, encoding="utf-8")
    built = run("cc", source, "-I", prefix / "include", "-L", prefix / "lib", "-ltocsin_client", "-o", tmp_path / "trainer")
    assert built.returncode == 0, built.stderr
    assert run(tmp_path / "trainer", env={"LD_LIBRARY_PATH": str(prefix / "lib")}).returncode == 0


def test_the_units_start_the_program_of_this_installation(prefix):
    place = "/usr" if prefix.name == "usr" else "/opt/tocsin"
    for unit, role in (("tocsin.service", "up"), ("tocsin-collect.service", "collect")):
        assert f"ExecStart={place}/bin/tocsin {role} " in (prefix / "lib/systemd/system" / unit).read_text(encoding="utf-8")


@pytest.mark.parametrize("words, found", [("tocsin to", "topics"), ("tocsin topics pl", "plan"), ("tocsin topics export --output st", "strimzi"),
                                          ("tocsin rules describe exploding", "exploding_tensor"), ("tocsin status --ou", "--output")])
def test_shells_complete(prefix, words, found):
    environment = {**os.environ, "PATH": f"{prefix}/bin:{os.environ['PATH']}"}
    script = prefix / "share/bash-completion/completions/tocsin"
    assert run("bash", "-c", BASH.format(script=script, words=words), env=environment).stdout.strip() == found
    script = prefix / "share/fish/vendor_completions.d/tocsin.fish"
    completed = run("fish", "--no-config", "-c", f"source {script}; complete -C '{words}'", env=environment)
    assert " ".join(line.split("\t")[0] for line in completed.stdout.splitlines()) == found, completed.stderr
    assert run("zsh", "-n", prefix / "share/zsh/vendor-completions/_tocsin").returncode == 0


def test_the_manual_page_names_every_command(prefix):
    done = run("man", "-l", prefix / "share/man/man1/tocsin.1.gz", env={**os.environ, "MANWIDTH": "200", "LC_ALL": "C.UTF-8"})
    listed = run(prefix / "bin/tocsin", "completion", "bash").stdout
    for command in ("up", "evaluate", "issues", "completion"):
        assert f" {command} " in done.stdout and command in listed
