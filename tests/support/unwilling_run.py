"""A run whose loss becomes NaN and that does not answer when it is asked to stop: its platform has to end it."""
import json
import os
import subprocess
import sys
import textwrap
import time

import pytest

from tests.support.program import BUILD, ROOT, run_cli
from tests.support.patience import patience

CONFIG = """
transport: {{journal: {journal}}}
rules: [{{use: exploding_tensor, actions: [stop]}}]
receivers: {{stop: {{stop_training: {{armed: true, mode: stop, grace: 5s, deadline: {{ack: {ack}}}{more}}}}}}}
platforms: {{{platforms}}}
http: {{listen: '127.0.0.1:0'}}
"""
PRIVATE = "allow_private: [127.0.0.0/8]"

SCRIPT = """
import sys, time
import tocsin
hook = tocsin.watch(run="r", job="bert")
for step in range(3000):
    hook.log(loss=float("nan") if step >= 5 else 1.0)
    hook.step()
    if {asks} and hook.should_stop():
        hook.acknowledge_stop()
        hook.close(outcome="stopped_by_rule")
        sys.exit(tocsin.EXIT_STOPPED)
    time.sleep(0.02)
"""


@pytest.fixture
def train(tmp_path):
    running = []

    def start(environment, asks=False):
        path = tmp_path / "train.py"
        path.write_text(textwrap.dedent(SCRIPT.format(asks=asks)))
        everything = {**os.environ, "TOCSIN_OUT": str(tmp_path / "journal"), "PYTHONPATH": str(ROOT / "python"),
                      "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0")), **environment}
        running.append(subprocess.Popen([sys.executable, path], env=everything))
        return running[-1]

    yield start
    for one in running:
        one.kill()
        one.wait(10)


def in_job(uid, name="bert"):
    return {"TOCSIN_K8S_JOB_UID": uid, "TOCSIN_K8S_JOB": name, "TOCSIN_K8S_NAMESPACE": "ml", "POD_NAME": f"{name}-0"}


def config_of(tmp_path, platforms, ack="1s", more=""):
    return CONFIG.format(journal=tmp_path / "journal", platforms=platforms, ack=ack, more=more)


def issues_of(tmp_path, rule):
    code, out, _ = run_cli("issues", "list", "--all", "--from", tmp_path / "journal", "-o", "json")
    assert code == 0, out
    return [one for one in json.loads(out) if one.get("rule", one.get("labels", {}).get("rule")) == rule]


def wait_until(found, timeout=20):
    end = time.monotonic() + patience(timeout)
    while time.monotonic() < end:
        if result := found():
            return result
        time.sleep(0.2)
    raise AssertionError("it did not come")
