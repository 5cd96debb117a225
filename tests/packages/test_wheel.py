"""The two wheels, on a system that has nothing of the build."""
import json
import pathlib
import re
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "lib"))

import elf_floor  # noqa: E402
import package_version  # noqa: E402

QUICKSTART = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8")
CONFIG = re.search(r"```yaml\n(# tocsin.yaml\n.*?)```", QUICKSTART, re.DOTALL).group(1)

# The loop of that page without PyTorch, which is not what is tried here.
LOOP = """
import sys
import tocsin
hook = tocsin.watch(job="quickstart")
for step in range(20000):
    hook.log(loss=1.0 / (step + 1) if step < 300 else float("inf"))
    hook.step()
    if hook.should_stop():
        with hook.checkpointing():
            open("checkpoint.pt", "w").close()
        hook.acknowledge_stop(checkpoint="checkpoint.pt")
        sys.exit(tocsin.EXIT_STOPPED)
    import time; time.sleep(0.001)
"""


TLS_CONFIG = """
transport:
  kafka: { bootstrap.servers: "127.0.0.1:%d", security.protocol: ssl, ssl.endpoint.identification.algorithm: none }
"""
TLS_LOOP = """
import tocsin
hook = tocsin.watch(job="tls", config="tls.yaml")
hook.log(loss=1.0)
hook.step()
hook.flush(2)
hook.close(timeout=0.2)
"""


def test_the_hooks_library_asks_for_glibc_2_34_and_shows_nothing_but_its_functions(wheels):
    assert wheels["tocsin"].name.endswith("-py3-none-manylinux_2_34_x86_64.whl")
    done = subprocess.run([ROOT / "tools/wheel", "--check", wheels["tocsin"]], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_that_check_refuses_a_library_that_is_not_self_contained():
    built = ROOT / "build/release/collectors/hook/libtocsin_client.so.0"
    found = elf_floor.problems(built, {"tocsin_open", "tocsin_sing"}, floor=(2, 20))
    assert "needs librdkafka.so.1" in found and "needs libstdc++.so.6" in found
    assert "does not show tocsin_sing" in found and "shows tocsin_close" in found
    assert any(re.fullmatch(r"needs \w+ of GLIBC_2\.34, newer than 2\.20", line) for line in found)


def test_the_wheels_carry_the_notices_of_what_is_in_them(wheels):
    for name, packages in (("tocsin", ("librdkafka-dev", "libssl-dev", "libre2-dev")), ("tocsin_server", ("libcurl4", "libmosquitto1"))):
        with zipfile.ZipFile(wheels[name]) as archive:
            (notice,) = [file for file in archive.namelist() if file.endswith(".dist-info/LICENSE.third-party")]
            text = archive.read(notice).decode()
        for package in packages:
            assert f"{'=' * 20} {package}\n" in text


def test_nothing_of_the_build_is_within_reach(installed):
    libraries = {file.name for file in (installed.path / "usr/lib").rglob("*.so*")}
    assert not [name for name in libraries if re.match(r"lib(rdkafka|sqlite3|re2|yaml|curl|mosquitto|crypto|ssl|zstd|lz4|hwy|isal)", name)]
    assert not (installed.path / "work").exists() and not (installed.path / "usr/include").exists()


def test_five_minutes(installed):
    """The five minutes of the tutorial: check, up, a loop that goes wrong and is stopped with status 77, the metric."""
    home = installed.path / "root"
    (home / "tocsin.yaml").write_text(CONFIG + "http: { listen: '127.0.0.1:0' }\n", encoding="utf-8")
    (home / "train.py").write_text(LOOP, encoding="utf-8")
    assert installed.run("/venv/bin/tocsin", "--version").stdout == f"tocsin {package_version.read(ROOT)}\n"
    checked = installed.run("/venv/bin/tocsin", "check", "/root/tocsin.yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with open(home / "up.log", "w+", encoding="utf-8") as log:
        server = installed.start(*_in_home("tocsin", "up", "--log.format", "json"), log=log)
        try:
            address = _listening(home / "up.log")
            trained = installed.run(*_in_home("python", "train.py"))
            assert trained.returncode == 77, trained.stdout + trained.stderr
            with urllib.request.urlopen(f"http://{address}/metrics/issues", timeout=10) as page:
                shown = page.read().decode()  # 0: the end of the run has resolved it by now
            assert re.search(r'tocsin_issue_active\{rule="exploding_tensor",severity="error",job="quickstart",cluster="default"\} [01]\n', shown), shown
            status = installed.run(*_in_home("tocsin", "status", "-o", "json"))
            assert "stopped_by_rule" in status.stdout, status.stdout + status.stderr
        finally:
            server.terminate()
            assert server.wait(timeout=20) == 0
    assert (home / "checkpoint.pt").exists()


JUDGED = """
import tocsin
hook = tocsin.watch(job="alone", out="alone", rules="default")
for step in range(20):
    hook.log(loss=1.0 if step < 10 else float("nan"))
    hook.step()
hook.close()
print(sorted({issue["labels"]["rule"] for issue in hook.issues()}))
"""


def test_rules_judge_in_the_process_with_nothing_else_installed(installed):
    """The second library of the wheel."""
    (installed.path / "root/judged.py").write_text(JUDGED, encoding="utf-8")
    done = installed.run(*_in_home("python", "judged.py"))
    assert done.returncode == 0 and "'exploding_tensor'" in done.stdout, done.stdout + done.stderr


def test_tls_finds_the_certificates_of_the_system(installed, tmp_path):
    """librdkafka looks where the libssl of its build would: here the bundle lies where RHEL has it, and the broker shows a
    certificate of that authority."""
    ca, key, cert, request = (str(tmp_path / name) for name in ("ca.pem", "key.pem", "cert.pem", "request.pem"))
    for command in (["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ours", "-keyout", tmp_path / "ca.key", "-out", ca, "-days", "2"],
                    ["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=broker", "-keyout", key, "-out", request],
                    ["x509", "-req", "-in", request, "-CA", ca, "-CAkey", tmp_path / "ca.key", "-CAcreateserial", "-out", cert, "-days", "2"]):
        subprocess.run(["openssl", *map(str, command)], check=True, capture_output=True)
    bundle = installed.path / "etc/pki/tls/certs/ca-bundle.crt"
    bundle.parent.mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (installed.path / "root/tls.yaml").write_text(TLS_CONFIG % port, encoding="utf-8")
    (installed.path / "root/tls.py").write_text(TLS_LOOP, encoding="utf-8")
    said = {}
    for trusted in (False, True):
        if trusted:
            bundle.write_text(pathlib.Path(ca).read_text(encoding="utf-8"), encoding="utf-8")
        broker = subprocess.Popen(["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", cert, "-key", key, "-state"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            time.sleep(0.5)
            done = installed.run(*_in_home("python", "tls.py"))
            assert done.returncode == 0, done.stderr
        finally:
            broker.kill()
            said[trusted] = broker.communicate()[0]
    assert "unknown CA" in said[False] and "CIPHER is" not in said[False], said[False]
    assert "CIPHER is" in said[True], said[True]


def _in_home(*command):
    """As Python is the only program inside that can change the folder."""
    return ["/venv/bin/python", "-c", "import os, sys; os.chdir('/root'); os.execvp(sys.argv[1], sys.argv[1:])", *command]


def _listening(log, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for line in log.read_text(encoding="utf-8").splitlines():
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("event") == "ready" or event.get("msg") == "ready":
                return re.search(r"127\.0\.0\.1:\d+", line).group(0)
        time.sleep(0.05)
    raise AssertionError(log.read_text(encoding="utf-8"))
