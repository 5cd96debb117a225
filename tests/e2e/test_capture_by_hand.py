"""`tocsin capture RUN`: a person asks a run that goes on for more, and sees what it answers."""
import json
import os
import random
import subprocess
import sys
import textwrap

import pytest

from tests.support.hook_support import wait_for
from tests.support.program import BUILD, ROOT, run_cli
from tests.support.telemetry import journal_events, kafka_events

CONFIG = """
transport: {transport}
topics: {{prefix: {prefix}, partitions: 3}}
rules: [exploding_tensor]
capture: {{every: 100000 steps, collections: [losses]}}
route: {{receiver: board, group_wait: 0s}}
receivers: {{board: {{publish_metric: {{}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import os, sys, time
import torch
import tocsin
torch.set_num_threads(1)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
hook = tocsin.watch(model, optimizer, run="r", job="live")
print("open", hook.run, flush=True)
while not os.path.exists(sys.argv[1]):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 4)).square().mean()
    loss.backward()
    optimizer.step()
    time.sleep(0.01)
hook.close()
"""


@pytest.fixture
def live(server, tmp_path):
    """live(transport) starts a server and a training; gives the configuration's path and the run's uid."""
    jobs, go = [], tmp_path / "enough"

    def begin(transport):
        config = tmp_path / "tocsin.yaml"
        config.write_text(CONFIG.format(transport=transport, prefix=f"more{random.randrange(10**9)}"))
        one = server(config)
        one.wait_for("ready", timeout=90)
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(SCRIPT))
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
        environment.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
        environment.update(TOCSIN_CONFIG=str(config), PYTHONPATH=str(ROOT / "python"), TOCSIN_QUIET="1")
        jobs.append(subprocess.Popen([sys.executable, script, go], env=environment, stdout=subprocess.PIPE, text=True))
        uid = jobs[0].stdout.readline().split()[1]
        one.wait_for("job_started", timeout=60)
        return config, uid

    def end():
        go.touch()
        assert jobs[0].wait(60) == 0

    begin.end = end
    yield begin
    go.touch()
    for job in jobs:
        job.wait(60)


def captured(config, acks, live):
    """Asked, answered, taken back, refused, over."""
    code, out, err = run_cli("capture", "live", "--collection", "gradients", "--statistic", "quantiles", "--steps", "100000000",
                             "--reason", "loss jumps", "--wait", "60s", "-c", config)
    assert code == 0 and "rank 0: applied from step" in out and "1 of 1 ranks capture it" in out, out + err
    code, out, err = run_cli("capture", "live", "--collection", "gradients", "--steps", "3", "--wait", "60s", "-c", config, "-o", "json")
    seen = json.loads(out)
    assert code == 0 and seen["state"] == "applied" and seen["acks"][0]["phase"] == "applied", out + err
    mine = seen["command_id"]
    assert wait_for(lambda: [ack for ack in acks() if ack["command_id"] == mine and ack["phase"] == "ended"], 60), "its steps are over"
    code, out, err = run_cli("capture", "live", "--collection", "nobody_knows_it", "--wait", "60s", "-c", config)
    assert code == 1 and "refused" in out and "nobody_knows_it" in out, out + err
    code, out, err = run_cli("capture", "live", "--end", "-c", config)
    assert code == 0 and "withdrawn" in out, out + err
    code, out, err = run_cli("capture", "live", "--pause", "--reason", "the disk is full", "--wait", "60s", "-c", config)
    assert code == 0 and "1 of 1 ranks have paused" in out, out + err
    assert "running, capture paused by" in run_cli("status", "-c", config)[1]
    code, out, err = run_cli("capture", "live", "--resume", "-c", config)
    assert code == 0 and "captures resumed" in out, out + err
    assert "paused" not in run_cli("status", "-c", config)[1]
    code, out, err = run_cli("capture", "live", "--collection", "gradients", "--dry-run", "-c", config)
    assert code == 0 and "would ask live" in out, out + err
    live.end()
    assert wait_for(lambda: run_cli("capture", "live", "--collection", "gradients", "-c", config)[0] == 1, 60)


def test_over_the_journal(live, tmp_path):
    config, uid = live(f"{{journal: {tmp_path / 'data'}}}")
    captured(config, lambda: [data for _, data, _ in journal_events(tmp_path / "data", "acks") if data["run"]["uid"] == uid], live)
    rows = subprocess.run([sys.executable, "-c", "import sys\nfrom tocsin.reading import Tensors\n"
                           "print([row for row in Tensors(sys.argv[1]).get('gradient/weight') if 'p75' in row][:1])", tmp_path / "data"],
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True, check=True).stdout
    assert "p75" in rows, "what was asked for was captured"


def test_over_kafka(live, kafka):
    config, uid = live(f"{{kafka: {{bootstrap.servers: '{kafka}'}}}}")
    prefix = next(line for line in config.read_text().splitlines() if "prefix" in line).split("prefix: ")[1].split(",")[0]
    captured(config, lambda: [data for _, data, _ in kafka_events(kafka, f"{prefix}.acks.v1") if data["run"]["uid"] == uid], live)


def test_a_rank_that_opens_after_it_was_asked_is_asked_again(server, tmp_path):
    """What was asked named the launch as the run had told it, and the newcomer was not part of that."""
    config, go = tmp_path / "tocsin.yaml", tmp_path / "enough"
    config.write_text(CONFIG.format(transport=f"{{journal: {tmp_path / 'data'}}}", prefix="late"))
    one = server(config)
    one.wait_for("ready", timeout=90)
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    base = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    base.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
    base.update(TOCSIN_CONFIG=str(config), PYTHONPATH=str(ROOT / "python"), TOCSIN_QUIET="1", TOCSIN_LAUNCH="both", WORLD_SIZE="2")
    jobs = []

    def rank(number):
        jobs.append(subprocess.Popen([sys.executable, script, go], env={**base, "RANK": str(number)}, stdout=subprocess.PIPE, text=True))
        jobs[-1].stdout.readline()

    try:
        rank(0)
        one.wait_for("job_started", timeout=60)
        asked = subprocess.Popen([os.environ.get("TOCSIN_BINARY", str(BUILD / "app/tocsin")), "capture", "live", "--collection", "gradients",
                                  "--steps", "100000000", "--wait", "90s", "-c", config], stdout=subprocess.PIPE, text=True)
        said = []
        while "rank 0: applied" not in "".join(said):
            said.append(asked.stdout.readline())
            assert said[-1], "".join(said)
        rank(1)
        said.append(asked.communicate(timeout=120)[0])
        assert asked.returncode == 0 and "2 of 2 ranks capture it" in "".join(said), "".join(said)
        assert "rank 1: refused: stale" in "".join(said), "else this test shows nothing"
    finally:
        go.touch()
        for job in jobs:
            job.wait(60)


def test_what_is_refused(tmp_path):
    for words in (["r"], ["r", "--collection", "gradients", "--every", "0"], ["r", "--collection", "gradients", "--steps", "0"],
                  ["r", "--collection", "gradients", "--end"], ["r", "--pause", "--resume"], ["r", "--pause", "--collection", "gradients"]):
        code, _, err = run_cli("capture", *words, "--out", tmp_path)
        assert code == 2 and err.startswith("tocsin"), (words, code, err)
    assert run_cli("capture", "r", "--collection", "gradients", "--out", tmp_path / "nowhere")[0] == 4
