"""What lies in parts on several ranks, or belongs to ranks of other roles, is told as a part and compared with nothing; what ranks hold alike
still is."""
import json
import os
import subprocess
import sys

import pytest

from tests.support.hook_support import ROOT, Telemetry, wire

CONFIG = """
transport: {{journal: {journal}}}
rule_groups: [default]
http: {{listen: '127.0.0.1:0'}}
"""
PARTIAL = 1 << 19


def launched(tmp_path, script, *arguments, ranks=2):
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    environment.update(TOCSIN_OUT=str(tmp_path / "journal"), PYTHONPATH=str(ROOT / "python"), OMP_NUM_THREADS="1", DS_ACCELERATOR="cpu",
                       TOCSIN_QUIET="1")
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), str(script),
                           *map(str, arguments)], cwd=tmp_path, env=environment, text=True, capture_output=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr[-4000:]
    return Telemetry(tmp_path / "journal")


def flags(telemetry, rank):
    """{name: whether its rows are told as parts} of weights and gradients."""
    out = {}
    for frame in telemetry.of_kind(wire.SUMMARY):
        if frame.header["rank"] == rank:
            for row in frame.rows:
                name = telemetry.names[row["name"]]
                if "_input_" not in name:  # what a row-parallel layer gets is a part as well, and no parameter
                    out.setdefault(name, set()).add(bool(row["meta"] & PARTIAL))
    return out


def judged(server, tmp_path, kind, *arguments, ranks=2):
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    telemetry = launched(tmp_path, ROOT / "tests/frameworks/roles.py", kind, tmp_path, *arguments, ranks=ranks)
    one.wait_for("job_ended", outcome="completed")
    return telemetry, {event["rule"] for event in one.all("issue_fired")}


@pytest.mark.parametrize("kind", ["fsdp1", "fsdp1_uneven", "fsdp1_flat", "fsdp1_grad", "fsdp1_whole", "fsdp1_ignored", "fsdp1_inside", "fsdp2", "fsdp2_uneven",
                                  "fsdp2_ignored", "tensor", "expert", "marked", "pipeline", "groups", "zero0", "zero1", "zero2", "zero3"])
def test_a_part_is_told_as_one_and_compared_with_nothing(server, tmp_path, kind):
    ranks = 4 if kind == "groups" else 2
    telemetry, fired = judged(server, tmp_path, kind, ranks=ranks)
    assert "replica_divergence" not in fired
    for rank in range(ranks):
        parts = json.loads((tmp_path / f"rank{rank}.json").read_text())
        told = flags(telemetry, rank)
        assert told, f"rank {rank} published nothing"
        for name, values in told.items():
            assert values == {name.removeprefix("gradient/") in parts}, (rank, name, parts)


@pytest.mark.parametrize("kind, name", [("replicas", "up.weight"), ("tensor", "norm.weight"), ("fsdp1_whole", "up.weight"),
                                        ("fsdp2_ignored", "norm.weight")])
def test_what_ranks_hold_alike_is_compared_beside_parts(server, tmp_path, kind, name):
    """One of two ranks changes it by itself."""
    _, fired = judged(server, tmp_path, kind, name)
    assert "replica_divergence" in fired


def test_two_ranks_of_fully_shard_alarm_nobody_by_default(server, tmp_path):
    """As the rules ask for it themselves, without a word in the script."""
    script = tmp_path / "pair.py"
    script.write_text("""
import torch, torch.distributed as dist, tocsin
from torch import nn
from torch.distributed.fsdp import fully_shard
dist.init_process_group("gloo"); r = dist.get_rank(); torch.manual_seed(0); torch.set_num_threads(1)
m = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 8)); fully_shard(m)
o = torch.optim.AdamW(m.parameters(), 3e-3); h = tocsin.watch(m, o, job="pair"); torch.manual_seed(10 + r)
for s in range(200):
    x = torch.randn(32, 16); l = nn.functional.mse_loss(m(x), x[:, :8].sin()); o.zero_grad(); l.backward(); h.log(loss=l); o.step()
h.close(); dist.barrier(); dist.destroy_process_group()
""")
    one = server(CONFIG.format(journal=tmp_path / "journal"))
    one.wait_for("ready")
    launched(tmp_path, script)
    one.wait_for("job_ended", outcome="completed")
    assert one.all("issue_fired") == []


def test_where_each_thing_is_told_once_each_rank_tells_of_its_parts(tmp_path):
    """``capture.workers: auto``, the default: replicated tensors from rank 0, parts from all."""
    os.makedirs(tmp_path / "auto", exist_ok=True)
    script = tmp_path / "auto.py"
    script.write_text((ROOT / "tests/frameworks/roles.py").read_text().replace('"workers": "all"', '"workers": "auto"'))
    telemetry = launched(tmp_path, script, "tensor", tmp_path)
    assert {"up.weight", "down.weight", "norm.weight"} <= set(flags(telemetry, 0))
    assert {"up.weight", "down.weight"} <= set(flags(telemetry, 1)) and "norm.weight" not in flags(telemetry, 1)
