"""What the deployed engine says of recorded runs: every built-in rule in both presets, in one pass."""
import json
import os
import pathlib
import re
import shutil
import sqlite3
import struct
import tempfile
import time

from bench.detection.record import NOTES
from tests.support.program import ROOT, Server, run_cli

ORIGINAL = "@original"  # behind a rule's name: judged with the original's thresholds
# They refuse to start without a selection, which nobody can make for the user, or judge no training.
LEFT_OUT = {"all_zero", "tensor_variance", "unchanged_tensor", "similar_across_runs", "declared"}
ALWAYS = {"training_preflight", "job_failed", "job_lost", "telemetry_gap", "run_unwatched", "clock_skew", "state_incomplete"}
PATIENCE = {"lost_after": "1000h", "idle_after": "1000h", "forget_after": "2000h", "max_runs": 20000}


def rules():
    """Items of the configuration: each built-in rule twice."""
    code, out, error = run_cli("rules", "list")
    if code != 0:
        raise RuntimeError(error)
    names = [line.split()[0] for line in out.splitlines() if line.strip()]
    return [item for name in names if name not in LEFT_OUT
            for item in ({"use": name}, {"use": name, "name": name + ORIGINAL, "preset": "original"})]


def default_group():
    """The rules of the group `default`, and what is always said."""
    text = (ROOT / "rules" / "groups.cc").read_text()
    return set(re.findall(r'"(\w+)"', re.search(r"kDefault\[\] = \{(.*?)\}", text, re.S)[1])) | ALWAYS


def _headers(data):
    out, at = {}, 0
    while data and at < len(data):
        name, value = struct.unpack_from("<HI", data, at)
        at += 6
        out[data[at:at + name].decode()] = data[at + name:at + name + value].decode("utf-8", "replace")
        at += name + value
    return out


def _events(journal, after):
    path = journal / "control.db"
    if not path.exists():
        return []
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    try:
        return database.execute("SELECT id, value, headers FROM issues WHERE id > ? ORDER BY id", (after,)).fetchall()
    except sqlite3.OperationalError:
        return []  # no table yet
    finally:
        database.close()


def _place(data):
    """Step of training at which it was said. A step of an evaluation counts in a clock of its own."""
    if data.get("mode") in ("eval", "predict") and data.get("global_step") is not None and data.get("step") is not None:
        return data["global_step"] - data["step"] - 1
    return data.get("step")


def judge(folder, timeout=600):
    """{run uid: [issue, …]} of a job's folder: its journal is copied, judged by `tocsin evaluate`, and left as it was."""
    folder = pathlib.Path(folder)
    wanted = {json.loads(line)["run"] for line in (folder / NOTES).read_text().splitlines()}
    out = {run: [] for run in wanted}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as scratch:
        journal = pathlib.Path(scratch) / "journal"
        shutil.copytree(folder / "journal", journal, ignore=shutil.ignore_patterns("control.db*", "*.lock"))
        config = pathlib.Path(scratch) / "tocsin.yaml"
        config.write_text(json.dumps({"transport": {"journal": str(journal)}, "rules": rules(), "engine": PATIENCE,
                                      "http": {"listen": "127.0.0.1:0"}}))
        server = Server(config, role="evaluate")
        try:
            server.wait_for("ready", timeout=60)
            end, after, left = time.monotonic() + timeout, -1, set(wanted)
            while left:
                for after, value, headers in _events(journal, after):
                    data = json.loads(value)
                    run = data["run"]["uid"]
                    kind = _headers(headers).get("ce_type", "")
                    if kind.startswith("dev.tocsin.job") and data.get("phase") == "ended":
                        left.discard(run)
                    elif kind.startswith("dev.tocsin.issue") and data.get("status") == "firing" and run in out:
                        out[run].append({"rule": data["rule"], "kind": data.get("kind") or "", "step": _place(data),
                                         "id": data["labels"].get("tensor") or data["labels"].get("metric") or "",
                                         "mode": data.get("mode"), "severity": data["labels"]["severity"],
                                         "text": data["annotations"]["summary"]})
                if time.monotonic() > end or server.process.poll() is not None:
                    raise RuntimeError(f"{len(left)} of {len(wanted)} runs of {folder} were not judged to their end")
                time.sleep(0.1)
        finally:
            server.kill()
    return out
