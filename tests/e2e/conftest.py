"""Fixtures of the end-to-end tests: servers that end with the test, a real Kafka for the session."""
import fcntl
import itertools
import os
import pathlib

import pytest

from tests.support.kafka import Kafka
from tests.support.program import Server


servers_of_the_test = []  # lists of what fixtures have started and not ended yet


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A failed test shows what its servers said last: that is often the reason, and cannot be asked for later."""
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        for one in itertools.chain(*servers_of_the_test):
            report.sections.append((f"last events of {one.process.args[1]}, exit {one.process.poll()}", one.last_events()))


def started_in(folder):
    started = []
    servers_of_the_test.append(started)

    def start(config, *arguments, role="up", preexec=None):
        path = config
        if not isinstance(config, pathlib.Path):
            path = folder / f"tocsin-{len(started)}.yaml"
            path.write_text(config)
        started.append(Server(path, *arguments, role=role, preexec=preexec))
        return started[-1]

    yield start
    servers_of_the_test.remove(started)
    for one in started:
        if one.process.poll() is None:
            one.kill()


@pytest.fixture
def server(tmp_path):
    """server(config_text, ...) starts one; everything started ends with the test."""
    yield from started_in(tmp_path)


@pytest.fixture(scope="module")
def module_server(tmp_path_factory):
    """As `server`, for tests of one file that only look: what it started ends with the last of them."""
    yield from started_in(tmp_path_factory.mktemp("server"))


@pytest.fixture
def engine(tmp_path):
    """engine(config_text) starts a process that only evaluates; the one before it is killed -9. It is not waited for."""
    running = []

    def start(config):
        if running:
            running.pop().kill()
        path = tmp_path / "tocsin.yaml"
        path.write_text(config)
        running.append(Server(path, role="evaluate"))
        return running[-1]

    yield start
    for one in running:
        one.kill()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory):
    """Bootstrap servers of a real Kafka: an existing one, or one started for the session. Workers of pytest-xdist share it."""
    given = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if given:
        yield given
        return
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run:
        # The first worker starts it; it ends with the process that started the workers. On a busy machine its heartbeats may be late.
        cluster = Kafka(f"e2e-{run}", settings={"broker.session.timeout.ms": 30000}, owner=os.getppid())
        with open(tmp_path_factory.getbasetemp().parent / "kafka.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            cluster.start()
        yield cluster.bootstrap
        return
    with Kafka(f"e2e-{os.getpid()}") as cluster:
        yield cluster.bootstrap


@pytest.fixture
def browser():
    """Debian's Chromium, driven by PyPI's playwright (tools/page_tests)."""
    playwright = pytest.importorskip("playwright.sync_api", reason="PyPI's playwright is not here")
    with playwright.sync_playwright() as one:
        try:
            made = one.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        except playwright.Error as error:
            pytest.skip(f"no /usr/bin/chromium: {error}")
        yield made
        made.close()
