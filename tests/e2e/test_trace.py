"""`tocsin capture RUN --trace N` on two ranks (gloo; under a real torchrun with torch 2): the same steps of both, without a line in the script."""
import gzip
import json
import os
import re
import subprocess
import sys
import textwrap

from tests.support.program import BUILD, ROOT, run_cli
from tests.support.two_ranks import TwoRanks

CONFIG = """
transport: {{journal: {journal}}}
rules: [exploding_tensor]
capture: {{every: 100000 steps, raw: {{to: {raw}}}}}
http: {{listen: '127.0.0.1:0'}}
"""

SCRIPT = """
import os, sys, time
import torch
import torch.distributed as distributed
import tocsin
torch.set_num_threads(1)
distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
hook = tocsin.watch(model, optimizer, run="r", job="traced")
enough = torch.zeros(1)
while not enough:
    optimizer.zero_grad()
    model(torch.ones(2, 4)).square().mean().backward()
    with torch.profiler.record_function(f"step {hook.step_number}"):
        pass
    optimizer.step()
    time.sleep(0.005 * (1 + distributed.get_rank()))
    enough[0] = os.path.exists(sys.argv[1])
    distributed.all_reduce(enough)
hook.close()
"""


def fetched(command, config, file):
    """The events of a trace, by the command that was shown."""
    options = ["--config", str(config)] if config else []
    done = subprocess.run([sys.executable, *command.split(), *options, "--to", str(file)], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "TOCSIN_LIBRARY": os.environ.get("TOCSIN_LIBRARY")
                               or str(BUILD / "collectors/hook/libtocsin_client.so.0")})
    assert done.returncode == 0, done.stderr
    events = json.loads(gzip.decompress(file.read_bytes()))
    return events["traceEvents"] if isinstance(events, dict) else events


def traces(config, tmp_path, out):
    """{rank: names of the events of its trace}."""
    found = {}
    for rank, command in re.findall(r"rank (\d): ended: .*?python3 (-m tocsin.trace .*)", out):
        found[int(rank)] = [event.get("name", "") for event in fetched(command, config, tmp_path / f"{rank}.json.gz")]
    return found


def check_together(events):
    """One trace of both ranks: a process of each, and their steps end where the other's do."""
    names = {event["pid"]: event["args"]["name"] for event in events if event.get("name") == "process_name"}
    of_rank = {rank: {pid for pid, name in names.items() if name.startswith(f"rank {rank} ")} for rank in (0, 1)}
    assert of_rank[0] and of_rank[1] and set(names) == of_rank[0] | of_rank[1], names
    ends = {rank: {event["name"]: event["ts"] for event in events if event.get("name", "").startswith("tocsin step ") and event["pid"] in pids}
            for rank, pids in of_rank.items()}
    assert len(ends[0]) == 4 and set(ends[0]) == set(ends[1]), ends  # the begin, and the ends of three steps
    # The ranks wait for each other in every step, of some 10 ms each.
    assert all(abs(ends[0][name] - ends[1][name]) < 500_000 for name in ends[0]), ends


def test_all_ranks_trace_the_same_steps(server, tmp_path):
    config = tmp_path / "tocsin.yaml"
    config.write_text(CONFIG.format(journal=tmp_path / "journal", raw=tmp_path / "raw"))
    one = server(config)
    one.wait_for("ready")
    script, go = tmp_path / "train.py", tmp_path / "enough"
    script.write_text(textwrap.dedent(SCRIPT))
    job = TwoRanks(script, go, cwd=tmp_path, TOCSIN_CONFIG=str(config))
    try:
        one.wait_for("job_started", timeout=60)
        code, out, err = run_cli("capture", "traced", "--trace", "3", "--wait", "100s", "-c", config, timeout=150)
        assert code == 0 and "2 of 2 ranks have sent it" in out, out + err
        found = traces(config, tmp_path, out)
        steps = {rank: [name for name in names if name.startswith("step ")] for rank, names in found.items()}
        assert len(steps[0]) == 3 and steps[0] == steps[1], steps
        assert int(steps[0][0].split()[1]) == int(re.findall(r"asked .* from step (\d+)", out)[-1])
        assert list((tmp_path / "raw").rglob("*.tcsn"))
        [together] = re.findall(r"together: python3 (-m tocsin.trace .*)", out)
        check_together(fetched(together, config, tmp_path / "all.json.gz"))
        check_together(fetched("-m tocsin.trace merge " + " ".join(str(tmp_path / f"{rank}.json.gz") for rank in (1, 0)), None, tmp_path / "files.json.gz"))
    finally:
        go.touch()
        assert job.wait(60) == 0
    one.wait_for("job_ended", timeout=60)
