"""Rules of how long things take, on what the hook itself says of steps and phases; the program and its journal are real."""
import os
import subprocess
import sys
import time
import uuid

import pytest

from tests.support.program import BUILD, ROOT
from tests.support.telemetry import journal_events

CONFIG = """
transport: {{journal: {journal}}}
rules: [data_wait, straggler, {{use: max_initialization_time, with: {{threshold: 0}}}}]
http: {{listen: '127.0.0.1:0'}}
"""


@pytest.fixture
def told(server, tmp_path):
    """told(ranks, …) runs a job of so many ranks to its end and gives {(rule, status): worker} of its issues. `ranks`: the
    environment of each."""
    journal = tmp_path / "journal"
    server(CONFIG.format(journal=journal), role="evaluate").wait_for("ready")

    def run(*ranks):
        uid = str(uuid.uuid4())
        base = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
        base.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
        base.update(TOCSIN_OUT=str(journal), TOCSIN_RUN=uid, PYTHONPATH=str(ROOT / "python"), WORLD_SIZE=str(len(ranks)))
        jobs = [subprocess.Popen([sys.executable, str(ROOT / "tests" / "support" / "timed_job.py")],
                                 env={**base, "RANK": str(rank), **{key: str(value) for key, value in one.items()}})
                for rank, one in enumerate(ranks)]
        assert [job.wait(60) for job in jobs] == [0] * len(jobs)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            events = [data for _, data, _ in journal_events(journal, "issues") if data["run"]["uid"] == uid]
            if any(data.get("phase") == "ended" for data in events):
                return {(data["rule"], data["status"]): data["labels"].get("worker") for data in events if "labels" in data
                        and "evidence" in data}
            time.sleep(0.2)
        raise AssertionError("the run did not end")

    return run


def test_a_loop_that_waits_for_its_data(told):
    assert told({"WAIT": 20, "COMPUTE": 1}).get(("data_wait", "firing")) == "worker_0"
    quiet = told({"WAIT": 1, "COMPUTE": 20})
    assert ("data_wait", "firing") not in quiet, "data that come in time"


def test_a_worker_that_is_slower_than_the_other(told):
    issues = told({"WAIT": 0, "COMPUTE": 3}, {"WAIT": 0, "COMPUTE": 30})
    assert issues.get(("straggler", "firing")) == "worker_1"
    assert ("straggler", "firing") not in told({"WAIT": 0, "COMPUTE": 10}, {"WAIT": 0, "COMPUTE": 10})


def test_a_training_that_takes_its_time_to_begin(told):
    issues = told({"WAIT": 0, "COMPUTE": 1, "START": 4})
    assert ("max_initialization_time", "firing") in issues
    assert ("max_initialization_time", "resolved") in issues, "the first step came"
