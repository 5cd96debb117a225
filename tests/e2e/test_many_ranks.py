"""A stop of several ranks under a real torchrun: all leave at the same step, whatever becomes of one of them."""
import os
import subprocess
import sys
import time

import pytest

from tests.support.hook_support import acks, wait_for
from tests.support.program import BINARY, BUILD, ROOT
from tests.support.telemetry import journal_events

CONFIG = """
transport: {{journal: {journal}}}
rules: [{{use: exploding_tensor, actions: [stop]}}]
receivers: {{stop: {{stop_training: {{armed: true, mode: stop, grace: 10s, deadline: {{ack: 3s}}}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""


@pytest.fixture
def start(server, tmp_path):
    """start(ranks, **what goes wrong) gives the launcher's process; see tests/support/many_ranks.py."""
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    processes = []

    def begin(ranks, *before, bad=150, script="many_ranks.py", **trouble):
        environment = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
        environment.setdefault("TOCSIN_LIBRARY", str(BUILD / "collectors/hook/libtocsin_client.so.0"))
        environment.update(TOCSIN_OUT=str(tmp_path / "journal"), PYTHONPATH=str(ROOT / "python"), BAD_STEP=str(bad),
                           LEAVES=str(tmp_path / "leaves"), OMP_NUM_THREADS="1", **{key: str(value) for key, value in trouble.items()})
        # Why stdout is redirected: see test_launch.py.
        logs = ["--redirects=1", "--tee=1", "--log_dir", str(tmp_path / "logs")]
        command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={ranks}", "--master_port=0", "--rdzv_backend=c10d",
                   "--rdzv_endpoint=127.0.0.1:0", *logs, str(ROOT / "tests" / "support" / script)]
        processes.append(subprocess.Popen([*before, *command], env=environment, stderr=subprocess.PIPE, text=True))
        return processes[-1]

    begin.server = one
    yield begin
    for process in processes:
        if process.poll() is None:
            process.terminate()
            process.wait(60)


def leaves(tmp_path):
    """rank -> the step after which it left."""
    path = tmp_path / "leaves"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return {int(rank): int(step) for rank, step in (line.split() for line in lines)}


def commands(tmp_path):
    return [data for _, data, _ in journal_events(tmp_path / "journal", "commands") if data and data["action"] == "stop"]


@pytest.mark.parametrize("ranks", [2, 4])
def test_all_ranks_leave_at_the_step_that_the_command_names(start, tmp_path, ranks):
    """Only rank 0 logs, so that its steps end a moment before those of the others."""
    assert start(ranks).wait(120) == 1  # torchrun's status, whatever its workers ended with
    command = commands(tmp_path)[-1]
    assert leaves(tmp_path) == {rank: command["args"]["not_before_step"] for rank in range(ranks)}
    heard = [ack for ack in acks(tmp_path / "journal") if ack["phase"] == "received" and ack["revision"] == command["revision"]]
    assert {ack["rank"] for ack in heard} == set(range(ranks))
    start.server.wait_for("stop_state_changed", to="stopped")


def test_tocsin_run_above_torchrun_gives_the_77_back(start, tmp_path):
    assert start(2, str(BINARY), "run", "--").wait(120) == 77
    assert len(set(leaves(tmp_path).values())) == 1


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_without_a_line_of_ours_leave_together(start, tmp_path, ranks):
    """`tocsin run` has attached to each worker: all end by themselves after the update that the command names, none in an allreduce."""
    assert start(ranks, str(BINARY), "run", "--", script="many_ranks_plain.py").wait(120) == 77
    command = commands(tmp_path)[-1]
    left = leaves(tmp_path)
    assert set(left) == set(range(ranks)) and len(set(left.values())) == 1, left
    # The update at which it attaches counts only where torch calls hooks that are added meanwhile (torch 2).
    assert left[0] - command["args"]["not_before_step"] in (0, 1), (left, command)
    stopping = {ack["rank"] for ack in acks(tmp_path / "journal") if ack["phase"] == "stopped" and ack["revision"] == command["revision"]}
    assert stopping == set(range(ranks))
    start.server.wait_for("stop_state_changed", to="stopped")


def test_a_rank_that_joins_after_the_stop_was_written_leaves_with_the_others(start, tmp_path):
    """Its hook opened later than the command was written: the first revision is not meant for it, the next one is."""
    assert start(2, TROUBLE="joins").wait(120) == 1
    left = leaves(tmp_path)
    assert set(left) == {0, 1} and left[0] == left[1], left
    answers = [(ack["phase"], ack.get("reason", "")) for ack in acks(tmp_path / "journal") if ack["rank"] == 1]
    assert answers[0] == ("refused", "stale") and ("received", "") in answers, answers


def test_a_rank_that_is_killed_on_the_way_holds_nobody(start, tmp_path):
    began = time.monotonic()
    assert start(2, TROUBLE="killed").wait(120) == 1
    assert time.monotonic() - began < 60
    assert leaves(tmp_path) == {}  # torchrun ended the other one
    assert wait_for(lambda: commands(tmp_path), 10), "the stop was under way when it happened"


def test_a_rank_that_hangs_is_ended_by_the_ladder(start, tmp_path):
    """The others stand in the allreduce and cannot ask: the node agent ends a process of the run, torchrun the others."""
    assert start(2, TROUBLE="hangs").wait(120) == 1
    assert leaves(tmp_path) == {}
    start.server.wait_for("stop_state_changed", to="platform_graceful")
    start.server.wait_for("stop_state_changed", to="stopped")
