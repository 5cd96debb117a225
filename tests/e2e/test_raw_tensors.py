"""Raw tensors over a real Kafka: on their topic, in a directory with references on it, and with a broker that is gone."""
import os
import subprocess
import sys
import uuid

import numpy
import pytest

from tests.support.program import run_cli

import tocsin
from tocsin.raw import NoRawTensor, RawTensors

STEPS = 4


@pytest.fixture
def config(tmp_path, kafka):
    path = tmp_path / "tocsin.yaml"
    path.write_text(f"transport: {{kafka: {{bootstrap.servers: '{kafka}'}}}}\n"
                    f"topics: {{prefix: raw{uuid.uuid4().hex[:8]}, partitions: 3}}\n")
    code, _, said = run_cli("topics", "apply", "-c", path)
    assert code == 0, said
    return str(path)


def sent(config, raw):
    values = [numpy.random.default_rng(step).standard_normal((200, 700)).astype("f4") for step in range(STEPS)]
    hook = tocsin.watch(config=config, run=uuid.uuid4().hex, capture={"every": "1 step", "overhead": 1.0, "raw": raw})
    for value in values:
        hook.save_tensor("state", value, raw=True)
        hook.log(loss=1.0)
        hook.step()
    return hook, values


@pytest.mark.parametrize("place", ["topic", "directory"])
def test_there_and_back(config, tmp_path, place):
    raw = {"chunk": "256KiB", "to": "topic" if place == "topic" else str(tmp_path / "raw")}
    hook, values = sent(config, raw)
    for step, value in enumerate(values):
        assert numpy.array_equal(hook.get_tensor("state", step), value)
    hook.close(timeout=20)
    assert not hook.stats()["loss"], hook.stats()
    with RawTensors(run=hook.run, config=config) as tensors:  # as another process would
        for step in (3, 0, 2):
            assert numpy.array_equal(tensors.value("state", step, wait=10), values[step])
        assert tensors.counters()["records_total"] == (3 * STEPS if place == "topic" else STEPS)
        with pytest.raises(NoRawTensor, match="raw: true"):
            tensors.value("state", STEPS)


def test_a_broker_that_never_answers_costs_elements_and_no_time(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("""
import time, numpy, tocsin
hook = tocsin.watch(out="kafka://127.0.0.1:9", capture={"every": "1 step", "overhead": 1.0, "raw": {"queue": "9MiB"}})
worst, value = 0.0, numpy.zeros(1 << 20, "f4")
for step in range(10):
    began = time.monotonic()
    hook.save_tensor("state", value, raw=True)
    hook.step()
    worst = max(worst, time.monotonic() - began)
began = time.monotonic()
hook.close(timeout=2)
raw = hook.stats()["raw"]["skipped_total"]
print(worst < 1.0, time.monotonic() - began < 15, raw["queue_full"], raw["undelivered"])
""")
    environment = {**os.environ, "TOCSIN_SPOOL": "off", "PYTHONPATH": os.path.dirname(os.path.dirname(tocsin.__file__))}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True", "8", "2"], (done.stdout, done.stderr)
    assert "10 raw tensors (41943040 bytes) did not go to topic: 8 queue_full, 2 undelivered" in done.stderr
