"""Example scripts of the frameworks, with two lines of ours, or those of their loop, or none, over a real Kafka: watched, judged, stopped. Each
is what its first line says it follows, on data that is made here; `tocsin N` marks the lines that were added."""
import json
import os
import random
import re
import subprocess
import sys
import time
import uuid

import pytest

from tests.e2e import conftest as e2e
from tests.support.hook_support import wire
from tests.support.program import BINARY, ROOT, Server
from tests.support.telemetry import kafka_events, kafka_values

kafka = e2e.kafka
EXAMPLES = ROOT / "tests/frameworks/examples"
NONE = [str(BINARY), "run", "--"]
# script, what stands before it, lines that were added, what goes wrong, which rule says so, what the script ends with when it is stopped
CASES = {
    "pytorch, no line": ("pytorch_mnist.py", NONE, 0, ["--lr", "1e20"], "exploding_tensor", 77),
    "transformers": ("transformers_clm.py", [], 2, ["--lr", "1e20"], "exploding_tensor", 0),
    "accelerate": ("accelerate_classifier.py", [], 6, ["--lr", "1e20"], "exploding_tensor", 77),
    "lightning": ("lightning_autoencoder.py", [], 2, ["--lr", "1e20"], "exploding_tensor", 0),
    "keras": ("keras_convnet.py", [], 2, ["--lr", "1e20"], "exploding_tensor", 0),
    "tensorflow": ("tensorflow_loop.py", [], 8, ["--lr", "1e20"], "exploding_tensor", 77),
    "jax": ("jax_mlp.py", [], 8, ["--lr", "1e20"], "exploding_tensor", 77),
    "xgboost": ("xgboost_walkthrough.py", [], 2, ["--leak"], "feature_importance_overweight", 0),
    "lightgbm": ("lightgbm_simple.py", [], 2, ["--leak"], "feature_importance_overweight", 0),
    "mxnet": ("mxnet_gluon.py", [], 11, ["--lr", "1e20"], "exploding_tensor", 77),
    "sklearn": ("sklearn_out_of_core.py", [], 7, ["--lr", "1e300"], "exploding_tensor", 77),
}
FOREVER = 100_000_000
INTERPRETERS = {"mxnet_gluon.py": os.environ.get("TOCSIN_MXNET_PYTHON", sys.executable)}  # of tools/frameworks


@pytest.fixture(scope="module")
def judged(kafka, tmp_path_factory):
    """The configuration of a tocsin over Kafka that stops what its rules find."""
    config = tmp_path_factory.mktemp("kafka") / "tocsin.yaml"
    prefix = f"frameworks{random.randrange(10**9)}"
    config.write_text(json.dumps({
        "transport": {"kafka": {"bootstrap.servers": kafka}}, "topics": {"prefix": prefix, "partitions": 3},
        "rules": [{"use": rule, "actions": ["stop"]} for rule in ("exploding_tensor", "feature_importance_overweight")],
        "receivers": {"stop": {"stop_training": {"armed": True, "mode": "stop", "grace": "120s", "deadline": {"ack": "120s"},
                                                "max_stops": {"count": 100}}}},
        "http": {"listen": "127.0.0.1:0"}}))
    server = Server(config)
    server.wait_for("ready", timeout=120)
    yield config, kafka, prefix
    server.process.terminate()
    server.process.wait(60)


def train(judged, tmp_path, script, before, *arguments):
    """(uid of the run, the ended process)."""
    uid = str(uuid.uuid4())
    env = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    env.update(TOCSIN_RUN=uid, TOCSIN_CONFIG=str(judged[0]), PYTHONPATH=str(ROOT / "python"), OMP_NUM_THREADS="1", TF_CPP_MIN_LOG_LEVEL="2")
    return uid, subprocess.run([*before, INTERPRETERS.get(script, sys.executable), str(EXAMPLES / script), *map(str, arguments)], cwd=tmp_path, env=env, text=True,
                               capture_output=True, check=False, timeout=150)


def told(judged, uid):
    """(rules that fired, how the run ended, phases of the answers to commands), once the run has ended."""
    _, kafka, prefix = judged
    end = time.monotonic() + 120
    while True:
        mine = [data for _, data, _ in kafka_events(kafka, f"{prefix}.issues.v1") if data["run"]["uid"] == uid]
        outcomes = [data["outcome"] for data in mine if data.get("phase") == "ended"]
        if outcomes:
            break
        assert time.monotonic() < end, "the run did not end"
        time.sleep(0.5)
    phases = [data["phase"] for _, data, _ in kafka_events(kafka, f"{prefix}.acks.v1") if data["run"]["uid"] == uid and data["action"] == "stop"]
    return {data["rule"] for data in mine if data.get("status") == "firing" and "evidence" in data}, outcomes, phases


def frames(judged, uid):
    _, kafka, prefix = judged
    decoded = (wire.decode_frame(value) for value in kafka_values(kafka, f"{prefix}.telemetry.v1"))
    return [frame for frame in decoded if str(frame.header["run"]) == uid]


@pytest.mark.parametrize("case", CASES)
def test_an_example_that_goes_wrong_is_stopped(judged, tmp_path, case):
    script, before, _, wrong, rule, status = CASES[case]
    uid, done = train(judged, tmp_path, script, before, *wrong, "--epochs", FOREVER)
    assert done.returncode == status, done.stderr[-4000:]
    fired, outcomes, phases = told(judged, uid)
    # The end is told again when an agent or tocsin run brings the exit code.
    assert rule in fired and set(outcomes) == {"stopped_by_rule"} and len(outcomes) <= 2, outcomes
    assert phases[0] == "received" and phases[-2:] == ["stopping", "stopped"], phases


@pytest.mark.parametrize("case", CASES)
def test_the_example_as_it_is_is_watched_and_left_alone(judged, tmp_path, case):
    script, before, _, _, _, _ = CASES[case]
    uid, done = train(judged, tmp_path, script, before)
    assert done.returncode == 0, done.stderr[-4000:]
    fired, outcomes, phases = told(judged, uid)
    assert (fired & {"exploding_tensor", "feature_importance_overweight"}, outcomes, phases) == (set(), ["completed"], [])
    mine = frames(judged, uid)
    steps = [row["step"] for frame in mine if frame.kind == wire.STEP_END and frame.header["mode"] == wire.TRAIN for row in frame.rows]
    assert steps == list(range(len(steps))) and len(steps) >= 12
    roles = {entry["role"] for frame in mine for entry in frame.entries}
    assert wire.ROLES["loss"] in roles
    boosted = case in ("xgboost", "lightgbm")
    assert ({wire.ROLES["importance"]} if boosted else {wire.ROLES["weight"], wire.ROLES["bias"]} & roles) <= roles


@pytest.mark.parametrize("case", CASES)
def test_no_more_lines_were_added_than_are_marked(case):
    script, _, lines, *_ = CASES[case]
    text = (EXAMPLES / script).read_text(encoding="utf-8")
    body = text.split('"""', 2)[2]
    assert len(re.findall(r"# tocsin \d+$", body, re.MULTILINE)) == lines
    unmarked = [line for line in body.splitlines() if "tocsin" in line.lower() and not re.search(r"# tocsin \d+$", line)]
    assert unmarked == []
