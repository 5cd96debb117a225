"""Clients that open connections of the HTTP port and ask for nothing: they hold some of the descriptors for some time, and
everybody else is served."""
import contextlib
import os
import pathlib
import re
import resource
import socket
import time

from tests.e2e.test_recovery import wait_until
from tests.support.telemetry import JournalWriter, journal_events, scalar
from tests.support.webhook_receiver import WebhookReceiver

CONFIG = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
route: {{receiver: people, group_wait: 0s}}
receivers: {{people: {{webhook: {{format: alertmanager_v4, url: '{url}', allow_private: [127.0.0.0/8]}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""
MANY = 1400


def limits(program):
    text = open(f"/proc/{program.process.pid}/limits").read()
    return re.search(r"Max open files\s+(\d+)\s+(\d+)", text).groups()


def sockets(program):
    folder = pathlib.Path(f"/proc/{program.process.pid}/fd")
    found = 0
    for one in folder.iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            found += os.readlink(one).startswith("socket:")
    return found


def half_open(address):
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=10)
    connection.sendall(b"GET /metrics HTTP/1.1\r\nHost:")
    return connection


def gone(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_1400_half_open_requests_starve_nobody(server, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard >= 2 * MANY
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    journal = tmp_path / "journal"
    with WebhookReceiver() as people:
        program = server(CONFIG.format(journal=journal, url=people.url),
                         preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1200)))
        program.wait_for("ready")
        assert limits(program) == ("1200", "1200")  # all that it may have
        before = sockets(program)
        address = program.wait_for("started")["http"]
        connections = [half_open(address) for _ in range(MANY)]
        assert program.get("/-/ready") == (200, "ready\n")
        assert "tocsin_" in program.get("/metrics")[1]
        wait_until(lambda: sockets(program) <= before + 140, 5, "a bounded number is open")
        JournalWriter(journal).append(scalar("one", "loss", "NaN", 0))
        wait_until(people.accepted, 20, "people hear of an issue meanwhile")
        # And those that are kept go too, without anybody new.
        start = time.monotonic()
        wait_until(lambda: all(gone(one) for one in connections), 20, "each is closed")
        assert time.monotonic() - start < 20
        for one in connections:
            one.close()
        wait_until(lambda: sockets(program) <= before + 10, 10, "nothing is left of them")
        assert not [event for event in program.events if event.get("level") == "error"]
        assert list(journal_events(journal, "issues"))
        assert program.stop() == 0
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
