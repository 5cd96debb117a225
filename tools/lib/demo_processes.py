"""Child processes of the demo: each in a group of its own, none survives the demo, however that ends."""

import os
import pathlib
import queue
import shutil
import signal
import subprocess
import threading
import time


class Child:
    """A running program. Its lines (stdout or stderr, as chosen) arrive in a queue as (name, line)."""

    def __init__(self, name, command, log, lines=None, read="stdout", env=None, cwd=None):
        self.name, self.log = name, pathlib.Path(log)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        # setpriv: the kernel kills the child when the demo dies without a chance to clean up.
        guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        file = open(self.log, "ab")  # noqa: SIM115  (closed below or by the reader)
        streams = {"stdout": file, "stderr": file}
        if lines is not None:
            streams[read] = subprocess.PIPE
        self.process = subprocess.Popen([*guard, *map(str, command)], stdin=subprocess.DEVNULL, env=env, cwd=cwd,
                                        start_new_session=True, **streams)
        if lines is None:
            file.close()
        else:
            source = getattr(self.process, read)
            threading.Thread(target=self._copy, args=(source, file, lines), daemon=True).start()

    def _copy(self, source, file, lines):
        with file, source:
            for raw in source:
                file.write(raw)
                file.flush()
                lines.put((self.name, raw.decode(errors="replace")))
        lines.put((self.name, None))

    def running(self):
        return self.process.poll() is None

    def stop(self, grace=10.0):
        """SIGTERM, then SIGKILL to the whole group; the exit status."""
        if self.running():
            self._signal(signal.SIGTERM)
            try:
                self.process.wait(grace)
            except subprocess.TimeoutExpired:
                pass
        self._signal(signal.SIGKILL)
        return self.process.wait(10)

    def _signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def last_lines(self, count=12):
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return lines[-count:]


def drain(lines, timeout):
    """What arrives within `timeout` seconds: at least the first line, then all that is there already."""
    found, deadline = [], time.monotonic() + timeout
    while True:
        try:
            found.append(lines.get(timeout=max(0.0, deadline - time.monotonic()) if not found else 0))
        except queue.Empty:
            return found
