"""An issue that asks its run where it stands and for a trace: a rank that is slow, found by straggler, over the journal and over Kafka."""
import gzip
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
capture: {{every: 100000 steps, raw: {{to: {raw}}}}}
rules: [{{use: straggler, with: {{window: 10}}, actions: [look]}}]
route: {{receiver: board, group_wait: 0s}}
receivers: {{board: {{publish_metric: {{}}}}, look: {{profile_training: {{trace: 3, most: 1}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import os, sys, time
import torch
import tocsin
torch.set_num_threads(1)
slow = os.environ["RANK"] == "1"

def the_slow_place():
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        time.sleep(0.005)

class Model(torch.nn.Linear):
    def forward(self, x):
        if slow:
            the_slow_place()
        return super().forward(x)

model = Model(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
hook = tocsin.watch(model, optimizer, run="r", job="slow")
while not os.path.exists(sys.argv[1]):
    optimizer.zero_grad()
    model(torch.ones(2, 4)).square().mean().backward()
    optimizer.step()
    time.sleep(0.002 if slow else 0.05)  # as where they wait for each other
hook.close()
"""


@pytest.mark.parametrize("over", ["journal", "kafka"])
def test_a_rank_that_is_slow_says_where_and_both_trace(server, tmp_path, over, request):
    kafka = request.getfixturevalue("kafka") if over == "kafka" else None
    prefix = f"look{random.randrange(10**9)}"
    transport = f"{{kafka: {{bootstrap.servers: '{kafka}'}}}}" if kafka else f"{{journal: {tmp_path / 'data'}}}"
    config = tmp_path / "tocsin.yaml"
    config.write_text(CONFIG.format(transport=transport, prefix=prefix, raw=tmp_path / "raw"))

    def told(topic):
        found = kafka_events(kafka, f"{prefix}.{topic}.v1") if kafka else journal_events(tmp_path / "data", topic)
        return [data for _, data, _ in found if data]

    one = server(config)
    one.wait_for("ready", timeout=90)
    script, go = tmp_path / "train.py", tmp_path / "enough"
    script.write_text(textwrap.dedent(SCRIPT))
    base = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    base.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
    base.update(TOCSIN_CONFIG=str(config), PYTHONPATH=str(ROOT / "python"), TOCSIN_QUIET="1", TOCSIN_LAUNCH="both", WORLD_SIZE="2")
    jobs = [subprocess.Popen([sys.executable, script, go], env={**base, "RANK": str(rank)}) for rank in range(2)]
    try:
        def ended():
            return {ack["rank"]: ack for ack in told("acks") if ack["action"] == "profile" and ack["phase"] == "ended"}

        assert wait_for(lambda: len(ended()) == 2, 120), [(ack["phase"], ack.get("reason", "")[:90]) for ack in told("acks")]
        issues = [data for data in told("issues") if "labels" in data and "evidence" in data]
        (found,) = {data["labels"]["worker"] for data in issues if data.get("rule") == "straggler"}
        places = {data["labels"]["worker"]: data for data in issues if data.get("rule") == "worker_place"}
        assert found == "worker_1" and set(places) == {"worker_0", "worker_1"}
        assert "when straggler asked for it." in places["worker_1"]["annotations"]["summary"]
        values = places["worker_1"]["evidence"]["values"]
        assert values["asked_by"] == "straggler" and values["threads"][0]["name"] == "MainThread"
        asked = [ack for ack in told("acks") if ack["action"] == "profile"]
        assert len({ack["command_id"] for ack in asked}) == 1, "once for the issue"
        assert {ack["effective_step"] for ack in asked if ack["phase"] == "applied"} and len(
            {ack["effective_step"] for ack in asked if ack["phase"] == "applied"}) == 1, "the same steps"
        for rank, ack in ended().items():
            file = tmp_path / f"{rank}.json.gz"
            line = ack["reason"].split("python3 ")[1].split()
            done = subprocess.run([sys.executable, *line, "--config", str(config), "--to", str(file)], capture_output=True, text=True, check=False,
                                  env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
            assert done.returncode == 0, done.stderr
            trace = json.loads(gzip.decompress(file.read_bytes()))
            names = [event.get("name", "") for event in (trace["traceEvents"] if isinstance(trace, dict) else trace)]
            assert sum(name == "Optimizer.step#SGD.step" for name in names) >= 3
    finally:
        go.touch()
        assert [job.wait(60) for job in jobs] == [0, 0]
    one.wait_for("job_ended", timeout=60)


HANGS = """
import os, sys, time
import tocsin
hook = tocsin.watch(run="r", job="stands")
for step in range(20):
    hook.log(loss=1.0 / (step + 1))
    hook.step()
    time.sleep(0.02)

def the_place_where_it_hangs():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.05)

the_place_where_it_hangs()
hook.close()
"""


def test_the_configuration_that_init_writes_shows_where_a_run_hangs(server, tmp_path):
    """But for the half hour that it waits."""
    config, folder = tmp_path / "tocsin.yaml", tmp_path / "data"
    assert run_cli("init", config)[0] == 0
    written = config.read_text()
    changed = written.replace("threshold: 1800", "threshold: 3").replace("./tocsin-data", str(folder)).replace("127.0.0.1:9760", "127.0.0.1:0")
    assert changed != written and "actions: [look]" in changed
    config.write_text(changed)
    one = server(config)
    one.wait_for("ready", timeout=90)
    script, go = tmp_path / "train.py", tmp_path / "enough"
    script.write_text(textwrap.dedent(HANGS))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    environment.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
    job = subprocess.Popen([sys.executable, script, go], env={**environment, "TOCSIN_CONFIG": str(config), "PYTHONPATH": str(ROOT / "python")})
    try:
        def places():
            return [data for _, data, _ in journal_events(folder, "issues") if data.get("rule") == "worker_place"]

        assert wait_for(places, 60)
        [place] = {json.dumps(one["evidence"]["values"]["threads"][0]) for one in places()}
        assert "the_place_where_it_hangs" in place
        assert places()[0]["evidence"]["values"]["asked_by"] == "stalled_training_rule"
    finally:
        go.touch()
        assert job.wait(60) == 0
