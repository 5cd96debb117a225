"""What the benchmarks of full stores share: a server on a store that is already there, its memory and processor time, lines of figures."""
import json
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import time
import urllib.request

from tests.support.program import BUILD, Server

PROGRAMS = BUILD / "bench"
CONFIG = """
transport: {{journal: {journal}, journal_max_bytes: 40GiB}}
rules: [{{use: exploding_tensor}}]
route: {{receiver: nobody}}
receivers: {{nobody: {{}}}}
insights: {{max_curve_bytes: 64GiB}}
http: {{listen: '127.0.0.1:0'}}
"""
missed = []


def line(name, value, unit, baseline, target, digits=1):
    """Prints a figure beside its baseline (or None) and its target (or None: it is only shown)."""
    good = target is None or value <= target
    if not good:
        missed.append(name)
    ratio = f"{value / baseline:8.2f} × {baseline:.{digits}f}" if baseline else "       –"
    verdict = "" if target is None else f"≤ {target:<8} {'pass' if good else 'miss'}"
    print(f"{name:66} {value:11.{digits}f} {unit:8} {ratio:22} {verdict}", flush=True)


def quantile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def load():
    return pathlib.Path("/proc/loadavg").read_text().split()[0]


def cpu_seconds(pid):
    """Of user and system, of all threads so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def by_thread(pid):
    """(name, processor seconds) of the threads, those of one name together, the most first."""
    out = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        name = (task / "comm").read_text().strip()
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        out[name] = out.get(name, 0) + (int(fields[11]) + int(fields[12])) / 100
    return sorted(out.items(), key=lambda entry: -entry[1])


def resident_mib(pid, field="VmRSS"):
    for text in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if text.startswith(field + ":"):
            return int(text.split()[1]) / 1024
    return 0.0


def program(name, *arguments, **options):
    return subprocess.Popen([str(PROGRAMS / name), *map(str, arguments)], text=True, **options)


class Place:
    """A folder with a journal and a configuration, removed at the end. `parent`: where there is room for it."""

    def __init__(self, parent=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="stores-", dir=parent))
        self.journal = self.folder / "journal"
        (self.folder / "tocsin.yaml").write_text(CONFIG.format(journal=self.journal))

    def serve(self):
        """The server, and the address it listens at."""
        server = Server(self.folder / "tocsin.yaml", role="up")
        return server, f"http://{server.wait_for('started')['http']}"

    def begun(self):
        """The folder of the stores and what they say that they read, once a server has made them."""
        server, base = self.serve()
        try:
            for _ in range(300):
                condition = json.loads(get(base, "/api/v1/status"))
                found = sorted(self.journal.rglob("curves.db"))
                if found and sorted(self.journal.rglob("insights.db")) and condition:
                    break
                time.sleep(0.1)
            time.sleep(0.5)
        finally:
            server.stop()
        database = sqlite3.connect(found[0])
        source, = database.execute("SELECT value FROM meta WHERE key = 'source'").fetchone()
        database.close()
        return found[0].parent, source

    def remove(self):
        shutil.rmtree(self.folder)


def get(base, path, timeout=60):
    with urllib.request.urlopen(base + path, timeout=timeout) as answer:
        return answer.read()


def timed(base, path):
    """Milliseconds until the whole answer is there."""
    begun = time.perf_counter()
    get(base, path)
    return (time.perf_counter() - begun) * 1000
