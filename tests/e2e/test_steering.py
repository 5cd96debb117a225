"""An issue asks a running job for more captures and for another learning rate, and people hear what its ranks made of it."""
import json
import os
import random
import subprocess
import sys
import textwrap

import pytest

from tests.support.hook_support import Telemetry, wait_for, wire
from tests.support.program import BUILD, ROOT, run_cli
from tests.support.telemetry import journal_events, kafka_events

CONFIG = """
transport: {transport}
topics: {{prefix: {prefix}, partitions: 3}}
rules: [{{use: exploding_tensor, actions: [closer, calm, unknown]}}]
route: {{receiver: board, group_wait: 0s}}
receivers:
  board: {{publish_metric: {{}}}}
  closer: {{raise_capture: {{collections: [gradients], steps: 40}}}}
  calm: {{adjust: {{name: lr, value: 0.001, bounds: [0, 0.01]}}}}
  unknown: {{adjust: {{name: momentum, value: 0.5}}}}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import math, os, sys, time
import numpy
import tocsin
hook = tocsin.watch(run="r", job="digits", capture={"every": "100000 steps", "collections": ["gradients"]})
step = 0

def set_lr(value):
    print("lr", value, "after", step, flush=True)

hook.on_command("lr", set_lr, bounds=(0.0, 1.0))
while not os.path.exists(sys.argv[1]):
    step += 1
    hook.save_tensor("gradient/w", numpy.ones(4, numpy.float32), collection="gradients")
    hook.log(loss=math.nan if step == 60 else 1.0)
    hook.step()
    hook.should_stop()
    time.sleep(0.03)
hook.close()
"""


class Job:
    def __init__(self, server, tmp_path, transport, ranks=1):
        self.config, self.go = tmp_path / "tocsin.yaml", tmp_path / "enough"
        self.config.write_text(CONFIG.format(transport=transport, prefix=f"steer{random.randrange(10**9)}"))
        self.server = server(self.config)
        self.server.wait_for("ready", timeout=90)
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(SCRIPT))
        base = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
        base.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
        base.update(TOCSIN_CONFIG=str(self.config), PYTHONPATH=str(ROOT / "python"), TOCSIN_QUIET="1", TOCSIN_LAUNCH="both", WORLD_SIZE=str(ranks))
        self.ranks = [subprocess.Popen([sys.executable, script, self.go], env={**base, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
                      for rank in range(ranks)]

    def end(self):
        """What each rank has printed."""
        self.go.touch()
        said = [rank.communicate(timeout=60)[0] for rank in self.ranks]
        assert [rank.returncode for rank in self.ranks] == [0] * len(self.ranks)
        return said

    def history(self, integration):
        """State, code and words of the newest attempt of each message."""
        code, out, err = run_cli("history", "--integration", integration, "-o", "json", "-c", self.config)
        assert code == 0, err
        return [(one["state"], one["attempts"][-1]["code"], one["attempts"][-1]["detail"]) for one in json.loads(out) if one["attempts"]]


@pytest.fixture
def job(server, tmp_path):
    made = []

    def start(transport, ranks=1):
        made.append(Job(server, tmp_path, transport, ranks))
        return made[-1]

    yield start
    for one in made:
        one.go.touch()
        for rank in one.ranks:
            rank.wait(60)


@pytest.mark.parametrize("over", ["journal", "kafka"])
def test_an_issue_raises_captures_and_lowers_the_learning_rate(job, tmp_path, over, request):
    kafka = request.getfixturevalue("kafka") if over == "kafka" else None
    data = tmp_path / "data"
    one = job(f"{{kafka: {{bootstrap.servers: '{kafka}'}}}}" if kafka else f"{{journal: {data}}}")
    prefix = one.config.read_text().split("prefix: ")[1].split(",")[0]

    def told(topic):
        found = kafka_events(kafka, f"{prefix}.{topic}.v1") if kafka else journal_events(data, topic)
        return [event for _, event, _ in found if event]

    def acks(action, phase):
        return [ack for ack in told("acks") if ack["action"] == action and ack["phase"] == phase]

    capture = "capture/of-closer_raise_capture"
    assert wait_for(lambda: acks(capture, "applied") and acks(capture, "ended"), 90), [(a["action"], a["phase"]) for a in told("acks")]
    assert wait_for(lambda: acks("adjust/lr", "applied") and acks("adjust/momentum", "refused"), 30)
    issues = lambda: {event["rule"]: event for event in told("issues") if event.get("status") == "firing"}
    assert wait_for(lambda: {"adjusted", "adjust_failed"} <= set(issues()), 30), set(issues())
    assert "digits: lr = 0.001 was set because of exploding_tensor: 1 of 1 rank applied it" in issues()["adjusted"]["annotations"]["summary"]
    assert "1 refused: not_registered" in issues()["adjust_failed"]["annotations"]["summary"]
    commands = [event for event in told("commands") if event["action"] in (capture, "adjust/lr")]
    assert len({event["command_id"] for event in commands}) == 2, "once for the issue"
    began, ended = acks(capture, "applied")[0]["effective_step"], acks(capture, "ended")[0]["effective_step"]
    assert 0 < ended - began <= 40, "from where the run was when it was asked"
    finals = lambda which: {(state, word): detail for state, word, detail in one.history(which) if state != "pending"}
    assert wait_for(lambda: ("delivered", "applied") in finals("closer/raise_capture"), 30), one.history("closer/raise_capture")
    assert "1 of 1 rank applied it from step" in finals("closer/raise_capture")[("delivered", "applied")]
    assert ("delivered", "applied") in finals("calm/adjust")
    assert ("cancelled", "refused") in finals("unknown/adjust")
    said, = one.end()
    assert said.count("lr 0.001") == 1, said
    if not kafka:
        steps = [frame.header["step"] for frame in Telemetry(data).of_kind(wire.SUMMARY)]
        assert {step for step in steps if began <= step < ended} == set(range(began, ended)), "each step, once it was asked for"
        assert not [step for step in steps if step > ended]


def test_all_ranks_apply_it_after_the_same_step(job, tmp_path):
    one = job(f"{{journal: {tmp_path / 'data'}}}", ranks=2)

    def applied():
        return [ack for _, ack, _ in journal_events(tmp_path / "data", "acks") if ack and ack["action"] == "adjust/lr" and ack["phase"] == "applied"]

    assert wait_for(lambda: len(applied()) == 2, 90)
    assert wait_for(lambda: any(code == "applied" and "2 of 2 ranks applied it" in detail for _, code, detail in one.history("calm/adjust")), 30)
    said = [text.split("lr 0.001 after ")[1].split()[0] for text in one.end()]
    assert said[0] == said[1], "the same step on both"


def test_kill_of_the_router_asks_nothing_twice(job, server, tmp_path):
    one = job(f"{{journal: {tmp_path / 'data'}}}")
    acked = lambda phase: [ack for _, ack, _ in journal_events(tmp_path / "data", "acks") if ack and ack["action"] == "adjust/lr" and ack["phase"] == phase]
    assert wait_for(lambda: acked("received"), 90)
    one.server.kill()
    second = server(one.config)
    second.wait_for("ready", timeout=90)
    assert wait_for(lambda: any((state, code) == ("delivered", "applied") for state, code, _ in one.history("calm/adjust")), 60)
    told = [event for _, event, _ in journal_events(tmp_path / "data", "issues") if event and event.get("rule") == "adjusted"]
    assert len({event["labels"]["adjustment"] for event in told}) == 1
    said, = one.end()
    assert said.count("lr 0.001") == 1
