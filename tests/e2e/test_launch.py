"""A named run is started again and again: every launch is judged, and no stop reaches a launch it was not meant for."""
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from tests.support.hook_support import Telemetry, acks, wait_for
from tests.support.program import BUILD, ROOT
from tests.support.receiver import free_port
from tests.support.telemetry import journal_events

CONFIG = """
transport: {{journal: {journal}}}
rules: [{{use: exploding_tensor{actions}}}]
{receivers}
http: {{listen: '127.0.0.1:0'}}
"""
ARMED = "receivers: {stop: {stop_training: {armed: true, mode: stop, grace: 5s, deadline: {ack: 5s}}}}"

SCRIPT = """
import os, sys, time
import tocsin
bad, steps = int(os.environ["BAD_STEP"]), int(os.environ["STEPS"])
hook = tocsin.watch(run="r", job="again")
for step in range(steps):
    hook.log(loss=float("nan") if step == bad and hook.rank == 0 else 1.0)
    hook.step()
    if hook.should_stop():
        hook.acknowledge_stop()
        hook.close()
        sys.exit(tocsin.EXIT_STOPPED)
    time.sleep(0.02)
hook.close()
"""


def environment(journal, bad, steps=40):
    out = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    out.update(TOCSIN_OUT=str(journal), PYTHONPATH=str(ROOT / "python"), BAD_STEP=str(bad), STEPS=str(steps))
    out.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
    return out


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(SCRIPT))
    return path


def config(tmp_path, armed=False):
    return CONFIG.format(journal=tmp_path / "journal", actions=", actions: [stop]" if armed else "", receivers=ARMED if armed else "")


def train(tmp_path, script, bad, steps=40):
    return subprocess.Popen([sys.executable, str(script)], env=environment(tmp_path / "journal", bad, steps))


def torchrun(tmp_path, script, bad, port, *more):
    # Redirecting stdout is a way around a defect: torch 1.13 under Python 3.11 does not find its own "no redirection".
    logs = ["--redirects=1", "--tee=1", "--log_dir", str(tmp_path / "logs")]
    return subprocess.Popen([sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={port}", *logs, *more, str(script)],
                            env=environment(tmp_path / "journal", bad))


def fired(tmp_path):
    """(attempt, step) of every issue that fires in the journal."""
    return [(data["run"]["attempt"], data["step"]) for _, data, headers in journal_events(tmp_path / "journal", "issues")
            if headers.get("ce_type") == "dev.tocsin.issue.v1" and data["status"] == "firing" and data["rule"] == "exploding_tensor"]


def test_the_second_launch_of_a_named_run_is_judged(server, tmp_path, script):
    server(config(tmp_path)).wait_for("ready")
    assert train(tmp_path, script, bad=-1).wait(30) == 0
    assert train(tmp_path, script, bad=5).wait(30) == 0
    assert wait_for(lambda: fired(tmp_path), 15), "the NaN of the second launch was not seen"
    assert train(tmp_path, script, bad=7).wait(30) == 0
    assert wait_for(lambda: len(fired(tmp_path)) == 2, 15)
    (first, _), (second, _) = sorted(fired(tmp_path))
    assert second > first


def test_a_stop_of_one_launch_does_not_stop_the_repaired_one(server, tmp_path, script):
    one = server(config(tmp_path, armed=True))
    one.wait_for("ready")
    assert train(tmp_path, script, bad=5, steps=600).wait(40) == 77
    one.wait_for("stop_state_changed", to="stopped")
    assert train(tmp_path, script, bad=-1).wait(30) == 0  # the old command is still in the topic
    refused = [ack for ack in acks(tmp_path / "journal") if ack["phase"] == "refused"]
    assert [ack["reason"] for ack in refused] == ["stale"]  # it was seen, and answered
    ends = [end["outcome"] for end in Telemetry(tmp_path / "journal").lifecycles("end")]
    assert sorted(ends) == ["completed", "stopped_by_rule"]


def test_relaunch_under_torchrun_with_a_fixed_port(server, tmp_path, script):
    server(config(tmp_path)).wait_for("ready")
    port = free_port()
    assert torchrun(tmp_path, script, -1, port).wait(90) == 0
    assert torchrun(tmp_path, script, 5, port).wait(90) == 0
    assert wait_for(lambda: fired(tmp_path), 15), "the NaN of the second launch was not seen"
    starts = Telemetry(tmp_path / "journal").lifecycles("start")
    assert len(starts) == 4 and len({start["launch"] for start in starts}) == 1  # the key alone does not tell launches apart


def test_restart_in_place_is_another_launch(server, tmp_path, script):
    """torchrun starts the workers again after one was killed: same agent, same run."""
    server(config(tmp_path)).wait_for("ready")
    port = free_port()
    agent = torchrun(tmp_path, script, 35, port, "--max_restarts=1", "--monitor_interval=1")
    journal = tmp_path / "journal"
    try:
        assert wait_for(lambda: journal.exists() and len(Telemetry(journal).lifecycles("start")) == 2, 60)
        os.kill(Telemetry(journal).lifecycles("start")[0]["pid"], signal.SIGKILL)
        assert agent.wait(90) == 0
    finally:
        if agent.poll() is None:
            agent.kill()
    assert wait_for(lambda: fired(tmp_path), 15), "the NaN after the restart was not seen"
    launches = [start["launch"] for start in Telemetry(journal).lifecycles("start")]
    assert len(launches) == 4 and len(set(launches)) == 2
