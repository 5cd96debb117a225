"""What a store says of itself on /metrics: it grows with what a real training job logs, and a store that cannot be written says so
while everything else goes on."""
import json
import os
import re
import subprocess
import sys
import textwrap
import time
import urllib.parse
import urllib.request

from tests.support.journal import append
from tests.support.program import BUILD, ROOT
from tests.support.receiver import wait_for
from tests.support.written_run import WrittenRun

CONFIG = """
transport: {{journal: {journal}}}
rules: [{{use: loss_not_decreasing}}]
route: {{receiver: nobody}}
receivers: {{nobody: {{}}}}
http: {{listen: '127.0.0.1:0'}}
insights: {{enabled: {enabled}, path: '{store}'}}
collect: {{collectors: [gpu]}}
"""
SCRIPT = """
import tocsin
hook = tocsin.watch(run="r", job="figures")
for step in range(500):
    hook.log(loss=1.0, lr=0.1)
    hook.step()
hook.close()
"""
LINE = re.compile(r"^tocsin_insights_(\w+?)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


def figures(server):
    text = server.get("/metrics")[1]
    return {(name, *sorted(re.findall(r'="([^"]*)"', labels))): float(value) for name, labels, value in LINE.findall(text)}


def started(server, tmp_path, store, enabled="true"):
    one = server(CONFIG.format(journal=tmp_path / "journal", store=store, enabled=enabled))
    one.wait_for("ready")
    return one


def train(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    environment = {**os.environ, "TOCSIN_OUT": str(tmp_path / "journal"), "PYTHONPATH": str(ROOT / "python"),
                   "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
    done = subprocess.run([sys.executable, path], env=environment, cwd=tmp_path, timeout=60, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_figures_grow_with_what_is_read_and_asked(server, tmp_path):
    one = started(server, tmp_path, tmp_path / "store" / "insights.db")
    wait_for(lambda: figures(one).get(("up", "curves")) == 1 and figures(one).get(("up", "events")) == 1, 30, "both stores are written")
    before = figures(one)
    assert before[("values_total",)] == 0
    train(tmp_path)
    # Of each step the loss, the learning rate and the clock; and one phase. The node sends nothing: how many samples it has is a
    # matter of time.
    wait_for(lambda: figures(one)[("values_total",)] >= 1501, 30, "rows of 500 steps")
    wait_for(lambda: figures(one).get(("lag_seconds", "telemetry")) == 0, 30, "nothing waits")
    assert figures(one)[("values_total",)] == 1501, "each row is counted once"
    wait_for(lambda: figures(one).get(("lag_seconds", "registry")) == 0, 30, "no event waits")
    after = figures(one)
    for store in ("curves", "events"):
        assert after[("commit_seconds_count", store)] > before.get(("commit_seconds_count", store), 0)
        assert after[("store_bytes", *sorted((store, "file")))] >= 4096 and ("store_bytes", *sorted((store, "wal"))) in after
        assert after[("gaps_total", *sorted((store, "position_gone")))] == 0
    assert after[("refused_values_total",)] == 0
    (run,) = json.loads(one.get("/api/v1/runs")[1])["items"]
    asked = figures(one)[("query_seconds_count", "series")]
    assert one.get(f"/api/v1/runs/{run['uid']}/series?" + urllib.parse.urlencode({"name": "loss"}))[0] == 200
    assert figures(one)[("query_seconds_count", "series")] == asked + 1
    assert figures(one)[("query_seconds_count", "heat")] == after[("query_seconds_count", "heat")]


class SentRun(WrittenRun):
    """Each frame goes to a program that runs."""

    def put(self, frame):
        append(self.folder, ("telemetry", "", frame))


def test_what_comes_little_by_little_shares_commits(server, tmp_path):
    one = started(server, tmp_path, tmp_path / "store" / "insights.db")
    run = SentRun(tmp_path / "journal")
    run.loss(0, 0, 1.0)
    wait_for(lambda: figures(one)[("values_total",)] == 1, 30, "what comes alone is committed alone")
    begun, before = time.monotonic(), figures(one)[("commit_seconds_count", "curves")]
    for step in range(1, 151):
        run.loss(0, step, 1.0)
        time.sleep(0.01)
    wait_for(lambda: figures(one)[("values_total",)] == 151, 30, "all of it")
    commits = figures(one)[("commit_seconds_count", "curves")] - before
    assert 1 <= commits <= (time.monotonic() - begun) / 0.1 + 2, "not more often than each tenth of a second"


def test_a_store_that_cannot_be_written_says_so_and_the_server_goes_on(server, tmp_path):
    (tmp_path / "file").write_text("no folder\n")
    one = started(server, tmp_path, tmp_path / "file" / "insights.db")
    wait_for(lambda: figures(one).get(("up", "curves")) == 0 and figures(one).get(("up", "events")) == 0, 30, "both stores are stopped")
    assert one.get("/-/ready")[0] == 200


def test_a_store_that_is_off_is_not_said_to_have_stopped(server, tmp_path):
    one = started(server, tmp_path, tmp_path / "insights.db", enabled="false")
    assert not [key for key in figures(one) if key[0] == "up"]


def test_open_streams_are_counted(server, tmp_path):
    one = started(server, tmp_path, tmp_path / "store" / "insights.db")
    assert figures(one)[("streams",)] == 0
    address = one.wait_for("started")["http"]
    with urllib.request.urlopen(f"http://{address}/api/v1/stream", timeout=10) as first, \
            urllib.request.urlopen(f"http://{address}/api/v1/stream", timeout=10) as second:
        assert first.status == second.status == 200
        wait_for(lambda: figures(one)[("streams",)] == 2, 10, "two readers")
    wait_for(lambda: figures(one)[("streams",)] == 0, 40, "none: a comment every 15 s finds that they have gone")
