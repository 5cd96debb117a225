"""The real Prometheus and Pushgateway of Debian on loopback, and a socket for StatsD."""
import contextlib
import json
import socket
import subprocess
import threading
import urllib.parse
import urllib.request

from tests.support.receiver import free_port, wait_for

CONFIG = "global: {scrape_interval: 1h}\n"


class RealServer:
    """Started and awaited; ends with the block. `get(path)`: status and text."""

    def __init__(self, command, port, ready):
        self.port, self._command, self._ready, self.process = port, command, ready, None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self._is_ready, 30, f"{self._command[0]} is ready")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(10)

    def _is_ready(self):
        with contextlib.suppress(OSError):
            return self.get(self._ready)[0] == 200
        return False

    def get(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


class Prometheus(RealServer):
    """Takes remote write 1.0."""

    def __init__(self, folder):
        port = free_port()
        config = folder / "prometheus.yml"
        config.write_text(CONFIG)
        super().__init__(["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}", "--web.enable-remote-write-receiver",
                          f"--web.listen-address=127.0.0.1:{port}"], port, "/-/ready")

    def now(self, query):
        """{labels: value} at this moment, without series that have ended; labels as a sorted tuple."""
        _, text = self.get("/api/v1/query?" + urllib.parse.urlencode({"query": query}))
        return {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in json.loads(text)["data"]["result"]}


class Pushgateway(RealServer):
    def __init__(self):
        port = free_port()
        super().__init__(["prometheus-pushgateway", "--persistence.file=", f"--web.listen-address=127.0.0.1:{port}"], port, "/-/ready")

    def groups(self):
        """{grouping labels: metrics}."""
        _, text = self.get("/api/v1/metrics")
        return {tuple(sorted(one["labels"].items())): one for one in json.loads(text).get("data") or []}


class StatsdSocket:
    """`lines`: all that came; `longest`: the size of the longest datagram."""

    def __init__(self):
        self.lines, self.longest = [], 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        with contextlib.suppress(OSError):
            while datagram := self._socket.recv(65536):
                self.longest = max(self.longest, len(datagram))
                self.lines += datagram.decode().split("\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
