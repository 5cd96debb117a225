"""What a rule needs beside the base columns comes from our own hook: it asks for it by command, the hook measures it in a real training, and
the rule fires on the faulty one and stays quiet on its healthy twin. Nothing else produces telemetry here."""
import json
import os
import random
import subprocess
import sys
import time
import uuid

import pytest

from tests.support.program import BUILD, ROOT
from tests.support.telemetry import journal_events, kafka_events

CASES = ["dead_relu", "saturated_activation", "confusion", "class_imbalance", "check_input_images", "probabilities_into_loss",
         "nlp_sequence_ratio", "weight_saturation", "unchanged_tensor", "update_large", "constant_input"]
PARAMETERS = {"weight_saturation": {"bound": 1}, "unchanged_tensor": {"collection_names": ["weights"]}}
RULES = [{"use": name, "with": PARAMETERS.get(name, {})} for name in [*CASES, "replica_divergence"]]


def train(case, state, uid, *arguments, **environment):
    """A process of one rank."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    env.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
    env.update(TOCSIN_RUN=uid, PYTHONPATH=str(ROOT / "python"), **environment)
    return subprocess.Popen([sys.executable, str(ROOT / "tests" / "support" / "fed_rules_job.py"), case, state, *arguments], env=env,
                            stderr=subprocess.PIPE, text=True)


def finish(*ranks):
    for rank in ranks:
        _, error = rank.communicate(timeout=120)
        assert rank.returncode == 0, error


def told(events, uid):
    """{rule} of what fired in the run, and the answers to its commands, once the run has ended."""
    end = time.monotonic() + 60
    while True:
        mine = [data for _, data, _ in events("issues") if data["run"]["uid"] == uid]
        if any(data.get("phase") == "ended" for data in mine):
            break
        assert time.monotonic() < end, "the run did not end"
        time.sleep(0.3)
    answers = [data for _, data, _ in events("acks") if data["run"]["uid"] == uid]
    return {data["rule"] for data in mine if data.get("status") == "firing" and "evidence" in data}, answers


def all_given(answers):
    """The hook has applied what the rules asked for, without leaving anything out."""
    return [(one["phase"], one.get("reason", "")) for one in answers if one["phase"] != "received"] == [("applied", "")]


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """judged(case, state): the rules that fired."""
    from tests.support.program import Server
    folder = tmp_path_factory.mktemp("fed")
    config = folder / "tocsin.yaml"
    config.write_text(json.dumps({"transport": {"journal": str(folder / "journal")}, "rules": RULES, "http": {"listen": "127.0.0.1:0"}}))
    server = Server(config, role="evaluate")
    server.wait_for("ready", timeout=60)

    def run(case, state):
        uid = str(uuid.uuid4())
        finish(train(case, state, uid, TOCSIN_OUT=str(folder / "journal")))
        fired, answers = told(lambda topic: journal_events(folder / "journal", topic), uid)
        assert all_given(answers), answers
        return fired

    run.journal = folder / "journal"
    yield run
    server.kill()


@pytest.mark.parametrize("rule", CASES)
def test_the_faulty_training_fires_and_its_healthy_twin_does_not(judged, rule):
    assert rule in judged(rule, "faulty")
    assert rule not in judged(rule, "healthy")


@pytest.mark.parametrize("state", ["faulty", "healthy"])
def test_ranks_that_hold_different_weights(judged, tmp_path, state):
    uid = str(uuid.uuid4())
    finish(*[train("replica_divergence", state, uid, str(tmp_path), TOCSIN_OUT=str(judged.journal), RANK=str(rank), WORLD_SIZE="2")
             for rank in range(2)])
    fired, answers = told(lambda topic: journal_events(judged.journal, topic), uid)
    assert ("replica_divergence" in fired) == (state == "faulty")
    assert [one["phase"] for one in answers].count("applied") == 2, answers


def test_the_same_over_a_real_kafka(kafka, server, tmp_path):
    prefix = f"fed{random.randrange(10**9)}"
    config = tmp_path / "tocsin.yaml"
    config.write_text(json.dumps({"transport": {"kafka": {"bootstrap.servers": kafka}}, "topics": {"prefix": prefix, "partitions": 3},
                                  "rules": RULES, "http": {"listen": "127.0.0.1:0"}}))
    server(config, role="evaluate").wait_for("ready", timeout=60)
    for state in ("faulty", "healthy"):
        uid = str(uuid.uuid4())
        finish(train("dead_relu", state, uid, TOCSIN_CONFIG=str(config)))
        fired, answers = told(lambda topic: kafka_events(kafka, f"{prefix}.{topic}.v1"), uid)
        assert ("dead_relu" in fired) == (state == "faulty")
        assert all_given(answers), answers
