#!/usr/bin/python3
"""A Mosquitto on a free loopback port, and a subscriber that keeps what is published.

As a library:  with Mosquitto() as broker, Subscriber(broker.port, "tocsin/#") as messages: ...
As a program:  mosquitto.py [--port N]   prints PORT=N and runs until a signal
"""

import argparse
import contextlib
import json
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.support.receiver import ends_with_parent, free_port, wait_for  # noqa: E402

# Debian puts the server where ordinary users' PATH does not look.
PROGRAM = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
# The kernel ends them with us, even when we are killed.
WITH_US = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


class Mosquitto:
    """Anonymous, memory only. `kill()` and `start()` in turn make a restart on the same port.

    more: further lines of its configuration; with log=True, `log()` is what it says of connections."""

    def __init__(self, port=0, more="", log=False):
        self.port, self._process, self._folder = port or free_port(), None, None
        self._more, self._log = more, log

    def start(self):
        if self._process:
            return
        self._folder = tempfile.TemporaryDirectory(prefix="tocsin-mosquitto-")
        config = pathlib.Path(self._folder.name) / "mosquitto.conf"
        # `user root`: started by root it would otherwise become a user who cannot read this folder.
        config.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence false\n"
                          f"user root\nlog_type {'all' if self._log else 'error'}\nlog_dest {self._destination}\n{self._more}\n")
        self._process = subprocess.Popen([*WITH_US, PROGRAM, "-c", str(config)], stdin=subprocess.DEVNULL,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         start_new_session=True)
        try:
            wait_for(self._ready, 10, f"mosquitto on port {self.port}")
        except AssertionError:
            self.kill()
            raise

    @property
    def _destination(self):
        return f"file {self._folder.name}/log" if self._log else "stderr"

    def log(self):
        return (pathlib.Path(self._folder.name) / "log").read_text()

    def retained(self, topic="#", wait=1):
        """What the broker keeps: {topic: payload}. Of a broker that limits packets, what it sends."""
        out = subprocess.run(["mosquitto_sub", "-h", "127.0.0.1", "-p", str(self.port), "-t", topic, "-W", str(wait), "-F",
                              "%t\t%p"], capture_output=True, check=False).stdout.decode(errors="surrogateescape")
        return dict(line.split("\t", 1) for line in out.splitlines() if "\t" in line)

    def _ready(self):
        if self._process.poll() is not None:
            raise AssertionError(f"mosquitto ended with {self._process.returncode}; is the port in use?")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 0.5):
            return True
        return False

    def kill(self, number=signal.SIGKILL):
        if self._process:
            self._process.send_signal(number)
            self._process.wait(10)
            self._process = None
            self._folder.cleanup()

    def restart(self):
        self.kill()
        self.start()

    @property
    def pid(self):
        return self._process.pid if self._process else None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()


class Subscriber:
    """Keeps {topic, payload, qos, retain} of each message; subscribed when the constructor's `with` begins."""

    def __init__(self, port, topic="#", on_message=None):
        self.messages, self._on_message = [], on_message
        self._command = ["mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-t", topic, "-q", "1",
                         "-F", "%j", "-d"]
        self._process, self._subscribed, self._thread = None, threading.Event(), None

    def __enter__(self):
        # -d prints the protocol's steps beside the messages: that is how we know that it is subscribed.
        self._process = subprocess.Popen([*WITH_US, "stdbuf", "-oL", *self._command], stdin=subprocess.DEVNULL,
                                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                         start_new_session=True)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        if not self._subscribed.wait(10):
            self.__exit__()
            raise AssertionError("mosquitto_sub did not subscribe within 10 s")
        return self

    def _read(self):
        for line in self._process.stdout:
            if line.startswith("Subscribed") or " received SUBACK" in line:
                self._subscribed.set()
            if not line.startswith("{"):
                continue
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                message = {key: message.get(key) for key in ("topic", "payload", "qos", "retain")}
                self.messages.append(message)
                if self._on_message:
                    self._on_message(message)

    def wait(self, count=1, timeout=10.0):
        return wait_for(lambda: len(self.messages) >= count and list(self.messages), timeout,
                        f"{count} MQTT messages (has {len(self.messages)})")

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait(10)
        self._thread.join(10)
        self._process.stdout.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--more", default="", help="a further line of its configuration")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    given = parser.parse_args()
    with Mosquitto(given.port, given.more) as broker, contextlib.suppress(KeyboardInterrupt):
        print(f"PORT={broker.port}", flush=True)
        if ends_with_parent():
            sys.stdin.read()
        else:
            signal.pause()


if __name__ == "__main__":
    main()
