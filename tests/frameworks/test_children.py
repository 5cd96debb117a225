"""Ranks that torch.multiprocessing or a notebook's launcher makes by fork: each ends as it ended, with its last step."""
import os
import socket
import subprocess
import sys

import pytest

from tests.support.hook_support import ROOT, Telemetry

CONFIG = """
transport: {{journal: {journal}}}
rule_groups: [default]
http: {{listen: '127.0.0.1:0'}}
"""
STEPS = 120
SCRIPT = f"""
import os, sys, time, torch
import torch.multiprocessing as mp

def main(rank, what, n):
    import torch.distributed as dist, tocsin
    if what != "notebook":
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2], RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(n), LOCAL_WORLD_SIZE=str(n))
    torch.set_num_threads(1)
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)))
    optimizer = torch.optim.AdamW(net.parameters(), 3e-3)
    hook = tocsin.watch(net, optimizer, job="two-" + what)
    torch.manual_seed(rank + 1)
    for step in range({STEPS}):
        x = torch.randn(64, 16)
        loss = torch.nn.functional.mse_loss(net(x), x.sum(1, keepdim=True) / 4 + 0.3 * torch.randn(64, 1))
        optimizer.zero_grad()
        loss.backward()
        hook.log(loss=loss)
        optimizer.step()
        time.sleep(0.005)
    dist.barrier()
    if what == "raises":
        raise RuntimeError(f"rank {{rank}} gives up")
    if what == "loader":  # its workers are forks of a watched process
        for _ in torch.utils.data.DataLoader(torch.zeros(8, 2), num_workers=2):
            pass
    if what == "close":
        hook.close()

if __name__ == "__main__":
    if sys.argv[1] == "notebook":
        from accelerate import notebook_launcher
        notebook_launcher(main, (0, "notebook", 2), num_processes=2, use_port=sys.argv[2])
    else:
        mp.start_processes(main, args=(sys.argv[1], 2), nprocs=2, start_method="fork")
    print("all ranks ended with 0")
"""


@pytest.mark.parametrize("what", ["plain", "close", "loader", "notebook", "raises"])
def test_forked_ranks_are_told_as_they_ended(server, tmp_path, what):
    journal = tmp_path / "journal"
    one = server(CONFIG.format(journal=journal))
    one.wait_for("ready")
    (tmp_path / "two.py").write_text(SCRIPT)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TOCSIN_") or key == "TOCSIN_LIBRARY"}
    environment.update(TOCSIN_OUT=str(journal), PYTHONPATH=str(ROOT / "python"), OMP_NUM_THREADS="1", ACCELERATE_USE_CPU="true", TOCSIN_QUIET="1")
    done = subprocess.run([sys.executable, "two.py", what, str(port)], cwd=tmp_path, env=environment, text=True, capture_output=True, check=False,
                          timeout=200)
    assert ("all ranks ended with 0" in done.stdout) == (what != "raises"), done.stderr[-3000:]
    telemetry = Telemetry(journal)
    ends = telemetry.lifecycles("end")
    assert sorted(telemetry.steps()) == sorted(2 * list(range(STEPS)))
    if what == "raises":
        # torch ends the other rank when the first one has failed.
        assert ends and ends[0]["outcome"] == "failed" and "gives up" in ends[0]["error"], ends
        one.wait_for("job_ended", outcome="failed")
        return
    assert [end["outcome"] for end in ends] == ["completed"] * 2
    one.wait_for("job_ended", outcome="completed")
    assert one.all("issue_fired") == []
