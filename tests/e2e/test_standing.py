"""Two ranks (gloo; under a real torchrun with torch 2), one of them in a function where it should not be: the other waits for it in a collective operation.
What each says of where it stands names the function and the rank, while both main threads are blocked."""
import json
import textwrap

import pytest

from tests.support.hook_support import Telemetry, wait_for
from tests.support.program import run_cli
from tests.support.telemetry import journal_events
from tests.support.two_ranks import TwoRanks

CONFIG = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import os, sys, time
import torch
import torch.distributed as distributed
import tocsin
torch.set_num_threads(1)
distributed.init_process_group("gloo")
hook = tocsin.watch(run="r", job="hangs")
value = torch.ones(3)

def waits_for_a_lock():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.05)

secret = "of nobody's business"
for step in range(6):
    if step == 3 and distributed.get_rank() == 1:
        waits_for_a_lock()
    distributed.all_reduce(value)
    hook.step()
time.sleep(1.5)  # it is seen that it goes on
hook.close()
"""


@pytest.fixture
def hanging(server, tmp_path):
    """hanging(after) starts a server and two ranks that hang at step 3 until end(); gives the server and the configuration."""
    jobs, go = [], tmp_path / "enough"

    def begin(after):
        config = tmp_path / "tocsin.yaml"
        config.write_text(CONFIG.format(journal=tmp_path / "journal"))
        one = server(config)
        one.wait_for("ready")
        script = tmp_path / "train.py"
        script.write_text(textwrap.dedent(SCRIPT))
        jobs.append(TwoRanks(script, go, cwd=tmp_path, TOCSIN_OUT=str(tmp_path / "journal"), TOCSIN_STACKS_AFTER=after))
        return one, config

    def end():
        go.touch()
        assert jobs[0].wait(60) == 0

    begin.end = end
    yield begin
    go.touch()
    for job in jobs:
        job.wait(60)


def issues(tmp_path, status="firing"):
    """{worker: data} of what was told of ranks that stand still."""
    return {data["labels"]["worker"]: data for _, data, _ in journal_events(tmp_path / "journal", "issues")
            if data.get("rule") == "worker_stands_still" and data["status"] == status}


def test_a_hang_says_where_each_rank_stands(hanging, tmp_path):
    one, config = hanging("2")

    def hang():
        """Of both, once they have come to where they hang; a slow start may have been told before."""
        found = issues(tmp_path)
        return found if len(found) == 2 and all("all_reduce" in json.dumps(data) or "waits_for" in json.dumps(data) for data in found.values()) else None

    told = wait_for(hang, 60)
    assert set(told) == {"worker_0", "worker_1"}
    assert ": in waits_for_a_lock (" in told["worker_1"]["annotations"]["summary"]
    assert "all_reduce (distributed/distributed_c10d.py:" in json.dumps(told["worker_0"]["evidence"])
    assert "waits_for_a_lock" not in json.dumps(told["worker_0"])
    for issue in told.values():
        values = issue["evidence"]["values"]
        assert values["threads"][0]["name"] == "MainThread" and values["collectives"]
        assert "nobody's business" not in json.dumps(issue)  # places only: no values, no source
    code, out, err = run_cli("status", "-c", config)
    assert code == 0 and out.count("worker_stands_still") >= 1, out + err
    hanging.end()
    one.wait_for("job_ended", timeout=60)
    assert set(issues(tmp_path, "resolved")) == {"worker_0", "worker_1"}
    code, out, err = run_cli("report", "hangs", "-c", config, "-o", "json")
    assert code == 0 and "waits_for_a_lock" in out, out + err


def test_a_person_asks_where_the_ranks_stand(hanging, tmp_path):
    one, config = hanging("off")
    one.wait_for("job_started", timeout=60)
    wait_for(lambda: Telemetry(tmp_path / "journal").steps().count(2) == 2, 60)  # both have come to where they hang
    code, out, err = run_cli("capture", "hangs", "--stacks", "--wait", "60s", "-c", config)
    assert code == 0 and "2 of 2 ranks have sent it" in out, out + err
    of_rank = {part[0]: part for part in out.split("rank ")[1:]}
    assert "waits_for_a_lock (" in of_rank["1"] and "all_reduce (" in of_rank["0"] and "waits_for_a_lock" not in of_rank["0"], out
    assert issues(tmp_path) == {}
    hanging.end()
    one.wait_for("job_ended", timeout=60)
