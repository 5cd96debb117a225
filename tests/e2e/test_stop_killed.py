"""kill -9 of the router around a stop, on a real Kafka: one command, one call to the platform, one end. tests/crash-points.md, K16."""
import json
import os
import random
import subprocess
import sys
import textwrap
import time

import pytest

from tests.fakes.kubernetes import Kubernetes
from tests.support.on_call import history
from tests.support.program import BUILD, ROOT
from tests.support.receiver import wait_for
from tests.support.telemetry import kafka_events

SCRIPT = """
import sys, time
import tocsin
hook = tocsin.watch(out="kafka://{bootstrap}", run="r", job="bert", config="{config}")
for step in range(6000):
    hook.log(loss=float("nan") if step >= 5 else 1.0)
    hook.step()
    if {asks} and hook.should_stop():
        print("asked", flush=True)
        sys.stdin.readline()
        hook.acknowledge_stop()
        hook.close(outcome="stopped_by_rule")
        sys.exit(tocsin.EXIT_STOPPED)
    time.sleep(0.02)
"""


class Ground:
    """A cluster's topics, a platform, a configuration with a stop, and one training."""

    def __init__(self, server, kafka, folder, platform, ack):
        self._server, self._kafka, self._folder = server, kafka, folder
        self.prefix = f"stop{random.randrange(10**9)}"
        self.platform = platform
        self.uid = platform.create("bert")
        self.config = folder / "tocsin.yaml"
        self.config.write_text(json.dumps({
            "transport": {"kafka": {"bootstrap.servers": kafka}}, "topics": {"prefix": self.prefix, "partitions": 1},
            "rules": [{"use": "exploding_tensor", "actions": ["stop"]}], "http": {"listen": "127.0.0.1:0"},
            "receivers": {"stop": {"stop_training": {"armed": True, "mode": "stop", "grace": "5s", "deadline": {"ack": ack}}}},
            "platforms": {"kubernetes": {"url": platform.url, "token": platform.token, "allow_private": ["127.0.0.0/8"]}}}))

    def start(self):
        program = self._server(self.config)
        program.wait_for("ready", timeout=90)
        return program

    def train(self, asks):
        path = self._folder / "train.py"
        path.write_text(textwrap.dedent(SCRIPT.format(asks=asks, bootstrap=self._kafka, config=self.config)))
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "TOCSIN_K8S_JOB_UID": self.uid, "TOCSIN_K8S_JOB": "bert",
                       "TOCSIN_K8S_NAMESPACE": "ml", "POD_NAME": "bert-0",
                       "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))}
        process = subprocess.Popen([sys.executable, path], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.platform.on_pods_end[self.platform.at("bert")] = process.terminate
        return process

    def commands(self):
        """Ids of all stop commands that were ever written."""
        return {data["command_id"] for _, data, _ in kafka_events(self._kafka, f"{self.prefix}.commands.v1") if data and data.get("action") == "stop"}

    def patches(self):
        return [one for one in self.platform.requests if one["method"] == "PATCH"]


@pytest.fixture
def ground(server, kafka, tmp_path):
    with Kubernetes(grace=6.0) as platform:
        yield lambda ack: Ground(server, kafka, tmp_path, platform, ack)


def test_k16_killed_before_the_ack_is_read_there_is_no_second_stop(ground):
    here = ground(ack="60s")
    first = here.start()
    process = here.train(asks=True)
    assert process.stdout.readline() == "asked\n"
    first.wait_for("stop_asked")
    first.kill()
    process.communicate("\n", timeout=60)  # it acknowledges and ends while nobody reads
    assert process.returncode == 77
    second = here.start()
    second.wait_for("job_ended", outcome="stopped_by_rule", timeout=60)
    # The router had not committed that it asked: it looks at the stop again, and finds what the run made of it.
    wait_for(lambda: [one["state"] for one in history(here.config, "--integration", "stop")] in (["delivered"], ["cancelled"]), 60, "the end of the delivery")
    time.sleep(3)
    assert len(here.commands()) == 1 and here.patches() == []
    assert not second.all("platform_asked") and not second.all("process_signalled")


def test_k16_killed_between_the_command_the_call_and_the_end_the_platform_is_asked_once(ground):
    here = ground(ack="8s")
    first = here.start()
    process = here.train(asks=False)
    first.wait_for("stop_asked")
    first.kill()
    assert here.patches() == []
    time.sleep(8)  # the deadline passes while nobody is there
    second = here.start()
    second.wait_for("platform_asked", timeout=60)
    second.kill()
    assert len(here.patches()) == 1
    third = here.start()
    third.wait_for("stop_state_changed", to="stopped", by="platform", timeout=60)
    assert process.wait(30) == -15
    assert len(here.commands()) == 1
    assert len(here.patches()) == 1 and here.platform.effects == [("patch", "jobs", "bert")]
