"""A rule stops two ranks under a real torchrun: both leave at the same step, by the framework's own agreement (Lightning, Accelerate) or by
the step that the command names (FSDP, DeepSpeed)."""
import os
import subprocess
import sys

import pytest

from tests.support.hook_support import ROOT, Telemetry, acks

CONFIG = """
transport: {{journal: {journal}}}
rules: [{{use: exploding_tensor, actions: [stop]}}]
receivers: {{stop: {{stop_training: {{armed: true, mode: stop, grace: 120s, deadline: {{ack: 120s}}}}}}}}
http: {{listen: '127.0.0.1:0'}}
"""


@pytest.mark.parametrize("kind", ["lightning", "accelerate", "fsdp1", "fsdp2", "zero0", "zero1", "zero2", "zero3"])
def test_both_ranks_leave_at_the_same_step(server, tmp_path, kind):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal))
    one.wait_for("ready")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    environment.update(TOCSIN_OUT=str(journal), PYTHONPATH=str(ROOT / "python"), OMP_NUM_THREADS="1", DS_ACCELERATOR="cpu")
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                           str(ROOT / "tests/frameworks/ranks.py"), kind, str(tmp_path)], cwd=tmp_path, env=environment, text=True,
                          capture_output=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr[-4000:]
    left = [int((tmp_path / f"left{rank}").read_text()) for rank in range(2)]
    assert left[0] == left[1] > 0, left
    one.wait_for("job_ended")
    assert [end["outcome"] for end in Telemetry(journal).lifecycles("end")] == ["stopped_by_rule"] * 2
    assert {ack["rank"] for ack in acks(journal) if ack["phase"] == "stopped"} == {0, 1}
