"""Runs the built program as its users do. TOCSIN_BINARY and TOCSIN_BUILD come from tools/test."""
import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import urllib.request

from tests.support.patience import patience

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TOCSIN_BUILD", ROOT / "build" / "release"))
BINARY = pathlib.Path(os.environ.get("TOCSIN_BINARY", BUILD / "app" / "tocsin"))


def run_cli(*arguments, env=None, timeout=60):
    """The program's exit code, stdout and stderr."""
    done = subprocess.run([str(BINARY), *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **(env or {})}, timeout=timeout, check=False)
    return done.returncode, done.stdout, done.stderr


class Server:
    """A serving tocsin (`up`, `evaluate`, …): its log events, its address; killed at the end."""

    def __init__(self, config, *arguments, role="up", preexec=None):
        self.events = []
        self._new = threading.Condition()
        folder = pathlib.Path(config).absolute().parent  # what it writes beside itself is no other test's
        cwd = None if ROOT == folder or ROOT in folder.parents else folder
        self.process = subprocess.Popen(
            [str(BINARY), role, "--config.file", str(config), "--log.format", "json", *map(str, arguments)],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True,
            preexec_fn=preexec, cwd=cwd)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            try:
                event = json.loads(line)
            except ValueError:
                event = {"msg": "not_json", "line": line}
            with self._new:
                self.events.append(event)
                self._new.notify_all()

    def wait_for(self, name, timeout=30, **fields):
        """The first event of this name with these fields; fails the test when none comes."""
        def find():
            for event in self.events:
                if event.get("msg") == name and all(event.get(k) == v for k, v in fields.items()):
                    return event
            return None
        end = time.monotonic() + patience(timeout)
        with self._new:
            while True:
                event = find()
                if event:
                    return event
                left = end - time.monotonic()
                if left <= 0 or (self.process.poll() is not None and not self._reader.is_alive()):
                    break
                self._new.wait(min(left, 0.2))
        raise AssertionError(f"no event {name} {fields} within {timeout} s; exit {self.process.poll()}; last events:\n{self.last_events()}")

    def last_events(self, count=25):
        """Text: one event a line."""
        with self._new:
            return "\n".join(json.dumps(event) for event in self.events[-count:])

    def all(self, name):
        with self._new:
            return [e for e in self.events if e.get("msg") == name]

    def get(self, path):
        address = self.wait_for("started")["http"]
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            time.sleep(0.5)  # until it can be told whether it has ended
            raise AssertionError(f"GET {path} of {address}: {error!r}; exit {self.process.poll()}; last events:\n"
                                 f"{self.last_events()}") from error

    def kill(self):
        self.process.kill()
        self.process.wait(10)

    def stop(self, timeout=20):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)
