"""Jars are what the lock file says, or they are not used; the user's own mirror is respected."""

import functools
import hashlib
import http.server
import pathlib
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "lib"))

import maven  # noqa: E402

CONTENT = b"not really a jar"
ENTRY = ("org.example", "thing", "1.0", hashlib.sha256(CONTENT).hexdigest())


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A Maven repository with one jar, named by MAVEN_REPO_URL; a home folder with nothing in it."""
    path = tmp_path / "repository" / maven.relative_path(*ENTRY[:3])
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    handler = functools.partial(Quiet, directory=str(tmp_path / "repository"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setenv("MAVEN_REPO_URL", f"http://127.0.0.1:{server.server_address[1]}/")
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        yield path
        server.shutdown()


def test_jar_is_fetched_and_verified(repository, tmp_path):
    (jar,) = maven.fetch_all([ENTRY], tmp_path / "jars")
    assert jar.name == "thing-1.0.jar" and jar.read_bytes() == CONTENT
    repository.unlink()
    assert maven.fetch_all([ENTRY], tmp_path / "jars") == [jar]  # it is there: nothing is downloaded


def test_altered_jar_is_refused_and_not_kept(repository, tmp_path):
    repository.write_bytes(CONTENT + b"!")
    with pytest.raises(maven.DownloadError, match="the lock file says"):
        maven.fetch_all([ENTRY], tmp_path / "jars")
    assert list((tmp_path / "jars").iterdir()) == []


def test_unreachable_repository_says_what_to_do(repository, tmp_path, monkeypatch):
    monkeypatch.setattr(maven.time, "sleep", lambda _: None)
    repository.unlink()
    with pytest.raises(maven.DownloadError, match="set MAVEN_REPO_URL"):
        maven.fetch_all([ENTRY], tmp_path / "jars")


def test_jar_that_maven_already_has_is_not_downloaded(repository, tmp_path):
    local = tmp_path / "home" / ".m2" / "repository" / maven.relative_path(*ENTRY[:3])
    local.parent.mkdir(parents=True)
    local.write_bytes(CONTENT)
    repository.unlink()
    assert maven.fetch_all([ENTRY], tmp_path / "jars")[0].read_bytes() == CONTENT


@pytest.mark.parametrize("namespace", ["", ' xmlns="http://maven.apache.org/SETTINGS/1.0.0"'])
@pytest.mark.parametrize("covers, used", [("central", True), ("*", True), ("external:*", True),
                                          ("*,!central", False), ("other", False)])
def test_mirror_of_the_users_maven_settings(tmp_path, monkeypatch, covers, used, namespace):
    monkeypatch.delenv("MAVEN_REPO_URL", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".m2").mkdir()
    (tmp_path / ".m2" / "settings.xml").write_text(
        f"<settings{namespace}><mirrors><mirror><id>m</id><mirrorOf>{covers}</mirrorOf>"
        "<url>https://mirror.example/maven/</url></mirror></mirrors></settings>")
    assert maven.base_url() == ("https://mirror.example/maven" if used else maven.CENTRAL)


def test_lock_file_is_complete():
    entries = maven.read_lock(pathlib.Path(maven.__file__).resolve().parents[1] / "kafka.lock")
    assert len(entries) > 40 and all(len(entry) == 4 and len(entry[3]) == 64 for entry in entries)
    assert {"kafka_2.13", "kafka-clients", "log4j-slf4j-impl"} <= {entry[1] for entry in entries}
